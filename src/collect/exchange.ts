/**
 * One finished HTTP exchange as the gateway saw it: a plain value of raw bytes and timings, cheap to make and safe to
 * hand to another thread. Nothing here is parsed; assemble.ts makes a Turn of it. It is never written to disk.
 */
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
};

/** Bytes an exchange holds on to; what the queue between the threads is bounded by. */
export function exchangeBytes(exchange: Exchange): number {
  let bytes = exchange.requestBody.byteLength;
  for (const chunk of exchange.responseChunks) bytes += chunk.byteLength;
  return bytes;
}

type Head = Omit<Exchange, 'requestBody' | 'responseChunks'>;
/** The fields of an exchange that are not bytes, in the order in which they cross to the worker. */
const headFields = [
  'id',
  'trajectory',
  'agent',
  'user',
  'origin',
  'keys',
  'endpoint',
  'startedAt',
  'firstTokenMs',
  'latencyMs',
  'upstream',
  'release',
  'requestedModel',
  'status',
  'httpStatus',
  'error',
  'attempts',
  'stream',
  'responseTruncated',
] as const satisfies (keyof Head)[];
/** Stops compiling when a field is forgotten above. */
true satisfies Exclude<keyof Head, (typeof headFields)[number]> extends never ? true : false;

/** A row without names takes half the time of an object, as JSON on both sides. Lengths of request and answer are last. */
export function packHead(exchange: Exchange): unknown[] {
  const row: unknown[] = headFields.map((field) => exchange[field]);
  const request = exchange.requestBody.byteLength;
  row.push(request, exchangeBytes(exchange) - request);
  return row;
}

export function unpackExchange(row: readonly unknown[], bytes: ArrayBuffer, at: number): Exchange {
  const [request, answer] = row.slice(headFields.length) as [number, number];
  const head = Object.fromEntries(headFields.map((field, i) => [field, row[i]])) as unknown as Head;
  return {
    ...head,
    requestBody: new Uint8Array(bytes, at, request),
    responseChunks: [new Uint8Array(bytes, at + request, answer)],
  };
}
