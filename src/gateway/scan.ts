/**
 * A large JSON body, looked at while it arrives: how deep, how many values, and where the fields of its top level stand.
 * The thread that answers everybody never parses such a body (16 MB of `[],` took it most of a second); it needs a handful of
 * fields, and the upstream judges the rest. Each piece is looked at once, a few milliseconds a megabyte at worst.
 */
import { RequestError } from '../errors.ts';

/**
 * Beyond this a body is scanned and no longer parsed: 8 µs instead of 30 for 43 kB. What is wrong further down than its top level
 * is then for the upstream to say.
 */
export const largeBytes = 8 * 1024;
export const maxDepth = 64;
/** Everything behind a comma or an opening bracket. A prompt of a million tokens still fits. */
const maxValues = 1_000_000;
const maxFields = 4096;
/** A field of the top level that is longer is not read, only recognised as a string, a list or an object. */
const readBytes = 64 * 1024;
/** The same of a list: it is only asked how long it is. */
const listBytes = 1024;

/** Half-open byte ranges. */
type Field = { readonly key: [number, number]; readonly value: [number, number]; readonly items: number };

const quote = 0x22;
const backslash = 0x5c;

export class Scan {
  readonly #fields: Field[] = [];
  #base = 0; // where the next piece begins
  #depth = 0;
  #values = 0;
  #inString = false;
  #escapes = false; // the piece before ended in a backslash that escapes
  #string: [number, number] = [0, 0]; // the last one of the top level
  #key: [number, number] | null = null;
  #valueFrom = 0;
  #items = 0;
  #closedAt = -1;

  /** Throws a RequestError as soon as the body is known to be too much. */
  feed(piece: Uint8Array): void {
    const base = this.#base;
    let i = this.#inString ? this.#endOfString(piece, this.#escapes ? 1 : 0) + 1 : 0;
    for (; i < piece.length; i++) {
      switch (piece[i]) {
        case quote:
          if (this.#depth === 1) this.#string[0] = base + i;
          i = this.#endOfString(piece, i + 1);
          break;
        case 0x3a: // :
          if (this.#depth === 1 && this.#key === null) this.#begin(base + i + 1);
          break;
        case 0x2c: // ,
          this.#count();
          if (this.#depth === 1) this.#end(base + i);
          else if (this.#depth === 2) this.#items++;
          break;
        case 0x5b: // [
        case 0x7b: // {
          this.#count();
          if (this.#closedAt >= 0) throw notJson();
          if (++this.#depth > maxDepth)
            throw new RequestError(400, 'too_deep', `The request body is nested more than ${maxDepth} levels deep.`);
          break;
        case 0x5d: // ]
        case 0x7d: // }
          if (--this.#depth > 0) break;
          if (this.#depth < 0) throw notJson();
          this.#end(base + i);
          this.#closedAt = base + i;
      }
    }
    this.#base = base + piece.length;
  }

  /** Index of the closing quote, or the piece's length when the string goes on in the next. */
  #endOfString(piece: Uint8Array, from: number): number {
    this.#inString = true;
    for (let i = from; i < piece.length; i++) {
      const near = Math.min(piece.length, i + 16);
      while (i < near && piece[i] !== quote) i++;
      // Most strings are names; the native search pays for itself in the long ones only.
      if (i === near) i = piece.indexOf(quote, i);
      if (i < 0) break;
      if (slashesBefore(piece, i, from) % 2 === 1) continue;
      this.#inString = false;
      this.#escapes = false;
      if (this.#depth === 1) this.#string[1] = this.#base + i + 1;
      return i;
    }
    this.#escapes = slashesBefore(piece, piece.length, from) % 2 === 1;
    return piece.length;
  }

  #count(): void {
    if (++this.#values > maxValues)
      throw new RequestError(400, 'too_many_values', `The request body holds more than ${maxValues} values.`);
  }

  #begin(at: number): void {
    this.#key = [...this.#string];
    this.#valueFrom = at;
    this.#items = 0;
  }

  #end(at: number): void {
    if (this.#key === null) return;
    if (this.#fields.length >= maxFields)
      throw new RequestError(400, 'too_many_fields', `The request body has more than ${maxFields} fields.`);
    this.#fields.push({ key: this.#key, value: [this.#valueFrom, at], items: this.#items + 1 });
    this.#key = null;
  }

  /** The top level, with what is long in it left out, and where the values of `model` stand. */
  read(bytes: Buffer): { body: Record<string, unknown>; modelSpans: [number, number][] } {
    const opened = bytes.indexOf(0x7b);
    const around = `${bytes.toString('latin1', 0, Math.max(0, opened))}${bytes.toString('latin1', this.#closedAt + 1)}`;
    if (opened < 0 || this.#closedAt < opened || this.#inString || !/^\s*$/.test(around)) throw notJson();
    const body: Record<string, unknown> = Object.create(null);
    const modelSpans: [number, number][] = [];
    for (const { key, value, items } of this.#fields) {
      const name = parsed(bytes, key);
      if (typeof name !== 'string') throw notJson();
      // Further down, collect/untrusted.ts drops such keys.
      if (name === '__proto__')
        throw new RequestError(
          400,
          'forbidden_key',
          'The request body has a key named __proto__, which no API field is.',
        );
      const span = trimmed(bytes, value);
      body[name] = short(bytes, span, items); // of doubled keys the last one counts, as in JSON.parse
      if (name === 'model') modelSpans.push(span);
    }
    return { body, modelSpans };
  }
}

function slashesBefore(piece: Uint8Array, at: number, from: number): number {
  let before = at;
  while (before > from && piece[before - 1] === backslash) before--;
  return at - before;
}

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

function trimmed(bytes: Buffer, [from, to]: [number, number]): [number, number] {
  let start = from;
  let end = to;
  while (start < end && isSpace(bytes[start])) start++;
  while (end > start && isSpace(bytes[end - 1])) end--;
  return [start, end];
}

function short(bytes: Buffer, span: [number, number], items: number): unknown {
  const isList = bytes[span[0]] === 0x5b;
  if (span[1] - span[0] <= (isList ? listBytes : readBytes)) return parsed(bytes, span);
  if (isList) return new Array(items);
  return bytes[span[0]] === quote ? bytes.toString('latin1', span[0] + 1, span[0] + readBytes) : {};
}

function parsed(bytes: Buffer, [from, to]: [number, number]): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', from, to));
  } catch (error) {
    throw notJson((error as Error).message);
  }
}

const notJson = (why = 'its brackets do not match, or it is no object') =>
  new RequestError(400, 'invalid_json', `The request body is not a JSON object: ${why}.`);
