/**
 * Texts as the gates see them: lower-case words, numbers and pictures, in one pass over capped text. Of scripts that put no spaces between
 * words, every so many characters in a row stand for one, each beginning a character after the other: a sentence is not one word
 * there either, and no dictionary is needed.
 */
export const wordsOf = (text: string): string[] =>
  (text.toLowerCase().match(pieces) ?? []).flatMap((piece) => {
    const size = isIdeographs.test(piece) ? 2 : isUnspaced.test(piece) ? 8 : null;
    if (size === null) return [piece];
    const characters = [...piece];
    const count = Math.max(1, characters.length - size + 1);
    return Array.from({ length: count }, (_, i) => characters.slice(i, i + size).join(''));
  });

const ideographs = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}ー';
const unspaced = '\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}';
const beginsWith = (set: string) => new RegExp(`^[${set}]`, 'u');
const isIdeographs = beginsWith(ideographs);
const isUnspaced = beginsWith(unspaced);
const spaced = `(?![${ideographs}${unspaced}])[\\p{L}\\p{M}]`;
const pieces = new RegExp(
  `[${ideographs}]+|[${unspaced}]+|(?:${spaced})+(?:['’](?:${spaced})+)*|\\p{N}+(?:[.,]\\p{N}+)*|\\p{Extended_Pictographic}`,
  'gu',
);

/** The same with every number alike: a phrase is the same phrase whichever number is put in. */
export const withoutNumbers = (words: readonly string[]): string[] =>
  words.map((word) => (/^\p{N}/u.test(word) ? '#' : word));

/** Runs of n words; a shorter text is one run. */
export function runsOf(words: readonly string[], n: number): string[] {
  if (words.length === 0) return [];
  if (words.length <= n) return [words.join(' ')];
  return Array.from({ length: words.length - n + 1 }, (_, i) => words.slice(i, i + n).join(' '));
}
