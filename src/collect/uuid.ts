/** UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 random bits, so ids sort by the time they were made. */
import { randomFillSync } from 'node:crypto';

const pool = Buffer.alloc(10 * 256);
let used = pool.length;

export function uuidv7(now: number = Date.now()): string {
  if (used >= pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.toString('hex', used, used + 10);
  used += 10;
  return uuidOf(now, random);
}

/** The same of bits that are given, at least 20 hexadecimal digits: what is imported twice gets the same id. */
export function uuidOf(now: number, random: string): string {
  const time = now.toString(16).padStart(12, '0');
  const variant = '89ab'[Number.parseInt(random[3] as string, 16) & 3];
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(8, 20)}`;
}
