/**
 * What a turn said and was told, taken apart so that each message is stored once, and put together again. An agent sends
 * its whole conversation with every call; between two calls most of it is the same.
 *
 * A *part* is the JSON text of one message, one tool or one other long value, named by a keyed hash of that text. What is
 * left is the *frame*: keys in their order, short values as they are, and where the parts go. A list is named by few
 * hashes however long it is: written in base 16, each digit of its length is that many whole pieces of that size (a list of
 * 41 messages is two pieces of 16 and nine messages), and a piece is a part as well. A conversation that grows by two
 * messages therefore stores two messages and at most a few pieces; an edited message changes one piece of each size.
 *
 * Joining gives byte for byte what JSON.stringify gave, since parts are that text. Pure.
 */
import { hash } from 'node:crypto';
import type { Choice, Turn } from '../collect/turn.ts';
import { storable } from './storable.ts';

export type Content = Pick<Turn, 'request' | 'choices'>;

/** A message (`body`, JSON) or a piece of a list (`of`, the hashes in it). */
export type Part = {
  readonly hash: string;
  readonly body: string | null;
  readonly of: readonly string[] | null;
};

/** `is`: the value itself; `part`: the next hash; `list`: as many hashes as the digits of its length add up to. */
type Framed =
  | readonly [key: string, how: 'is', value: unknown]
  | readonly [key: string, how: 'part']
  | readonly [key: string, how: 'list', length: number];
type FramedChoice = readonly [index: number, finishReason: string | null, ...how: ['is', Choice['message']] | ['part']];
export type Frame = { readonly request: readonly Framed[]; readonly choices: readonly FramedChoice[] };

export type Split = {
  /** JSON of a Frame. */
  readonly frame: string;
  /** What the frame's parts and lists are, in order. */
  readonly refs: readonly string[];
  /** Everything the refs lead to and nobody knows yet, each once, what a piece is of before it. */
  readonly parts: readonly Part[];
  /** Of request and choices as JSON, put together again. */
  readonly bytes: number;
};

const BASE = 16;
/** A request shorter than this is its own frame: rows of its own would cost more than they save. */
const SHORT_REQUEST = 1024;
const SHORT_VALUE = 256;
/** An answer comes back as a message of the next request more often than not. */
const SHORT_ANSWER = 512;
/** A list of more is one part: somebody counts to a million, nobody converses. */
const MOST_ITEMS = 10_000;

/** What a list is made of: a message as JSON, or a piece (its `body` is null). Its name is there once that was needed. */
type Item = {
  hash: string | null;
  readonly body: string | null;
  readonly of: readonly string[] | null;
  /** The piece that ends with it, where it stood last: of a list that grows the same every time. */
  piece: Item | null;
};
type Written = Item & { readonly body: string; readonly bytes: number };

export type Names = {
  /** Of a part, by its JSON. */
  nameOf(text: string): string;
  /** A recorder meets most messages again and again: the same object is written and named once. */
  written(message: object): Written;
};

/**
 * Names parts of one installation: with its secret, nobody outside can make two texts of one name, or find out from a name
 * what was said. SHA-256 cut in half cannot be extended, so that no HMAC is needed.
 */
export function createNames(secret: string): Names {
  const known = new WeakMap<object, Written>();
  const nameOf = (text: string): string => {
    const hex = hash('sha256', `${secret}\0${text}`, 'hex');
    // As the database writes a uuid, which is 16 bytes in a column of its own type.
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
  };
  return {
    nameOf,
    written(message) {
      let found = known.get(message);
      if (found === undefined) {
        const body = storable(message);
        found = { body, bytes: utf8Bytes(body), hash: null, of: null, piece: null };
        known.set(message, found);
      }
      return found;
    },
  };
}

/** Whether a part is known where the turn goes. What is in a piece that is known is not asked for. */
export type IsKnown = (hash: string, of: readonly string[] | null) => boolean;

export function splitContent({ request, choices }: Content, names: Names, isKnown: IsKnown = () => false): Split {
  const parts = new Map<string, Part>();
  const refs: string[] = [];
  const nameOf = (item: Item): string => {
    item.hash ??= names.nameOf(item.body ?? `\0${item.of!.join('')}`); // no JSON text begins like this
    return item.hash;
  };
  const addText = (body: string): string => {
    const hash = names.nameOf(body);
    if (!parts.has(hash) && !isKnown(hash, null)) parts.set(hash, { hash, body, of: null });
    return hash;
  };
  /** `items`: what the list was made of one level below, in which this is the piece from `from` on. */
  const add = (item: Item, below: readonly (readonly Item[])[], from: number): void => {
    const hash = nameOf(item);
    const { body, of } = item;
    if (parts.has(hash) || isKnown(hash, of)) return;
    if (of !== null) for (let i = 0; i < BASE; i++) add(below[0]![from + i]!, below.slice(1), (from + i) * BASE);
    parts.set(hash, { hash, body, of });
  };
  /** The refs of a list of these: whole pieces from the largest, then what is left. */
  const addList = (items: readonly Item[], below: readonly (readonly Item[])[] = []): void => {
    const whole = items.length - (items.length % BASE);
    if (whole > 0) {
      const larger: Item[] = [];
      for (let i = 0; i < whole; i += BASE) larger.push(pieceAt(items, i, nameOf));
      addList(larger, [items, ...below]);
    }
    for (let i = whole; i < items.length; i++) {
      add(items[i]!, below, i * BASE);
      refs.push(items[i]!.hash!);
    }
  };

  let bytes = 4; // brackets
  const values: { name: string; json: string; items: readonly Written[] | null }[] = [];
  for (const key of Object.keys(request)) {
    const value = request[key];
    const items = isListOfObjects(value) ? value.map(names.written) : null;
    const json = items === null ? storable(value) : '';
    if (json === undefined) continue;
    const name = storable(key);
    bytes +=
      name.length + 2 + (items === null ? utf8Bytes(json) : items.reduce((sum, item) => sum + item.bytes + 1, 1));
    values.push({ name, json, items });
  }
  const isShort = bytes < SHORT_REQUEST;
  const framed = values.map(({ name, json, items }) => {
    if (items === null) {
      if (isShort || json.length < SHORT_VALUE) return `[${name},"is",${json}]`;
      refs.push(addText(json));
      return `[${name},"part"]`;
    }
    if (isShort || items.length === 0) return `[${name},"is",[${items.map(({ body }) => body).join(',')}]]`;
    addList(items);
    return `[${name},"list",${items.length}]`;
  });

  const answers = choices.map(({ index, message, finishReason }) => {
    const json = storable(message);
    const head = `${storable(index)},${storable(finishReason)}`;
    bytes += utf8Bytes(json) + head.length + 40; // with the names
    if (json.length < SHORT_ANSWER) return `[${head},"is",${json}]`;
    refs.push(addText(json));
    return `[${head},"part"]`;
  });
  const frame = `{"request":[${framed.join(',')}],"choices":[${answers.join(',')}]}`;
  return { frame, refs, parts: [...parts.values()], bytes };
}

const utf8Bytes = (text: string): number => Buffer.byteLength(text);

const isListOfObjects = (value: unknown): value is object[] =>
  Array.isArray(value) &&
  value.length <= MOST_ITEMS &&
  value.every((item) => typeof item === 'object' && item !== null && !Array.isArray(item));

/** The sixteen of a list that begin here. Who remembers it remembers names and no messages, which are not to live longer for it. */
function pieceAt(items: readonly Item[], from: number, nameOf: (item: Item) => string): Item {
  const last = items[from + BASE - 1]!;
  const known = last.piece;
  let same = 0;
  if (known !== null) while (same < BASE && known.of![same] === nameOf(items[from + same]!)) same++;
  if (known !== null && same === BASE) return known;
  const of = Array.from({ length: BASE }, (_, i) => nameOf(items[from + i]!));
  last.piece = { hash: null, body: null, of, piece: null };
  return last.piece;
}

/** For each ref of a list how deep its pieces go: 0 is an item, 1 a piece of 16 items, 2 a piece of 16 such pieces. */
export function depths(length: number): number[] {
  const found: number[] = [];
  for (let depth = 0, left = length; left > 0; depth++, left = Math.floor(left / BASE))
    found.unshift(...Array<number>(left % BASE).fill(depth));
  return found;
}

/** Part of a turn's content is nowhere: it was lost on the way into the database. */
export class MissingPart extends Error {
  override readonly name = 'MissingPart';
}

/** Parts that are there, parsed once however many turns have them. */
export type Parts = {
  /** A part's value. Throws MissingPart. */
  value(hash: string): unknown;
  /** The hashes in a piece. Throws MissingPart. */
  piece(hash: string): readonly string[];
};

/** What joining needs, by how deep it is: `[0]` values, `[1]` pieces of values, and so on. */
export function wanted(frame: Frame, refs: readonly string[]): string[][] {
  const found: string[][] = [[]];
  let at = 0;
  const take = (depth: number) => {
    const name = refs[at++];
    if (name === undefined) return;
    while (found.length <= depth) found.push([]);
    found[depth]!.push(name);
  };
  for (const [, how, length] of frame.request)
    if (how === 'part') take(0);
    else if (how === 'list') for (const depth of depths(length as number)) take(depth);
  for (const choice of frame.choices) if (choice[2] === 'part') take(0);
  return found;
}

export function joinContent(frame: Frame, refs: readonly string[], parts: Parts): Content {
  let at = 0;
  const next = (): string => {
    const name = refs[at++];
    if (name === undefined) throw new MissingPart('There are fewer parts than the frame has places for.');
    return name;
  };
  const items = (name: string, depth: number): unknown[] =>
    depth === 0 ? [parts.value(name)] : parts.piece(name).flatMap((inner) => items(inner, depth - 1));
  const request = frame.request.map(([key, how, value]): [string, unknown] => {
    if (how === 'is') return [key, value];
    if (how === 'part') return [key, parts.value(next())];
    return [key, depths(value as number).flatMap((depth) => items(next(), depth))];
  });
  const choices = frame.choices.map(
    ([index, finishReason, how, message]): Choice => ({
      index,
      message: how === 'is' ? (message as Choice['message']) : (parts.value(next()) as Choice['message']),
      finishReason,
    }),
  );
  return { request: Object.fromEntries(request), choices };
}
