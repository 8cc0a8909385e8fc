/** UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 random bits, so ids sort by the time they were made. */
import { randomFillSync } from 'node:crypto';

const DIGITS = 20;
const pool = Buffer.alloc((DIGITS / 2) * 256);
let digits = '';
let used = 0;

export function uuidv7(now: number = Date.now()): string {
  if (used >= digits.length) {
    digits = randomFillSync(pool).toString('hex');
    used = 0;
  }
  const random = digits.slice(used, used + DIGITS);
  used += DIGITS;
  return uuidOf(now, random);
}

/** Many are made in one millisecond. */
let lastTime = { now: -1, text: '' };
function timeOf(now: number): string {
  if (now !== lastTime.now) {
    const time = now.toString(16).padStart(12, '0');
    lastTime = { now, text: `${time.slice(0, 8)}-${time.slice(8)}-7` };
  }
  return lastTime.text;
}

/** The same of bits that are given, at least 20 hexadecimal digits: what is imported twice gets the same id. */
export function uuidOf(now: number, random: string): string {
  const variant = '89ab'[Number.parseInt(random[3] as string, 16) & 3];
  return `${timeOf(now)}${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(8, 20)}`;
}
