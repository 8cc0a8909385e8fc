/**
 * Personal data out of a whole JSON value, before anything is written: every string, every key, and numbers that are
 * card numbers. A string that is itself JSON (tool arguments, tool results) is taken apart and put together again, so
 * it stays valid JSON and an escape cannot hide an address. Pictures and the like (media.ts) are not text and are left alone.
 * What was not changed is returned as it was, byte for byte.
 */
import { createRecent } from '../recent.ts';
import { isObject, isTooIntricate, MAX_DEPTH, parseUntrusted } from '../untrusted.ts';
import { card } from './card.ts';
import { email } from './email.ts';
import { isMedia } from './media.ts';
import { type Counts, findAll, type Redactor, replaceSpans } from './redactor.ts';
import { secret } from './secret.ts';
import { isSecretUnder, type SecretName, secretName } from './secret-name.ts';

/** Secrets first: where a secret and an address overlap (a password before '@host'), the earlier start decides. */
export const redactors: readonly Redactor[] = [secret, email, card];

/** JSON inside JSON inside JSON: agents do that twice at most. */
const MAX_NESTING = 4;

/**
 * The most work one redaction may be, in characters looked at: ordinary text is read at over a hundred million a second,
 * the worst at about ten, so that nothing holds the recorder for more than a second or two. The largest body that is accepted
 * unless told otherwise, 16 MB, passes even where it is JSON inside a string and has to be read twice.
 */
const MAX_WORK = 40 * 1024 * 1024;
/** What finding and replacing one piece costs, in characters. */
const SPAN_WORK = 32;

/** More than `MAX_WORK`. What was not looked at may not be stored, so there is no half result. */
export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork';
}

export type Options = { readonly using?: readonly Redactor[]; readonly maxWork?: number };

export function redact<T>(value: T, counts: Counts, options: Options = {}): T {
  const { using = redactors, maxWork = MAX_WORK } = options;
  return walk(value, { counts, using, nesting: 0, work: { left: maxWork } }, 0) as T;
}

export function hasPersonalData(text: string, using: readonly Redactor[] = redactors): boolean {
  return findAll(text, using).length > 0;
}

type Context = {
  readonly counts: Counts;
  readonly using: readonly Redactor[];
  readonly nesting: number;
  readonly work: { left: number };
};

function spend(context: Context, characters: number): void {
  context.work.left -= characters;
  if (context.work.left < 0) throw new TooMuchWork('Redacting this takes more work than one turn may cost.');
}

function walk(value: unknown, context: Context, depth: number): unknown {
  if (typeof value === 'string') return value.length < 6 ? value : redactText(value, context);
  if (typeof value === 'number') return redactNumber(value, context);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw new Error(`The value is nested deeper than ${MAX_DEPTH}, so it cannot be redacted.`);
  if (Array.isArray(value)) {
    spend(context, value.length);
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
    const { name, holds } = readKey(key, context);
    const item = isSecretUnder(holds, before) ? hide(context) : walk(before, context, depth + 1);
    if (entries === null && (item !== before || name !== key)) entries = entriesBefore(object, key);
    entries?.push([name, item]);
  }
  return entries === null ? object : Object.fromEntries(distinct(entries));
}

function hide(context: Context): string {
  context.counts.secret = (context.counts.secret ?? 0) + 1;
  return '[secret]';
}

type Key = { readonly name: string; readonly holds: SecretName };
/** Bodies have few different keys and many of each. */
const plainKeys = createRecent<Key>(2000);
const LONGEST_PLAIN_KEY = 64;

function readKey(key: string, context: Context): Key {
  const known = plainKeys.get(key);
  if (known !== undefined && context.using === redactors) return known;
  const read = { name: key.length < 6 ? key : redactText(key, context), holds: secretName(key) };
  if (read.name === key && key.length <= LONGEST_PLAIN_KEY && context.using === redactors) plainKeys.set(key, read);
  return read;
}

/** Two addresses as keys become `[email]` and `[email] 2`: neither entry is lost. Each number is tried once per name. */
function distinct(entries: [string, unknown][]): [string, unknown][] {
  const seen = new Set<string>();
  const next = new Map<string, number>();
  for (const entry of entries) {
    const [base] = entry;
    if (seen.has(base)) {
      let n = next.get(base) ?? 2;
      while (seen.has(`${base} ${n}`)) n++;
      next.set(base, n + 1);
      entry[0] = `${base} ${n}`;
    }
    seen.add(entry[0]);
  }
  return entries;
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
  spend(context, text.length);
  // Inside JSON inside JSON less is looked at, so what was found clean there says nothing here.
  if (text.length < REMEMBER_FROM || context.nesting > 0 || context.using !== redactors)
    return redactNewText(text, context);
  const redacted = unchanged.get(text) ? text : redactNewText(text, context);
  if (redacted === text) unchanged.set(text, true, text.length);
  return redacted;
}

function redactNewText(text: string, context: Context): string {
  if (isMedia(text)) return text;
  const spans = findAll(text, context.using);
  spend(context, spans.length * SPAN_WORK);
  if ((spans.length > 0 || text.includes('\\')) && context.nesting < MAX_NESTING && looksLikeJson(text)) {
    const inner = parseUntrusted(text);
    if (inner === undefined && isTooIntricate(Buffer.from(text)))
      throw new TooMuchWork('It holds JSON that is too large.');
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
