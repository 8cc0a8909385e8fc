/**
 * Finds phrases of a list in text: the names of customers and projects that must not be learned, and phrases that were planted.
 * Pure, one pass over the text however long the list is (Aho-Corasick). Letters' case, width and runs of white space do not
 * matter; a phrase that begins or ends with a letter or digit of an alphabet with spaces between words is only found as a
 * whole word, so that `ham` is not in `hamster`.
 */
import { normalForm } from '../collect/normal-form.ts';

type Node = { readonly next: Map<string, Node>; fail: Node | null /** Of the phrase that ends here. */; end: number };

const plain = (text: string): string => normalForm(text).toLowerCase().replace(/\s+/gu, ' ').trim();
const joins = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}]/u;

/** The numbers of the phrases that are in a text, each once, ascending. */
export function phraseFinder(phrases: readonly string[]): (text: string) => number[] {
  const root: Node = { next: new Map(), fail: null, end: -1 };
  const spelled = phrases.map((phrase) => [...plain(phrase)]);
  for (const [i, letters] of spelled.entries()) {
    let at = root;
    for (const letter of letters) {
      const next = at.next.get(letter) ?? { next: new Map(), fail: null, end: -1 };
      at.next.set(letter, next);
      at = next;
    }
    if (at !== root && at.end < 0) at.end = i;
  }
  const step = (from: Node | null, letter: string): Node => {
    for (let at = from; at !== null; at = at.fail) {
      const next = at.next.get(letter);
      if (next !== undefined) return next;
    }
    return root;
  };
  // Breadth first: a node's fail is nearer to the root than the node.
  for (let level = [root]; level.length > 0; ) {
    const below: Node[] = [];
    for (const node of level)
      for (const [letter, child] of node.next) {
        child.fail = step(node.fail, letter);
        below.push(child);
      }
    level = below;
  }
  const isWhole = (letters: readonly string[], from: number, to: number): boolean => {
    const cut = (inside: number, outside: number) =>
      joins.test(letters[inside] ?? '') && joins.test(letters[outside] ?? '');
    return !cut(from, from - 1) && !cut(to - 1, to);
  };
  return (text) => {
    if (root.next.size === 0) return [];
    const letters = [...plain(text)];
    const found = new Set<number>();
    let at = root;
    for (const [i, letter] of letters.entries()) {
      at = step(at, letter);
      for (let one: Node | null = at; one !== null; one = one.fail)
        if (one.end >= 0 && isWhole(letters, i + 1 - spelled[one.end]!.length, i + 1)) found.add(one.end);
    }
    return [...found].sort((a, b) => a - b);
  };
}
