/**
 * What the writer asks before it writes: a gateway's journal may deliver days late, and nothing of a user who has been erased
 * meanwhile may come back with it. Dropped is what began before the erasure and is the user's: their turns, every turn of
 * a conversation they took part in (each call repeats what was said before), siblings, signals and business keys of these. What
 * began after the erasure is new.
 *
 * In the writer's transaction and under its lock, so that an erasure either sees what a writer wrote or is seen by it.
 * Nearly always the one question is whether there is an erasure younger than the batch, and there is none.
 */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Sibling } from '../collect/sibling.ts';
import type { Attachment, Signal } from '../collect/signal.ts';
import type { Turn } from '../collect/turn.ts';
import type { Line } from './line.ts';
import { addDays, dayOf } from './partitions.ts';
import type { Day } from './tables.ts';
import { earliestTime, joinWindowDays, latestTime, timeOfUuid } from './times.ts';

/** Of a turn, a sibling or a signal; as pawl.id_hash has it. */
const idHash = (id: string): Buffer => createHash('sha256').update(id).digest();
/** A conversation may be called after its first turn. */
const trajectoryHash = (id: string): Buffer => idHash(`trajectory ${id}`);

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** A line, as far as an erasure is concerned. */
export type Trace = {
  readonly kind: Line['kind'];
  readonly agent: string;
  /** When it began: ms since epoch. What began after an erasure is not touched by it. */
  readonly at: number;
  /** Its own id, where others may point at it. */
  readonly id: string | null;
  readonly user: string | null;
  readonly trajectory: string | null;
  /** The turn that it belongs to or is about. */
  readonly turn: string | null;
};

export type OpenErasure = {
  readonly id: string;
  readonly user: string;
  readonly agent: string | null;
  readonly at: number;
};
export type Erased = { readonly agent: string; readonly hash: string; readonly day: Day; readonly at: number };

/** Whatever a line says, a time that a day can be told of. */
const timely = (at: unknown): number =>
  Math.min(Math.max(typeof at === 'number' && Number.isFinite(at) ? at : earliestTime, earliestTime), latestTime - 1);
const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);

type Written = Partial<Record<keyof Turn | keyof Sibling | keyof Signal | keyof Attachment, unknown>>;

/** Of what is no entry nothing is known; the database refuses it. */
function entryOf({ json }: Line): Written {
  try {
    const entry: unknown = JSON.parse(json.toString());
    return isObject(entry) ? entry : {};
  } catch {
    return {};
  }
}

export function traceOf(line: Line): Trace {
  const { kind, agent } = line;
  const entry = entryOf(line);
  const nothing = { kind, agent, at: timely(line.at), id: null, user: null, trajectory: null, turn: null };
  switch (kind) {
    case 'turn':
      return { ...nothing, id: text(entry.id), user: text(entry.user), trajectory: text(entry.trajectory) };
    case 'sibling': {
      const turn = text(entry.parent);
      return { ...nothing, id: text(entry.id), turn, at: timely(timeOfUuid(turn ?? '') ?? line.at) };
    }
    case 'signal': {
      const about = isObject(entry.target) ? entry.target : {};
      const target = (of: string) => (about.kind === of ? text(about.id) : null);
      const own = { id: text(entry.id), user: text(entry.user), at: timely(entry.receivedAt) };
      return { ...nothing, ...own, trajectory: target('trajectory'), turn: target('turn') };
    }
    case 'attachment':
      return { ...nothing, trajectory: text(entry.trajectory), turn: text(entry.turn) };
    default:
      return kind satisfies never;
  }
}

/** A turn's time stands before its entry; it need not be parsed to say when it began. */
const beganAt = (line: Line): number => (line.kind === 'turn' ? timely(line.at) : traceOf(line).at);

const isNear = (a: Day, b: Day): boolean => a >= addDays(b, -joinWindowDays) && a <= addDays(b, joinWindowDays);

/** What it is part of or about. */
const hashesOf = ({ trajectory, turn }: Trace): Buffer[] => [
  ...(trajectory === null ? [] : [trajectoryHash(trajectory)]),
  ...(turn === null ? [] : [idHash(turn)]),
];

/**
 * Which traces an erasure is the end of, with its id; null: none. `erased` is what is known to be erased of what the traces
 * name. Turns of erased users make their conversations erased too, for the rest of the batch as for later ones.
 */
export function erasedBy(
  traces: readonly Trace[],
  erasures: readonly OpenErasure[],
  erased: readonly (Erased & { readonly erasure: string })[],
): (string | null)[] {
  const byName = new Map<string, (Erased & { readonly erasure: string })[]>();
  const nameOf = (agent: string, hash: string) => `${hash} ${agent}`;
  const learn = (one: Erased & { readonly erasure: string }) => {
    const key = nameOf(one.agent, one.hash);
    byName.set(key, [...(byName.get(key) ?? []), one]);
  };
  for (const one of erased) learn(one);
  const ofUser = ({ agent, at, user }: Trace) =>
    user === null
      ? undefined
      : erasures.find((one) => one.user === user && (one.agent ?? agent) === agent && one.at > at);
  for (const trace of traces) {
    const erasure = trace.kind === 'turn' ? ofUser(trace) : undefined;
    if (erasure === undefined) continue;
    const hash = trajectoryHash(trace.trajectory ?? '').toString('hex');
    learn({ agent: trace.agent, hash, day: dayOf(trace.at), at: erasure.at, erasure: erasure.id });
  }
  const ofHash = ({ kind, agent, at }: Trace, hash: Buffer) =>
    byName
      .get(nameOf(agent, hash.toString('hex')))
      // An id may come back weeks later as another conversation; what is said about one comes whenever it comes.
      ?.find((one) => one.at > at && (kind !== 'turn' || isNear(dayOf(at), one.day)));
  const verdicts = traces.map((trace) => {
    const erasure = ofUser(trace)?.id;
    return erasure ?? hashesOf(trace).flatMap((hash) => ofHash(trace, hash)?.erasure ?? [])[0] ?? null;
  });
  // A sibling whose turn goes with its conversation in the same batch.
  const gone = new Map(traces.flatMap(({ id }, i) => (id !== null && verdicts[i] ? [[id, verdicts[i]]] : [])));
  return verdicts.map((verdict, i) => verdict ?? gone.get(traces[i]!.turn ?? '') ?? null);
}

const younger = `select id, user_id as user, agent, extract(epoch from at)::float8 * 1000 as at from pawl.erasures
  where at > to_timestamp($1::float8 / 1000) and (agent is null or agent = any($2::text[]))`;
const known = `select e.agent, encode(e.hash, 'hex') as hash, e.day, e.erasure, extract(epoch from r.at)::float8 * 1000 as at
  from pawl.erased e join pawl.erasures r on r.id = e.erasure where e.agent = any($1::text[]) and e.hash = any($2::bytea[])`;

/** The erasures that a batch is older than, and what of it they have erased. Empty: everything may be written. */
export async function findErased(
  client: Pick<pg.PoolClient, 'query'>,
  lines: readonly Line[],
): Promise<{ readonly traces: readonly Trace[]; readonly verdicts: readonly (string | null)[] }> {
  const none = { traces: [], verdicts: [] };
  if (lines.length === 0) return none;
  const agents = [...new Set(lines.map(({ agent }) => agent))];
  const since = lines.reduce((least, line) => Math.min(least, beganAt(line)), Number.POSITIVE_INFINITY);
  const { rows: erasures } = await client.query<OpenErasure>(younger, [since, agents]);
  if (erasures.length === 0) return none;
  const traces = lines.map(traceOf);
  const { rows: erased } = await client.query<Erased & { erasure: string }>(known, [agents, traces.flatMap(hashesOf)]);
  return { traces, verdicts: erasedBy(traces, erasures, erased) };
}

/**
 * Counts what comes for the first time, and remembers turns and conversations so that what follows them goes too. A conversation
 * of which something is stored already (another gateway was faster) opens its erasure again; the messages that came with
 * them are there for turns that refer to them, and are to be swept (messages.ts).
 */
const remember = `
with dropped as (
  select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::date[]) as d(erasure, agent, trajectory, id, day)
), ids as (
  insert into pawl.erased (agent, hash, day, erasure)
  select distinct agent, pawl.id_hash(id), day, erasure from dropped where id is not null
  on conflict (agent, hash, day) do nothing returning erasure
), conversations as (
  insert into pawl.erased as e (agent, hash, day, erasure, name)
  select agent, pawl.id_hash('trajectory ' || trajectory), day, max(erasure), case when bool_or(stored) then trajectory end
  from (
    select d.*, exists (
      select 1 from pawl.trajectories t join pawl.erasures r on r.id = d.erasure
      where t.id = d.trajectory and t.agent = d.agent and t.day between d.day - ${joinWindowDays} and d.day + ${joinWindowDays}
        and t.started_at < r.at) as stored
    from dropped d where id is not null and trajectory is not null) d
  group by agent, trajectory, day
  on conflict (agent, hash, day) do update set name = coalesce(excluded.name, e.name)
  returning erasure, name
), late as (
  select erasure, count(*)::integer as n from ids group by erasure
)
update pawl.erasures r set
  counts = jsonb_set(r.counts, '{late}', to_jsonb(coalesce((r.counts->>'late')::integer, 0) + coalesce(late.n, 0))),
  status = case when again.erasure is not null then 'erasing' when r.status = 'done' then 'sweeping' else r.status end,
  sweep_after = now() + interval '10 minutes', finished_at = null
from (select distinct erasure from dropped) d
left join late on late.erasure = d.erasure
left join (select distinct erasure from conversations where name is not null) again on again.erasure = d.erasure
where r.id = d.erasure`;

/** The lines that may be written. The others are counted with their erasure; on the way in nothing else is kept of them. */
export async function withoutErased<L extends Line>(client: pg.PoolClient, lines: readonly L[]): Promise<readonly L[]> {
  const { traces, verdicts } = await findErased(client, lines);
  const dropped = traces.flatMap((trace, i) => (verdicts[i] ? [{ ...trace, erasure: verdicts[i] }] : []));
  if (dropped.length === 0) return lines;
  await client.query(remember, [
    dropped.map(({ erasure }) => erasure),
    dropped.map(({ agent }) => agent),
    dropped.map(({ trajectory, kind }) => (kind === 'turn' ? trajectory : null)),
    dropped.map(({ id }) => id),
    dropped.map(({ at }) => dayOf(at)),
  ]);
  return lines.filter((_, i) => verdicts[i] === null);
}

/** The users who were erased after a moment: what cannot be read as an entry is searched for their hashes. */
export const erasedSince = async (client: Pick<pg.PoolClient, 'query'>, at: number): Promise<string[]> => {
  const { rows } = await client.query<{ user: string }>(
    'select distinct user_id as user from pawl.erasures where at > to_timestamp($1::float8 / 1000)',
    [timely(at)],
  );
  return rows.map(({ user }) => user);
};
