/** A rule: every required word or phrase is in the answer and none of the forbidden ones is. */
import { broken, byAnswer, kept } from './answer-rule.ts';
import type { ComputingScorer } from './scorer.ts';
import { wordList } from './word-list.ts';

export type WordRule = { readonly required?: readonly string[]; readonly forbidden?: readonly string[] };

const quoted = (words: readonly string[]): string =>
  words
    .slice(0, 3)
    .map((word) => `“${word}”`)
    .join(', ');

export function words({ required = [], forbidden = [] }: WordRule): ComputingScorer {
  if (required.length + forbidden.length === 0) throw new Error('words needs required or forbidden words.');
  const [wanted, unwanted] = [wordList('words', required), wordList('words', forbidden)];
  return {
    name: 'words',
    version: JSON.stringify(['words', 1, wanted.words, unwanted.words]),
    inProcess: true,
    score: (input) =>
      byAnswer(input, ({ text }) => {
        const bad = unwanted.found(text);
        if (bad.length > 0) return broken(`says ${quoted(bad)}`);
        const there = new Set(wanted.found(text));
        const missing = wanted.words.filter((word) => !there.has(word));
        return missing.length === 0 ? kept : broken(`does not say ${quoted(missing)}`);
      }),
  };
}
