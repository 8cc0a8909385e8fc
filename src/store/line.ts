/**
 * A journal entry as bytes: written as JSON once, and those bytes are what the journal holds and what the database is
 * sent. A few facts stand before the entry, so that whoever carries a line need not parse it:
 *
 *   {"kind":"signal","agent":"desk","at":1763200000000,"entry":{…}}
 *   {"kind":"turn","agent":"desk","at":1763200000000,"bytes":[1890,112],"entry":{…},"request":{…},"choices":[…]}
 *
 * The entry is in the form the database takes apart: a turn's two large documents stand behind its columns, so that each
 * is read once; token arrays are columns too; and there is nothing that jsonb cannot hold.
 */
import type { JournalEntry } from '../collect/signal.ts';
import type { Choice, Turn } from '../collect/turn.ts';

export type Line = {
  readonly kind: JournalEntry['kind'];
  readonly agent: string;
  /** Milliseconds since 1970: the start of a turn or sibling, otherwise when it is said to have happened. */
  readonly at: number;
  /** The entry without its documents: a JSON object in UTF-8. */
  readonly json: Buffer;
  /** A turn's request and choices, JSON in UTF-8; empty for other kinds. */
  readonly request: Buffer;
  readonly choices: Buffer;
};

type Facts = Pick<Line, 'kind' | 'agent' | 'at'> & { readonly bytes?: readonly [request: number, choices: number] };

/** Cannot stand inside the facts before it: a quotation mark in a JSON string is escaped. */
const ENTRY = Buffer.from(',"entry":');
const REQUEST = ',"request":';
const CHOICES = ',"choices":';
const nothing = Buffer.alloc(0);

export function encodeLine(entry: JournalEntry): string {
  if (entry.kind === 'turn') return encodeTurn(entry.turn);
  const { kind } = entry;
  if (entry.kind === 'sibling') {
    const { agent, startedAt: at } = entry.sibling;
    return `${opening({ kind, agent, at })}${storable(entry.sibling)}}`;
  }
  const body = entry.kind === 'signal' ? entry.signal : entry.attachment;
  return `${opening({ kind, agent: body.agent, at: body.at })}${storable(body)}}`;
}

function encodeTurn(turn: Turn): string {
  const stored = turn.choices.some(hasTokens) ? splitTokens(turn) : turn;
  const request = storable(stored.request);
  const choices = storable(stored.choices);
  const columns = storable({ ...stored, request: undefined, choices: undefined });
  const bytes = [Buffer.byteLength(request), Buffer.byteLength(choices)] as const;
  const before = opening({ kind: 'turn', agent: turn.agent, at: turn.startedAt, bytes });
  return `${before}${columns}${REQUEST}${request}${CHOICES}${choices}}`;
}

const opening = (facts: Facts): string => `${storable(facts).slice(0, -1)}${ENTRY}`;

/** Throws when the bytes are not a line. What the entry and the documents hold is not looked at. */
export function readLine(payload: Buffer): Line {
  const opened = payload.indexOf(ENTRY);
  if (opened < 0 || payload.at(-1) !== 0x7d) throw new Error('This is not a line of the journal.');
  const { kind, agent, at, bytes } = JSON.parse(`${payload.toString('utf8', 0, opened)}}`) as Facts;
  const entry = opened + ENTRY.length;
  const end = payload.length - 1;
  if (bytes === undefined)
    return { kind, agent, at, json: payload.subarray(entry, end), request: nothing, choices: nothing };
  const choices = end - bytes[1];
  const request = choices - CHOICES.length - bytes[0];
  return {
    kind,
    agent,
    at,
    json: payload.subarray(entry, request - REQUEST.length),
    request: payload.subarray(request, request + bytes[0]),
    choices: payload.subarray(choices, end),
  };
}

export const lineOf = (entry: JournalEntry): Line => readLine(Buffer.from(encodeLine(entry)));

const hasTokens = (choice: Choice): boolean => choice.tokenIds !== undefined || choice.logprobs !== undefined;

/** Token arrays get columns of their own type, an eighth of the size. Ragged: counts say what is whose. */
function splitTokens(turn: Turn): Turn {
  const { choices } = turn;
  const columns = {
    tokenIds: choices.flatMap((choice) => choice.tokenIds ?? []),
    logprobs: choices.flatMap((choice) => choice.logprobs ?? []),
    tokenCounts: choices.flatMap((choice) => [choice.tokenIds?.length ?? -1, choice.logprobs?.length ?? -1]),
  };
  return { ...turn, ...columns, choices: choices.map(({ tokenIds: _, logprobs: __, ...rest }) => rest) };
}

const storable = (value: object): string => storableJson(JSON.stringify(value));

/**
 * jsonb holds neither NUL nor half a surrogate pair, and OpenAI bodies contain both now and then. Both become U+FFFD.
 * JSON.stringify writes whole pairs as themselves, so every \ud… it writes is a lone half; escapes are consumed in
 * pairs so that an escaped backslash before a `u0000` stays what it is.
 */
export const storableJson = (json: string): string =>
  /\\u0000|\\ud/.test(json)
    ? json.replace(/\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g, (written) =>
        /^\\u(?:0000|d)/.test(written) ? '\\ufffd' : written,
      )
    : json;
