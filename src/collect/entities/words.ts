/** A text as words with their places, for the rules that find entities. One pass. */
export type Word = {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly isCapital: boolean;
  /** What stands between the word before and this one. */
  readonly gap: string;
};

const word = /[\p{L}\p{M}](?:[\p{L}\p{M}\p{N}]|['’.&-](?=[\p{L}\p{N}])){0,60}\.?|\d{1,6}[A-Za-z]?(?![\p{L}\p{N}])/gu;
/** A word with digits in it is a number of something, however it begins. */
const capital = /^\p{Lu}\P{N}*$/u;
const LONGEST_GAP = 24;

export function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let last = 0;
  for (const found of text.matchAll(word)) {
    let [one] = found;
    const start = found.index;
    // A full stop is part of an abbreviation or an initial only.
    if (one.endsWith('.') && !(one.length <= 4 || /^\p{L}\.(?:\p{L}\.)+$/u.test(one))) one = one.slice(0, -1);
    if (/['’]s$/.test(one)) one = one.slice(0, -2);
    const end = start + one.length;
    words.push({
      text: one,
      start,
      end,
      isCapital: capital.test(one),
      gap: text.slice(Math.max(last, start - LONGEST_GAP), start),
    });
    last = end;
  }
  return words;
}
