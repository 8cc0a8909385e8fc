/** Datasets in Postgres. The record is curate/dataset.ts's; this file numbers it and maps it to rows and back. */
import { createHash } from 'node:crypto';
import { type ColumnType, type Selectable, sql } from 'kysely';
import type { Dataset, DatasetDraft } from '../curate/dataset.ts';
import { ConflictError } from '../errors.ts';
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
    internal: boolean;
    hash: string;
    key: string;
    artifact: string | null;
    gone_at: Date | null;
    gone_because: string | null;
    replaced_by: string | null;
  };
  dataset_rows: {
    dataset: string;
    position: number;
    agent: string;
    trajectory: string;
    day: Day;
    score: number;
    users: string[];
  };
};

/** Both funnels. A dataset from before there were pairs has the list of its gates alone. */
type StoredFunnel = Dataset['funnel'] | { readonly rows: Dataset['funnel']; readonly pairs: Dataset['pairs'] };

/** One line of the lineage: the conversations of its rows, in their order, then those that only pairs are from. */
export type DatasetRow = { readonly trajectory: string; readonly day: Day; readonly score: number };

const datasetOf = (row: Selectable<DatasetTables['datasets']>): Dataset => {
  const { created_at, since, until, task_types, funnel, gone_at, gone_because, replaced_by, ...rest } = row;
  return {
    ...rest,
    ...('pairs' in funnel
      ? { funnel: funnel.rows, pairs: funnel.pairs }
      : { funnel, pairs: { rows: 0, sources: {}, funnel: [] } }),
    taskTypes: task_types,
    createdAt: created_at.getTime(),
    since: since.getTime(),
    until: until.getTime(),
    gone: gone_at && { at: gone_at.getTime(), because: gone_because ?? '', replacedBy: replaced_by },
  };
};

const lockOf = (agent: string): number => createHash('sha256').update(agent).digest().readInt32BE();
const chunk = 5000;

/**
 * Gives the dataset its number and writes it with its lineage, all or nothing. One with the same key is returned as it
 * is, with its file's new place where it had one of an older kind. The file is an artifact before this is called: a dataset
 * that can be seen can be read. `alongside` is done with it or not at all; `isNew`: there was no such dataset.
 */
export const saveDataset = async (
  store: Store,
  draft: DatasetDraft,
  rows: Iterable<DatasetRow> | AsyncIterable<DatasetRow>,
  idOf: (agent: string, version: number) => string,
  alongside: (db: Store['db'], id: string, isNew: boolean) => Promise<void> = async () => {},
): Promise<Dataset> => {
  const { agent } = draft;
  try {
    return await store.db.transaction().execute(async (db) => {
      const transaction = db.withTables<DatasetTables>();
      await sql`select pg_advisory_xact_lock(${0x70617764}::int, ${lockOf(agent)}::int)`.execute(transaction);
      const same = await transaction
        .selectFrom('datasets')
        .selectAll()
        .where('agent', '=', agent)
        .where('key', '=', draft.key)
        .executeTakeFirst();
      if (same) {
        await alongside(db, same.id, false);
        const artifact = same.artifact ?? draft.artifact;
        if (artifact !== same.artifact)
          await transaction.updateTable('datasets').set({ artifact }).where('id', '=', same.id).execute();
        return datasetOf({ ...same, artifact });
      }
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
      let [from, part]: [number, DatasetRow[]] = [0, []];
      const insert = async () => {
        await insertRows(transaction, { id, agent, from }, part);
        [from, part] = [from + part.length, []];
      };
      for await (const row of rows) if (part.push(row) === chunk) await insert();
      if (part.length > 0) await insert();
      await alongside(db, id, true);
      return { ...draft, id, version, gone: null };
    });
  } catch (error) {
    throw storeError(error, `Saving a dataset of ${agent}`);
  }
};

/**
 * With whose words each holds: everybody's who took part in the conversation or wrote a correction in it. The days that their turns
 * lie on are worked out first, so that no other partition is looked at.
 */
const insertRows = async (
  db: Pick<Store['db'], 'getExecutor'>,
  { id, agent, from }: { readonly id: string; readonly agent: string; readonly from: number },
  part: readonly DatasetRow[],
): Promise<void> => {
  await sql`
    with wanted as materialized (
      select x.n, x.trajectory, x.day, x.score, t.started_at, t.ended_at
      from unnest(${part.map(({ trajectory }) => trajectory)}::text[], ${part.map(({ day }) => day)}::date[],
        ${part.map(({ score }) => score)}::float8[]) with ordinality as x(trajectory, day, score, n)
      left join pawl.trajectories t on t.id = x.trajectory and t.agent = ${agent} and t.day = x.day
    ), said as materialized (
      select w.n, x.id::text as turn, x.user_id as person
      from wanted w join pawl.turns x on x.trajectory = w.trajectory and x.agent = ${agent}
        and x.started_at between w.started_at and w.ended_at
        and x.day >= (select min((started_at at time zone 'UTC')::date) from wanted)
        and x.day <= (select max((ended_at at time zone 'UTC')::date) from wanted)
    ), people as (
      select n, array_agg(distinct person order by person) as users from (
        select n, person from said
        union all select w.n, s.user_id from wanted w join pawl.signals s on s.agent = ${agent} and s.correction <> ''
          and s.target_kind = 'trajectory' and s.target_id = w.trajectory
        union all select x.n, s.user_id from said x join pawl.signals s on s.agent = ${agent} and s.correction <> ''
          and s.target_kind = 'turn' and s.target_id = x.turn
      ) as found where person is not null group by n
    )
    insert into pawl.dataset_rows (dataset, position, agent, trajectory, day, score, users)
    select ${id}, ${from}::int + w.n::int - 1, ${agent}, w.trajectory, w.day, w.score, coalesce(p.users, '{}')
    from wanted w left join people p on p.n = w.n`.execute(db);
};

/** By id, or the newest of an agent that is there. */
export const readDataset = async (
  store: Store,
  which: { readonly id: string } | { readonly hash: string } | { readonly agent: string; readonly version?: number },
): Promise<Dataset | null> => {
  let query = store.db.withTables<DatasetTables>().selectFrom('datasets').selectAll();
  if ('id' in which) query = query.where('id', '=', which.id);
  else if ('hash' in which) query = query.where('hash', '=', which.hash);
  else {
    query = query.where('agent', '=', which.agent);
    query =
      which.version === undefined ? query.where('gone_at', 'is', null) : query.where('version', '=', which.version);
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

/** Of each line of the lineage; `held`: whether it has words of this user. */
export const readLineage = async (
  store: Store,
  id: string,
  user: string,
): Promise<(DatasetRow & { readonly held: boolean })[]> => {
  const { rows } = await sql<DatasetRow & { held: boolean }>`
    select trajectory, day, score, ${user} = any(users) as held from pawl.dataset_rows where dataset = ${id} order by position`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading which conversations are in dataset ${id}`);
    });
  return rows;
};

/** What is known of the people in a dataset stays known in the one that takes its place, whose conversations may be gone. */
export const inheritPeople = async (db: Store['db'], from: string, to: string): Promise<void> => {
  await sql`update pawl.dataset_rows n set users = o.users from pawl.dataset_rows o
    where n.dataset = ${to} and o.dataset = ${from} and o.trajectory = n.trajectory and o.day = n.day`
    .execute(db)
    .catch((error) => {
      throw storeError(error, `Writing down who is in dataset ${to}`);
    });
};

/** The dataset is no more; its record stays and says why. Its rows, and its claim to be the one of its kind, go. */
export const retireDataset = async (
  db: Store['db'],
  id: string,
  gone: { readonly because: string; readonly replacedBy: string | null },
): Promise<void> => {
  try {
    await sql`update pawl.datasets set gone_at = now(), gone_because = ${gone.because}, replaced_by = ${gone.replacedBy},
      key = 'gone ' || id where id = ${id} and gone_at is null`.execute(db);
    await sql`delete from pawl.dataset_rows where dataset = ${id}`.execute(db);
  } catch (error) {
    throw storeError(error, `Retiring dataset ${id}`);
  }
};

/** Fails if somebody in a dataset was erased since it was begun: what was read of them must not be kept. */
export const refuseErased = async (db: Store['db'], id: string, begunAt: Date): Promise<void> => {
  const { rows } = await sql`
    select 1 from pawl.erasures e join pawl.dataset_rows r on r.dataset = ${id} and (e.agent is null or e.agent = r.agent)
    where e.at > ${begunAt} and (e.user_id = any(r.users) or exists (
      select 1 from pawl.erased x where x.agent = r.agent and x.hash = pawl.id_hash('trajectory ' || r.trajectory)
        and x.erasure = e.id)) limit 1`
    .execute(db)
    .catch((error) => {
      throw storeError(error, 'Looking whether somebody was erased');
    });
  if (rows.length > 0)
    throw new ConflictError(
      'Somebody whose conversation is in the selection was erased while it was made; nothing was kept. Curate again.',
    );
};

/** What datasets that are no more were kept as, and still are. */
export const goneArtifacts = async (store: Store): Promise<{ readonly id: string; readonly artifact: string }[]> => {
  const rows = await store.db
    .withTables<DatasetTables>()
    .selectFrom('datasets')
    .select(['id', 'artifact'])
    .where('gone_at', 'is not', null)
    .where('artifact', 'is not', null)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Reading datasets that are no more');
    });
  return rows.map(({ id, artifact }) => ({ id, artifact: artifact! }));
};

export const forgetArtifact = async (store: Store, id: string): Promise<void> => {
  await store.db
    .withTables<DatasetTables>()
    .updateTable('datasets')
    .set({ artifact: null })
    .where('id', '=', id)
    .execute()
    .catch((error) => {
      throw storeError(error, `Forgetting the file of dataset ${id}`);
    });
};
