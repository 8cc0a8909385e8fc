/**
 * Whether a rollout goes on. Pure: the rollout, what was measured of both releases, and the time, in; one decision with its
 * reasons out. Five kinds of check, each with four ends: pass, fail, inconclusive, unmeasured.
 *
 *   errors     share of calls that failed, against errorRatio × the baseline's
 *   latency    share of calls slower than latencyRatio × the baseline's 99th percentile, against 1%
 *   outcome    mean outcome per user, against the baseline's
 *   slice      the same for each slice that holds a tenth of the users (slice.ts): nobody pays for the mean
 *   feedback   mean vote per user, against the baseline's; optional: many users never vote
 *
 * A failing check is always the result of a test that may be looked at as often as one likes (errors, latency: an average of
 * likelihood ratios, which is a supermartingale under "not worse", so it exceeds 1/α with probability ≤ α ever, Ville; means:
 * the asymptotic confidence sequence of Waudby-Smith et al., arXiv 2103.06476, one-sided as in GrowthBook's safe rollouts).
 * α is split evenly over kinds of check and steps, and a slice's part over as many slices as there can be.
 *
 * A slice that looks worse is waited for (it is inconclusive when a plain test, at 10% over the slices there are, says worse).
 * One with too few users is not: at a small share it would hold every rollout for weeks. It is named in the reasons instead.
 *
 * Precedence, the first that holds decides:
 *   1  rollback  any check fails, at any time, in canary or paused
 *   2  hold      paused: a person decides
 *   3  hold      the step is younger than holdSeconds
 *   4  pause     a needed check is unmeasured or inconclusive, and patienceSeconds are over
 *   5  hold      a needed check is unmeasured or inconclusive: no data is never a failure and never a pass
 *   6  promote   all needed checks pass at the last step
 *   7  advance   all needed checks pass
 */
import { binomialTail, normalQuantile } from '../evaluate/statistics.ts';
import type { Rollout, RolloutSettings } from './rollout.ts';
import { mostSlices, type Sample, type Served, sampleOf, slicesThatCount, sliceTitle } from './slice.ts';

export type ReleaseMeasurement = Served & {
  readonly turns: number;
  readonly errors: number;
  /** 99th percentile of latency of the calls that worked; null without any. */
  readonly p99Ms: number | null;
  readonly feedback: Sample;
};

export type Measurements = {
  readonly baseline: ReleaseMeasurement;
  readonly candidate: ReleaseMeasurement;
  /** Candidate's calls that worked, and how many of them took longer than `limitMs`. */
  readonly slow: { readonly limitMs: number; readonly count: number; readonly of: number } | null;
};

export type CheckName = 'errors' | 'latency' | 'outcome' | 'slice' | 'feedback';
export type Check = {
  readonly name: CheckName;
  readonly end: 'pass' | 'fail' | 'inconclusive' | 'unmeasured';
  readonly needed: boolean;
  readonly reason: string;
};

export type Decision = {
  readonly kind: 'hold' | 'advance' | 'promote' | 'rollback' | 'pause';
  readonly reasons: readonly string[];
  readonly checks: readonly Check[];
};

const steadyShare = 0.01;
/** Below this probability a result is not taken as compatible with "not worse". */
const doubt = 0.1;

/** Above this nothing is too slow. */
export const latencyLimit = (p99Ms: number, { latencyRatio, latencySlackMs }: RolloutSettings): number =>
  Math.max(p99Ms * latencyRatio, p99Ms + latencySlackMs);

export function decide(rollout: Rollout, measurements: Measurements, now: number): Decision {
  const { phase, step, settings, stepSince } = rollout;
  const checks = phase === 'canary' || phase === 'paused' ? check(measurements, settings) : [];
  const decision = (kind: Decision['kind'], reasons: readonly string[]): Decision => ({ kind, reasons, checks });

  switch (phase) {
    case 'waiting':
      return decision('hold', ['Waits for approval.']);
    case 'promoted':
    case 'rolled-back':
      return decision('hold', [`Ended: ${phase}.`]);
    case 'canary':
    case 'paused': {
      const failed = checks.filter(({ end }) => end === 'fail');
      if (failed.length > 0)
        return decision(
          'rollback',
          failed.map(({ reason }) => reason),
        );
      if (phase === 'paused') return decision('hold', ['Paused: a person decides.']);
      const age = (now - (stepSince ?? now)) / 1000;
      const share = `${settings.steps[step]! * 100}%`;
      if (age < settings.holdSeconds)
        return decision('hold', [
          `At ${share} for ${seconds(age)} of at least ${seconds(settings.holdSeconds)}; nothing is wrong.`,
        ]);
      const open = checks.filter(({ needed, end }) => needed && (end === 'unmeasured' || end === 'inconclusive'));
      const reasons = open.map(({ reason }) => reason);
      if (open.length > 0 && age >= settings.patienceSeconds)
        return decision('pause', [...reasons, `${seconds(age)} at ${share} gave no answer: a person decides.`]);
      if (open.length > 0) return decision('hold', reasons);
      return decision(step === settings.steps.length - 1 ? 'promote' : 'advance', grounds(checks));
    }
    default:
      return phase satisfies never;
  }
}

/** Why a step counts as passed: what was found good, and which slices nothing can be said about. */
function grounds(checks: readonly Check[]): string[] {
  const slices = checks.filter(({ name }) => name === 'slice');
  const measured = slices.filter(({ end }) => end === 'pass').length;
  return [
    ...checks.filter(({ name, end }) => name !== 'slice' && end === 'pass').map(({ reason }) => reason),
    ...(measured === 0 ? [] : [`Slices of users: none of the ${measured} measured is worse.`]),
    ...slices.filter(({ end }) => end === 'unmeasured').map(({ reason }) => reason),
  ];
}

export function check({ baseline, candidate, slow }: Measurements, settings: RolloutSettings): Check[] {
  const { outcome } = settings;
  const names: CheckName[] = [
    'errors',
    'latency',
    ...(outcome === null ? [] : (['outcome', 'slice'] as const)),
    'feedback',
  ];
  const alpha = settings.alpha / (names.length * settings.steps.length);
  return names.flatMap((name): Check | Check[] => {
    switch (name) {
      case 'errors':
        return errorCheck(baseline, candidate, settings, alpha);
      case 'latency':
        return latencyCheck(baseline, candidate, slow, settings, alpha);
      case 'outcome':
        return meanCheck(name, outcome!, true, baseline.outcome, candidate.outcome, settings, alpha);
      case 'slice':
        return slicesThatCount([baseline, candidate]).map((slice, _, all) =>
          sliceCheck(
            `${outcome}, ${sliceTitle(slice)}`,
            sampleOf(baseline, slice),
            sampleOf(candidate, slice),
            all.length,
            settings,
            alpha / mostSlices,
          ),
        );
      case 'feedback':
        return meanCheck(name, 'feedback', false, baseline.feedback, candidate.feedback, settings, alpha);
      default:
        return name satisfies never;
    }
  });
}

const tooFew = (name: CheckName, what: string, baseline: number, candidate: number, least: number): Check => ({
  name,
  needed: name !== 'feedback' && name !== 'slice',
  end: 'unmeasured',
  reason: `Too few ${what} to tell: baseline ${baseline}, candidate ${candidate}, each needs ${least}.`,
});

/**
 * Of all errors of both, how many are the candidate's? Were its rate errorRatio times the baseline's, each error would be its
 * own with probability r·n꜀ / (r·n꜀ + n_b), whatever the rate itself is.
 */
function errorCheck(
  baseline: ReleaseMeasurement,
  candidate: ReleaseMeasurement,
  { errorRatio, minTurns }: RolloutSettings,
  alpha: number,
): Check {
  const name = 'errors';
  if (Math.min(baseline.turns, candidate.turns) < minTurns)
    return tooFew(name, 'calls', baseline.turns, candidate.turns, minTurns);
  const expected = (errorRatio * candidate.turns) / (errorRatio * candidate.turns + baseline.turns);
  const all = baseline.errors + candidate.errors;
  const rates = `Errors: candidate ${candidate.errors} of ${candidate.turns} calls, baseline ${baseline.errors} of ${baseline.turns}`;
  const end = shareEnd(candidate.errors, all, expected, alpha);
  return {
    name,
    needed: true,
    end,
    reason: `${rates}; ${words(end, `more than ${errorRatio} × the baseline’s rate`)}`,
  };
}

function latencyCheck(
  baseline: ReleaseMeasurement,
  candidate: ReleaseMeasurement,
  slow: Measurements['slow'],
  { minTurns }: RolloutSettings,
  alpha: number,
): Check {
  const name = 'latency';
  if (slow === null || slow.of < minTurns || baseline.turns < minTurns)
    return tooFew(name, 'answered calls', baseline.turns, slow?.of ?? candidate.turns, minTurns);
  const end = shareEnd(slow.count, slow.of, steadyShare, alpha);
  const said = `Latency: ${slow.count} of the candidate’s ${slow.of} calls took longer than ${Math.round(slow.limitMs)} ms`;
  return { name, needed: true, end, reason: `${said}; ${words(end, 'more than 1 in 100')}` };
}

/** Is the share k/n above `expected`? */
function shareEnd(k: number, n: number, expected: number, alpha: number): Check['end'] {
  if (shareEvidence(k, n, expected) >= 1 / alpha) return 'fail';
  return binomialTail(k, n, expected) >= doubt ? 'pass' : 'inconclusive';
}

/**
 * Evidence against "the share is at most p₀": the average, over a few larger shares q, of the likelihood ratio q to p₀. Under
 * any share up to p₀ each ratio is a supermartingale from 1, and so is their average.
 */
export function shareEvidence(k: number, n: number, p0: number): number {
  const places = [0.05, 0.15, 0.3, 0.5, 0.7, 0.9];
  const ratios = places.map((place) => {
    const q = p0 + (1 - p0) * place;
    return Math.exp(Math.min(700, k * Math.log(q / p0) + (n - k) * Math.log((1 - q) / (1 - p0))));
  });
  return ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
}

function meanCheck(
  name: 'outcome' | 'feedback',
  called: string,
  needed: boolean,
  baseline: Sample,
  candidate: Sample,
  { minUnits, outcomeMargin }: RolloutSettings,
  alpha: number,
): Check {
  if (Math.min(baseline.n, candidate.n) < minUnits)
    return tooFew(name, `users with ${called}`, baseline.n, candidate.n, minUnits);
  const difference = meanOf(candidate) - meanOf(baseline);
  const upper = difference + halfWidth(baseline, candidate, minUnits * 4, alpha);
  const end = upper < 0 ? 'fail' : difference >= -outcomeMargin ? 'pass' : 'inconclusive';
  return { name, needed, end, reason: `${figures(called, baseline, candidate)}; ${words(end, 'worse')}` };
}

function sliceCheck(
  called: string,
  baseline: Sample,
  candidate: Sample,
  slices: number,
  { minUnits }: RolloutSettings,
  alpha: number,
): Check {
  const name = 'slice';
  if (Math.min(baseline.n, candidate.n) < minUnits)
    return tooFew(name, `users with ${called}`, baseline.n, candidate.n, minUnits);
  const difference = meanOf(candidate) - meanOf(baseline);
  const looksWorse = difference < normalQuantile(doubt / slices) * standardError(baseline, candidate);
  const isWorse = difference + halfWidth(baseline, candidate, minUnits * 4, alpha) < 0;
  const end = isWorse ? 'fail' : looksWorse ? 'inconclusive' : 'pass';
  return { name, needed: true, end, reason: `${figures(called, baseline, candidate)}; ${words(end, 'worse')}` };
}

const figures = (called: string, baseline: Sample, candidate: Sample): string =>
  `${called}: candidate ${shown(candidate)} of ${candidate.n} users, baseline ${shown(baseline)} of ${baseline.n}`;

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
function standardError(a: Sample, b: Sample): number {
  const all = variance({ n: a.n + b.n, sum: a.sum + b.sum, squares: a.squares + b.squares });
  const of = (side: Sample) => Math.max(variance(side), all) / side.n;
  return Math.sqrt(of(a) + of(b));
}

const meanOf = ({ n, sum }: Sample): number => sum / n;
const variance = ({ n, sum, squares }: Sample): number => Math.max(0, squares / n - (sum / n) ** 2);

function words(end: Check['end'], bad: string): string {
  switch (end) {
    case 'pass':
      return `not ${bad}.`;
    case 'fail':
      return `${bad}, and chance does not explain it.`;
    case 'inconclusive':
      return `perhaps ${bad}: not certain yet.`;
    case 'unmeasured':
      return 'not measured.';
    default:
      return end satisfies never;
  }
}

const shown = (sample: Sample): string => meanOf(sample).toFixed(3);
const seconds = (s: number): string =>
  s < 120 ? `${Math.round(s)} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
