/**
 * Sudden shifts: where the scores of one kind of task change for one client key and not for the others, somebody may be teaching
 * the model something. Pure: sums of two windows in, the shifts out. With a single key there is nobody to compare with, and a
 * better release would look the same; then nothing is held.
 */
export type ScoreSum = {
  readonly key: string;
  readonly taskType: string;
  readonly before: Sum;
  readonly now: Sum;
};
export type Sum = { readonly n: number; readonly mean: number; readonly variance: number };

export type Shift = {
  readonly key: string;
  readonly taskType: string;
  readonly before: number;
  readonly now: number;
  readonly conversations: number;
};

const least = { n: 20, change: 0.25, z: 4 };

export function shiftsIn(sums: readonly ScoreSum[]): Shift[] {
  return sums.flatMap((one) => {
    const others = sums.filter(({ key, taskType }) => taskType === one.taskType && key !== one.key);
    const [before, now] = [joined(others.map((other) => other.before)), joined(others.map((other) => other.now))];
    if (Math.min(one.before.n, one.now.n, before.n, now.n) < least.n) return [];
    const change = one.now.mean - one.before.mean;
    const spread = Math.sqrt(one.now.variance / one.now.n + one.before.variance / one.before.n);
    // What all keys have is the model's doing, or the season's.
    const common = now.mean - before.mean;
    const isOwn = Math.abs(change - common) >= least.change && Math.abs(change) >= least.change;
    if (!isOwn || Math.abs(change) < least.z * spread) return [];
    const { key, taskType } = one;
    return [{ key, taskType, before: one.before.mean, now: one.now.mean, conversations: one.now.n }];
  });
}

const joined = (sums: readonly Sum[]): { readonly n: number; readonly mean: number } => {
  const n = sums.reduce((total, sum) => total + sum.n, 0);
  return { n, mean: n === 0 ? 0 : sums.reduce((total, sum) => total + sum.n * sum.mean, 0) / n };
};
