/**
 * One finished HTTP exchange as the gateway saw it: a plain value of raw bytes and timings, cheap to make and safe to
 * hand to another thread. Nothing here is parsed; assemble.ts makes a Turn of it. It is never written to disk.
 */
import { type DoorField, doorFields } from '../store/turn-columns.ts';
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

/** Everything but the bytes, in the order in which it crosses to the worker. */
const crossing = [...doorFields, 'sibling', 'requestedModel', 'responseTruncated', 'isUnderstood'] as const;
type Crossing = (typeof crossing)[number];
/** A field that is forgotten does not compile. */
type Missing = Exclude<keyof Exchange, Crossing | 'requestBody' | 'responseChunks'>;
/** Those that an exchange is without when there is nothing to say. */
const optional: ReadonlySet<string> = new Set(
  Object.keys({ assigned: 0, sibling: 0, clientKey: 0, isUnderstood: 0 } satisfies {
    [Field in Crossing as object extends Pick<Exchange, Field> ? Field : never]-?: 0;
  }),
);

/** The values of `crossing`, then the lengths of request and answer. */
export type Row = readonly (Missing extends never ? unknown : Missing)[];

/** A row of JSON without names takes less than half of an object's time, to write and to read. */
export function packRow(exchange: Exchange, answerBytes: number): Row {
  const row: unknown[] = [];
  for (const field of crossing) row.push(exchange[field]);
  row.push(exchange.requestBody.byteLength, answerBytes);
  return row;
}

/** The exchange whose bytes begin at `at`. */
export function unpackRow(row: Row, bytes: ArrayBuffer, at: number): Exchange {
  const fields: Record<string, unknown> = {};
  for (let i = 0; i < crossing.length; i++) {
    const field = crossing[i] as Crossing;
    if (row[i] !== null || !optional.has(field)) fields[field] = row[i];
  }
  const [requestBytes, answerBytes] = row.slice(crossing.length) as [number, number];
  fields.requestBody = new Uint8Array(bytes, at, requestBytes);
  fields.responseChunks = [new Uint8Array(bytes, at + requestBytes, answerBytes)];
  return fields as Exchange;
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
