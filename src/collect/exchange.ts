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
