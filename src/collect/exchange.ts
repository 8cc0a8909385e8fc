/**
 * One finished HTTP exchange as the gateway saw it: a plain value of raw bytes and timings, cheap to make and safe to
 * hand to another thread. Nothing here is parsed; assemble.ts makes a Turn of it. It is never written to disk.
 */
import type { DoorField } from '../store/turn-columns.ts';
import type { SiblingOf } from './sibling.ts';
import type { Turn } from './turn.ts';

/** What a door knows of a call without reading a byte of it: turn-columns.ts says which fields those are. */
export type DoorFacts = Omit<Pick<Turn, DoorField>, 'trajectory'> & {
  /** The trajectory the caller named, in the path or a header; null: inferred from the messages (thread.ts). */
  readonly trajectory: string | null;
  /** Set for another answer to a turn's prompt: it becomes a sibling of that turn and not a turn. */
  readonly sibling?: SiblingOf;
};

/** `user` and `keys` are as the caller gave them (person.ts), `status` and `error` what was seen without reading the answer. */
export type Exchange = DoorFacts & {
  readonly requestedModel: string;
  readonly requestBody: Uint8Array;
  readonly responseChunks: readonly Uint8Array[];
  /** The gateway passed more bytes on than it kept. */
  readonly responseTruncated: boolean;
  /** `requestBody` is what a door has read already, as JSON (turn-input.ts). */
  readonly isUnderstood?: true;
};

/** Bytes an exchange holds on to; what the queue between the threads is bounded by. */
export function exchangeBytes(exchange: Exchange): number {
  let bytes = exchange.requestBody.byteLength;
  for (const chunk of exchange.responseChunks) bytes += chunk.byteLength;
  return bytes;
}

type Of<Field extends keyof Exchange> = Exchange[Field];
/** Everything but the bytes, in the order in which it crosses to the worker, and the lengths of request and answer. */
export type Row = readonly [
  Of<'id'>,
  Of<'agent'>,
  Of<'trajectory'>,
  Of<'user'>,
  Of<'origin'>,
  Of<'endpoint'>,
  Of<'keys'>,
  Of<'startedAt'>,
  Of<'firstTokenMs'>,
  Of<'latencyMs'>,
  Of<'upstream'>,
  Of<'release'>,
  Of<'status'>,
  Of<'httpStatus'>,
  Of<'error'>,
  Of<'attempts'>,
  Of<'stream'>,
  Of<'requestedModel'>,
  Of<'responseTruncated'>,
  Of<'clientKey'>,
  Of<'assigned'>,
  Of<'sibling'>,
  Of<'isUnderstood'>,
  requestBytes: number,
  answerBytes: number,
];

/** A row of JSON without names takes less than half of an object's time, to write and to read; field by field, reading takes less than half of a loop's. */
export const packRow = (exchange: Exchange, answerBytes: number): Row => [
  exchange.id,
  exchange.agent,
  exchange.trajectory,
  exchange.user,
  exchange.origin,
  exchange.endpoint,
  exchange.keys,
  exchange.startedAt,
  exchange.firstTokenMs,
  exchange.latencyMs,
  exchange.upstream,
  exchange.release,
  exchange.status,
  exchange.httpStatus,
  exchange.error,
  exchange.attempts,
  exchange.stream,
  exchange.requestedModel,
  exchange.responseTruncated,
  exchange.clientKey,
  exchange.assigned,
  exchange.sibling,
  exchange.isUnderstood,
  exchange.requestBody.byteLength,
  answerBytes,
];

/** The exchange whose bytes begin at `at`. */
export function unpackRow(row: Row, bytes: ArrayBuffer, at: number): Exchange {
  const exchange: { -readonly [Field in keyof Exchange]: Exchange[Field] } = {
    id: row[0],
    agent: row[1],
    trajectory: row[2],
    user: row[3],
    origin: row[4],
    endpoint: row[5],
    keys: row[6],
    startedAt: row[7],
    firstTokenMs: row[8],
    latencyMs: row[9],
    upstream: row[10],
    release: row[11],
    status: row[12],
    httpStatus: row[13],
    error: row[14],
    attempts: row[15],
    stream: row[16],
    requestedModel: row[17],
    responseTruncated: row[18],
    requestBody: new Uint8Array(bytes, at, row[23]),
    responseChunks: [new Uint8Array(bytes, at + row[23], row[24])],
  };
  // JSON knows no undefined.
  if (row[19] != null) exchange.clientKey = row[19];
  if (row[20] != null) exchange.assigned = row[20];
  if (row[21] != null) exchange.sibling = row[21];
  if (row[22] != null) exchange.isUnderstood = row[22];
  return exchange;
}

/**
 * Many exchanges as one message: their rows as JSON, a third of what structured clone takes, and one copy of all bytes, into `bytes`, which has
 * room for them.
 */
export function packExchanges(
  exchanges: readonly Exchange[],
  bytes: ArrayBuffer,
): { readonly rows: string; readonly bytes: ArrayBuffer } {
  const target = new Uint8Array(bytes);
  let at = 0;
  const rows: Row[] = [];
  for (const exchange of exchanges) {
    target.set(exchange.requestBody, at);
    at += exchange.requestBody.byteLength;
    const answer = at;
    for (const chunk of exchange.responseChunks) {
      target.set(chunk, at);
      at += chunk.byteLength;
    }
    rows.push(packRow(exchange, at - answer));
  }
  return { rows: JSON.stringify(rows), bytes };
}

export function* unpackExchanges(rows: string, bytes: ArrayBuffer): Generator<Exchange> {
  let at = 0;
  for (const row of JSON.parse(rows) as Row[]) {
    const exchange = unpackRow(row, bytes, at);
    at += exchangeBytes(exchange);
    yield exchange;
  }
}
