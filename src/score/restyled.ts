/**
 * How many lines of a changed file are only written in another way: a call spread over five lines, other spaces, blank lines, a
 * comma behind the last argument, other quotes, parentheses that only group (bare-code.ts). Both texts are taken as the words that mean something, in order; the words that stayed are matched
 * (words that occur once on both sides hold the rest in place, as in a patience diff), and what stands between two neighbours that
 * both stayed is compared. So what was restyled is found beside what was changed, and nothing next to a change is taken for style.
 *
 * An indent is style only where the word stands as deep in the tree as before: a block around it needs another one, and in Python it is
 * what makes the block. It is no style either inside brackets that open on a line that changed, or for Go's columns, which gofmt sets.
 * What stands in a string is a word. Comments are priced by themselves; a gap that got or lost one is not looked at.
 *
 * The work is bounded: beyond the limit what is left counts as changed, not as restyled.
 */
import { isComment } from './bare-code.ts';
import type { CodeLanguage, CodeNode } from './grammars.ts';

/** Words looked at while matching, all ranges together. */
const maxWork = 2_000_000;

type Word = {
  readonly kind: string;
  readonly text: string;
  /** As it stands there. */
  readonly spelling: string;
  readonly start: number;
  readonly end: number;
  readonly depth: number;
  /** In what it stands, and as which part of it. */
  readonly place: string;
};
/** A text as its words, what stands before each of them, and behind the last. */
type Worded = { readonly words: readonly Word[]; readonly gaps: readonly Gap[]; readonly rest: string };
type Gap = { readonly text: string; readonly comments: string };

function worded({ root, bare: tree, text }: Code): Worded {
  const words: Word[] = [];
  const gaps: Gap[] = [];
  let upTo = 0;
  const comments: CodeNode[] = [];
  const find = (node: CodeNode): void => {
    if (isComment(node)) comments.push(node);
    else for (const child of node.children) find(child);
  };
  find(root);
  let next = 0;
  const gapUpTo = (end: number): Gap => {
    const said: string[] = [];
    let between = '';
    for (; next < comments.length && comments[next]!.start < end; next++) {
      const { start, end: behind } = comments[next]!;
      between += text.slice(upTo, start);
      said.push(text.slice(start, behind));
      upTo = behind;
    }
    return { text: between + text.slice(upTo, end), comments: said.join('\n') };
  };
  const read = ({ kind, text: said, children, start, end }: CodeNode, depth: number, place: string): void => {
    if (children.length > 0)
      for (const [i, child] of children.entries()) read(child, depth + 1, `${kind} ${i} ${depth}`);
    else if (said !== '') {
      gaps.push(gapUpTo(start));
      words.push({ kind, text: said, spelling: text.slice(start, end), start, end, depth, place });
      upTo = end;
    }
  };
  read(tree, 0, '');
  return { words, gaps, rest: next === comments.length ? text.slice(upTo) : '' };
}

/** For each word of `after` the one of `before` that it is, or -1. A word that took another's place alone counts as that one. */
function matched(before: readonly Word[], after: readonly Word[]): Int32Array {
  const found = new Int32Array(after.length).fill(-1);
  const same = (i: number, j: number) => before[i]!.text === after[j]!.text && before[i]!.kind === after[j]!.kind;
  const isLike = (i: number, j: number) => before[i]!.kind === after[j]!.kind;
  let left = maxWork;
  const ranges = [{ a: 0, b: before.length, c: 0, d: after.length }];
  for (let range = ranges.pop(); range !== undefined; range = ranges.pop()) {
    let { a, b, c, d } = range;
    for (; a < b && c < d && same(a, c); a++, c++) found[c] = a;
    for (; b > a && d > c && same(b - 1, d - 1); b--, d--) found[d - 1] = b - 1;
    left -= b - a + (d - c);
    if (a === b || c === d || left < 0) continue;
    const anchors = inOrder(onceInBoth(before, a, b, after, c, d));
    if (anchors.length === 0) {
      const isExchange = b - a === d - c && Array.from({ length: b - a }).every((_, k) => isLike(a + k, c + k));
      for (let k = 0; isExchange && k < b - a; k++) found[c + k] = a + k;
      continue;
    }
    let [from, to] = [a, c];
    for (const [i, j] of anchors) {
      found[j] = i;
      ranges.push({ a: from, b: i, c: to, d: j });
      [from, to] = [i + 1, j + 1];
    }
    ranges.push({ a: from, b, c: to, d });
  }
  return found;
}

/** Places of the words that occur once in each of the two ranges. */
function onceInBoth(
  before: readonly Word[],
  a: number,
  b: number,
  after: readonly Word[],
  c: number,
  d: number,
): (readonly [number, number])[] {
  const many = -1;
  const placesOf = (words: readonly Word[], from: number, to: number) => {
    const places = new Map<string, number>();
    for (let i = from; i < to; i++) {
      const word = `${words[i]!.kind}\n${words[i]!.text}`;
      places.set(word, places.has(word) ? many : i);
    }
    return places;
  };
  const was = placesOf(before, a, b);
  const pairs: (readonly [number, number])[] = [];
  for (const [word, j] of placesOf(after, c, d)) {
    const i = was.get(word);
    if (i !== undefined && i !== many && j !== many) pairs.push([i, j]);
  }
  return pairs;
}

/** The most of them that stand in the same order on both sides: the longest rising run, in n log n. They come in the order of `after`. */
export function inOrder(pairs: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const ends: number[] = []; // for each length the pair with the smallest place in `before` that a run of it ends with
  const earlier = new Int32Array(pairs.length).fill(-1);
  for (const [k, [i]] of pairs.entries()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]!]![0] < i) low = middle + 1;
      else high = middle;
    }
    earlier[k] = low === 0 ? -1 : ends[low - 1]!;
    ends[low] = k;
  }
  const run: (readonly [number, number])[] = [];
  for (let k = ends.at(-1) ?? -1; k >= 0; k = earlier[k]!) run.push(pairs[k]!);
  return run.reverse();
}

export type Code = { readonly root: CodeNode; readonly bare: CodeNode; readonly text: string };

/** Lines of `after`. */
export function restyledLines(language: CodeLanguage, before: Code, after: Code): number {
  const [was, is] = [worded(before), worded(after)];
  const from = matched(was.words, is.words);
  const lines = new Set<number>();
  /** Lines where something else is said than before: brackets that open there may stand in another column. */
  const moved = new Set<number>();
  const open: { readonly bracket: string; readonly line: number }[] = [];
  const lineAt = lineCounter(after.text);
  let lastLine = 0;
  for (const [j, word] of is.words.entries()) {
    const line = lineAt(word.start);
    const i = from[j]!;
    const stays = i >= 0 && (j === 0 ? i === 0 : from[j - 1] === i - 1);
    const old = was.words[i];
    if (!stays || old!.text !== word.text) moved.add(line);
    // What JSX says by its text does not depend on its line breaks, and its indent is that of what stands around it.
    else if (old!.spelling !== word.spelling && word.kind !== 'jsx_text') lines.add(line);
    const isElsewhere = stays && (old!.place !== word.place || was.words[i - 1]?.place !== is.words[j - 1]?.place);
    const isRegrouped = isElsewhere && groups(was.gaps[i]!.text) !== groups(is.gaps[j]!.text);
    if (stays && !isRegrouped) {
      const { above, here, indent } = difference(was.gaps[i]!, is.gaps[j]!, language);
      if (above) lines.add(lastLine);
      if (here) lines.add(line);
      else if (indent && old!.depth === word.depth) {
        const around = open.at(-1);
        if (around === undefined || around.bracket === '{' || !moved.has(around.line)) lines.add(line);
        else moved.add(line);
      }
    }
    if (word.text === '(' || word.text === '[' || word.text === '{') open.push({ bracket: word.text, line });
    else if (word.text === ')' || word.text === ']' || word.text === '}') open.pop();
    lastLine = word.text.includes('\n') ? lineAt(word.end) : line;
  }
  const isRestyledEnd = from.at(-1) === was.words.length - 1 && was.rest.trim() !== is.rest.trim();
  const isRegrouped = was.words.at(-1)?.place !== is.words.at(-1)?.place && groups(was.rest) !== groups(is.rest);
  if (isRestyledEnd && !isRegrouped) lines.add(lastLine);
  return lines.size;
}

/** The brackets in it that only group: where they came with another place of the word before or behind them, they say something. */
const groups = (gap: string): string => gap.replace(/[^(){}|&]/g, '');

/** Whether this gap is written in another way: in the line of the word before it, in that of the word behind it, by its indent. */
function difference(before: Gap, after: Gap, language: CodeLanguage) {
  const none = { above: false, here: false, indent: false };
  if (before.text === after.text || before.comments !== after.comments) return none;
  const [was, is] = [before, after].map(({ text }) => ({
    isBroken: text.includes('\n'),
    head: text.split('\n', 1)[0]!,
    tail: text.slice(text.indexOf('\n')).replaceAll(/\n[ \t]*(?=\n|$)/g, '\n'),
    indent: text.slice(text.lastIndexOf('\n')),
  })) as [Written, Written];
  if (was.isBroken !== is.isBroken) return { ...none, above: true, here: true };
  if (is.isBroken) return { above: was.head !== is.head, here: was.tail !== is.tail, indent: was.indent !== is.indent };
  const isColumn = language === 'go' && was.head.trim() === is.head.trim() && was.head !== '' && is.head !== '';
  return { ...none, here: !isColumn };
}
type Written = { readonly isBroken: boolean; readonly head: string; readonly tail: string; readonly indent: string };

/** Lines of places that are asked for from the first to the last. */
function lineCounter(text: string): (place: number) => number {
  let line = 0;
  let next = text.indexOf('\n');
  return (place) => {
    while (next >= 0 && next < place) {
      line++;
      next = text.indexOf('\n', next + 1);
    }
    return line;
  };
}
