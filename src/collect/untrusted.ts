/**
 * JSON from strangers, made harmless before anything looks at it: keys that could reach an object's prototype are
 * dropped and nesting is capped, so later walks (redaction, JSON.stringify) cannot be tricked or overflow the stack.
 * What would take seconds to parse is not parsed. Not a schema: shape is checked where it is used. The rule for `constructor` follows what prototype pollution needs
 * (`constructor.prototype`), so a tool parameter that is merely called "constructor" survives.
 */
import { randomInt } from 'node:crypto';

export const MAX_DEPTH = 100;
export const TOO_DEEP = '[too deep]';

export type JsonObject = { [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value as a list; anything else is an empty one. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Keys in one order, so that {a, b} and {b, a} are the same value. */
export function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (!isObject(value)) return value;
  return Object.keys(value)
    .sort()
    .map((key) => [key, withSortedKeys(value[key])]);
}

/**
 * Parses text; undefined when it is not JSON, or more intricate than anybody needs. `depth`: how deep it stands in what it is a
 * part of.
 */
export function parseUntrusted(text: string, depth = 0): unknown {
  if (text.length >= FEW_BYTES && isTooIntricate(Buffer.from(text))) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return tidy(value, depth);
}

/** Brackets, commas and names, weighed by what parsing and walking what they stand for costs. */
const MAX_STRUCTURE = 8_000_000;
/** Different names in one JSON: each costs a microsecond before anybody has looked at it. */
const MAX_NAMES = 30_000;
const NAME_SLOTS = 2 ** 16;
/** Less than this cannot hold so much that it matters. */
const FEW_BYTES = 512 * 1024;
/** Nobody outside can choose names that fall on each other's slots. */
const seed = randomInt(2 ** 31) | 1;

/** All of the hash's bits count: some seeds leave those in the middle nearly alone. */
function slotOf(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35) >>> 16) % NAME_SLOTS;
}

/**
 * Whether parsing these bytes of JSON would take seconds: millions of values, however small, or names by the hundred
 * thousand. Looks at each byte once and parses nothing. JSON inside a string has its quotation marks escaped, so its
 * names are not counted here; they are when that string is parsed.
 */
export function isTooIntricate(first: Uint8Array, rest: readonly Uint8Array[] = []): boolean {
  const bodies = [first, ...rest];
  if (bodies.reduce((sum, body) => sum + body.length, 0) < FEW_BYTES) return false;
  const known = new Uint8Array(NAME_SLOTS);
  let names = 0;
  let structure = 0;
  for (const body of bodies) {
    let hash = 0; // of what came since the last quotation mark
    let closed = -1; // slot of the string that has just ended
    for (let i = 0; i < body.length; i++) {
      const byte = body[i] as number;
      if (byte === 0x22) {
        closed = slotOf(hash);
        hash = 0;
        continue;
      }
      if (byte === 0x3a && closed >= 0) {
        structure += 3;
        if (known[closed] === 0) {
          known[closed] = 1;
          names++;
        }
      } else if (byte === 0x2c) structure += 1;
      else if (byte === 0x5b || byte === 0x7b) structure += 4;
      if (byte > 0x20) closed = -1; // white space may stand before the colon
      hash = Math.imul(hash ^ byte, seed);
    }
    if (structure > MAX_STRUCTURE || names > MAX_NAMES) return true;
  }
  return false;
}

/** Changes the freshly parsed value in place. */
function tidy(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return TOO_DEEP;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i];
      if (typeof item === 'object' && item !== null) value[i] = tidy(item, depth + 1);
    }
    return value;
  }
  const object = value as JsonObject;
  // JSON.parse makes `__proto__` an own property, so it is listed here and deleting it touches nothing else.
  for (const key in object) {
    const item = object[key];
    if (key === '__proto__' || (key === 'constructor' && isObject(item) && Object.hasOwn(item, 'prototype'))) {
      delete object[key];
    } else if (typeof item === 'object' && item !== null) {
      object[key] = tidy(item, depth + 1);
    }
  }
  return object;
}
