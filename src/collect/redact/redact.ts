/**
 * Personal data out of a whole JSON value, before anything is written: every string, every key, and numbers that are
 * card numbers. A string that is itself JSON (tool arguments, tool results) is taken apart and put together again, so
 * it stays valid JSON and an escape cannot hide an address. Pictures and the like (media.ts) are not text and are left alone.
 * What was not changed is returned as it was, byte for byte.
 *
 * A redaction is what is done to one turn: its values share the numbers of their placeholders, the work they may cost, and what
 * was found by the words around it (`spread`).
 */
import { isObject, isTooIntricate, MAX_DEPTH, parseUntrusted } from '../untrusted.ts';
import { keyContext } from './context.ts';
import { isMedia } from './media.ts';
import { digestOf, type Numbers, placeholderOf } from './placeholder.ts';
import { type Counts, findAll, replaceSpans, type Span } from './redactor.ts';
import { type KeyRead, ordinaryRules, type Rules } from './rules.ts';
import { isSecretUnder, secretName } from './secret-name.ts';
import { spreading } from './spread.ts';

/** JSON inside JSON inside JSON: agents do that twice at most. */
const MAX_NESTING = 4;

/**
 * The most work one redaction may be, in characters looked at: ordinary text is read at over a hundred million a second,
 * the worst at about ten, so that nothing holds the recorder for more than a second or two. The largest body that is accepted
 * unless told otherwise, 16 MB, passes even where it is JSON inside a string and has to be read twice.
 */
const MAX_WORK = 40 * 1024 * 1024;
/** What finding and replacing one piece costs, in characters. */
const SPAN_WORK = 128;

/** More than `MAX_WORK`. What was not looked at may not be stored, so there is no half result. */
export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork';
}

/** What is left to be spent; several values of one turn share one. */
export type Work = { left: number };
export const workOfTurn = (): Work => ({ left: MAX_WORK });

export type Options = { readonly rules?: Rules; readonly work?: Work; readonly numbers?: Numbers };

/** One value that was replaced, by its hash. */
export type Find = {
  readonly kind: string;
  readonly digest: string;
  readonly placed: string;
  readonly isContextual: boolean;
};

export type Redaction = {
  clean<T>(value: T): T;
  /** Replaces what was found before by the words around it, wherever it stands without them. */
  spread<T>(value: T): T;
  /** Counts what was found in the same value before; false: it would have another placeholder now. */
  again(finds: readonly Find[]): boolean;
  readonly counts: Counts;
  readonly finds: readonly Find[];
};

export function openRedaction(options: Options = {}): Redaction {
  const { rules = ordinaryRules, work = workOfTurn(), numbers = new Map() } = options;
  const counts: Counts = {};
  const finds: Find[] = [];
  // Made when they are needed: in most turns nothing is found.
  let told: Map<string, string> | null = null;
  let known: Map<string, Find> | null = null; // the same value comes often, and hashing it is most of the cost
  const placeOf = (kind: string, digest: string) => placeholderOf(kind, digest, rules.policyOf(kind), numbers);
  const place = ({ kind, isContextual = false }: Pick<Span, 'kind' | 'isContextual'>, value: string): string => {
    const name = `${kind} ${value}`;
    known ??= new Map();
    let find = known.get(name);
    if (find === undefined || (isContextual && !find.isContextual)) {
      const digest = digestOf(kind, value, rules.policyOf(kind), rules.key);
      find = { kind, digest, placed: placeOf(kind, digest), isContextual };
      known.set(name, find);
      if (isContextual) {
        told ??= new Map();
        told.set(value, find.placed);
      }
    }
    counts[kind] = (counts[kind] ?? 0) + 1;
    finds.push(find);
    return find.placed;
  };
  const context: Context = { rules, nesting: 0, work, place, about: null };
  return {
    clean: <T>(value: T): T => walk(value, context, 0) as T,
    spread: <T>(value: T): T => (told === null ? value : (spreading(told, (n) => spend(context, n))(value) as T)),
    again(before) {
      const isSame = before.every(({ kind, digest, placed }) => placeOf(kind, digest) === placed);
      if (isSame) for (const { kind } of before) counts[kind] = (counts[kind] ?? 0) + 1;
      return isSame;
    },
    counts,
    finds,
  };
}

/** One value by itself. */
export function redact<T>(value: T, counts: Counts, options: Options = {}): T {
  const redaction = openRedaction(options);
  const clean = redaction.spread(redaction.clean(value));
  for (const kind in redaction.counts) counts[kind] = (counts[kind] ?? 0) + (redaction.counts[kind] as number);
  return clean;
}

export function hasPersonalData(text: string): boolean {
  return findAll(text, ordinaryRules.redactors).length > 0;
}

type Context = {
  readonly rules: Rules;
  readonly nesting: number;
  readonly work: Work;
  readonly place: (span: Pick<Span, 'kind' | 'isContextual'>, value: string) => string;
  /** What the name of the field says about its value. */
  readonly about: string | null;
};

function spend(context: Pick<Context, 'work'>, characters: number): void {
  context.work.left -= characters;
  if (context.work.left < 0) throw new TooMuchWork('Redacting this takes more work than one turn may cost.');
}

function walk(value: unknown, context: Context, depth: number): unknown {
  if (typeof value === 'string') return value.length < context.rules.shortest ? value : redactText(value, context);
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
    const { name, holds, context: about } = readKey(key, context);
    const item = isSecretUnder(holds, before)
      ? context.place(secretField, String(before))
      : walk(before, about === context.about ? context : { ...context, about }, depth + 1);
    if (entries === null && (item !== before || name !== key)) entries = entriesBefore(object, key);
    entries?.push([name, item]);
  }
  return entries === null ? object : Object.fromEntries(distinct(entries));
}

const secretField = { kind: 'secret', isContextual: true };

const LONGEST_PLAIN_KEY = 64;
/** Bodies have few different keys and many of each. */
function readKey(key: string, context: Context): KeyRead {
  const known = context.rules.plainKeys.get(key);
  if (known !== undefined) return known;
  const name = key.length < 6 ? key : redactText(key, context.about === null ? context : { ...context, about: null });
  const read = { name, holds: secretName(key), context: keyContext(key) };
  if (name === key && key.length <= LONGEST_PLAIN_KEY) context.rules.plainKeys.set(key, read);
  return read;
}

/** Two keys of a kind that is not numbered become `[KR_RRN]` and `[KR_RRN] 2`: neither entry is lost. Each number is tried once per name. */
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

const REMEMBER_FROM = 200;

function redactText(text: string, context: Context): string {
  spend(context, text.length);
  // Inside JSON inside JSON less is looked at, so what was found clean there says nothing here.
  if (text.length < REMEMBER_FROM || context.nesting > 0 || context.about !== null) return redactNewText(text, context);
  const { unchanged } = context.rules;
  const redacted = unchanged.get(text) ? text : redactNewText(text, context);
  if (redacted === text) unchanged.set(text, true, text.length);
  return redacted;
}

function redactNewText(text: string, context: Context): string {
  if (isMedia(text)) return text;
  const spans = spansIn(text, context);
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
  return spans.length === 0 ? text : replaceSpans(text, spans, context.place);
}

/** What is to be replaced in it. The name of its field is read as the words before it: `{"passport": "M12345678"}`. */
function spansIn(text: string, { rules, about, work }: Context): Span[] {
  const isNamed = about !== null && text.length <= LONGEST_NAMED;
  const before = isNamed ? `${about}: ` : '';
  const found = findAll(before + text, rules.redactors, (characters) => spend({ work }, characters));
  if (found.length === 0) return found;
  spend({ work }, found.length * SPAN_WORK);
  const shift = before.length;
  const own = !isNamed
    ? found
    : found
        .filter(({ end }) => end > shift)
        .map((span) => ({ ...span, start: Math.max(0, span.start - shift), end: span.end - shift }));
  return own.filter((span) => !rules.allows(text.slice(span.start, span.end), span));
}
/** What a field's name says is about a value, not about a page. */
const LONGEST_NAMED = 400;

function looksLikeJson(text: string): boolean {
  const first = text.trimStart()[0];
  return first === '{' || first === '[' || first === '"';
}

/** A number large enough to be a card, or one whose field says what it is. */
function redactNumber(value: number, context: Context): unknown {
  if (!Number.isSafeInteger(value) || value < (context.about === null ? 1e12 : 1e6)) return value;
  const text = String(value);
  const spans = spansIn(text, context);
  return spans.length === 0 ? value : replaceSpans(text, spans, context.place);
}
