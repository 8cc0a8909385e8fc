/**
 * A journal entry as bytes: written as JSON once, and those bytes are what the journal holds and what the database is
 * sent. A few facts stand before the entry, so that whoever carries a line need not parse it:
 *
 *   {"kind":"signal","agent":"desk","at":1763200000000,"entry":{…}}
 *   {"kind":"turn","agent":"desk","at":1763200000000,"messages":[["0c9e…",1890],…],"entry":{…},"bodies":[{…},…]}
 *
 * The entry is in the form the database takes apart. A turn's columns are those of turn-columns.ts; the messages it refers
 * to stand behind it, except those that went before (`isKnown`), so that a journal grows by what is new too.
 */
import type { JournalEntry } from '../collect/signal.ts';
import type { Choice, Turn } from '../collect/turn.ts';
import { type Content, createNames, type IsKnown, type Names, type Part, splitContent } from './content.ts';
import { isPersonal, taskTypeOf, toolsCalledOf } from './slices.ts';
import { storable } from './storable.ts';
import { type StoredTurn, type TurnField, turnColumns } from './turn-columns.ts';
import { type Inner, ofInner, type TurnValues, type WrittenTurn } from './turn-rows.ts';

/** A message or a piece of a list that comes with a turn. */
export type CarriedPart = {
  readonly hash: string;
  readonly isPiece: boolean /** JSON in UTF-8. */;
  readonly body: Buffer;
};

export type Line = {
  readonly kind: JournalEntry['kind'];
  readonly agent: string;
  /** Milliseconds since 1970: the start of a turn or sibling, otherwise when it is said to have happened. */
  readonly at: number;
  /** Id of the client key that it came with (signed-line.ts). */
  readonly by?: string | undefined;
  /** The entry: a JSON object in UTF-8. */
  readonly json: Buffer;
  /** A turn's; none for other kinds. */
  readonly messages: readonly CarriedPart[];
  /** A turn's, where it was made at once with the line. */
  readonly turn?: WrittenTurn | undefined;
};

type Facts = Pick<Line, 'kind' | 'agent' | 'at'> & {
  readonly messages?: readonly (readonly [hash: string, bytes: number, isPiece?: 1])[];
  /** Of a turn from before each message was stored once: its request and choices stand behind the entry. */
  readonly bytes?: readonly [request: number, choices: number];
};

/** How a turn's parts are named, and which of them need not be carried: they are on their way already. */
export type Naming = { readonly names: Names; readonly isKnown: IsKnown };
const carryAll: Naming = { names: createNames(''), isKnown: () => false };

/** Cannot stand inside the facts before it: a quotation mark in a JSON string is escaped. */
const ENTRY = ',"entry":';
const entryBytes = Buffer.from(ENTRY);
const BODIES = ',"bodies":[';

export function encodeLine(entry: JournalEntry, naming = carryAll): string {
  if (entry.kind === 'turn') return encodeTurn(entry.turn, naming).text;
  const { kind } = entry;
  if (entry.kind === 'sibling') {
    const { agent, startedAt: at } = entry.sibling;
    return `${opening({ kind, agent, at })}${storable(entry.sibling)}}`;
  }
  const body = entry.kind === 'signal' ? entry.signal : entry.attachment;
  return `${opening({ kind, agent: body.agent, at: body.at })}${storable(body)}}`;
}

type Encoded = {
  readonly text: string;
  readonly values: TurnValues;
  /** Messages come with it. */
  readonly carries: boolean;
};

/** `begin`: its first bytes, where something is to stand before the facts (signed-line.ts). */
export function encodeTurn(turn: Turn, naming: Naming, begin = '{'): Encoded {
  return encodeColumns(turn, tokensOf(turn.choices), turn, naming, begin);
}

type Tokens = Pick<StoredTurn, 'tokenIds' | 'logprobs' | 'tokenCounts'>;

function encodeColumns(
  facts: Omit<Turn, keyof Content>,
  tokens: Tokens | null,
  content: Content,
  naming: Naming,
  begin = '{',
): Encoded {
  const { frame, refs, parts, bytes } = splitContent(content, naming.names, naming.isKnown);
  const inner: Inner = {
    ...tokens,
    taskType: taskTypeOf(content.request),
    personal: isPersonal(content.request, facts.redactions),
    toolsCalled: toolsCalledOf(content),
    contentBytes: bytes,
    parts: refs,
  };
  let messages = '';
  let bodies = '';
  for (const part of parts) {
    const body = bodyOf(part);
    const comma = bodies === '' ? '' : ',';
    messages +=
      part.of === null
        ? `${comma}["${part.hash}",${Buffer.byteLength(body)}]`
        : `${comma}["${part.hash}",${body.length},1]`;
    bodies += comma + body;
  }
  // In one go: what is put together, looked through or cut is copied each time.
  const before = `${begin}"kind":"turn","agent":${storable(facts.agent)},"at":${storable(facts.startedAt)},"messages":[`;
  const text = `${before}${messages}]${ENTRY}{${columnsOf(facts, inner)}"frame":${frame}}${BODIES}${bodies}]}`;
  return { text, values: { facts, inner, frame }, carries: parts.length > 0 };
}

/** The frame is put behind the others as it is. */
const ofFacts = (Object.keys(turnColumns) as TurnField[]).filter(
  (field) => field !== 'frame' && !(ofInner as readonly string[]).includes(field),
);
const namesOfFacts = ofFacts.map((field) => `"${field}":`);
const namesOfInner = ofInner.map((field) => `"${field}":`);

/**
 * Field by field: an object of so many fields that is put together from others takes JSON.stringify three times as long as one
 * that was written down as a whole.
 */
function columnsOf(facts: Omit<Turn, keyof Content>, inner: Inner): string {
  let json = '';
  for (let i = 0; i < ofFacts.length; i++) {
    const value = facts[ofFacts[i] as keyof typeof facts];
    if (value !== undefined) json += `${namesOfFacts[i]}${storable(value)},`;
  }
  for (let i = 0; i < ofInner.length; i++) {
    const value = inner[ofInner[i]!];
    if (value !== undefined) json += `${namesOfInner[i]}${storable(value)},`;
  }
  return json;
}

const bodyOf = ({ body, of }: Part): string => body ?? JSON.stringify(of);

const opening = (facts: Facts): string => `${storable(facts).slice(0, -1)}${ENTRY}`;

/** Throws when the bytes are not a line. What the entry and the messages hold is not looked at. */
export function readLine(payload: Buffer): Line {
  const opened = payload.indexOf(entryBytes);
  if (opened < 0 || payload.at(-1) !== 0x7d) throw new Error('This is not a line of the journal.');
  const { kind, agent, at, messages, bytes } = JSON.parse(`${payload.toString('utf8', 0, opened)}}`) as Facts;
  const entry = opened + ENTRY.length;
  const end = payload.length - 1;
  if (bytes !== undefined) return readWhole(payload.subarray(entry, end), bytes);
  if (messages === undefined) return { kind, agent, at, json: payload.subarray(entry, end), messages: [] };
  let from = end - 1; // of the messages, from the last to the first
  const carried: CarriedPart[] = [];
  for (const [hash, length, isPiece] of messages.toReversed()) {
    carried.push({ hash, isPiece: isPiece === 1, body: payload.subarray(from - length, from) });
    from -= length + 1;
  }
  const json = payload.subarray(entry, from + (messages.length === 0 ? 0 : 1) - BODIES.length);
  return { kind, agent, at, json, messages: carried.reverse() };
}

const REQUEST = ',"request":';
const CHOICES = ',"choices":';

/** A turn that an earlier Pawl left in the journal, with its whole request. */
function readWhole(body: Buffer, [requestBytes, choicesBytes]: readonly [number, number]): Line {
  const choices = body.length - choicesBytes;
  const request = choices - CHOICES.length - requestBytes;
  const parse = (from: number, to: number) => JSON.parse(body.toString('utf8', from, to));
  const content = { request: parse(request, request + requestBytes), choices: parse(choices, body.length) };
  const columns = parse(0, request - REQUEST.length) as Turn; // with its token arrays beside it
  return readLine(Buffer.from(encodeColumns(columns, null, content, carryAll).text));
}

export const lineOf = (entry: JournalEntry, naming?: Naming): Line => readLine(Buffer.from(encodeLine(entry, naming)));

/** Token arrays get columns of their own type, an eighth of the size. Ragged: counts say what is whose. */
function tokensOf(choices: readonly Choice[]): Tokens | null {
  if (!choices.some(({ tokenIds, logprobs }) => tokenIds !== undefined || logprobs !== undefined)) return null;
  return {
    tokenIds: choices.flatMap((choice) => choice.tokenIds ?? []),
    logprobs: choices.flatMap((choice) => choice.logprobs ?? []),
    tokenCounts: choices.flatMap((choice) => [choice.tokenIds?.length ?? -1, choice.logprobs?.length ?? -1]),
  };
}
