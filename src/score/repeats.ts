/**
 * How much of a text repeats itself: the share of its words that lie in a span of `span` words which has stood before. One pass
 * with a rolling hash, so a text that was made to repeat costs no more than any other. Two different spans that share a hash are
 * taken for a repeat, which at 2⁻⁴⁸ or so does not happen to texts that people measure.
 */
const modulus = 2 ** 24 - 3; // prime; products stay exact
const bases = [65_599, 31_337] as const;

const hashOf = (word: string): number => {
  let hash = 7;
  for (let i = 0; i < word.length; i++) hash = (hash * 131 + word.charCodeAt(i)) % modulus;
  return hash + 1;
};

/** More is not read. */
const maxWords = 200_000;

export function repeatedShare(text: string, span = 12): number {
  const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).slice(0, maxWords).map(hashOf);
  if (words.length < 2 * span) return 0;
  const leading = bases.map((base) => {
    let power = 1;
    for (let i = 1; i < span; i++) power = (power * base) % modulus;
    return power;
  });
  const sums = [0, 0];
  const seen = new Map<number, number>(); // hash → where the span first ended
  let covered = 0;
  let coveredTo = 0; // words before this one are counted
  for (const [i, word] of words.entries()) {
    for (const [k, base] of bases.entries()) {
      const left = i >= span ? (words[i - span]! * leading[k]!) % modulus : 0;
      sums[k] = (((((sums[k]! - left + modulus) % modulus) * base) % modulus) + word) % modulus;
    }
    if (i < span - 1) continue;
    const key = sums[0]! * modulus + sums[1]!;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, i);
    else if (i - first >= span) {
      covered += i + 1 - Math.max(coveredTo, i + 1 - span);
      coveredTo = i + 1;
    }
  }
  return covered / words.length;
}
