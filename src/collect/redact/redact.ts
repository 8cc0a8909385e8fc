/**
 * Personal data out of a whole JSON value, before anything is written: every string, every key, and numbers that are
 * card numbers. A string that is itself JSON (tool arguments, tool results) is taken apart and put together again, so
 * it stays valid JSON and an escape cannot hide an address. Base64 `data:` URLs are not text and are left alone.
 * What was not changed is returned as it was, byte for byte.
 */
import { createRecent } from '../recent.ts';
import { isObject, MAX_DEPTH, parseUntrusted } from '../untrusted.ts';
import { card } from './card.ts';
import { email } from './email.ts';
import { type Counts, findAll, type Redactor, replaceSpans } from './redactor.ts';
import { secret } from './secret.ts';

/** Secrets first: where a secret and an address overlap (a password before '@host'), the earlier start decides. */
export const redactors: readonly Redactor[] = [secret, email, card];

/** JSON inside JSON inside JSON: agents do that twice at most. */
const MAX_NESTING = 4;

export function redact<T>(value: T, counts: Counts, using: readonly Redactor[] = redactors): T {
  return walk(value, { counts, using, nesting: 0 }, 0) as T;
}

export function hasPersonalData(text: string, using: readonly Redactor[] = redactors): boolean {
  return findAll(text, using).length > 0;
}

type Context = { readonly counts: Counts; readonly using: readonly Redactor[]; readonly nesting: number };

function walk(value: unknown, context: Context, depth: number): unknown {
  if (typeof value === 'string') return value.length < 6 ? value : redactText(value, context);
  if (typeof value === 'number') return redactNumber(value, context);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw new Error(`The value is nested deeper than ${MAX_DEPTH}, so it cannot be redacted.`);
  if (Array.isArray(value)) {
    let changed: unknown[] | null = null;
    for (let i = 0; i < value.length; i++) {
      const item = walk(value[i], context, depth + 1);
      if (item !== value[i]) {
        changed ??= [...value];
        changed[i] = item;
      }
    }
    return changed ?? value;
  }
  return walkObject(value as Record<string, unknown>, context, depth);
}

function walkObject(object: Record<string, unknown>, context: Context, depth: number): unknown {
  let entries: [string, unknown][] | null = null; // made at the first change: most objects have none
  for (const key in object) {
    const before = object[key];
    const item = walk(before, context, depth + 1);
    const name = key.length < 6 ? key : redactText(key, context);
    if (entries === null && (item !== before || name !== key)) entries = entriesBefore(object, key);
    entries?.push([name, item]);
  }
  if (entries === null) return object;
  const seen = new Set<string>();
  for (const entry of entries) {
    // Two addresses as keys become `[email]` and `[email] 2`: neither entry is lost.
    let name = entry[0];
    for (let n = 2; seen.has(name); n++) name = `${entry[0]} ${n}`;
    seen.add(name);
    entry[0] = name;
  }
  return Object.fromEntries(entries);
}

function entriesBefore(object: Record<string, unknown>, end: string): [string, unknown][] {
  const entries: [string, unknown][] = [];
  for (const key in object) {
    if (key === end) break;
    entries.push([key, object[key]]);
  }
  return entries;
}

/**
 * Long texts in which nothing was found. An agent's instructions come with every call and a conversation is sent whole with
 * every turn, so most of what arrives has been looked at before, and comparing is several times cheaper than looking.
 */
const unchanged = createRecent<true>(8 * 1024 * 1024); // characters
const REMEMBER_FROM = 200;

function redactText(text: string, context: Context): string {
  // Inside JSON inside JSON less is looked at, so what was found clean there says nothing here.
  if (text.length < REMEMBER_FROM || context.nesting > 0 || context.using !== redactors)
    return redactNewText(text, context);
  const redacted = unchanged.get(text) ? text : redactNewText(text, context);
  if (redacted === text) unchanged.set(text, true, text.length);
  return redacted;
}

function redactNewText(text: string, context: Context): string {
  if (text.startsWith('data:') && /^data:[^,]{0,200};base64,/.test(text)) return text;
  const spans = findAll(text, context.using);
  if (looksLikeJson(text) && (spans.length > 0 || text.includes('\\')) && context.nesting < MAX_NESTING) {
    const inner = parseUntrusted(text);
    if (isObject(inner) || Array.isArray(inner)) {
      const redacted = walk(inner, { ...context, nesting: context.nesting + 1 }, 0);
      if (redacted !== inner) return JSON.stringify(redacted);
      if (spans.length === 0) return text;
    }
  }
  return spans.length === 0 ? text : replaceSpans(text, spans, context.counts);
}

function looksLikeJson(text: string): boolean {
  const first = text.trimStart()[0];
  return first === '{' || first === '[' || first === '"';
}

/** A number large enough to be a card. */
function redactNumber(value: number, context: Context): unknown {
  if (value < 1e12 || !Number.isSafeInteger(value)) return value;
  const spans = findAll(String(value), context.using);
  if (spans.length === 0) return value;
  return replaceSpans(String(value), spans, context.counts);
}
