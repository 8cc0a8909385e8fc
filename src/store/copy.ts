/**
 * COPY in PostgreSQL's binary form: the cheapest way a server takes rows. Nothing is parsed or escaped, values are laid down as the table
 * holds them. A row is the bytes of one line of the copy, made here and sent later with others.
 */
import type { Connection } from 'pg';
import { storable } from './storable.ts';

/** No value of the column's type. The code is the one PostgreSQL has for it: this entry is refused, and the others are not. */
export class UnfitValue extends Error {
  override readonly name = 'UnfitValue';
  readonly code = '22P02';
  constructor(value: unknown, type: string) {
    super(`${String(JSON.stringify(value)).slice(0, 200)} is no value of type ${type}.`);
  }
}

const oids = { text: 25, uuid: 2950, integer: 23, real: 700 } as const;
/** 2000-01-01, from which PostgreSQL counts. */
const epochMs = Date.UTC(2000, 0, 1);
const dayMs = 86_400_000;
const most32 = 2 ** 31;
/** Texts up to so many characters are written here, one by one, which is less work than asking for it. */
const SHORT = 48;

/** Rows are written one behind the other into blocks of this size: a buffer of its own for each takes longer than what is in it. */
const blockBytes = 256 * 1024;
let bytes = Buffer.allocUnsafeSlow(blockBytes);
/** Where the row under way begins, and where it goes on. */
let begin = 0;
let at = 0;

/** Places inside a row are counted from its beginning, which moves with it when the block is full. */
const room = (wanted: number): void => {
  if (at + wanted <= bytes.length) return;
  const next = Buffer.allocUnsafeSlow(Math.max(blockBytes, 2 * (at - begin + wanted)));
  bytes.copy(next, 0, begin, at);
  bytes = next;
  at -= begin;
  begin = 0;
};

const int32 = (value: number): void => {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
  at += 4;
};

const int64 = (value: number): void => {
  const high = Math.floor(value / 2 ** 32);
  int32(high);
  int32(value - high * 2 ** 32);
};

const isInt32 = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= -most32 && (value as number) < most32;

/** Where a text's length stands, which is known only behind it. */
const characters = (value: string): void => {
  room(4 + 3 * value.length);
  const begins = at + 4;
  at = begins;
  if (value.length <= SHORT) {
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code === 0 || code > 127) {
        at = begins;
        break;
      }
      bytes[at++] = code;
    }
  }
  // Half a surrogate pair is written as U+FFFD; NUL is what PostgreSQL has no text with.
  if (at - begins !== value.length)
    at = begins + bytes.write(value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value, begins);
  const ends = at;
  at = begins - 4;
  int32(ends - begins);
  at = ends;
};

const digit = (code: number): number => {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
};

const uuid = (value: unknown): void => {
  if (typeof value !== 'string' || value.length !== 36) throw new UnfitValue(value, 'uuid');
  int32(16);
  for (let i = 0; i < 36; ) {
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (value.charCodeAt(i++) !== 45) throw new UnfitValue(value, 'uuid');
      continue;
    }
    const high = digit(value.charCodeAt(i));
    const low = digit(value.charCodeAt(i + 1));
    if (high < 0 || low < 0) throw new UnfitValue(value, 'uuid');
    bytes[at++] = high * 16 + low;
    i += 2;
  }
};

const text = (value: unknown): void => {
  if (typeof value !== 'string') throw new UnfitValue(value, 'text');
  characters(value);
};

const integer = (value: unknown): void => {
  if (!isInt32(value)) throw new UnfitValue(value, 'integer');
  int32(4);
  int32(value);
};

const double = (value: number): void => {
  int32(8);
  at = bytes.writeDoubleBE(value + 0, at); // no -0, which JSON does not have either
};

/** Of one dimension; `width` is the most that one takes, with its length. */
const array = (items: unknown, type: keyof typeof oids, width: number, write: (item: unknown) => void): void => {
  if (!Array.isArray(items)) throw new UnfitValue(items, `${type}[]`);
  room(24 + items.length * width);
  const begins = at - begin;
  at += 4;
  int32(items.length === 0 ? 0 : 1);
  int32(0); // flags
  int32(oids[type]);
  if (items.length > 0) {
    int32(items.length);
    int32(1);
  }
  let nulls = false;
  for (const item of items) {
    if (item === null || item === undefined) {
      nulls = true;
      int32(-1);
    } else write(item);
  }
  const ends = at;
  at = begin + begins;
  if (nulls) bytes[at + 11] = 1;
  int32(ends - at - 4);
  at = ends;
};

const real = (item: unknown): void => {
  if (typeof item !== 'number' || !Number.isFinite(Math.fround(item))) throw new UnfitValue(item, 'real');
  int32(4);
  at = bytes.writeFloatBE(item, at);
};

/** A value of each type; null and what is not there are nulls. JSON has no word for a number that is none. */
const writers = {
  uuid(value: unknown) {
    uuid(value);
  },
  text(value: unknown) {
    text(value);
  },
  boolean(value: unknown) {
    if (typeof value !== 'boolean') throw new UnfitValue(value, 'boolean');
    int32(1);
    bytes[at++] = value ? 1 : 0;
  },
  integer(value: unknown) {
    integer(value);
  },
  bigint(value: unknown) {
    if (!Number.isSafeInteger(value)) throw new UnfitValue(value, 'bigint');
    int32(8);
    int64(value as number);
  },
  'double precision'(value: unknown) {
    if (typeof value !== 'number') throw new UnfitValue(value, 'double precision');
    double(value);
  },
  /** In milliseconds since 1970, to the microsecond. */
  'timestamp with time zone'(value: unknown) {
    const since = typeof value === 'number' ? Math.round((value - epochMs) * 1000) : Number.NaN;
    if (!Number.isSafeInteger(since)) throw new UnfitValue(value, 'timestamp with time zone');
    int32(8);
    int64(since);
  },
  /** As 2026-01-31. */
  date(value: unknown) {
    int32(4);
    int32((Date.parse(String(value)) - epochMs) / dayMs);
  },
  /** JSON as text. */
  json(value: unknown) {
    text(value);
  },
  jsonb(value: unknown) {
    const version = '\u0001';
    characters(version + storable(value));
  },
  'text[]'(value: unknown) {
    array(value, 'text', 4, text);
  },
  'uuid[]'(value: unknown) {
    array(value, 'uuid', 20, uuid);
  },
  'integer[]'(value: unknown) {
    array(value, 'integer', 8, integer);
  },
  'real[]'(value: unknown) {
    array(value, 'real', 8, real);
  },
} as const;

export type CopyType = keyof typeof writers;

/** Makes rows of columns of these types. */
export function rowsOf(types: readonly CopyType[]): (values: readonly unknown[]) => Buffer {
  const write = types.map((type) => writers[type]);
  return (values) => {
    begin = at;
    room(2);
    bytes[at++] = types.length >> 8;
    bytes[at++] = types.length;
    for (let i = 0; i < write.length; i++) {
      room(32);
      const value = values[i];
      if (value === null || value === undefined || (typeof value === 'number' && !Number.isFinite(value))) int32(-1);
      else write[i]!(value);
    }
    return bytes.subarray(begin, at);
  };
}

const signature = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const noMore = Buffer.from([0xff, 0xff]);
/** A message: its kind, and how long it is without that. */
const message = (kind: string, length: number): Buffer => {
  const head = Buffer.from(`${kind}\0\0\0\0`, 'latin1');
  head.writeUInt32BE(4 + length, 1);
  return head;
};

/** What a connection does between two queries: the driver's form of a query of one's own. */
export class CopyIn {
  readonly done: Promise<void>;
  /** The driver puts one around it that knows how long an answer may take. */
  callback: (error?: Error | null) => void = () => {};
  readonly #statement: string;
  readonly #rows: readonly Buffer[];

  /** `into`: the table and its columns. */
  constructor(into: string, rows: readonly Buffer[]) {
    this.#statement = `copy ${into} from stdin (format binary)`;
    this.#rows = rows;
    this.done = new Promise((resolve, reject) => {
      this.callback = (error) => (error ? reject(error) : resolve());
    });
  }

  submit(connection: Connection): void {
    connection.query(this.#statement);
  }
  /** Both messages at once, and each row copied once, which the driver would do twice. */
  handleCopyInResponse({ stream }: Connection): void {
    const length = this.#rows.reduce((sum, row) => sum + row.length, signature.length + noMore.length);
    stream.write(Buffer.concat([message('d', length), signature, ...this.#rows, noMore, message('c', 0)]));
  }
  handleCommandComplete(): void {}
  handleError(error: Error): void {
    this.callback(error);
  }
  handleReadyForQuery(): void {
    this.callback();
  }
}
