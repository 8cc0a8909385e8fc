/**
 * Weights from evidence: those with which the weighted mean of the parts follows a target best (labels, a business outcome).
 * Non-negative and summing to one. What is best is the correlation of total and target, which does not ask that both have the same
 * scale; over non-negative weights it is found by least squares with an intercept (Lawson and Hanson's problem, here by
 * coordinate descent), scaled to one afterwards.
 *
 * A part that was not measured counts as the reward counts it: the others share its weight, which is the same as if it had had
 * the value of the total. So missing values are filled with the total under the weights so far, and weights are fitted again.
 * What the weights are worth on what they have not seen is told by folds of whole groups.
 */
import { groupsOf, shuffled } from './resample.ts';

export type Sample = {
  /** Tries of one task, or one conversation: never split between fitting and judging. */
  readonly group: string;
  readonly target: number;
  /** [part]; null: not measured. */
  readonly values: readonly (number | null)[];
};

/** Weighted mean of what was measured; null: nothing was, or nothing that has a weight. */
export function combined(values: Sample['values'], weights: readonly number[]): number | null {
  let [sum, weight] = [0, 0];
  for (const [j, value] of values.entries()) {
    if (value === null) continue;
    sum += weights[j]! * value;
    weight += weights[j]!;
  }
  return weight > 0 ? sum / weight : null;
}

const refits = 30;
const sweeps = 500;

/** Null: no part rises with the target. */
export function fitWeights(given: readonly Sample[]): number[] | null {
  const samples = given.filter(({ values }) => values.some((value) => value !== null));
  const parts = samples[0]?.values.length ?? 0;
  if (samples.length < 3 || parts === 0) return null;
  // A part that always says the same where it speaks tells only whether it speaks, which the filling makes look like evidence.
  const speaks = Array.from({ length: parts }, (_, j) => {
    const said = samples.flatMap(({ values }) => values[j] ?? []);
    return said.some((value) => Math.abs(value - said[0]!) > 1e-9);
  });
  const even = Array.from({ length: parts }, () => 1 / parts);
  let weights = even;
  for (let k = 0; k < refits; k++) {
    const filled = samples.map(({ values }) => {
      const total = combined(values, weights) ?? combined(values, even)!;
      return values.map((value) => value ?? total);
    });
    const next = nonNegative(
      filled.map((row) => row.map((value, j) => (speaks[j] ? value : 0))),
      samples.map(({ target }) => target),
    );
    if (next === null) return null;
    const moved = next.reduce((most, one, j) => Math.max(most, Math.abs(one - weights[j]!)), 0);
    weights = next;
    if (moved < 1e-6) break;
  }
  return weights;
}

/** argmin over w ≥ 0 of Σ (y − a − X·w)², scaled to the sum of one. */
function nonNegative(rows: readonly (readonly number[])[], target: readonly number[]): number[] | null {
  const [n, parts] = [rows.length, rows[0]!.length];
  const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / n;
  const centred = (values: readonly number[]) => {
    const middle = mean(values);
    return values.map((value) => value - middle);
  };
  const columns = Array.from({ length: parts }, (_, j) => centred(rows.map((row) => row[j]!)));
  const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, one, i) => sum + one * b[i]!, 0);
  const squares = columns.map((column) => dot(column, column));
  const rest = centred(target); // y − X·w
  const weights = new Array<number>(parts).fill(0);
  const ridge = 1e-9 * n; // of two parts that say the same neither runs away
  for (let sweep = 0; sweep < sweeps; sweep++) {
    let moved = 0;
    for (let j = 0; j < parts; j++) {
      if (squares[j]! <= 1e-12 * n) continue; // says the same of all
      const before = weights[j]!;
      const next = Math.max(0, (dot(columns[j]!, rest) + squares[j]! * before) / (squares[j]! + ridge));
      if (next === before) continue;
      const column = columns[j]!;
      for (let i = 0; i < n; i++) rest[i]! -= (next - before) * column[i]!;
      weights[j] = next;
      moved = Math.max(moved, Math.abs(next - before));
    }
    if (moved < 1e-10) break;
  }
  const sum = weights.reduce((total, one) => total + one, 0);
  return sum > 1e-9 ? weights.map((one) => one / sum) : null;
}

/**
 * [sample]: the weights that were fitted without its group. Where the others would propose none, all parts count the same.
 */
export function foldWeights(samples: readonly Sample[], { folds = 5, seed = 1 } = {}): (readonly number[])[] {
  const groups = shuffled(
    groupsOf([...samples.entries()], ([, { group }]) => group),
    seed,
  );
  const count = Math.min(folds, groups.length);
  const even: readonly number[] = (samples[0]?.values ?? []).map((_, __, { length }) => 1 / length);
  const out = samples.map(() => even);
  for (let fold = 0; fold < count; fold++) {
    const isOut = (k: number) => k % count === fold;
    const fitted = fitWeights(groups.flatMap((group, k) => (isOut(k) ? [] : group.map(([, sample]) => sample))));
    if (fitted === null) continue;
    for (const [k, group] of groups.entries()) if (isOut(k)) for (const [i] of group) out[i] = fitted;
  }
  return out;
}

/**
 * [sample]: how it stands under the weights of its own fold: its total, less the mean and over the spread of all samples' totals
 * under the same weights. Folds differ in their weights, and so in where totals lie; without this, conversations of one fold would be
 * compared with those of another by that alone. No target is looked at. Null: no total.
 */
export function standings<T>(
  items: readonly T[],
  weights: readonly (readonly number[])[],
  total: (item: T, weights: readonly number[]) => number | null,
): (number | null)[] {
  const known = new Map<readonly number[], { mean: number; spread: number }>();
  return items.map((item, i) => {
    const own = weights[i]!;
    const value = total(item, own);
    if (value === null) return null;
    let place = known.get(own);
    if (place === undefined) {
      const all = items.flatMap((other) => total(other, own) ?? []);
      const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
      const spread = Math.sqrt(all.reduce((sum, one) => sum + (one - mean) ** 2, 0) / all.length);
      place = { mean, spread: spread > 1e-12 ? spread : 1 };
      known.set(own, place);
    }
    return (value - place.mean) / place.spread;
  });
}

/** [sample]: where it stands under weights that were fitted without its group. */
export const heldOut = (samples: readonly Sample[], options?: { folds?: number; seed?: number }): (number | null)[] =>
  standings(samples, foldWeights(samples, options), ({ values }, weights) => combined(values, weights));
