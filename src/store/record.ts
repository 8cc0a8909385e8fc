/**
 * Writes what the journal holds: batches of turns, siblings, signals and attachments, each batch in one transaction, each entry
 * exactly once however often it is delivered.
 *
 * A batch is sent as the journal's own bytes, which the database takes apart itself: one statement, nothing written again
 * in JavaScript. The trajectory rows are sums over the turns that were really inserted, so a repeated turn changes
 * nothing. Writers of the same agent take turns (an advisory lock per agent, always in ascending order, so none can deadlock);
 * that is also what keeps two writers from starting one trajectory on two days.
 */
import type pg from 'pg';
import type { Attachment, JournalEntry } from '../collect/signal.ts';
import { withoutErased } from './erased.ts';
import { type Line, lineOf } from './line.ts';
import { writeMessages } from './messages.ts';
import { addDays, dayOf, ensurePartitions } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import { revokedBefore } from './revoked.ts';
import type { Day } from './tables.ts';
import { clockErrorMs, earliestTime, joinWindowDays, latestTime } from './times.ts';
import { arrived, arriving, turnNames } from './turn-columns.ts';
import { dayOfUuid } from './turns.ts';
import { writerLock, writerLocksOf } from './writer-lock.ts';

export type Refused<L extends Line> = { readonly line: L; readonly error: string };
export type Written<R> = { readonly inserted: number; readonly duplicates: number; readonly refused: R[] };

/** A statement carries less than this many bytes; a batch with larger bodies uses several statements. */
const chunkLimit = 32 * 1024 * 1024;

/**
 * $1 the turns, $2 and $3 the days between which their trajectories may already have begun. The consent of a trajectory is the
 * worst of its turns': withdrawn, else unknown, else given, which is the order of the alphabet. A turn without a user is unknown,
 * and one that comes late changes the stamp. $4 are turns whose key had been revoked: who sent them cannot say whose they are, so
 * they count as withdrawn, whoever they name.
 * The lateral subquery asks the newest day first and stops at the first hit: index probes, whatever the planner thinks
 * of the row counts. `errors` are calls that went wrong; a caller who left is not an error.
 */
const insertTurns = `
with added as (
  insert into pawl.turns (day, ${turnNames})
  select (to_timestamp(floor("startedAt") / 1000) at time zone 'UTC')::date, ${arrived}
  from json_to_recordset($1::json) as x(${arriving})
  on conflict (id, day) do nothing
  returning id, day, agent, trajectory, user_id, origin, keys, started_at, latency_ms, release, status, prompt_tokens, completion_tokens
), sums as materialized (
  select a.agent, trajectory as id, min(day) as day,
    (array_agg(a.user_id order by started_at, id) filter (where a.user_id is not null))[1] as user_id,
    max(case when c.withdrawn_at <= started_at or a.id = any($4::uuid[]) then 'withdrawn' when c.given_at <= started_at then 'given' else 'unknown' end) as consent,
    coalesce(min(origin) filter (where origin <> 'production'), 'production') as origin,
    min(started_at) as started_at, max(started_at + latency_ms * interval '1 millisecond') as ended_at,
    count(*)::integer as turns, count(*) filter (where status in ('error', 'truncated'))::integer as errors,
    coalesce(sum(prompt_tokens), 0)::bigint as prompt_tokens, coalesce(sum(completion_tokens), 0)::bigint as completion_tokens,
    sum(latency_ms) as latency_ms, (array_agg(release order by started_at desc, id desc))[1] as release,
    max(started_at) as release_at
  from added a left join pawl.consent c on c.agent = a.agent and c.user_id = a.user_id
  group by a.agent, trajectory
), summed as (
  insert into pawl.trajectories as t (id, agent, day, user_id, origin, consent, started_at, ended_at, turns, errors,
    prompt_tokens, completion_tokens, latency_ms, release, release_at)
  select s.id, s.agent, coalesce(begun.day, s.day), s.user_id, s.origin, s.consent,
    s.started_at, s.ended_at, s.turns, s.errors, s.prompt_tokens, s.completion_tokens, s.latency_ms, s.release, s.release_at
  from sums s left join lateral (
    select b.day from pawl.trajectories b
    where b.id = s.id and b.agent = s.agent and b.day between $2::date and $3::date
      and b.day between s.day - ${joinWindowDays} and s.day + ${joinWindowDays}
    order by b.day desc limit 1
  ) begun on true
  on conflict (id, agent, day) do update set
    user_id = coalesce(t.user_id, excluded.user_id),
    -- Fail closed: one turn that is not production makes the whole not production.
    origin = case when t.origin = 'production' then excluded.origin else t.origin end,
    consent = greatest(t.consent, excluded.consent),
    started_at = least(t.started_at, excluded.started_at),
    ended_at = greatest(t.ended_at, excluded.ended_at),
    turns = t.turns + excluded.turns,
    errors = t.errors + excluded.errors,
    prompt_tokens = t.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = t.completion_tokens + excluded.completion_tokens,
    latency_ms = t.latency_ms + excluded.latency_ms,
    release = case when excluded.release_at >= t.release_at then excluded.release else t.release end,
    release_at = greatest(t.release_at, excluded.release_at)
), keyed as (
  insert into pawl.trajectory_keys (agent, key, target_kind, target_id, at)
  select agent, key, 'trajectory', trajectory, min(started_at) from added, unnest(keys) as key
  group by agent, key, trajectory
  on conflict do nothing
)
select count(*)::integer as inserted from added`;

/** No conversation's, so no sum changes. The parent's id (UUIDv7) says on which day it, and so its siblings, are forgotten. */
const insertSiblings = `
with added as (
  insert into pawl.siblings (parent, id, day, agent, origin, started_at, latency_ms, upstream, release, model, temperature, top_p,
    choices, prompt_tokens, completion_tokens, redactions)
  select parent, id, (to_timestamp(
      ('x' || substr(parent::text, 1, 8) || substr(parent::text, 10, 4))::bit(48)::bigint / 1000.0) at time zone 'UTC')::date,
    agent, origin,
    to_timestamp(floor("startedAt") / 1000), "latencyMs", upstream, release, model, temperature, "topP", choices,
    "promptTokens", "completionTokens", redactions
  from json_to_recordset($1::json) as x(parent uuid, id uuid, agent text, origin text,
    "startedAt" double precision, "latencyMs" double precision, upstream text, release text, model text,
    temperature double precision, "topP" double precision, choices jsonb, "promptTokens" bigint, "completionTokens" bigint,
    redactions jsonb)
  on conflict (parent, id) do nothing
  returning 1
)
select count(*)::integer as inserted from added`;

/** A time that no clock's error explains gives way to the arrival: it would shut out what comes later for good. */
const insertSignals = `
with arrived as (
  select distinct on (agent, identity) agent, identity, id, target->>'kind', target->>'id', kind, name, value, unit, "user", comment,
    correction, to_timestamp(m.at / 1000) as at, to_timestamp("receivedAt" / 1000) as received_at, key
  from json_to_recordset($1::json) as x(agent text, identity text, id uuid, target json, kind text, name text,
    value double precision, unit text, "user" text, comment text, correction text, at double precision, "receivedAt" double precision,
    key text),
    lateral (select case when x.at between ${earliestTime} and "receivedAt" + ${clockErrorMs} then x.at else "receivedAt" end as at) m
  order by agent, identity, m.at desc, "receivedAt" desc, id desc
), added as (
  insert into pawl.signals as s (agent, identity, id, target_kind, target_id, kind, name, value, unit, user_id, comment, correction, at, received_at,
    key_id)
  select * from arrived
  on conflict (agent, identity) do update set id = excluded.id, target_kind = excluded.target_kind, target_id = excluded.target_id,
    kind = excluded.kind, name = excluded.name, value = excluded.value, unit = excluded.unit, user_id = excluded.user_id,
    comment = excluded.comment, correction = excluded.correction, at = excluded.at, received_at = excluded.received_at, key_id = excluded.key_id
  where (excluded.at, excluded.received_at, excluded.id) > (s.at, s.received_at, s.id)
  returning 1
)
select count(*)::integer as inserted from added`;

/** $2 and $3 bound the days in which a turn named by its id alone can be. */
const insertAttachments = `
with arrived as (
  select x.agent, x.key, coalesce(x.trajectory, t.trajectory) as trajectory, x.turn, to_timestamp(x.at / 1000) as at
  from json_to_recordset($1::json) as x(agent text, key text, trajectory text, turn uuid, at double precision)
  left join lateral (
    select t.trajectory from pawl.turns t
    where x.trajectory is null and t.id = x.turn and t.agent = x.agent and t.day between $2::date and $3::date limit 1
  ) t on true
), added as (
  insert into pawl.trajectory_keys (agent, key, target_kind, target_id, at)
  select distinct on (1, 2, 3, 4) agent, key, case when trajectory is null then 'turn' else 'trajectory' end,
    coalesce(trajectory, turn::text), at
  from arrived order by 1, 2, 3, 4, at
  on conflict do nothing returning 1
)
select count(*)::integer as inserted from added`;

const dayMs = 86_400_000;
const isFarFrom = (first: Line, next: Line): boolean =>
  first.kind === 'turn' && Math.floor(next.at / dayMs) - Math.floor(first.at / dayMs) > joinWindowDays;

/** One statement's worth each: not too long, and no turns so far apart that one id could mean two trajectories. */
function* chunksOf(lines: readonly Line[]): Generator<Line[]> {
  let chunk: Line[] = [];
  let size = 0;
  for (const line of lines) {
    if (size > 0 && (size + line.json.length > chunkLimit || isFarFrom(chunk[0]!, line))) {
      yield chunk;
      chunk = [];
      size = 0;
    }
    chunk.push(line);
    size += line.json.length;
  }
  if (chunk.length > 0) yield chunk;
}

const ofKind = <L extends Line>(lines: readonly L[], kind: Line['kind']): L[] =>
  lines.filter((line) => line.kind === kind);

const comma = Buffer.from(',');
/** The binary form of json is its text. */
const jsonArray = (lines: readonly Line[]): Buffer =>
  Buffer.concat([
    Buffer.from('['),
    ...lines.flatMap(({ json }, i) => (i === 0 ? [json] : [comma, json])),
    Buffer.from(']'),
  ]);

const minDay = (days: readonly Day[]): Day => [...days].sort()[0]!;
const maxDay = (days: readonly Day[]): Day => [...days].sort().at(-1)!;

/** Attachments are few and small, so they may be parsed. */
const dayOfAttachment = ({ at, json }: Line): Day =>
  dayOfUuid((JSON.parse(json.toString()) as Attachment).turn ?? '') ?? dayOf(at);

/** Of a turn. */
const idOf = ({ json }: Line): string => (JSON.parse(json.toString()) as { id: string }).id;

const writeBatch = async (
  client: pg.PoolClient,
  given: readonly Line[],
  revoked: Pick<ReadonlyMap<Line, string>, 'has'>,
): Promise<number> => {
  let inserted = 0;
  const add = async (statement: string, chunk: readonly Line[], ...values: (Day | string[])[]) => {
    const result = await client.query<{ inserted: number }>(statement, [jsonArray(chunk), ...values]);
    inserted += result.rows[0]?.inserted ?? 0;
  };
  // The lock comes in a statement of its own: the next one must see what the previous holder committed.
  const locks = writerLocksOf(given.map(({ agent }) => agent)).map(
    (number) => `select pg_advisory_xact_lock(${writerLock}, ${number});`,
  );
  await client.query(`begin; ${locks.join(' ')}`);
  // Those of erased turns too: turns that come later refer to them. What nobody refers to is swept.
  await writeMessages(client, ofKind(given, 'turn'));
  const lines = await withoutErased(client, given);
  for (const chunk of chunksOf(ofKind(lines, 'turn').sort((a, b) => a.at - b.at))) {
    const days = [dayOf(chunk[0]!.at), dayOf(chunk.at(-1)!.at)];
    const [from, to] = [addDays(days[0]!, -joinWindowDays), addDays(days[1]!, joinWindowDays)];
    await add(insertTurns, chunk, from, to, chunk.filter((line) => revoked.has(line)).map(idOf));
  }
  for (const chunk of chunksOf(ofKind(lines, 'sibling'))) await add(insertSiblings, chunk);
  for (const chunk of chunksOf(ofKind(lines, 'signal'))) await add(insertSignals, chunk);
  for (const chunk of chunksOf(ofKind(lines, 'attachment'))) {
    const days = chunk.map(dayOfAttachment);
    await add(insertAttachments, chunk, addDays(minDay(days), -1), addDays(maxDay(days), 1));
  }
  await client.query('commit');
  return inserted;
};

/** Errors that lie in an entry and would come back every time: bad values, broken rules, more than a type can hold. */
const isDataError = (error: unknown): boolean => {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return /^(22|23|54)/.test(code) || (code === 'XX000' && message.includes('invalid memory alloc request size'));
};

const isMissingPartition = (error: unknown): boolean =>
  (error as { code?: string }).code === '23514' && /no partition of relation/.test((error as Error).message);

/** Turns that come later refer to what a refused one carried. */
const keepMessages = async (store: Store, line: Line): Promise<void> => {
  if (line.messages.length === 0) return;
  const client = await store.pool.connect().catch((error) => {
    throw storeError(error, 'Connecting to the database');
  });
  try {
    await writeMessages(client, [line]);
  } catch (error) {
    if (!isDataError(error)) throw storeError(error, 'Writing the messages of a turn that was refused');
  } finally {
    client.release();
  }
};

const attempt = async <L extends Line>(
  store: Store,
  lines: readonly L[],
  refused: Refused<L>[],
  revoked: ReadonlyMap<Line, string>,
  again: boolean,
): Promise<number> => {
  if (lines.length === 0) return 0;
  await ensurePartitions(
    store,
    ofKind(lines, 'turn').map(({ at }) => dayOf(at)),
  );
  const client = await store.pool.connect().catch((error) => {
    throw storeError(error, 'Connecting to the database');
  });
  let failure: unknown;
  try {
    const inserted = await writeBatch(client, lines, revoked);
    client.release();
    return inserted;
  } catch (error) {
    failure = error;
    const clean = await client.query('rollback').then(
      () => true,
      () => false,
    );
    client.release(!clean);
  }
  if (isMissingPartition(failure) && again) {
    // Retention dropped the day since we made it.
    store.knownDays.clear();
    return attempt(store, lines, refused, revoked, false);
  }
  if (!isDataError(failure)) throw storeError(failure, `Writing ${lines.length} entries`);
  if (lines.length === 1) {
    refused.push({ line: lines[0]!, error: (failure as Error).message });
    await keepMessages(store, lines[0]!);
    return 0;
  }
  const middle = lines.length >> 1;
  const first = await attempt(store, lines.slice(0, middle), refused, revoked, true);
  return first + (await attempt(store, lines.slice(middle), refused, revoked, true));
};

/**
 * Writes the batch in one transaction. Lines the database will never take are left out, the rest is written, and they
 * come back in `refused`. Everything else that goes wrong is thrown as a StoreError, and then delivering the whole batch
 * again is safe.
 */
export const writeLines = async <L extends Line>(store: Store, lines: readonly L[]): Promise<Written<Refused<L>>> => {
  const refused: Refused<L>[] = [];
  const timely = lines.filter((line) => {
    const { at, kind } = line;
    const hasDay = kind === 'signal' || (at >= earliestTime && at < latestTime);
    if (!hasDay) refused.push({ line, error: `A ${kind}'s time is between 2000 and 2100 in milliseconds, not ${at}.` });
    return hasDay;
  });
  const revoked = await revokedBefore(store, timely);
  // A turn is kept, for whoever looks into it; evidence of somebody who had no say would change what others' turns teach.
  const heard = timely.filter((line) => {
    const reason = line.kind === 'turn' ? undefined : revoked.get(line);
    if (reason !== undefined) refused.push({ line, error: reason });
    return reason === undefined;
  });
  const inserted = await attempt(store, heard, refused, revoked, true);
  return { inserted, duplicates: lines.length - inserted - refused.length, refused };
};

/** The same for entries that no journal has written down. */
export const writeEntries = async (
  store: Store,
  entries: readonly JournalEntry[],
): Promise<Written<{ readonly entry: JournalEntry; readonly error: string }>> => {
  const lines = entries.map((entry) => ({ ...lineOf(entry), entry }));
  const { refused, ...counts } = await writeLines(store, lines);
  return { ...counts, refused: refused.map(({ line: { entry }, error }) => ({ entry, error })) };
};
