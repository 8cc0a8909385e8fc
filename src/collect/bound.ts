/**
 * How large a recorded document is to whoever reads it back, and what is left of one that is too large. The database
 * writes numbers out in full: `1e308`, five bytes in a request, comes back as 309 digits. Pure.
 */
import { isObject, type JsonObject } from './untrusted.ts';

/** No JSON grows by more than this when it is written in full. */
const MAX_GROWTH = 64;

export type Bounded<T> = {
  readonly value: T;
  /** Fields that were replaced by a few words. */
  readonly replaced: number;
};

/**
 * The document, or one whose largest fields say how large they were instead. `raw`: bytes it was parsed from, where
 * that is known; most documents are so small that nothing needs measuring.
 */
export function bounded<T extends Readonly<JsonObject>>(document: T, most: number, raw = most): Bounded<T> {
  if (raw * MAX_GROWTH <= most) return { value: document, replaced: 0 };
  const sizes = Object.keys(document).map((key) => ({ key, bytes: writtenBytes(document[key]) + key.length * 3 + 6 }));
  let total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= most) return { value: document, replaced: 0 };
  const tooLarge = (bytes: number) => `[too large to store: ${bytes} bytes]`;
  if (sizes.length > MANY_FIELDS) return { value: { left_out: tooLarge(total) } as unknown as T, replaced: 1 };
  const value: JsonObject = { ...document };
  let replaced = 0;
  for (const { key, bytes } of sizes.sort((a, b) => b.bytes - a.bytes)) {
    if (total <= most) break;
    // A name can be as large as a value.
    if (key.length > 256) delete value[key];
    else value[key] = tooLarge(bytes);
    total -= bytes;
    replaced++;
  }
  return { value: value as T, replaced };
}

/** Requests and answers have a few dozen fields. With more, no single one is to blame. */
const MANY_FIELDS = 1000;

/** As PostgreSQL writes jsonb. Never less; a little more where that is cheaper to tell. */
export function writtenBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value) + escapes(value) + 2;
  if (typeof value === 'number') return numberBytes(value);
  if (Array.isArray(value)) {
    let bytes = 2;
    for (const item of value) bytes += writtenBytes(item) + 2;
    return bytes;
  }
  if (!isObject(value)) return 5;
  let bytes = 2;
  for (const key in value) bytes += writtenBytes(key) + 2 + writtenBytes(value[key]) + 2;
  return bytes;
}

/** A quotation mark, a backslash, a tab and a line end take two bytes, other control characters six. */
function escapes(text: string): number {
  let more = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 34 || code === 92 || (code >= 8 && code <= 13 && code !== 11)) more += 1;
    else if (code < 32) more += 5;
  }
  return more;
}

function numberBytes(value: number): number {
  const size = Math.abs(value);
  if (size < 1e6 && Number.isInteger(value)) return size < 10 ? 2 : 7;
  if (size >= 1e-6 && size < 1e21) return 25;
  // 1.5e-7: the digits, and as many zeros as the exponent says.
  return 25 + Math.abs(Math.floor(Math.log10(size)));
}
