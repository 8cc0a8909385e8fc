/**
 * Messages that were redacted before. An agent sends its whole conversation with every call, so that most messages of a request
 * have come before, and what became of them then is what becomes of them now. A message without anything personal is known by its
 * text as it came over the wire, so that it is not even parsed again, and the same object is returned each time, which
 * spares writing and naming it again too (store/content.ts). Nothing personal stays in memory: a message that had to be changed is
 * remembered by a hash of what it was, and is used again where its placeholders have the same numbers.
 */
import { hash } from 'node:crypto';
import { createRecent } from '../recent.ts';
import { type Expected, splitLists } from '../split-lists.ts';
import { isObject, type JsonObject, parseUntrusted } from '../untrusted.ts';
import type { Find, Redaction } from './redact.ts';

/** `next`: what the message is looked for under that came behind it last. */
type Unchanged = { readonly text: string; readonly message: object; next: string | number | null };
type Changed = { readonly message: object; readonly finds: readonly Find[] };

/** Characters of JSON; what is remembered takes about three times as many bytes. */
const MOST = 8 * 1024 * 1024;
/**
 * Where requests have what comes again, what stays the same first: numbers are given in this order. Not everywhere: what a name says
 * about its value (a password) is lost on the way.
 */
const lists = ['system', 'tools', 'messages', 'input'] as const;
/** Of a message in its request. */
const DEPTH = 2;

export type KnownMessages = {
  /** A request's text, parsed as by parseUntrusted, of messages that are known already where they are. */
  parse(text: string): unknown;
  /** The request, redacted; `redaction` is that of the turn. */
  redactRequest(request: Readonly<JsonObject>, redaction: Redaction): Readonly<JsonObject>;
};

const digest = (json: string): string => hash('sha256', json, 'base64');

/** A piece of a text keeps all of it in memory, until it is written anew. */
const copyOf = (piece: string): string => Buffer.from(piece).toString();

/**
 * What a text is looked for under. Hashing a long one takes longer than comparing it, so its length and some of its characters must
 * do: the first, the last, and some on the way. Of two texts that agree in those the later is known.
 */
function tagOf(text: string): string | number {
  const { length } = text;
  if (length < SHORT) return text;
  let tag = length;
  for (let i = 0; i < HEAD; i++) tag = Math.imul(tag ^ text.charCodeAt(i), PRIME);
  const step = length >> 4;
  for (let i = HEAD; i < length; i += step) tag = Math.imul(tag ^ text.charCodeAt(i), PRIME);
  for (let i = length - 8; i < length; i++) tag = Math.imul(tag ^ text.charCodeAt(i), PRIME);
  return tag;
}
const SHORT = 160;
/** A role, a tool's name and its call's id come before what is said. */
const HEAD = 96;
const PRIME = 0x01000193;

/** `shares`: how many of them there are, for rules of their own each. */
export function createKnownMessages(shares = 1): KnownMessages {
  const unchanged = createRecent<Unchanged, string | number>(MOST / shares);
  const isUnchanged = new WeakSet<object>();
  const changed = createRecent<Changed>(MOST / shares); // by a hash of theirs
  const changedLengths = createRecent<true, number>(10_000); // most messages need no hash to be told from those that were changed
  let texts = new Map<object, string>(); // of what was parsed last

  /** They are as they came: not to be kept. */
  function forgetTexts(): void {
    if (texts.size > 0) texts = new Map();
  }

  function known(text: string, tag = tagOf(text)): Unchanged | undefined {
    const found = unchanged.get(tag);
    return found?.text === text ? found : undefined;
  }

  /** The messages of a text that are known, by where they begin. Most come in the order in which they came before. */
  function knownIn(text: string): { readonly expected: Expected; readonly at: ReadonlyMap<number, object> } {
    const at = new Map<number, object>();
    let before: Unchanged | undefined;
    const found = (from: number, one: Unchanged): void => {
      at.set(from, one.message);
      before = one;
    };
    return {
      at,
      expected: {
        endOf(from) {
          const next = before === undefined || before.next === null ? undefined : unchanged.get(before.next);
          if (next === undefined) return -1;
          const to = from + next.text.length;
          if (text.slice(from, to) !== next.text) return -1; // startsWith goes letter by letter
          found(from, next);
          return to;
        },
        met(from, to) {
          const piece = text.slice(from, to);
          const tag = tagOf(piece);
          if (before !== undefined) before.next = tag;
          const one = known(piece, tag);
          if (one === undefined) before = undefined;
          else found(from, one);
        },
      },
    };
  }

  function redactMessage(message: unknown, redaction: Redaction): unknown {
    if (!isObject(message)) return redaction.clean(message);
    if (isUnchanged.has(message)) return message;
    const parsed = texts.get(message);
    const text = parsed ?? JSON.stringify(message);
    const same = parsed === undefined ? known(text) : undefined;
    if (same !== undefined) return same.message;
    const found = changedLengths.get(text.length) ? changed.get(digest(text)) : undefined;
    if (found !== undefined && redaction.again(found.finds)) return found.message;
    const before = redaction.finds.length;
    const cleaned = redaction.clean(message);
    if (cleaned === message) {
      isUnchanged.add(message);
      const copy = copyOf(text);
      unchanged.set(tagOf(copy), { text: copy, message, next: null }, text.length);
      return message;
    }
    changedLengths.set(text.length, true);
    const finds = redaction.finds.slice(before);
    // What only the words around gave away is looked for in the rest of the turn, so it has to be read again.
    if (!finds.some(({ isContextual }) => isContextual))
      changed.set(digest(text), { message: cleaned as object, finds }, text.length);
    return cleaned;
  }

  function parseMessage(text: string): object | null {
    const message = parseUntrusted(text, DEPTH);
    if (!isObject(message)) return null;
    texts.set(message, text);
    return message;
  }

  return {
    parse(text) {
      forgetTexts();
      const { expected, at } = knownIn(text);
      const split = splitLists(text, lists, expected);
      const request = split === null ? undefined : parseUntrusted(split.rest);
      if (split === null || !isObject(request)) return parseUntrusted(text);
      for (const { name, items } of split.lists) {
        const list = request[name] as object[];
        for (const [from, to] of items) {
          const message = at.get(from) ?? parseMessage(text.slice(from, to));
          if (message === null) return parseUntrusted(text);
          list.push(message);
        }
      }
      return request;
    },
    redactRequest(request, redaction) {
      const taken: [name: string, list: unknown[]][] = [];
      const rest: JsonObject = { ...request };
      try {
        for (const name of lists) {
          const list = request[name];
          if (!Array.isArray(list)) continue;
          taken.push([name, list.map((message) => redactMessage(message, redaction))]);
          rest[name] = null; // its place is kept
        }
      } finally {
        forgetTexts();
      }
      const cleaned = redaction.clean(rest);
      for (const [name, list] of taken) cleaned[name] = list;
      return cleaned;
    },
  };
}
