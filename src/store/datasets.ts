/** Datasets in Postgres. The record is curate/dataset.ts's; this file numbers it and maps it to rows and back. */
import { createHash } from 'node:crypto';
import { type ColumnType, type Selectable, sql } from 'kysely';
import type { Dataset, DatasetDraft } from '../curate/dataset.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

type Json<T> = ColumnType<T, string, string>;

type DatasetTables = {
  datasets: {
    id: string;
    agent: string;
    version: number;
    created_at: Date;
    since: Date;
    until: Date;
    spec: string;
    settings: Json<Dataset['settings']>;
    seed: number;
    funnel: Json<StoredFunnel>;
    task_types: Json<Dataset['taskTypes']>;
    rows: number;
    hash: string;
    key: string;
  };
  dataset_rows: { dataset: string; position: number; agent: string; trajectory: string; day: Day; score: number };
};

/** Both funnels. A dataset from before there were pairs has the list of its gates alone. */
type StoredFunnel = Dataset['funnel'] | { readonly rows: Dataset['funnel']; readonly pairs: Dataset['pairs'] };

/** One line of the lineage: the conversations of its rows, in their order, then those that only pairs are from. */
export type DatasetRow = { readonly trajectory: string; readonly day: Day; readonly score: number };

const datasetOf = (row: Selectable<DatasetTables['datasets']>): Dataset => {
  const { created_at, since, until, task_types, funnel, ...rest } = row;
  return {
    ...rest,
    ...('pairs' in funnel
      ? { funnel: funnel.rows, pairs: funnel.pairs }
      : { funnel, pairs: { rows: 0, sources: {}, funnel: [] } }),
    taskTypes: task_types,
    createdAt: created_at.getTime(),
    since: since.getTime(),
    until: until.getTime(),
  };
};

const lockOf = (agent: string): number => createHash('sha256').update(agent).digest().readInt32BE();
const chunk = 5000;

/**
 * Gives the dataset its number and writes it with its lineage, all or nothing. One with the same key is returned as it
 * is. `publish` puts the file in place before the rows become visible: a dataset that can be seen can be read. A number
 * whose writer died in between is used again, and its file written over.
 */
export const saveDataset = async (
  store: Store,
  draft: DatasetDraft,
  rows: readonly DatasetRow[],
  publish: (id: string) => Promise<void>,
  idOf: (agent: string, version: number) => string,
): Promise<Dataset> => {
  const { agent } = draft;
  try {
    return await store.db
      .withTables<DatasetTables>()
      .transaction()
      .execute(async (transaction) => {
        await sql`select pg_advisory_xact_lock(${0x70617764}::int, ${lockOf(agent)}::int)`.execute(transaction);
        const same = await transaction
          .selectFrom('datasets')
          .selectAll()
          .where('agent', '=', agent)
          .where('key', '=', draft.key)
          .executeTakeFirst();
        if (same) return datasetOf(same);
        const last = await transaction
          .selectFrom('datasets')
          .select('version')
          .where('agent', '=', agent)
          .orderBy('version', 'desc')
          .limit(1)
          .executeTakeFirst();
        const version = (last?.version ?? 0) + 1;
        const id = idOf(agent, version);
        const { createdAt, since, until, settings, funnel, pairs, taskTypes, ...rest } = draft;
        await transaction
          .insertInto('datasets')
          .values({
            ...rest,
            id,
            version,
            created_at: new Date(createdAt),
            since: new Date(since),
            until: new Date(until),
            settings: JSON.stringify(settings),
            funnel: JSON.stringify({ rows: funnel, pairs }),
            task_types: JSON.stringify(taskTypes),
          })
          .execute();
        for (let from = 0; from < rows.length; from += chunk) {
          const part = rows.slice(from, from + chunk);
          await sql`insert into pawl.dataset_rows (dataset, position, agent, trajectory, day, score)
            select ${id}, ${from}::int + x.n::int - 1, ${agent}, x.trajectory, x.day, x.score
            from unnest(${part.map(({ trajectory }) => trajectory)}::text[], ${part.map(({ day }) => day)}::date[],
              ${part.map(({ score }) => score)}::float8[]) with ordinality as x(trajectory, day, score, n)`.execute(
            transaction,
          );
        }
        await publish(id);
        return { ...draft, id, version };
      });
  } catch (error) {
    throw storeError(error, `Saving a dataset of ${agent}`);
  }
};

/** By id, or the newest of an agent. */
export const readDataset = async (
  store: Store,
  which: { readonly id: string } | { readonly hash: string } | { readonly agent: string; readonly version?: number },
): Promise<Dataset | null> => {
  let query = store.db.withTables<DatasetTables>().selectFrom('datasets').selectAll();
  if ('id' in which) query = query.where('id', '=', which.id);
  else if ('hash' in which) query = query.where('hash', '=', which.hash);
  else {
    query = query.where('agent', '=', which.agent);
    if (which.version !== undefined) query = query.where('version', '=', which.version);
  }
  const row = await query
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, 'Reading a dataset');
    });
  return row ? datasetOf(row) : null;
};

/** Newest first. */
export const listDatasets = async (
  store: Store,
  options: { readonly agent?: string | undefined; readonly limit?: number } = {},
): Promise<Dataset[]> => {
  let query = store.db.withTables<DatasetTables>().selectFrom('datasets').selectAll();
  if (options.agent !== undefined) query = query.where('agent', '=', options.agent);
  const rows = await query
    .orderBy('created_at', 'desc')
    .orderBy('version', 'desc')
    .limit(Math.min(Math.max(1, options.limit ?? 50), 1000))
    .execute()
    .catch((error) => {
      throw storeError(error, 'Listing datasets');
    });
  return rows.map(datasetOf);
};
