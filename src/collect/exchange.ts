/**
 * One finished HTTP exchange as the gateway saw it: a plain value of raw bytes and timings, cheap to make and safe to
 * hand to another thread. Nothing here is parsed; assemble.ts makes a Turn of it. It is never written to disk.
 */
import type { SiblingOf } from './sibling.ts';
import type { Origin } from './trajectory.ts';
import type { Endpoint, TurnStatus } from './turn.ts';

export type Exchange = {
  /** UUIDv7 made at the door: the id of the turn. */
  readonly id: string;
  /** The trajectory the caller named, in the path or a header; null: inferred from the messages (thread.ts). */
  readonly trajectory: string | null;
  readonly agent: string;
  /** As the caller gave it; person.ts makes it fit to store. */
  readonly user: string | null;
  readonly origin: Origin;
  /** Business keys the caller attached, raw. */
  readonly keys: readonly string[];
  readonly endpoint: Endpoint;
  readonly startedAt: number; // ms since epoch
  readonly firstTokenMs: number | null;
  readonly latencyMs: number;
  readonly upstream: string;
  readonly release: string;
  /** The release that was picked, if it failed before its first byte and `release` answered in its place. */
  readonly assigned?: string;
  readonly requestedModel: string;
  /** What the gateway could tell without reading the answer. */
  readonly status: TurnStatus;
  readonly httpStatus: number;
  readonly error: string | null;
  readonly attempts: number;
  /** The answer is an SSE stream. */
  readonly stream: boolean;
  readonly requestBody: Uint8Array;
  readonly responseChunks: readonly Uint8Array[];
  /** The gateway passed more bytes on than it kept. */
  readonly responseTruncated: boolean;
  /** Set for another answer to a turn's prompt: it becomes a sibling of that turn and not a turn. */
  readonly sibling?: SiblingOf;
};

/** Bytes an exchange holds on to; what the queue between the threads is bounded by. */
export function exchangeBytes(exchange: Exchange): number {
  let bytes = exchange.requestBody.byteLength;
  for (const chunk of exchange.responseChunks) bytes += chunk.byteLength;
  return bytes;
}

type E = Exchange;
/**
 * An exchange without its bytes, as it crosses to the worker; the last four are `assigned`, `sibling` and the lengths of
 * request and answer.
 */
// biome-ignore format: one line per group of fields
export type Row = readonly [
  E['id'], E['trajectory'], E['agent'], E['user'], E['origin'], E['keys'], E['endpoint'],
  E['startedAt'], E['firstTokenMs'], E['latencyMs'], E['upstream'], E['release'], E['requestedModel'], E['status'],
  E['httpStatus'], E['error'], E['attempts'], E['stream'], E['responseTruncated'],
  string | null, SiblingOf | null, number, number,
];

/** A row of JSON without names takes less than half of an object's time, to write and to read. */
// biome-ignore format: as Row
export const packRow = (e: Exchange, answerBytes: number): Row => [
  e.id, e.trajectory, e.agent, e.user, e.origin, e.keys, e.endpoint,
  e.startedAt, e.firstTokenMs, e.latencyMs, e.upstream, e.release, e.requestedModel, e.status,
  e.httpStatus, e.error, e.attempts, e.stream, e.responseTruncated,
  e.assigned ?? null, e.sibling ?? null, e.requestBody.byteLength, answerBytes,
];

/** The exchange whose bytes begin at `at`. */
export function unpackRow(row: Row, bytes: ArrayBuffer, at: number): Exchange {
  // biome-ignore format: as Row
  const [
    id, trajectory, agent, user, origin, keys, endpoint,
    startedAt, firstTokenMs, latencyMs, upstream, release, requestedModel, status,
    httpStatus, error, attempts, stream, responseTruncated,
    assigned, sibling, requestBytes, answerBytes,
  ] = row;
  const requestBody = new Uint8Array(bytes, at, requestBytes);
  const responseChunks = [new Uint8Array(bytes, at + requestBytes, answerBytes)];
  // An optional field that is forgotten here still compiles and is lost: exchange.test.ts lists them all.
  const optional = { ...(assigned === null ? null : { assigned }), ...(sibling === null ? null : { sibling }) };
  // biome-ignore format: as Row
  return {
    id, trajectory, agent, user, origin, keys, endpoint,
    startedAt, firstTokenMs, latencyMs, upstream, release, requestedModel, status,
    httpStatus, error, attempts, stream, responseTruncated,
    requestBody, responseChunks, ...optional,
  };
}

/** Many exchanges as one message: their rows as JSON, a third of what structured clone takes, and one copy of all bytes. */
export function packExchanges(
  exchanges: readonly Exchange[],
  totalBytes: number,
): { readonly rows: string; readonly bytes: ArrayBuffer } {
  const bytes = new ArrayBuffer(totalBytes);
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
