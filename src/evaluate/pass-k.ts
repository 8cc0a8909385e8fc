/**
 * pass^k: how likely k attempts at a case all solve it (τ-bench, Yao et al. 2024). From c of n attempts that did, the unbiased
 * estimate is C(c, k) / C(n, k). The mean hides what a user meets who comes back: a model that solves every case half the
 * time and one that solves half the cases always have the same mean.
 *
 * Intervals are by a cluster bootstrap: cases are drawn with replacement, each with all its attempts.
 */
import { random } from '../simulate/random.ts';

/** How many of a case's attempts solved it, of how many. */
export type Solved = { readonly solved: number; readonly attempts: number };

/** null where a case has fewer than k attempts. */
export function passOf({ solved, attempts }: Solved, k: number): number | null {
  if (attempts < k) return null;
  let share = 1;
  for (let i = 0; i < k; i++) share *= Math.max(0, solved - i) / (attempts - i);
  return share;
}

const draws = 1000;

/** 95% interval of the mean, cases drawn with replacement. */
export function bootstrapInterval(values: readonly number[], seed: number): readonly [number, number] {
  const rng = random('bootstrap', seed, values.length);
  const means = Array.from({ length: draws }, () => {
    let sum = 0;
    for (let i = 0; i < values.length; i++) sum += values[Math.floor(rng.next() * values.length)]!;
    return sum / values.length;
  }).sort((a, b) => a - b);
  return [means[Math.floor(draws * 0.025)]!, means[Math.ceil(draws * 0.975) - 1]!];
}

export type PassK = {
  readonly k: number;
  readonly baseline: number;
  readonly candidate: number;
  /** Of the difference, 95%. */
  readonly interval: readonly [number, number];
};

/** For k = 2, 4, 8 … and the number of attempts; empty with one attempt. */
export function passK(
  cases: readonly { readonly baseline: Solved; readonly candidate: Solved }[],
  attempts: number,
  seed: number,
): PassK[] {
  const ks = [...new Set([...[2, 4, 8, 16, 32].filter((k) => k < attempts), attempts])].filter((k) => k > 1);
  return ks.flatMap((k): PassK[] => {
    const pairs = cases.flatMap(({ baseline, candidate }) => {
      const [before, after] = [passOf(baseline, k), passOf(candidate, k)];
      return before === null || after === null ? [] : [{ before, after }];
    });
    if (pairs.length === 0) return [];
    const mean = (of: (pair: (typeof pairs)[number]) => number) =>
      pairs.reduce((sum, pair) => sum + of(pair), 0) / pairs.length;
    return [
      {
        k,
        baseline: mean(({ before }) => before),
        candidate: mean(({ after }) => after),
        interval: bootstrapInterval(
          pairs.map(({ before, after }) => after - before),
          seed,
        ),
      },
    ];
  });
}
