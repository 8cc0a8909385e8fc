/**
 * How one record lies in a journal segment, and how records are found again in bytes that may be damaged.
 *
 *   magic (4) · payload length (4, LE) · CRC-32 of length and payload (4, LE) · payload (UTF-8 JSON)
 *
 * The magic starts with 0xF7, a byte that never occurs in UTF-8, so it cannot appear inside a payload: after damage the
 * next magic is the next record, and a torn or flipped record costs only itself. Pure: bytes in, records out.
 */
import { crc32 } from 'node:zlib';

export const HEADER = 12;
const MAGIC = Buffer.from([0xf7, 0x50, 0x57, 0x4c]);

export function encodeRecord(payload: string): Buffer {
  const length = Buffer.byteLength(payload);
  const record = Buffer.allocUnsafe(HEADER + length);
  MAGIC.copy(record, 0);
  record.writeUInt32LE(length, 4);
  record.write(payload, HEADER);
  record.writeUInt32LE(checksum(record, 0, length), 8);
  return record;
}

function checksum(bytes: Buffer, at: number, length: number): number {
  return crc32(bytes.subarray(at + HEADER, at + HEADER + length), crc32(bytes.subarray(at + 4, at + 8)));
}

/** `start` and `end` are positions in the bytes scanned. */
export type Found = { readonly start: number; readonly end: number; readonly payload: Buffer };
export type Damage = { readonly start: number; readonly end: number };
export type Scan = {
  readonly records: readonly Found[];
  readonly damage: readonly Damage[];
  /** Everything before this has been dealt with; the rest needs more bytes (never less than all when `final`). */
  readonly consumed: number;
};

/** `final`: no more bytes follow, so a record that does not end is torn. Stops early once `enough` payload is found. */
export function scanRecords(bytes: Buffer, final: boolean, enough = Number.POSITIVE_INFINITY): Scan {
  const records: Found[] = [];
  const damage: Damage[] = [];
  let at = 0;
  let damaged = -1; // where the damage being skipped began
  let found = 0;
  const close = (end: number) => {
    if (damaged >= 0 && end > damaged) damage.push({ start: damaged, end });
    damaged = -1;
  };
  while (at < bytes.length && found < enough) {
    const whole = bytes.length - at >= HEADER;
    if (!whole && !final) break;
    if (whole && bytes.compare(MAGIC, 0, 4, at, at + 4) === 0) {
      const length = bytes.readUInt32LE(at + 4);
      const end = at + HEADER + length;
      if (end <= bytes.length && checksum(bytes, at, length) === bytes.readUInt32LE(at + 8)) {
        close(at);
        records.push({ start: at, end, payload: bytes.subarray(at + HEADER, end) });
        found += length;
        at = end;
        continue;
      }
      if (end > bytes.length && !final) break; // may only be incomplete: ask for more before calling it damage
    }
    if (damaged < 0) damaged = at;
    const next = bytes.indexOf(MAGIC, at + 1);
    if (next >= 0) at = next;
    else if (final) at = bytes.length;
    else {
      at = damaged; // how far the damage reaches is only known with more bytes
      break;
    }
  }
  close(at);
  return { records, damage, consumed: at };
}
