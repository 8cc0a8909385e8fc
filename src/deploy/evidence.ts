/**
 * The tests behind the checks: is a share above a bound, is a mean below another? Both may be looked at as often as one
 * likes. Shares: an average of likelihood ratios, a supermartingale under "not worse", so that it ever exceeds 1/α with
 * probability ≤ α (Ville). Means: the asymptotic confidence sequence of Waudby-Smith et al., arXiv 2103.06476, one-sided as
 * in GrowthBook's safe rollouts. Pure.
 */
import { binomialTail, normalQuantile } from '../evaluate/statistics.ts';
import type { Sample } from './slice.ts';

/** Below this probability a result is not taken as compatible with "not worse". */
export const doubt = 0.1;

/** Is the share k/n above `bound`? */
export function shareEnd(k: number, n: number, bound: number, alpha: number): 'pass' | 'fail' | 'inconclusive' {
  if (shareEvidence(k, n, bound) >= 1 / alpha) return 'fail';
  return binomialTail(k, n, bound) >= doubt ? 'pass' : 'inconclusive';
}

const places = [0.05, 0.15, 0.3, 0.5, 0.7, 0.9];
/** Evidence against "the share is at most p₀". */
export const shareEvidence = (k: number, n: number, p0: number): number =>
  evidence(
    k,
    n,
    p0,
    places.map((place) => p0 + (1 - p0) * place),
  );

const ratios = [1.6, 2, 2.5, 4, 10, 40];
/**
 * Evidence against "the candidate's rate is at most the baseline's", from whose the events of both are: each would be the
 * candidate's with probability p₀, its part of all calls; were its rate r times as high, with r·p₀ / (r·p₀ + 1 − p₀).
 */
export const rateEvidence = (k: number, n: number, p0: number): number =>
  evidence(
    k,
    n,
    p0,
    ratios.map((ratio) => (ratio * p0) / (ratio * p0 + 1 - p0)),
  );

/**
 * The average, over a few larger shares q, of the likelihood ratio q to p₀. Under any share up to p₀ each ratio is a
 * supermartingale from 1, and so is their average.
 */
function evidence(k: number, n: number, p0: number, larger: readonly number[]): number {
  let sum = 0;
  for (const q of larger) sum += Math.exp(Math.min(700, k * Math.log(q / p0) + (n - k) * Math.log((1 - q) / (1 - p0))));
  return sum / larger.length;
}

export const meanOf = ({ n, sum }: Sample): number => sum / n;

/** Is the candidate's mean certainly below the baseline's? `tuned`: users at which the test is sharpest. */
export const isWorse = (baseline: Sample, candidate: Sample, tuned: number, alpha: number): boolean =>
  meanOf(candidate) - meanOf(baseline) + halfWidth(baseline, candidate, tuned, alpha) < 0;

/** Does a plain test, shared by so many slices, say worse? */
export const looksWorse = (baseline: Sample, candidate: Sample, slices: number): boolean =>
  meanOf(candidate) - meanOf(baseline) < normalQuantile(doubt / slices) * standardError(baseline, candidate);

/**
 * How far the true difference of two means may lie above the measured one, at any of infinitely many looks, with probability
 * 1 − alpha. `tuned` is the number of units at which the bound is tightest.
 */
export function halfWidth(a: Sample, b: Sample, tuned: number, alpha: number): number {
  const n = a.n + b.n;
  const spread = Math.sqrt(n) * standardError(a, b);
  const log = -2 * Math.log(alpha);
  const rho2 = (log + Math.log(log + 1)) / tuned;
  const grown = n * rho2 + 1;
  return spread * Math.sqrt((2 * grown * Math.log(1 + Math.sqrt(grown) / (2 * alpha))) / (n * n * rho2));
}

/**
 * Of the difference of two means. Each side's variance is taken as no less than that of both sides together: were the two
 * alike, that is what it would be, and a side of a few lucky users would otherwise claim a certainty it does not have.
 */
export function standardError(a: Sample, b: Sample): number {
  const all = variance({ n: a.n + b.n, sum: a.sum + b.sum, squares: a.squares + b.squares });
  const of = (side: Sample) => Math.max(variance(side), all) / side.n;
  return Math.sqrt(of(a) + of(b));
}

const variance = ({ n, sum, squares }: Sample): number => Math.max(0, squares / n - (sum / n) ** 2);
