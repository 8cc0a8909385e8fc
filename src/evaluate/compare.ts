/**
 * Two models on the same tasks: is one better, by how much, and what could this many tasks have shown at all? Pure, paired
 * by task throughout, because the spread between tasks is far larger than the spread between models (Miller, "Adding Error
 * Bars to Evals", arXiv 2411.00640).
 *
 * One attempt per task: exact McNemar on the discordant pairs, Newcombe's interval for a paired difference (1998,
 * method 10). Several attempts: a task's attempts are not independent, so the task is the unit; its difference of shares is
 * tested by flipping signs and has Student's interval over tasks.
 */
import { random } from '../simulate/random.ts';
import { bootstrapInterval } from './pass-k.ts';
import { binomialTail, normalQuantile, studentQuantile, studentTail } from './statistics.ts';

/** Shares of attempts that solved the task, 0–1. */
export type Pair = { readonly baseline: number; readonly candidate: number };

export type Comparison = {
  readonly n: number;
  readonly baseline: number;
  readonly candidate: number;
  /** candidate − baseline */
  readonly difference: number;
  /** 95% */
  readonly interval: readonly [number, number];
  /** Two-sided. */
  readonly p: number;
  readonly test: 'mcnemar' | 'sign-flip';
  /** Tasks only one of the two solved, or solved more often. */
  readonly better: number;
  readonly worse: number;
  /** The smallest true difference this many tasks find in 4 of 5 cases; null when no task told the two apart. */
  readonly detectable: number | null;
  /** Of several comparisons made at once: p, corrected for their number (Holm). */
  readonly holm?: number | undefined;
};

const mean = (values: readonly number[]) => values.reduce((sum, v) => sum + v, 0) / values.length;

/** null without pairs: there is nothing to say, not even zero. */
export function compare(pairs: readonly Pair[], seed = 0): Comparison | null {
  if (pairs.length === 0) return null;
  const differences = pairs.map((pair) => pair.candidate - pair.baseline);
  const binary = pairs.every((pair) => isBinary(pair.baseline) && isBinary(pair.candidate));
  const better = differences.filter((d) => d > 0).length;
  const worse = differences.filter((d) => d < 0).length;
  return {
    n: pairs.length,
    baseline: mean(pairs.map((pair) => pair.baseline)),
    candidate: mean(pairs.map((pair) => pair.candidate)),
    difference: mean(differences),
    interval: binary ? newcombe(pairs) : student(differences),
    p: binary ? mcnemar(better, worse) : signFlip(differences, seed),
    test: binary ? 'mcnemar' : 'sign-flip',
    better,
    worse,
    detectable: detectable(mean(differences.map((d) => d * d)), pairs.length),
  };
}

const isBinary = (share: number) => share === 0 || share === 1;

/** Two-sided exact McNemar: under no difference, each discordant pair is a fair coin. */
export function mcnemar(better: number, worse: number): number {
  const n = better + worse;
  return n === 0 ? 1 : Math.min(1, 2 * binomialTail(Math.max(better, worse), n, 0.5));
}

const exactFlips = 14;
const drawnFlips = 20_000;

/**
 * Two-sided sign-flip test of paired differences: under no difference, each is as likely to have the other sign. All flips
 * for few differences, else drawn ones (the observed one counted, so p is never 0).
 */
export function signFlip(differences: readonly number[], seed: number): number {
  const moved = differences.filter((d) => d !== 0);
  const observed = Math.abs(moved.reduce((sum, d) => sum + d, 0)) - 1e-9;
  if (moved.length <= exactFlips) {
    let extreme = 0;
    for (let flips = 0; flips < 2 ** moved.length; flips++) {
      const sum = moved.reduce((s, d, i) => s + ((flips >> i) & 1 ? -d : d), 0);
      if (Math.abs(sum) >= observed) extreme++;
    }
    return extreme / 2 ** moved.length;
  }
  const rng = random('sign-flip', seed);
  let extreme = 1;
  for (let draw = 1; draw < drawnFlips; draw++) {
    let sum = 0;
    for (const d of moved) sum += rng.next() < 0.5 ? -d : d;
    if (Math.abs(sum) >= observed) extreme++;
  }
  return extreme / drawnFlips;
}

/** Wilson's 95% interval of a share. */
export function wilson(share: number, n: number): readonly [number, number] {
  const z = normalQuantile(0.975);
  const middle = share + (z * z) / (2 * n);
  const spread = z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
  const whole = 1 + (z * z) / n;
  return [(middle - spread) / whole, (middle + spread) / whole];
}

/** 95%. The two Wilson intervals, put together with the correlation of the pairs taken into account. */
export function newcombe(pairs: readonly Pair[]): readonly [number, number] {
  const n = pairs.length;
  const count = (baseline: number, candidate: number) =>
    pairs.filter((pair) => pair.baseline === baseline && pair.candidate === candidate).length;
  const [both, lost, won, neither] = [count(1, 1), count(1, 0), count(0, 1), count(0, 0)];
  const p1 = (both + lost) / n;
  const p2 = (both + won) / n;
  const [low1, high1] = wilson(p1, n);
  const [low2, high2] = wilson(p2, n);
  const product = both * neither - lost * won;
  const margins = (both + lost) * (won + neither) * (both + won) * (lost + neither);
  const corrected = product > 0 ? Math.max(0, product - n / 2) : product;
  const phi = margins === 0 ? 0 : corrected / Math.sqrt(margins);
  const join = (x: number, y: number) => Math.sqrt(Math.max(0, x * x - 2 * phi * x * y + y * y));
  const difference = p2 - p1;
  return [
    Math.max(-1, difference - join(p2 - low2, high1 - p1)),
    Math.min(1, difference + join(high2 - p2, p1 - low1)),
  ];
}

/** 95%. Shares lie in 0–1, so with one task the difference may be anything. */
function student(differences: readonly number[]): readonly [number, number] {
  const n = differences.length;
  if (n < 2) return [-1, 1];
  const middle = mean(differences);
  const variance = differences.reduce((sum, d) => sum + (d - middle) ** 2, 0) / (n - 1);
  const half = studentQuantile(0.975, n - 1) * Math.sqrt(variance / n);
  return [Math.max(-1, middle - half), Math.min(1, middle + half)];
}

/**
 * Power of a paired test, turned round: n = (z₀.₉₇₅ + z₀.₈)² · (m − δ²) / δ², where m is the mean squared difference of a
 * pair (for one attempt each: the share of discordant pairs), solved for δ.
 */
export function detectable(meanSquare: number, n: number): number | null {
  if (n === 0 || meanSquare === 0) return null;
  const z = normalQuantile(0.975) + normalQuantile(0.8);
  return Math.sqrt((z * z * meanSquare) / (n + z * z));
}

/** Paired t of differences: how likely a mean so far above, or below, zero is by chance. One alone says nothing. */
export function pairedT(differences: readonly number[]): { readonly above: number; readonly below: number } {
  const n = differences.length;
  if (n < 2) return { above: 1, below: 1 };
  const middle = mean(differences);
  const variance = differences.reduce((sum, d) => sum + (d - middle) ** 2, 0) / (n - 1);
  // All alike: either nothing moved, or everything did, by the same.
  if (variance < 1e-18) return { above: middle > 0 ? 0 : 1, below: middle < 0 ? 0 : 1 };
  const t = middle / Math.sqrt(variance / n);
  const tail = studentTail(Math.abs(t), n - 1);
  return t >= 0 ? { above: tail, below: 1 - tail } : { above: 1 - tail, below: tail };
}

export type Graded = {
  readonly n: number;
  readonly baseline: number;
  readonly candidate: number;
  readonly difference: number;
  /** 95%, by a bootstrap over cases. */
  readonly interval: readonly [number, number];
  /** Two-sided, paired t over cases. */
  readonly p: number;
};

/** Scores in 0–1 of the attempts at each case, compared by the case. null: none has scores of both. */
export function compareGraded(
  cases: readonly { readonly baseline: readonly number[]; readonly candidate: readonly number[] }[],
  seed: number,
): Graded | null {
  const pairs = cases.flatMap(({ baseline, candidate }) =>
    baseline.length === 0 || candidate.length === 0 ? [] : [{ before: mean(baseline), after: mean(candidate) }],
  );
  if (pairs.length === 0) return null;
  const differences = pairs.map(({ before, after }) => after - before);
  const { above, below } = pairedT(differences);
  return {
    n: pairs.length,
    baseline: mean(pairs.map(({ before }) => before)),
    candidate: mean(pairs.map(({ after }) => after)),
    difference: mean(differences),
    interval: bootstrapInterval(differences, seed),
    p: Math.min(1, 2 * Math.min(above, below)),
  };
}

/** Holm's step-down adjustment of several p-values: each may be read against the one level for all of them together. */
export function holm(values: readonly number[]): number[] {
  const order = values.map((p, i) => ({ p, i })).sort((a, b) => a.p - b.p);
  const adjusted: number[] = new Array(values.length);
  let most = 0;
  for (const [rank, { p, i }] of order.entries()) {
    most = Math.max(most, Math.min(1, p * (values.length - rank)));
    adjusted[i] = most;
  }
  return adjusted;
}
