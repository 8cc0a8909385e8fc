/**
 * Lists of conversations by what no index orders: score, vote, kind of task, words. The newest conversations that match the other filters
 * are looked at one by one, a bounded number for each page, whatever is stored. A page may therefore be short, or empty, and still have a
 * next one: its cursor stands where looking stopped.
 */
import type { Selectable } from 'kysely';
import { addDays, dayOf, partitionDays } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import type { TrajectoriesTable } from './tables.ts';
import {
  cursorOf,
  type Position,
  pageQuery,
  positionOf,
  type Reach,
  reaches,
  type TrajectoryFilter,
  type TrajectoryPage,
  trajectoryOf,
} from './trajectories.ts';
import { factsOfRow } from './trajectory-facts.ts';

export const votes = ['up', 'down', 'none'] as const;

export type Search = {
  readonly minScore?: number | undefined;
  readonly maxScore?: number | undefined;
  /** up: above 0.5; down: below; none: nobody voted. */
  readonly vote?: (typeof votes)[number] | undefined;
  readonly taskType?: string | undefined;
  /** Somewhere in what was asked or answered, in any case. */
  readonly text?: string | undefined;
};

export const isSearch = ({ minScore, maxScore, vote, taskType, text }: Search): boolean =>
  [minScore, maxScore, vote, taskType, text].some((one) => one !== undefined);

/** Conversations that one page looks at; words are unpacked and cost more. */
const mostLooks = 2_000;
const mostReads = 300;
/** Turns of a conversation are looked for this long after its start. */
const longestDays = 30;

const voteConditions = { up: '> 0.5', down: '< 0.5', none: 'is null' } as const;

/** Words as they stand inside JSON. */
const needleOf = (text: string): string => JSON.stringify(text.toLowerCase()).slice(1, -1);

function conditionsOf(
  search: Search,
  reach: Reach,
  first: number,
): { readonly sql: string; readonly values: readonly unknown[] } {
  const values: unknown[] = [];
  const put = (value: unknown): string => `$${first + values.push(value) - 1}`;
  const { score, vote, taskType, hasText } = factsOfRow([
    reach.from && put(dayOf(reach.from)),
    reach.to && put(addDays(dayOf(reach.to), longestDays)),
  ]);
  const all: string[] = [];
  if (search.taskType !== undefined) all.push(`${taskType} = ${put(search.taskType)}::text`);
  if (search.minScore !== undefined) all.push(`${score} >= ${put(search.minScore)}::double precision`);
  if (search.maxScore !== undefined) all.push(`${score} <= ${put(search.maxScore)}::double precision`);
  if (search.vote !== undefined) all.push(`${vote} ${voteConditions[search.vote]}`);
  if (search.text !== undefined) all.push(hasText(`${put(needleOf(search.text))}::text`));
  return { sql: all.join(' and '), values };
}

type Row = Selectable<TrajectoriesTable> & { readonly matches: boolean; readonly looked: number };

const order = 'started_at desc, agent desc, id desc';

async function lookThrough(
  store: Store,
  filter: TrajectoryFilter & Search,
  reach: Reach,
  after: Position | null,
  { looks, most }: { readonly looks: number; readonly most: number },
): Promise<{ readonly rows: Row[]; readonly looked: number; readonly last: Row | null }> {
  const candidates = pageQuery(store, filter, reach, after, looks).compile();
  const { sql, values } = conditionsOf(filter, reach, candidates.parameters.length + 1);
  const { rows } = await store.pool.query<Row>(
    `with candidates as materialized (${candidates.sql}), found as (
       select * from candidates t where ${sql} order by ${order} limit ${most}
     )
     select f.*, true as matches, 0 as looked from found f
     union all
     (select c.*, false, (select count(*)::integer from candidates) from candidates c order by started_at, agent, id limit 1)`,
    [...candidates.parameters, ...values],
  );
  const last = rows.find(({ matches }) => !matches) ?? null;
  return { rows: rows.filter(({ matches }) => matches), looked: last?.looked ?? 0, last };
}

export const searchTrajectories = async (
  store: Store,
  options: TrajectoryFilter & Search & { readonly limit: number; readonly cursor?: string | null; readonly now?: Date },
): Promise<TrajectoryPage> => {
  const { limit } = options;
  const after = options.cursor ? positionOf(options.cursor) : null;
  const found: Row[] = [];
  let looks = options.text === undefined ? mostLooks : mostReads;
  try {
    const oldest = (await partitionDays(store))[0];
    if (oldest === undefined) return { trajectories: [], cursor: null };
    const newest = after?.startedAt ?? options.until ?? options.now ?? new Date();
    for (const reach of reaches(newest, options.until ?? null, options.since ?? null, oldest)) {
      const { rows, looked, last } = await lookThrough(store, options, reach, after, {
        ...{ looks, most: limit + 1 - found.length },
      });
      found.push(...rows);
      if (found.length > limit) {
        const page = found.slice(0, limit).map(trajectoryOf);
        return { trajectories: page, cursor: cursorOf(page.at(-1)!) };
      }
      if (last !== null && looked >= looks)
        return { trajectories: found.map(trajectoryOf), cursor: cursorOf(trajectoryOf(last)) };
      looks -= looked;
    }
  } catch (error) {
    throw storeError(error, 'Searching trajectories');
  }
  return { trajectories: found.map(trajectoryOf), cursor: null };
};
