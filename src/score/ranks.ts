/**
 * How well one list of numbers orders another: Spearman's rank correlation and the area under the ROC curve, with ties as
 * textbooks have them (average ranks; half a point for a tie). Pure. Null where nothing can be said: too few, or all alike.
 */

/** 1 for the smallest; equal values share the mean of their places. */
export function ranks(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((a, b) => values[a]! - values[b]!);
  const out = new Array<number>(values.length);
  for (let from = 0; from < order.length; ) {
    let to = from;
    while (to + 1 < order.length && values[order[to + 1]!] === values[order[from]!]) to++;
    for (let k = from; k <= to; k++) out[order[k]!] = (from + to) / 2 + 1;
    from = to + 1;
  }
  return out;
}

/** Pearson's r. */
export function correlation(x: readonly number[], y: readonly number[]): number | null {
  const n = x.length;
  if (n < 3) return null;
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / n;
  const [meanX, meanY] = [mean(x), mean(y)];
  let [xy, xx, yy] = [0, 0, 0];
  for (let i = 0; i < n; i++) {
    const [dx, dy] = [x[i]! - meanX, y[i]! - meanY];
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  // Values that are equal but for a rounded sum have no order.
  const least = 1e-20 * n;
  return xx <= least || yy <= least ? null : Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));
}

export const spearman = (x: readonly number[], y: readonly number[]): number | null => correlation(ranks(x), ranks(y));

/** The chance that one of the true ones has the larger value than one of the others (Mann and Whitney's U over its largest). */
export function auc(values: readonly number[], truth: readonly boolean[]): number | null {
  const positives = truth.filter(Boolean).length;
  const negatives = truth.length - positives;
  if (positives === 0 || negatives === 0) return null;
  const placed = ranks(values);
  const sum = placed.reduce((total, rank, i) => total + (truth[i] ? rank : 0), 0);
  return (sum - (positives * (positives + 1)) / 2) / (positives * negatives);
}
