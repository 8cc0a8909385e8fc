/**
 * How one record lies in a journal segment, and how records are found again in bytes that may be damaged.
 *
 *   magic (4) · payload length (4, LE) · CRC-32 of length and payload (4, LE) · payload (UTF-8 JSON)
 *
 * The magic starts with 0xF7, a byte that never occurs in UTF-8, so it cannot appear inside a payload: after damage the
 * next magic is the next record, and a torn or flipped record costs only itself. A segment begins with a record that
 * names it; positions in it are good for a segment of that name only. Pure: bytes in, records out.
 */
import { crc32 } from 'node:zlib';

export const HEADER = 12;
const MAGIC = Buffer.from([0xf7, 0x50, 0x57, 0x4c]);
const MAGIC_LE = MAGIC.readUInt32LE(0);

export function encodeRecord(payload: string): Buffer {
  const record = Buffer.allocUnsafe(HEADER + Buffer.byteLength(payload));
  writeRecord(record, 0, payload, record.length - HEADER);
  return record;
}

/** The record of a payload of so many bytes, written at `at` into a buffer that has room for it. */
export function writeRecord(into: Buffer, at: number, payload: string, length: number): void {
  into.writeUInt32LE(MAGIC_LE, at);
  into.writeUInt32LE(length, at + 4);
  into.write(payload, at + HEADER, length);
  into.writeUInt32LE(checksum(into, at, length), at + 8);
}

function checksum(bytes: Buffer, at: number, length: number): number {
  return crc32(bytes.subarray(at + HEADER, at + HEADER + length), crc32(bytes.subarray(at + 4, at + 8)));
}

/** The first record of a segment called `id`. No line of the journal looks like it. */
export const encodeName = (id: string): Buffer => encodeRecord(JSON.stringify({ segment: id }));
export const NAME_BYTES = encodeName('00000000-0000-0000-0000-000000000000').length;

/** The name of the segment that begins with these bytes; null for one that an older Pawl wrote, or whose name is damaged. */
export function nameIn(bytes: Buffer): string | null {
  const first = scanRecords(bytes.subarray(0, NAME_BYTES), 0).records[0];
  if (first === undefined || first.start !== 0) return null;
  return /^\{"segment":"([0-9a-f-]{36})"\}$/.exec(first.payload.toString())?.[1] ?? null;
}

/** Whether a record begins here, as far as these bytes (four are enough) can say. */
export const beginsRecord = (bytes: Buffer): boolean =>
  bytes.length > 0 && MAGIC.subarray(0, bytes.length).equals(bytes.subarray(0, MAGIC.length));

/** `start` and `end` are positions in the bytes scanned. */
export type Found = { readonly start: number; readonly end: number; readonly payload: Buffer };
export type Damage = { readonly start: number; readonly end: number };
export type Scan = {
  readonly records: readonly Found[];
  readonly damage: readonly Damage[];
  /** Everything before this has been dealt with. */
  readonly consumed: number;
  /** The last damage reaches to `consumed` and may go on behind it. */
  readonly open: boolean;
  /** How many bytes from `consumed` on the next record takes, where it does not end in the bytes given. */
  readonly needs: number;
};

/**
 * `more`: how many bytes follow those given; a record that reaches beyond all of them is torn. Stops early once `enough`
 * bytes of payload or `most` records are found.
 */
export function scanRecords(
  bytes: Buffer,
  more: number,
  enough = Number.POSITIVE_INFINITY,
  most = Number.POSITIVE_INFINITY,
): Scan {
  const records: Found[] = [];
  const damage: Damage[] = [];
  let at = 0;
  let damaged = -1; // where the damage being skipped began
  let found = 0;
  let needs = 0;
  while (at < bytes.length && found < enough && records.length < most) {
    const left = bytes.length - at;
    if (left < HEADER && more > 0) {
      needs = HEADER;
      break;
    }
    if (left >= HEADER && bytes.compare(MAGIC, 0, 4, at, at + 4) === 0) {
      const length = bytes.readUInt32LE(at + 4);
      const end = at + HEADER + length;
      if (end <= bytes.length && checksum(bytes, at, length) === bytes.readUInt32LE(at + 8)) {
        if (damaged >= 0) damage.push({ start: damaged, end: at });
        damaged = -1;
        records.push({ start: at, end, payload: bytes.subarray(at + HEADER, end) });
        found += length;
        at = end;
        continue;
      }
      if (end > bytes.length && end <= bytes.length + more) {
        needs = HEADER + length; // may only be incomplete
        break;
      }
    }
    if (damaged < 0) damaged = at;
    const next = bytes.indexOf(MAGIC, at + 1);
    // Without another magic all of it is damage, but for a few bytes at the end that may be half a magic.
    at = next >= 0 ? next : more > 0 ? Math.max(at + 1, bytes.length - (MAGIC.length - 1)) : bytes.length;
  }
  const open = damaged >= 0 && at < bytes.length + more;
  if (damaged >= 0) damage.push({ start: damaged, end: at });
  return { records, damage, consumed: at, open, needs };
}
