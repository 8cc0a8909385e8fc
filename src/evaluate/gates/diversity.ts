/**
 * Mode collapse: answers to different cases that have become alike. Diversity is 1 − the mean cosine of all pairs of answers'
 * vectors, one answer a case: counts of words and pairs of words, or what an embedding model says (../embed.ts).
 *
 * Only cases that came out alike for both are looked at, since right answers may rightly be alike. It fails below the limit only where it also lost a third of the baseline's (docs/decisions/0021): short answers of one desk
 * are alike for honest reasons, and a candidate is not to blame for what was so before it.
 */
import { fewestCases, type Gate, type GatedAttempt, type GatedCase, lookAt, unmeasured } from './gate.ts';
import { atEqualSuccess } from './paired.ts';
import { runsOf, wordsOf } from './words.ts';

const name = 'diversity';
export const keptOfBaseline = 2 / 3;

/** By dimension: sparse counts in a map, or all of them in a list. */
export type Vector = ReadonlyMap<string | number, number> | readonly number[];

/** What an embedding model made of the answers, or why there is nothing of it. */
export type Embedded =
  | {
      readonly kind: 'vectors';
      readonly model: string;
      readonly baseline: readonly Vector[];
      readonly candidate: readonly Vector[];
    }
  | { readonly kind: 'none'; readonly why: string };

export const textOfAttempt = ({ answer }: GatedAttempt): string => answer.said.join('\n');

/** What diversity is measured on: the first attempt with words, of each case that came out alike for both. */
export const firstSpoken = (cases: readonly GatedCase[], side: 'baseline' | 'candidate'): GatedAttempt[] =>
  atEqualSuccess(cases).flatMap((one) => one[side].find(({ answer }) => answer.said.length > 0) ?? []);

export function ngramVector(text: string): Vector {
  const counts = new Map<string, number>();
  const words = wordsOf(text);
  for (const run of [...words, ...runsOf(words, 2)]) counts.set(run, (counts.get(run) ?? 0) + 1);
  return counts;
}

/**
 * 1 − the mean cosine over all pairs. With unit vectors u, Σ over pairs of u·v is (|Σu|² − n)/2, so that n answers cost n
 * additions and not n² products.
 */
export function diversityOf(vectors: readonly Vector[]): number | null {
  const sum = new Map<string | number, number>();
  let n = 0;
  for (const vector of vectors) {
    const norm = Math.sqrt([...vector.values()].reduce((total, value) => total + value * value, 0));
    if (!(norm > 0)) continue;
    n++;
    for (const [dimension, value] of vector.entries()) sum.set(dimension, (sum.get(dimension) ?? 0) + value / norm);
  }
  if (n < 2) return null;
  const square = [...sum.values()].reduce((total, value) => total + value * value, 0);
  return Math.max(0, 1 - (square - n) / (n * (n - 1))); // rounding must not make alike answers less than alike
}

/** `limit`: least diversity, e.g. 0.3. `embedded`: null where words are counted. */
export function diversityGate(cases: readonly GatedCase[], limit: number, embedded: Embedded | null = null): Gate {
  const spoken = { baseline: firstSpoken(cases, 'baseline'), candidate: firstSpoken(cases, 'candidate') };
  if (spoken.candidate.length < fewestCases || spoken.baseline.length < 2)
    return unmeasured(name, limit, 'Too few answers have words.');
  // Words are no stand-in: the limit was meant for what the model of the settings says.
  if (embedded?.kind === 'none') return unmeasured(name, limit, `There are no embeddings: ${embedded.why}.`);
  const of = (side: 'baseline' | 'candidate') =>
    diversityOf(embedded?.[side] ?? spoken[side].map((attempt) => ngramVector(textOfAttempt(attempt))));
  const [baseline, candidate] = [of('baseline'), of('candidate')];
  if (baseline === null || candidate === null) return unmeasured(name, limit, 'Too few of the vectors point anywhere.');
  const fails = candidate < limit && candidate < baseline * keptOfBaseline;
  const by = embedded === null ? '1 − mean cosine' : `1 − mean cosine by ${embedded.model}`;
  return {
    ...{ name, verdict: fails ? 'fail' : 'pass', baseline, candidate, limit },
    reason: `Answers to different cases differ by ${candidate.toFixed(2)} (${by}), the baseline’s by ${baseline.toFixed(2)}${fails ? `: below ${limit}, and less than two thirds of what it was` : candidate < limit ? `: below ${limit}, as it was before` : ''}.`,
    look: fails ? lookAt(cases, ({ answer }) => answer.said.length > 0) : [],
  };
}
