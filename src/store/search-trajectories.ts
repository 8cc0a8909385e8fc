/**
 * Lists of conversations by what no index orders: score, vote, kind of task, words. The newest conversations that match the other filters
 * are looked at one by one, a bounded number for each page, whatever is stored. A page may therefore be short, or empty, and still have a
 * next one: its cursor stands where looking stopped.
 */
import type { Selectable } from 'kysely';
import { partitionDays } from './partitions.ts';
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
import { scoreOfRow, taskTypeOfRow, voteOfRow } from './trajectory-facts.ts';

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

const voteConditions = { up: '> 0.5', down: '< 0.5', none: 'is null' } as const;

/** In messages of their own, in what a turn has of its own, and in turns from before each message was stored once. */
const hasText = (needle: string) => `exists (
  select from pawl.turns x where x.trajectory = t.id and x.agent = t.agent
    and x.day between (t.started_at at time zone 'UTC')::date and (t.ended_at at time zone 'UTC')::date
    and (strpos(lower(x.frame::text), ${needle}) > 0 or strpos(lower(x.request::text), ${needle}) > 0
      or strpos(lower(x.choices::text), ${needle}) > 0
      or exists (select from unnest(x.parts) p(hash) join pawl.messages m on m.hash = p.hash and m.agent = x.agent
        and m.day = x.day where strpos(lower(m.body), ${needle}) > 0)))`;

/** Words as they stand inside JSON. */
const needleOf = (text: string): string => JSON.stringify(text.toLowerCase()).slice(1, -1);

function conditionsOf(search: Search, first: number): { readonly sql: string; readonly values: readonly unknown[] } {
  const values: unknown[] = [];
  const put = (value: unknown): string => `$${first + values.push(value) - 1}`;
  const all: string[] = [];
  if (search.taskType !== undefined) all.push(`${taskTypeOfRow} = ${put(search.taskType)}::text`);
  if (search.minScore !== undefined) all.push(`${scoreOfRow} >= ${put(search.minScore)}::double precision`);
  if (search.maxScore !== undefined) all.push(`${scoreOfRow} <= ${put(search.maxScore)}::double precision`);
  if (search.vote !== undefined) all.push(`${voteOfRow} ${voteConditions[search.vote]}`);
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
  const { sql, values } = conditionsOf(filter, candidates.parameters.length + 1);
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
