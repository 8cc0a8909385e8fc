/**
 * The trajectories of an agent that started in a window, page by page, and what belongs to them, a page at a time: whole
 * turns, ids of turns, signals. For stages that go through everything once (score, curate); people's lists are
 * trajectories.ts. Every query is bounded by the window's days and goes through an index; none grows with the table.
 */
import { type Selectable, sql } from 'kysely';
import type { Signal } from '../collect/signal.ts';
import type { Origin, Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import { addDays, dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import { signalFacts, signalOf } from './signals.ts';
import type { Day, SignalsTable } from './tables.ts';
import { joinWindowDays } from './times.ts';
import { trajectoryOf } from './trajectories.ts';
import { turnSizes } from './turn-sizes.ts';
import { turnsOf } from './turns.ts';

/** A trajectory with the day of its partition, which tells two conversations of the same id apart. */
export type Placed = { readonly trajectory: Trajectory; readonly day: Day };

export type Window = {
  readonly agent: string;
  readonly origin: Origin;
  /** Started at this time or later. */
  readonly since: Date;
  /** Started before this time. */
  readonly until: Date;
};

export const placedKey = ({ trajectory, day }: Placed): string => `${day} ${trajectory.id}`;

const pageQuery = (store: Store, { agent, origin, since, until }: Window, after: Placed | null, limit: number) => {
  let query = store.db
    .selectFrom('trajectories')
    .selectAll()
    .where('agent', '=', agent)
    .where('origin', '=', origin)
    .where('started_at', '>=', after?.trajectory.startedAt ?? since)
    .where('started_at', '<', until)
    .where('day', '>=', dayOf(after?.trajectory.startedAt ?? since))
    .where('day', '<=', addDays(dayOf(until), joinWindowDays));
  if (after)
    query = query.where(
      sql<boolean>`(started_at, id) > (${after.trajectory.startedAt}::timestamptz, ${after.trajectory.id})`,
    );
  return query.orderBy('started_at').orderBy('id').limit(limit);
};

/** The statement a window begins with, for the test that looks at its plan. */
export const windowQuery = (store: Store, window: Window, limit: number) =>
  pageQuery(store, window, null, limit).compile();

/** Oldest first. A trajectory that arrives behind the current page is found by the next run. */
export async function* windowPages(store: Store, window: Window, size = 200): AsyncGenerator<Placed[]> {
  for (let after: Placed | null = null; ; ) {
    const rows = await pageQuery(store, window, after, size)
      .execute()
      .catch((error) => {
        throw storeError(error, `Reading the trajectories of ${window.agent}`);
      });
    const page: Placed[] = rows.map((row) => ({ trajectory: trajectoryOf(row), day: row.day }));
    if (page.length > 0) yield page;
    if (page.length < size) return;
    after = page.at(-1)!;
  }
}

/**
 * One conversation of each person who had agreed to be learned from, of so many people at most. Both are drawn by hashes: a user is stored as
 * one, so their order is nobody's, and the same window gives the same.
 */
export const drawPeople = async (store: Store, window: Window, most: number): Promise<Placed[]> => {
  const { agent, origin, since, until } = window;
  const [first, last] = [dayOf(since), addDays(dayOf(until), joinWindowDays)];
  const drawn = sql`select day, id from (
    select distinct on (user_id) user_id, day, id from pawl.trajectories
    where agent = ${agent} and origin = ${origin} and consent = 'given' and user_id is not null
      and started_at >= ${since} and started_at < ${until} and day >= ${first} and day <= ${last}
    order by user_id, md5(id), day) as one order by user_id limit ${most}`;
  const rows = await store.db
    .selectFrom('trajectories')
    .selectAll()
    .where('agent', '=', agent)
    .where('day', '>=', first)
    .where('day', '<=', last)
    .where(sql<boolean>`(day, id) in (${drawn})`)
    .orderBy('started_at')
    .orderBy('id')
    .execute()
    .catch((error) => {
      throw storeError(error, `Drawing people of ${agent}`);
    });
  return rows.map((row) => ({ trajectory: trajectoryOf(row), day: row.day }));
};

/** Where the turns of these can lie. */
const turnsOfQuery = (store: Store, placed: readonly Placed[]) => {
  const starts = placed.map(({ trajectory }) => trajectory.startedAt.getTime());
  const ends = placed.map(({ trajectory }) => trajectory.endedAt.getTime());
  return store.db
    .selectFrom('turns')
    .where('agent', '=', placed[0]!.trajectory.agent)
    .where((where) => where('trajectory', '=', where.fn.any(where.val(placed.map(({ trajectory }) => trajectory.id)))))
    .where('started_at', '>=', new Date(starts.reduce((a, b) => Math.min(a, b))))
    .where('started_at', '<=', new Date(ends.reduce((a, b) => Math.max(a, b))))
    .where('day', '>=', dayOf(starts.reduce((a, b) => Math.min(a, b))))
    .where('day', '<=', dayOf(ends.reduce((a, b) => Math.max(a, b))));
};

/** More than this is no conversation to learn from, and more than a process should hold of one. */
const mostBytes = 64 * 1024 * 1024;

/** How many bytes reading each would bring; null: too many to read it. */
export const readSizes = async (
  store: Store,
  placed: readonly Placed[],
  most = mostBytes,
): Promise<Map<string, number | null>> => {
  if (placed.length === 0) return new Map();
  const sizes = await turnSizes(store, turnsOfQuery(store, placed), most).catch((error) => {
    throw storeError(error, 'Asking how large turns are');
  });
  const bytes = group(
    placed,
    sizes,
    (size) => size,
    (size) => (size.tooLarge ? null : size.bytes),
  );
  return new Map(
    [...bytes].map(([key, all]) => {
      const sum = all.reduce<number | null>((a, b) => (a === null || b === null ? null : a + b), 0);
      return [key, sum === null || sum > most ? null : sum];
    }),
  );
};

/** Each turn to the trajectory of its id in whose time it lies. */
function group<T, Item>(
  placed: readonly Placed[],
  rows: readonly T[],
  at: (row: T) => { readonly trajectory: string; readonly startedAt: number },
  item: (row: T) => Item,
): Map<string, Item[]> {
  const byId = new Map<string, Placed[]>();
  for (const one of placed) byId.set(one.trajectory.id, [...(byId.get(one.trajectory.id) ?? []), one]);
  const groups = new Map<string, Item[]>(placed.map((one) => [placedKey(one), []]));
  for (const row of rows) {
    const { trajectory, startedAt } = at(row);
    const owner = byId
      .get(trajectory)
      ?.find((one) => startedAt >= +one.trajectory.startedAt && startedAt <= +one.trajectory.endedAt);
    if (owner) groups.get(placedKey(owner))!.push(item(row));
  }
  return groups;
}

/** All of one agent. In order of their start. */
export const readTurnIds = async (store: Store, placed: readonly Placed[]): Promise<Map<string, string[]>> => {
  if (placed.length === 0) return new Map();
  const rows = await turnsOfQuery(store, placed)
    .select(['id', 'trajectory', 'started_at'])
    .orderBy('started_at')
    .orderBy('id')
    .execute()
    .catch((error) => {
      throw storeError(error, 'Reading which turns there are');
    });
  return group(
    placed,
    rows,
    (row) => ({ trajectory: row.trajectory, startedAt: +row.started_at }),
    ({ id }) => id,
  );
};

/** All of one agent. In order of their start. */
export const readTurnsOf = async (store: Store, placed: readonly Placed[]): Promise<Map<string, Turn[]>> => {
  if (placed.length === 0) return new Map();
  const read = async (): Promise<Turn[]> => {
    const rows = await turnsOfQuery(store, placed).selectAll().orderBy('started_at').orderBy('id').execute();
    return turnsOf(store, rows);
  };
  const turns = await read().catch((error) => {
    throw storeError(error, 'Reading turns');
  });
  return group(
    placed,
    turns,
    (turn) => turn,
    (turn) => turn,
  );
};

/** So much at a time: large conversations come a few together, small ones by the hundred. */
export function* batchesOf(
  placed: readonly Placed[],
  sizes: ReadonlyMap<string, number | null>,
  most = { turns: 500, bytes: 16 * 1024 * 1024 },
): Generator<Placed[]> {
  let batch: Placed[] = [];
  let turns = 0;
  let bytes = 0;
  for (const one of placed) {
    const more = { turns: one.trajectory.turns, bytes: sizes.get(placedKey(one)) ?? 0 };
    if (batch.length > 0 && (turns + more.turns > most.turns || bytes + more.bytes > most.bytes)) {
      yield batch;
      batch = [];
      turns = 0;
      bytes = 0;
    }
    batch.push(one);
    turns += more.turns;
    bytes += more.bytes;
  }
  if (batch.length > 0) yield batch;
}

/** A signal without its words. */
export type Heard = Signal & { readonly isCorrection: boolean };

/**
 * The signals about each: on it, on one of its turns (`turnIds`, by key), or on a business key of either. Labels only for whoever
 * asks for them: to most readers what a reviewer says about a score is no evidence of it. Their words are not read: there may be
 * much of them, and few want them (`withCorrections`).
 */
export const readSignalsOf = async (
  store: Store,
  placed: readonly Placed[],
  turnIds: ReadonlyMap<string, readonly string[]>,
  { labels = false }: { readonly labels?: boolean } = {},
): Promise<Map<string, Heard[]>> => {
  if (placed.length === 0) return new Map();
  const agent = placed[0]!.trajectory.agent;
  const ids = [...new Set(placed.map(({ trajectory }) => trajectory.id))];
  const turns = [...turnIds.values()].flat();
  try {
    const attached = await store.db
      .selectFrom('trajectory_keys')
      .select(['key', 'target_kind', 'target_id'])
      .where('agent', '=', agent)
      .where((where) =>
        where.or([
          where.and([where('target_kind', '=', 'trajectory'), where('target_id', '=', where.fn.any(where.val(ids)))]),
          where.and([where('target_kind', '=', 'turn'), where('target_id', '=', where.fn.any(where.val(turns)))]),
        ]),
      )
      .execute();
    const keys = [...new Set(attached.map(({ key }) => key))];
    const rows = await store.db
      .selectFrom('signals')
      .select(signalFacts)
      .select([sql<null>`null`.as('comment'), sql<null>`null`.as('correction')])
      .select(sql<boolean>`correction is not null`.as('is_correction'))
      .where('agent', '=', agent)
      .$if(!labels, (query) => query.where('kind', '<>', 'label'))
      .where((where) =>
        where.or([
          where.and([where('target_kind', '=', 'trajectory'), where('target_id', '=', where.fn.any(where.val(ids)))]),
          where.and([where('target_kind', '=', 'turn'), where('target_id', '=', where.fn.any(where.val(turns)))]),
          where.and([where('target_kind', '=', 'key'), where('target_id', '=', where.fn.any(where.val(keys)))]),
        ]),
      )
      .orderBy('at')
      .orderBy('identity')
      .execute();
    return byConversation(placed, turnIds, attached, rows);
  } catch (error) {
    throw storeError(error, 'Reading signals');
  }
};

type Attached = { readonly key: string; readonly target_kind: 'trajectory' | 'turn'; readonly target_id: string };

/** Each signal to all the conversations it is about. */
function byConversation(
  placed: readonly Placed[],
  turnIds: ReadonlyMap<string, readonly string[]>,
  attached: readonly Attached[],
  rows: readonly (Selectable<SignalsTable> & { readonly is_correction: boolean })[],
): Map<string, Heard[]> {
  /** Target → the conversations it is about. */
  const about = new Map<string, Set<string>>();
  const point = (target: string, key: string) => about.set(target, (about.get(target) ?? new Set()).add(key));
  for (const one of placed) {
    const key = placedKey(one);
    point(`trajectory ${one.trajectory.id}`, key);
    for (const id of turnIds.get(key) ?? []) point(`turn ${id}`, key);
  }
  for (const { key, target_kind: kind, target_id: id } of attached)
    for (const one of about.get(`${kind} ${id}`) ?? []) point(`key ${key}`, one);
  const found = new Map<string, Heard[]>(placed.map((one) => [placedKey(one), []]));
  for (const row of rows)
    for (const key of about.get(`${row.target_kind} ${row.target_id}`) ?? [])
      found.get(key)!.push({ ...signalOf(row), isCorrection: row.is_correction });
  return found;
}

/** The same signals of one agent; of those that correct the same thing the newest has its words. */
export const withCorrections = async <Key>(
  store: Store,
  agent: string,
  signals: ReadonlyMap<Key, readonly Heard[]>,
): Promise<Map<Key, Signal[]>> => {
  const identities = [...signals.values()].flat().flatMap((one) => (one.isCorrection ? [one.identity] : []));
  const said = new Map<string, string>();
  if (identities.length > 0) {
    const { rows } = await sql<{ identity: string; correction: string }>`
      select distinct on (target_kind, target_id) identity, correction from pawl.signals
      where agent = ${agent} and identity = any(${[...new Set(identities)]}::text[]) and btrim(correction, E' \\t\\r\\n') <> ''
      order by target_kind, target_id, at desc, identity collate "C" desc`
      .execute(store.db)
      .catch((error) => {
        throw storeError(error, 'Reading corrections');
      });
    for (const { identity, correction } of rows) said.set(identity, correction);
  }
  return new Map(
    [...signals].map(([key, own]) => [
      key,
      own.map(({ isCorrection: _, ...one }) => ({ ...one, correction: said.get(one.identity) ?? null })),
    ]),
  );
};
