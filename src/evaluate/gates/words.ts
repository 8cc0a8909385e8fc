/** Texts as the gates see them: lower-case words and numbers, in one pass over capped text. */
export const wordsOf = (text: string): string[] =>
  text.toLowerCase().match(/[\p{L}\p{M}]+(?:['’][\p{L}]+)*|\p{N}+(?:[.,]\p{N}+)*/gu) ?? [];

/** The same with every number alike: a phrase is the same phrase whichever number is put in. */
export const withoutNumbers = (words: readonly string[]): string[] =>
  words.map((word) => (/^\p{N}/u.test(word) ? '#' : word));

/** Runs of n words; a shorter text is one run. */
export function runsOf(words: readonly string[], n: number): string[] {
  if (words.length === 0) return [];
  if (words.length <= n) return [words.join(' ')];
  return Array.from({ length: words.length - n + 1 }, (_, i) => words.slice(i, i + n).join(' '));
}
