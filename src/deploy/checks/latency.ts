/** The share of calls slower than latencyRatio × the baseline's 99th percentile, against 1%. */
import { shareEnd } from '../evidence.ts';
import { type Check, tooFew, words } from './check.ts';

type Latency = {
  /** The baseline's calls. */
  readonly baseline: number;
  /** The candidate's calls that worked. */
  readonly candidate: number;
  /** How many of those took longer than `limitMs`; null while the baseline has no percentile to compare with. */
  readonly slow: { readonly limitMs: number; readonly count: number } | null;
};

const steadyShare = 0.01;

export const latency: Check<Latency> = {
  name: 'latency',
  async measure(sides) {
    const { latencyRatio, latencySlackMs } = sides.settings;
    const { baseline, candidate } = await sides.calls();
    if (baseline.p99Ms === null) return { baseline: baseline.calls, candidate: candidate.calls, slow: null };
    const limitMs = Math.max(baseline.p99Ms * latencyRatio, baseline.p99Ms + latencySlackMs);
    const { count, of } = await sides.slowerThan(limitMs);
    return { baseline: baseline.calls, candidate: of, slow: { limitMs, count } };
  },
  judge({ baseline, candidate, slow }, { minTurns }, alpha) {
    const found = { name: 'latency', needed: true };
    if (slow === null || Math.min(baseline, candidate) < minTurns)
      return [{ ...found, end: 'unmeasured', reason: tooFew('answered calls', { baseline, candidate }, minTurns) }];
    const end = shareEnd(slow.count, candidate, steadyShare, alpha);
    const said = `Latency: ${slow.count} of the candidate’s ${candidate} calls took longer than ${Math.round(slow.limitMs)} ms`;
    return [{ ...found, end, reason: `${said}; ${words(end, 'more than 1 in 100')}` }];
  },
};
