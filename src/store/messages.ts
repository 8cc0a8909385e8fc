/**
 * The messages that turns refer to (content.ts): each is a row of its agent and day, however many turns have it. Written
 * with the first turn that carries it, read together for many turns, swept when no turn refers to it any more.
 */
import type pg from 'pg';
import { type Content, type Frame, joinContent, MissingPart, wanted } from './content.ts';
import { scanning } from './limits.ts';
import type { CarriedPart, Line } from './line.ts';
import { dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

/**
 * A message that came again is noted now and then, so that it is not swept while turns that are under way refer to it. Within
 * the minute nothing is written.
 */
const insertMessages = `
insert into pawl.messages as m (day, agent, hash, sent_at, body, parts)
select x.day, x.agent, x.hash, now(), case when not x.piece then x.body end,
  case when x.piece then array(select json_array_elements_text(x.body::json)::uuid) end
from unnest($1::date[], $2::text[], $3::uuid[], $4::boolean[], $5::text[]) as x(day, agent, hash, piece, body)
on conflict (hash, agent, day) do update set sent_at = excluded.sent_at where m.sent_at < excluded.sent_at - interval '1 minute'`;

type Placed = { readonly day: Day; readonly agent: string; readonly part: CarriedPart };

/** A statement carries about this many bytes. */
const chunkBytes = 32 * 1024 * 1024;

/** What these turns carry, each once. */
export async function writeMessages(client: pg.ClientBase, turns: readonly Line[]): Promise<void> {
  const found = new Map<string, Placed>();
  for (const { agent, at, messages } of turns) {
    const day = messages.length === 0 ? '' : dayOf(at);
    for (const part of messages) found.set(`${part.hash} ${day} ${agent}`, { day, agent, part });
  }
  const carried = [...found.values()];
  for (let from = 0; from < carried.length; ) {
    let to = from;
    for (let bytes = 0; to < carried.length && (to === from || bytes < chunkBytes); to++)
      bytes += carried[to]!.part.body.length;
    const chunk = carried.slice(from, to);
    await client.query(insertMessages, [
      chunk.map(({ day }) => day),
      chunk.map(({ agent }) => agent),
      chunk.map(({ part }) => part.hash),
      chunk.map(({ part }) => part.isPiece),
      textArray(chunk.map(({ part }) => part.body)),
    ]);
    from = to;
  }
}

const textType = 25;
/** The binary form of text[]: one dimension from 1, then each length and text; nothing is escaped or copied twice. */
export function textArray(texts: readonly (Buffer | string)[]): Buffer {
  const head = int32s(1, 0, textType, texts.length, 1);
  const bytes = texts.map((text) => (typeof text === 'string' ? Buffer.from(text) : text));
  return Buffer.concat([head, ...bytes.flatMap((text) => [int32s(text.length), text])]);
}

const int32s = (...values: number[]): Buffer => {
  const bytes = Buffer.allocUnsafe(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeInt32BE(value, 4 * i);
  return bytes;
};

/** Where a turn's parts are looked for, and how they go together. */
export type Framed = {
  readonly id: string;
  readonly agent: string;
  readonly day: Day;
  readonly frame: Frame;
  readonly parts: readonly string[];
};

/** A message is fetched and parsed once, however many of the turns have it; they share it. Null: part of it is missing. */
export async function readContents(store: Store, turns: readonly Framed[]): Promise<Map<string, Content | null>> {
  const contents = new Map<string, Content | null>();
  const groups = new Map<string, Framed[]>();
  for (const turn of turns) {
    const key = `${turn.day} ${turn.agent}`;
    const group = groups.get(key);
    if (group) group.push(turn);
    else groups.set(key, [turn]);
  }
  for (const group of groups.values()) {
    const { agent, day } = group[0]!;
    const parts = await fetchParts(store, agent, day, group);
    for (const { id, frame, parts: refs } of group) {
      try {
        contents.set(id, joinContent(frame, refs, parts));
      } catch (error) {
        if (!(error instanceof MissingPart)) throw error;
        contents.set(id, null);
      }
    }
  }
  return contents;
}

type Row = { readonly hash: string; readonly body: string | null; readonly parts: string[] | null };
const select = 'select hash, body, parts from pawl.messages where agent = $1 and day = $2 and hash = any($3::uuid[])';

/** From the largest pieces down: what is in them is known only then. */
async function fetchParts(store: Store, agent: string, day: Day, turns: readonly Framed[]) {
  const values = new Map<string, unknown>();
  const pieces = new Map<string, readonly string[]>();
  const byDepth: Set<string>[] = [];
  const want = (depth: number, names: readonly string[]) => {
    while (byDepth.length <= depth) byDepth.push(new Set());
    for (const name of names) byDepth[depth]!.add(name);
  };
  for (const { frame, parts } of turns) for (const [depth, names] of wanted(frame, parts).entries()) want(depth, names);
  for (let depth = byDepth.length - 1; depth >= 0; depth--) {
    const names = [...byDepth[depth]!];
    if (names.length === 0) continue;
    const { rows } = await store.pool.query<Row>(select, [agent, day, names]);
    for (const { hash, body, parts } of rows)
      if (body !== null) values.set(hash, JSON.parse(body));
      else if (parts !== null && depth > 0) {
        pieces.set(hash, parts);
        want(depth - 1, parts);
      }
  }
  return { value: found(values), piece: found(pieces) };
}

const found =
  <T>(parts: ReadonlyMap<string, T>) =>
  (hash: string): T => {
    if (!parts.has(hash)) throw new MissingPart(`Part ${hash} is not in the database.`);
    return parts.get(hash) as T;
  };

/** A recorder goes on referring to a message for 5 minutes after it has sent it (collect/sent-messages.ts). */
const quietMinutes = 10;

const sweep = `
with recursive referred(hash) as materialized (
  select part from pawl.turns, unnest(parts) as part where agent = $1 and day = $2
  union
  select part from referred join pawl.messages m on m.hash = referred.hash and m.agent = $1 and m.day = $2, unnest(m.parts) as part
), unread as materialized (
  select hash, sent_at < now() - interval '${quietMinutes} minutes' as quiet from pawl.messages m
  where m.agent = $1 and m.day = $2 and not exists (select 1 from referred where referred.hash = m.hash)
), removed as (
  delete from pawl.messages m using unread where m.agent = $1 and m.day = $2 and m.hash = unread.hash and unread.quiet
    and m.sent_at < now() - interval '${quietMinutes} minutes'
  returning 1
)
select (select count(*) from removed)::integer as removed, count(*) filter (where not quiet)::integer as "left" from unread`;

export type Swept = {
  readonly removed: number;
  /** No turn refers to these either, but they came so lately that one under way may: sweep again in ten minutes. */
  readonly left: number;
};

/**
 * Forgets the messages of an agent's day that no turn of that day refers to, after turns were deleted. Retention needs none of
 * this: it drops the day's messages with its turns.
 */
export async function sweepMessages(store: Store, of: { readonly agent: string; readonly day: Day }): Promise<Swept> {
  const patient = store.within(scanning, 1);
  try {
    const { rows } = await patient.pool.query<Swept>(sweep, [of.agent, of.day]);
    return rows[0]!;
  } catch (error) {
    throw storeError(error, `Sweeping the messages of ${of.agent} on ${of.day}`);
  } finally {
    await patient.close();
  }
}
