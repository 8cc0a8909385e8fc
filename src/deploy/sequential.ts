/**
 * Bounds of a group-sequential test: how large z must be at each of a few looks, so that a candidate that is not better passes
 * any of them with probability ≤ α in all. The α is spent as O'Brien and Fleming's bounds spend it, almost nothing early
 * (Lan and DeMets 1983), and the bounds are found by integrating over what earlier looks left (Armitage, McPherson and Rowe
 * 1969). Looks may come at any share of the information, so traffic need not keep to a plan. Pure.
 */
import { normalQuantile } from '../evaluate/statistics.ts';

/** How much of α may be spent once the share `t` of the information is in. */
export const spent = (t: number, alpha: number): number =>
  t >= 1 ? alpha : t <= 0 ? 0 : 2 * upperTail(-normalQuantile(alpha / 2) / Math.sqrt(t));

type Grid = { readonly from: number; readonly step: number; readonly density: readonly number[] };
const points = 161; // of the grid; ten times as many give the same four decimals

/** The z to reach at each look; `shares` of the information at the looks, growing, at most 1. */
export function bounds(shares: readonly number[], alpha: number): number[] {
  const found: number[] = [];
  /** Density of the score process S = z·√t over those who have passed no bound yet, on an even grid up to the last bound. */
  let left: Grid | null = null;
  let before = 0;
  for (const t of shares) {
    const spend = spent(t, alpha) - spent(before, alpha);
    const spread = Math.sqrt(t - before);
    const last: Grid | null = left;
    const beyond = (score: number): number =>
      last === null
        ? upperTail(score / spread)
        : integral(last, (at, density) => density * upperTail((score - at) / spread));
    const bound = scoreWith(beyond, spend, Math.sqrt(t));
    found.push(bound / Math.sqrt(t));
    const from = -7 * Math.sqrt(t);
    const step = (bound - from) / (points - 1);
    left = {
      ...{ from, step },
      density: Array.from({ length: points }, (_, i) => {
        const score = from + i * step;
        return last === null
          ? normal(score / spread) / spread
          : integral(last, (at, density) => (density * normal((score - at) / spread)) / spread);
      }),
    };
    before = t;
  }
  return found;
}

/** Simpson's rule. */
function integral({ from, step, density }: Grid, value: (at: number, density: number) => number): number {
  let sum = 0;
  for (let i = 0; i < density.length; i++) {
    const weight = i === 0 || i === density.length - 1 ? 1 : i % 2 === 1 ? 4 : 2;
    sum += weight * value(from + i * step, density[i]!);
  }
  return (sum * step) / 3;
}

/** The score that is passed with probability `p`, by halving: `beyond` falls. Nothing to spend: one that nobody reaches. */
function scoreWith(beyond: (score: number) => number, p: number, unit: number): number {
  let low = -8 * unit;
  let high = 8 * unit;
  for (let i = 0; i < 45; i++) {
    const middle = (low + high) / 2;
    if (beyond(middle) > p) low = middle;
    else high = middle;
  }
  return high;
}

const normal = (x: number): number => Math.exp(-(x * x) / 2) / Math.sqrt(2 * Math.PI);

/** P(Z > x). The continued fraction and series of Abramowitz and Stegun 26.2, to about twelve digits. */
export function upperTail(x: number): number {
  if (x < 0) return 1 - upperTail(-x);
  if (x > 38) return 0;
  if (x < 3) {
    let term = x;
    let sum = x;
    for (let i = 1; i < 200 && Math.abs(term) > 1e-17; i++) {
      term *= (x * x) / (2 * i + 1);
      sum += term;
    }
    return 0.5 - normal(x) * sum;
  }
  let fraction = x;
  for (let i = 60; i > 0; i--) fraction = x + i / fraction;
  return normal(x) / fraction;
}
