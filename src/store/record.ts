/**
 * Writes what the journal holds: batches of turns, siblings, signals and attachments, each batch in one transaction, each entry
 * exactly once however often it is delivered.
 *
 * Turns are copied in as rows that were made with them (turn-rows.ts); what they add to their conversations is summed here
 * (trajectory-sums.ts). A copy cannot skip what is there: a batch is copied as if all of it were new, and when one turn is not, it is
 * written again with care. Everything else is sent as the journal's own bytes, which the database takes apart itself. Writers of
 * the same agent take turns (an advisory lock per agent, always in ascending order, so none can deadlock); that is also what keeps two
 * writers from starting one trajectory on two days, and what is found to be missing from being there a moment later.
 */
import type pg from 'pg';
import type { Attachment, JournalEntry } from '../collect/signal.ts';
import { CopyIn, type CopyType, rowsOf } from './copy.ts';
import { withoutErased } from './erased.ts';
import { type Line, lineOf } from './line.ts';
import { textArray, writeMessages } from './messages.ts';
import { addDays, dayOf, ensurePartitions } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import { revokedBefore } from './revoked.ts';
import type { Day } from './tables.ts';
import { clockErrorMs, earliestTime, joinWindowDays, latestTime } from './times.ts';
import { type ConsentOf, sumTrajectories, type TrajectorySum } from './trajectory-sums.ts';
import { intoTurns, readTurnRow, type SummedTurn, type WrittenTurn } from './turn-rows.ts';
import { dayOfUuid } from './turns.ts';
import { writerLock, writerLocksOf } from './writer-lock.ts';

export type Refused<L extends Line> = { readonly line: L; readonly error: string };
export type Written<R> = { readonly inserted: number; readonly duplicates: number; readonly refused: R[] };

/** A statement carries less than this many bytes; a batch with larger bodies uses several statements. */
const chunkLimit = 32 * 1024 * 1024;

/** Which turns are there already: $1 their ids, $2 their days. Index probes, whatever the planner thinks of the row counts. */
const knownTurns = `
select x.id::text, x.day from unnest($1::uuid[], $2::date[]) as x(id, day),
  lateral (select 1 from pawl.turns t where t.id = x.id and t.day = x.day limit 1) known`;

/**
 * On which day these conversations began, as far as they have: $1 ids, $2 agents, $3 days of their first turn in the batch, $4 and $5
 * bound the days. The newest day is asked first and the first hit ends it.
 */
const begunTrajectories = `
select x.n, begun.day from unnest($1::text[], $2::text[], $3::date[]) with ordinality as x(id, agent, day, n), lateral (
  select b.day from pawl.trajectories b
  where b.id = x.id and b.agent = x.agent and b.day between $4::date and $5::date
    and b.day between x.day - ${joinWindowDays} and x.day + ${joinWindowDays}
  order by b.day desc limit 1
) begun`;

const whatWasConsented = `
select c.agent, c.user_id as user, extract(epoch from c.given_at)::float8 * 1000 as given, extract(epoch from c.withdrawn_at)::float8 * 1000 as withdrawn
from unnest($1::text[], $2::text[]) as x(agent, user_id), lateral (
  select * from pawl.consent c where c.agent = x.agent and c.user_id = x.user_id limit 1
) c`;

// biome-ignore format: a line each
const sumColumns = {
  id: ['id', 'text'], agent: ['agent', 'text'], day: ['day', 'date'], user: ['user_id', 'text'], origin: ['origin', 'text'],
  consent: ['consent', 'text'], startedAt: ['started_at', 'timestamp with time zone'], endedAt: ['ended_at', 'timestamp with time zone'],
  turns: ['turns', 'integer'], errors: ['errors', 'integer'], promptTokens: ['prompt_tokens', 'bigint'],
  completionTokens: ['completion_tokens', 'bigint'], latencyMs: ['latency_ms', 'double precision'], release: ['release', 'text'],
  releaseAt: ['release_at', 'timestamp with time zone'],
} as const satisfies { readonly [Field in keyof TrajectorySum]: readonly [name: string, type: CopyType] };
const sumFields = Object.keys(sumColumns) as (keyof TrajectorySum)[];
const sumNames = sumFields.map((field) => sumColumns[field][0]).join(', ');
const sumRow = rowsOf(sumFields.map((field) => sumColumns[field][1]));
const isTime = (field: keyof TrajectorySum) => sumColumns[field][1] === 'timestamp with time zone';

/** $1 the sums of turns of conversations that have begun, `day` being where their row lies. */
const addSums = `
insert into pawl.trajectories as t (${sumNames})
select ${sumFields.map((field) => (isTime(field) ? `to_timestamp("${field}" / 1000)` : `"${field}"`)).join(', ')}
from json_to_recordset($1::json) as x(${sumFields.map((field) => `"${field}" ${isTime(field) ? 'double precision' : sumColumns[field][1]}`).join(', ')})
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
  release_at = greatest(t.release_at, excluded.release_at)`;

const addKeys = `
insert into pawl.trajectory_keys (agent, key, target_kind, target_id, at)
select agent, key, 'trajectory', trajectory, min(to_timestamp(at / 1000))
from unnest($1::text[], $2::text[], $3::text[], $4::double precision[]) as x(agent, key, trajectory, at)
group by agent, key, trajectory
on conflict do nothing`;

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
    const { length } = line.turn?.row ?? line.json;
    if (size > 0 && (size + length > chunkLimit || isFarFrom(chunk[0]!, line))) {
      yield chunk;
      chunk = [];
      size = 0;
    }
    chunk.push(line);
    size += length;
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

const placeOf = ({ agent, user }: Pick<SummedTurn, 'agent' | 'user'>): string => `${user} ${agent}`;

/** Of the turns' users, each asked about once. `revoked` are turns whose key had been: who sent them cannot say whose they are. */
async function readConsents(
  client: pg.PoolClient,
  turns: readonly SummedTurn[],
  isRevoked: (turn: SummedTurn) => boolean,
): Promise<ConsentOf> {
  const asked = new Map<string, SummedTurn>();
  for (const turn of turns) if (turn.user !== null) asked.set(placeOf(turn), turn);
  const said = new Map<string, { readonly given: number | null; readonly withdrawn: number | null }>();
  if (asked.size > 0) {
    const users = [...asked.values()];
    const { rows } = await client.query<{
      agent: string;
      user: string;
      given: number | null;
      withdrawn: number | null;
    }>(whatWasConsented, [users.map(({ agent }) => agent), users.map(({ user }) => user)]);
    for (const row of rows) said.set(placeOf(row), row);
  }
  return (turn) => {
    if (isRevoked(turn)) return 'withdrawn';
    if (turn.user === null) return 'unknown';
    const { given, withdrawn } = said.get(placeOf(turn)) ?? { given: null, withdrawn: null };
    if (withdrawn !== null && withdrawn <= turn.startedAt) return 'withdrawn';
    return given !== null && given <= turn.startedAt ? 'given' : 'unknown';
  };
}

/** Each once, and none that is there. */
async function onlyNew<T extends { readonly written: WrittenTurn }>(client: pg.PoolClient, turns: T[]): Promise<T[]> {
  const nameOf = (id: string, day: Day) => `${id.toLowerCase()} ${day}`;
  const byName = new Map<string, T>();
  for (const turn of turns) {
    const { id, startedAt } = turn.written.summed;
    const name = nameOf(id, dayOf(startedAt));
    if (!byName.has(name)) byName.set(name, turn);
  }
  const { rows } = await client.query<{ id: string; day: Day }>(knownTurns, [
    [...byName.values()].map(({ written: { summed } }) => summed.id),
    [...byName.values()].map(({ written: { summed } }) => dayOf(summed.startedAt)),
  ]);
  for (const { id, day } of rows) byName.delete(nameOf(id, day));
  return [...byName.values()];
}

/**
 * Turns that are nearly always new: they are copied as if they were, and when one is not the batch is written again with care.
 * Returns how many were written.
 */
async function writeTurns(
  client: pg.PoolClient,
  chunk: readonly Line[],
  revoked: Pick<ReadonlyMap<Line, string>, 'has'>,
  careful: boolean,
): Promise<number> {
  const given = chunk.map((line) => ({ line, written: line.turn ?? readTurnRow(line.json) }));
  const fresh = careful ? await onlyNew(client, given) : given;
  const turns = fresh.map(({ written }) => written.summed);
  if (turns.length === 0) return 0;
  const withdrawn = new Set(fresh.filter(({ line }) => revoked.has(line)).map(({ written }) => written.summed));
  const sums = sumTrajectories(turns, await readConsents(client, turns, (turn) => withdrawn.has(turn)));
  const days = sums.map(({ day }) => day);
  const { rows } = await client.query<{ n: number; day: Day }>(begunTrajectories, [
    textArray(sums.map(({ id }) => id)),
    textArray(sums.map(({ agent }) => agent)),
    days,
    addDays(minDay(days), -joinWindowDays),
    addDays(maxDay(days), joinWindowDays),
  ]);
  const begun = new Map(rows.map(({ n, day }) => [n - 1, day]));
  const of = (sum: TrajectorySum) => sumFields.map((field) => sum[field]);
  await client.query(
    new CopyIn(
      intoTurns,
      fresh.map(({ written }) => written.row),
    ),
  ).done;
  const first = sums.filter((_, i) => !begun.has(i));
  if (first.length > 0)
    await client.query(
      new CopyIn(
        `pawl.trajectories (${sumNames})`,
        first.map((sum) => sumRow(of(sum))),
      ),
    ).done;
  if (begun.size > 0) {
    const more = sums.flatMap((sum, i) => (begun.has(i) ? [{ ...sum, day: begun.get(i)! }] : []));
    await client.query(addSums, [JSON.stringify(more, sumFields)]);
  }
  const keyed = turns.flatMap(({ keys, ...turn }) => keys.map((key) => ({ ...turn, key })));
  if (keyed.length > 0)
    await client.query(addKeys, [
      keyed.map(({ agent }) => agent),
      keyed.map(({ key }) => key),
      keyed.map(({ trajectory }) => trajectory),
      keyed.map(({ startedAt }) => startedAt),
    ]);
  return turns.length;
}

type How = {
  /** May be tried once more after retention dropped a day. */
  readonly again: boolean;
  /** Some of the turns are there already. */
  readonly careful: boolean;
};

const writeBatch = async (
  client: pg.PoolClient,
  given: readonly Line[],
  revoked: Pick<ReadonlyMap<Line, string>, 'has'>,
  { careful }: How,
): Promise<number> => {
  let inserted = 0;
  const add = async (statement: string, chunk: readonly Line[], ...values: Day[]) => {
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
  for (const chunk of chunksOf(ofKind(lines, 'turn').sort((a, b) => a.at - b.at)))
    inserted += await writeTurns(client, chunk, revoked, careful);
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

const isThere = (error: unknown): boolean => (error as { code?: string }).code === '23505';

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
  how: How = { again: true, careful: false },
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
    const inserted = await writeBatch(client, lines, revoked, how);
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
  if (isMissingPartition(failure) && how.again) {
    // Retention dropped the day since we made it.
    store.knownDays.clear();
    return attempt(store, lines, refused, revoked, { ...how, again: false });
  }
  if (isThere(failure) && !how.careful) return attempt(store, lines, refused, revoked, { ...how, careful: true });
  if (!isDataError(failure)) throw storeError(failure, `Writing ${lines.length} entries`);
  if (lines.length === 1) {
    refused.push({ line: lines[0]!, error: (failure as Error).message });
    await keepMessages(store, lines[0]!);
    return 0;
  }
  const middle = lines.length >> 1;
  const { careful } = how;
  const first = await attempt(store, lines.slice(0, middle), refused, revoked, { again: true, careful });
  return first + (await attempt(store, lines.slice(middle), refused, revoked, { again: true, careful }));
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
  const inserted = await attempt(store, heard, refused, revoked);
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
