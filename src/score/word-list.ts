/**
 * Finding words and phrases in a text, whatever the case and the width of letters: one pass over the text for all of a list. A
 * word of letters that are written with spaces between them is found only whole; Chinese, Japanese and Korean have endings and
 * no spaces, so there a phrase is found anywhere.
 */
import { normalForm } from '../collect/normal-form.ts';

const plain = (text: string): string => normalForm(text).toLowerCase().replace(/\s+/gu, ' ').trim();
const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
const joined = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;
const inWord = '[\\p{L}\\p{N}_]';

export type WordList = {
  readonly words: readonly string[];
  /** Which of the words occur. */
  found(text: string): string[];
};

/** Longer lists are no rule that anybody reads. */
export const maxWords = 1000;

export function wordList(of: string, given: readonly string[]): WordList {
  const words = [...new Set(given.map(plain))].sort();
  if (words.length > maxWords || words.some((word) => word === '' || word.length > 200))
    throw new Error(`${of} takes up to ${maxWords} words or phrases of 1 to 200 characters.`);
  const pattern = (word: string): string => {
    const bounded = (letter: string | undefined) =>
      letter !== undefined && /[\p{L}\p{N}_]/u.test(letter) && !joined.test(letter);
    const letters = [...word];
    return `${bounded(letters[0]) ? `(?<!${inWord})` : ''}${escaped(word)}${bounded(letters.at(-1)) ? `(?!${inWord})` : ''}`;
  };
  // Each word is literal text between two looks at one letter: no expression of these goes over the text twice.
  const expressions = words.map((word) => new RegExp(pattern(word), 'u'));
  return {
    words,
    found(text) {
      const read = plain(text);
      return words.filter((_, i) => expressions[i]!.test(read));
    },
  };
}
