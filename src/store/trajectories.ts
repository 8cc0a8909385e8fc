/**
 * Listing trajectories, newest first, and reading one with its turns and signals. Writing them is record.ts.
 *
 * No query here looks at more than a few days' partitions at a time: it begins with the newest two days and reaches back
 * twice as far each time, until the page is full. A trajectory lies in the partition of the turn that arrived first,
 * which is never before its start and at most a week after it; that is how far the bounds on `day` are from those on
 * `started_at`. Pages are cut by position (start, agent, id), so rows that arrive meanwhile never shift them.
 */
import { type Selectable, type SelectQueryBuilder, sql } from 'kysely';
import type { Signal } from '../collect/signal.ts';
import type { Consent, Origin, Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import { RequestError } from '../errors.ts';
import { addDays, dayOf, partitionDays } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import { listSignals } from './signals.ts';
import type { Day, Tables, TrajectoriesTable } from './tables.ts';
import { earliestTime, joinWindowDays, latestTime } from './times.ts';
import { turnFacts } from './turn-columns.ts';
import { type TurnSize, turnSizes } from './turn-sizes.ts';
import { turnsOf, withoutContent } from './turns.ts';

export type TrajectoryFilter = {
  readonly agent?: string | undefined;
  readonly origin?: Origin | undefined;
  readonly user?: string | undefined;
  readonly release?: string | undefined;
  readonly consent?: Consent | undefined;
  /** `error`: at least one turn went wrong. */
  readonly status?: 'error' | undefined;
  /** Started at this time or later. */
  readonly since?: Date | undefined;
  /** Started before this time. */
  readonly until?: Date | undefined;
};

export type TrajectoryPage = { readonly trajectories: Trajectory[]; readonly cursor: string | null };

const largestPage = 1000;
const firstReachDays = 2;
/** A branch of the query for each: the compiler sees to it that none is missing. */
const origins = Object.keys({
  ...{ production: 0, exploration: 0, shadow: 0, simulation: 0, evaluation: 0, judge: 0 },
} satisfies Record<Origin, 0>) as Origin[];

export const trajectoryOf = (row: Selectable<TrajectoriesTable>): Trajectory => ({
  id: row.id,
  agent: row.agent,
  user: row.user_id,
  origin: row.origin,
  consent: row.consent,
  startedAt: row.started_at,
  endedAt: row.ended_at,
  turns: row.turns,
  errors: row.errors,
  promptTokens: row.prompt_tokens,
  completionTokens: row.completion_tokens,
  latencyMs: row.latency_ms,
  release: row.release,
});

/** When the first conversation of each of these ids began, in milliseconds; those that are not there are not in it. */
export const firstStarts = async (
  store: Store,
  agent: string,
  ids: readonly string[],
): Promise<Map<string, number>> => {
  if (ids.length === 0) return new Map();
  const rows = await store.db
    .selectFrom('trajectories')
    .select(({ fn }) => ['id', fn.min('started_at').as('at')])
    .where('agent', '=', agent)
    .where((where) => where('id', '=', where.fn.any(where.val(ids))))
    .groupBy('id')
    .execute()
    .catch((error) => {
      throw storeError(error, 'Reading when conversations began');
    });
  return new Map(rows.map(({ id, at }) => [id, +at]));
};

export type Position = { readonly startedAt: Date; readonly agent: string; readonly id: string };

export const cursorOf = ({ startedAt, agent, id }: Position): string =>
  Buffer.from(JSON.stringify([startedAt.getTime(), agent, id])).toString('base64url');

export const positionOf = (cursor: string): Position => {
  try {
    const [at, agent, id] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    const startedAt = new Date(at as number);
    const isTime = typeof at === 'number' && at >= earliestTime && at < latestTime;
    if (isTime && typeof agent === 'string' && typeof id === 'string') return { startedAt, agent, id };
  } catch {
    // Same answer as for a value of the wrong shape.
  }
  throw new RequestError(
    400,
    'invalid_cursor',
    `'${cursor.slice(0, 80)}' is not a cursor that a list of trajectories gave.`,
  );
};

/** One step of looking back: starts in [from, to), in the partitions that can hold them. */
export type Reach = { readonly from: Date | null; readonly to: Date | null };

/** The steps from `to` back to the oldest partition: 2 days, then 4 more, 8 more, … */
export function* reaches(newest: Date, to: Date | null, since: Date | null, oldest: Day): Generator<Reach> {
  const end = Math.max(since?.getTime() ?? Number.NEGATIVE_INFINITY, Date.parse(addDays(oldest, -joinWindowDays)));
  let upper = to;
  let days = firstReachDays;
  for (let at = newest.getTime(); ; ) {
    const from = at - days * 86_400_000;
    if (from <= end) {
      yield { from: since, to: upper };
      return;
    }
    yield { from: new Date(from), to: upper };
    at = from;
    upper = new Date(from);
    days *= 2;
  }
}

type Query = SelectQueryBuilder<Tables, 'trajectories', Selectable<TrajectoriesTable>>;

export const pageQuery = (
  store: Store,
  filter: TrajectoryFilter,
  reach: Reach,
  after: Position | null,
  limit: number,
) => {
  const branch = (origin: Origin | undefined): Query => {
    let query = store.db.selectFrom('trajectories').selectAll();
    if (filter.agent !== undefined) query = query.where('agent', '=', filter.agent);
    if (origin !== undefined) query = query.where('origin', '=', origin);
    if (filter.user !== undefined) query = query.where('user_id', '=', filter.user);
    if (filter.release !== undefined) query = query.where('release', '=', filter.release);
    if (filter.consent !== undefined) query = query.where('consent', '=', filter.consent);
    if (filter.status === 'error') query = query.where('errors', '>', 0);
    if (reach.from) query = query.where('started_at', '>=', reach.from).where('day', '>=', dayOf(reach.from));
    if (reach.to)
      query = query.where('started_at', '<', reach.to).where('day', '<=', addDays(dayOf(reach.to), joinWindowDays));
    if (after) {
      const { startedAt, agent, id } = after;
      query = query.where('day', '<=', addDays(dayOf(startedAt), joinWindowDays)).where('started_at', '<=', startedAt);
      query =
        filter.agent !== undefined
          ? query.where(sql<boolean>`(started_at, id) < (${startedAt}::timestamptz, ${id})`)
          : query.where(sql<boolean>`(started_at, agent, id) < (${startedAt}::timestamptz, ${agent}, ${id})`);
    }
    return query.orderBy('started_at', 'desc').orderBy('agent', 'desc').orderBy('id', 'desc').limit(limit);
  };
  // The main indexes begin with the origin. Asked for all of them, each is read in order and the results are merged.
  const narrow = filter.user !== undefined || filter.release !== undefined || filter.status !== undefined;
  if (filter.origin !== undefined || narrow) return branch(filter.origin);
  const [first, ...rest] = origins.map((origin) => store.db.selectFrom(branch(origin).as(origin)).selectAll());
  return rest
    .reduce((query, next) => query.unionAll(next), first as Query)
    .orderBy('started_at', 'desc')
    .orderBy('agent', 'desc')
    .orderBy('id', 'desc')
    .limit(limit);
};

/** The statement a page begins with, for the test that looks at its plan. */
export const firstPageQuery = (store: Store, filter: TrajectoryFilter, reach: Reach, limit: number) =>
  pageQuery(store, filter, reach, null, limit).compile();

/** One page, newest first. `cursor` in the answer asks for the next; null: that was all. */
export const listTrajectories = async (
  store: Store,
  options: TrajectoryFilter & { readonly limit?: number; readonly cursor?: string | null; readonly now?: Date } = {},
): Promise<TrajectoryPage> => {
  const limit = Math.min(Math.max(1, Math.trunc(options.limit ?? 50)), largestPage);
  const after = options.cursor ? positionOf(options.cursor) : null;
  const rows: Selectable<TrajectoriesTable>[] = [];
  try {
    const days = await partitionDays(store);
    const oldest = days[0];
    if (oldest === undefined) return { trajectories: [], cursor: null };
    const newest = after?.startedAt ?? options.until ?? options.now ?? new Date();
    for (const reach of reaches(newest, options.until ?? null, options.since ?? null, oldest)) {
      rows.push(...(await pageQuery(store, options, reach, after, limit + 1 - rows.length).execute()));
      if (rows.length > limit) break;
    }
  } catch (error) {
    throw storeError(error, 'Listing trajectories');
  }
  const trajectories = rows.slice(0, limit).map(trajectoryOf);
  const last = trajectories.at(-1);
  return { trajectories, cursor: rows.length > limit && last ? cursorOf(last) : null };
};

/** Tokens that were counted, by who answered. */
export const readTokens = async (
  store: Store,
  { agent, id, startedAt, endedAt }: Pick<Trajectory, 'agent' | 'id' | 'startedAt' | 'endedAt'>,
): Promise<{ upstream: string; promptTokens: number; completionTokens: number }[]> => {
  const rows = await store.db
    .selectFrom('turns')
    .select(({ fn }) => [
      'upstream',
      fn.sum('prompt_tokens').as('prompt'),
      fn.sum('completion_tokens').as('completion'),
    ])
    .where('trajectory', '=', id)
    .where('agent', '=', agent)
    .where('day', '>=', dayOf(startedAt))
    .where('day', '<=', dayOf(endedAt))
    .where('completion_tokens', 'is not', null)
    .groupBy('upstream')
    .orderBy('upstream')
    .execute()
    .catch((error) => {
      throw storeError(error, 'Counting the tokens of a conversation');
    });
  return rows.map(({ upstream, prompt, completion }) => ({
    ...{ upstream, promptTokens: Number(prompt ?? 0), completionTokens: Number(completion ?? 0) },
  }));
};

export type WholeTrajectory = {
  readonly trajectory: Trajectory;
  readonly turns: Turn[];
  /** Ids of those turns that are here without request and answer, because they are larger than was asked for. */
  readonly tooLarge: readonly string[];
  readonly signals: Signal[];
  /** Business keys attached to it. */
  readonly keys: string[];
  /** Set when it has more turns than were asked for, in number or in bytes; the earliest are here. */
  readonly cut: boolean;
  /** Set when there are more signals or keys than one answer holds; the latest signals are here. */
  readonly signalsCut: boolean;
};

/** The turns of a page: as many from the first as `most` bytes hold, one in any case. */
export function pageOf(sizes: readonly TurnSize[], maxTurns: number, most: number): readonly TurnSize[] {
  let bytes = 0;
  const end = sizes.findIndex((size, i) => {
    if (size.tooLarge) return i >= maxTurns;
    bytes += size.bytes ?? most + 1;
    return i >= maxTurns || (i > 0 && bytes > most);
  });
  return end < 0 ? sizes : sizes.slice(0, end);
}

const isOneOf = (ids: readonly string[]) => sql<boolean>`id = any(${ids}::uuid[])`;

/** The newest trajectory of that id, without its turns. */
export const findTrajectory = (store: Store, id: string, agent: string | undefined, now: Date = new Date()) =>
  lookFor(store, id, agent, now).catch((error: unknown) => {
    throw storeError(error, `Looking for trajectory ${id}`);
  });

const lookFor = async (store: Store, id: string, agent: string | undefined, now: Date) => {
  const days = await partitionDays(store);
  const oldest = days[0];
  if (oldest === undefined) return null;
  let to: Day | null = null;
  for (let reach = firstReachDays; ; reach *= 4) {
    const from = addDays(dayOf(now), -reach);
    let query = store.db.selectFrom('trajectories').selectAll().where('id', '=', id).where('day', '>=', from);
    if (agent !== undefined) query = query.where('agent', '=', agent);
    if (to !== null) query = query.where('day', '<', to);
    const row = await query.orderBy('day', 'desc').limit(1).executeTakeFirst();
    if (row) return row;
    if (from <= oldest) return null;
    to = from;
  }
};

/** A trajectory with its turns in order, and every signal about it: its own, its turns', and its business keys'. */
export const readTrajectory = async (
  store: Store,
  id: string,
  options: {
    readonly agent?: string | undefined;
    readonly maxTurns?: number;
    /** Of requests and answers together, as the database sends them. */
    readonly maxBytes?: number;
    /** Begin behind this turn: the last one of the page before. */
    readonly afterTurn?: { readonly startedAt: number; readonly id: string } | undefined;
    readonly now?: Date;
  } = {},
): Promise<WholeTrajectory | null> => {
  const { agent, maxTurns = 10_000, maxBytes = 64 * 1024 * 1024, afterTurn, now = new Date() } = options;
  try {
    const row = await findTrajectory(store, id, agent, now);
    if (!row) return null;
    let query = store.db
      .selectFrom('turns')
      .where('trajectory', '=', id)
      .where('agent', '=', row.agent)
      .where('day', '>=', dayOf(row.started_at))
      .where('day', '<=', dayOf(row.release_at));
    if (afterTurn) {
      const { startedAt, id: turnId } = afterTurn;
      query = query
        .where('day', '>=', dayOf(startedAt))
        .where(sql<boolean>`(started_at, id) > (${new Date(startedAt)}::timestamptz, ${turnId}::uuid)`);
    }
    const first = query
      .orderBy('started_at')
      .orderBy('id')
      .limit(maxTurns + 1);
    const sizes = await turnSizes(store, first, maxBytes);
    const page = pageOf(sizes, maxTurns, maxBytes);
    const tooLarge = page.filter((size) => size.tooLarge).map((size) => size.id);
    const ids = page.map((size) => size.id);
    const fitting = ids.filter((one) => !tooLarge.includes(one));
    const whole = await query.selectAll().where(isOneOf(fitting)).execute();
    const facts = await query.select(turnFacts).select('day').where(isOneOf(tooLarge)).execute();
    const rows = new Map([...whole, ...facts.map(withoutContent)].map((one) => [one.id, one]));
    const turns = await turnsOf(
      store,
      ids.flatMap((one) => rows.get(one) ?? []),
    );
    const about = await listSignals(store, { agent: row.agent, trajectory: id, turns: ids, maxBytes });
    const { signals, keys, cut: signalsCut } = about;
    const cut = page.length < sizes.length;
    return { trajectory: trajectoryOf(row), turns, tooLarge, signals, keys, cut, signalsCut };
  } catch (error) {
    throw storeError(error, `Reading trajectory ${id}`);
  }
};
