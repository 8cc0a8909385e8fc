/**
 * The lists of a request as pieces of its text: where each object of them stands, and what is left of the request without them. Whoever
 * knows a piece need not parse it again. Pure, one pass, and it judges nothing: where the text is not plainly of this shape, null is
 * returned, and whether it is JSON at all is left to the parsers of the rest and of the pieces.
 *
 *   {"model":"m","messages":[{…},{…}]}   →   {"model":"m","messages":[]}   and   {…}   {…}
 */
export type SplitLists = {
  /** The same JSON with those lists empty. */
  readonly rest: string;
  readonly lists: readonly { readonly name: string; readonly items: readonly Place[] }[];
};

/** Half-open, in the text. */
export type Place = readonly [from: number, to: number];

/** Whoever knows what comes next spares looking for its end. */
export type Expected = {
  /** Where an object ends that is known to stand here, letter for letter; -1: none is known. */
  endOf(from: number): number;
  /** An object whose end had to be looked for. */
  met(from: number, to: number): void;
};
const nothingExpected: Expected = { endOf: () => -1, met: () => {} };

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openList = 0x5b;
const backslash = 0x5c;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/** Takes apart the lists of the top level that are called one of `names` and hold objects only. */
export function splitLists(
  text: string,
  names: readonly string[],
  expected: Expected = nothingExpected,
): SplitLists | null {
  const lists: { name: string; items: Place[] }[] = [];
  let rest = '';
  let kept = 0; // up to here the text is in `rest`, or in a list
  let at = afterSpace(text, 0);
  if (text.charCodeAt(at) !== openObject) return null;
  do {
    at = afterSpace(text, at + 1);
    if (text.charCodeAt(at) !== quote) return null;
    const end = text.indexOf('"', at + 1);
    const name = text.slice(at + 1, end);
    // An escape could spell a name that is looked for, or hide the quotation mark.
    if (end < 0 || name.includes('\\')) return null;
    at = afterSpace(text, end + 1);
    if (text.charCodeAt(at) !== colon) return null;
    at = afterSpace(text, at + 1);
    if (names.includes(name)) {
      if (lists.some((list) => list.name === name)) return null; // of two the last would count
      const list = itemsAt(text, at, expected);
      if (list !== null) {
        rest += text.slice(kept, at + 1);
        kept = list.end - 1;
        lists.push({ name, items: list.items });
        at = afterSpace(text, list.end);
        continue;
      }
      lists.push({ name, items: [] }); // so that a second one is noticed; as it stands in the rest, nothing is added to it
    }
    at = afterSpace(text, endOfValue(text, at));
  } while (text.charCodeAt(at) === comma);
  if (text.charCodeAt(at) !== closeObject || afterSpace(text, at + 1) !== text.length) return null;
  return { rest: rest + text.slice(kept), lists: lists.filter(({ items }) => items.length > 0) };
}

/** The objects of a list that begins here, and where it ends; null: it is none, is empty, or holds something else too. */
function itemsAt(
  text: string,
  start: number,
  expected: Expected,
): { readonly items: Place[]; readonly end: number } | null {
  if (text.charCodeAt(start) !== openList) return null;
  const items: Place[] = [];
  for (let at = start; ; ) {
    const from = afterSpace(text, at + 1);
    if (text.charCodeAt(from) !== openObject) return null;
    let to = expected.endOf(from);
    if (to < 0) {
      to = endOfValue(text, from);
      expected.met(from, to);
    }
    items.push([from, to]);
    at = afterSpace(text, to);
    const next = text.charCodeAt(at);
    if (next === closeList) return { items, end: at + 1 };
    if (next !== comma) return null;
  }
}

/** Behind the value that begins here, if it is one; brackets are counted and not told apart. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at);
        if (depth === 0) return at + 1;
        break;
      case openList:
      case openObject:
        depth++;
        break;
      case closeList:
      case closeObject:
        if (depth === 0) return at; // behind a number, in the last place
        if (--depth === 0) return at + 1;
        break;
      case comma:
        if (depth === 0) return at;
    }
  }
  return text.length;
}

/** Where the string that begins here ends: at a quotation mark behind an even number of backslashes. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    if (at < 0) return text.length;
    let before = at;
    while (text.charCodeAt(before - 1) === backslash) before--;
    if ((at - before) % 2 === 0) return at;
  }
}

function afterSpace(text: string, from: number): number {
  let at = from;
  for (let code = text.charCodeAt(at); code === 32 || code === 10 || code === 13 || code === 9; )
    code = text.charCodeAt(++at);
  return at;
}
