/** The share of calls that failed, against errorRatio × the baseline's. */
import type { Calls } from '../../store/measures.ts';
import { shareEnd } from '../evidence.ts';
import { type Both, type Check, tooFew, words } from './check.ts';

export const errors: Check<Both<Pick<Calls, 'calls' | 'errors'>>> = {
  name: 'errors',
  measure: (sides) => sides.calls(),
  /**
   * Of all errors of both, how many are the candidate's? Were its rate errorRatio times the baseline's, each error would be
   * its own with probability r·n꜀ / (r·n꜀ + n_b), whatever the rate itself is.
   */
  judge({ baseline, candidate }, { errorRatio, minTurns }, alpha) {
    const found = { name: 'errors', needed: true };
    const counts = { baseline: baseline.calls, candidate: candidate.calls };
    if (Math.min(counts.baseline, counts.candidate) < minTurns)
      return [{ ...found, end: 'unmeasured', reason: tooFew('calls', counts, minTurns) }];
    const expected = (errorRatio * candidate.calls) / (errorRatio * candidate.calls + baseline.calls);
    const end = shareEnd(candidate.errors, baseline.errors + candidate.errors, expected, alpha);
    const rates = `Errors: candidate ${candidate.errors} of ${candidate.calls} calls, baseline ${baseline.errors} of ${baseline.calls}`;
    return [{ ...found, end, reason: `${rates}; ${words(end, `more than ${errorRatio} × the baseline’s rate`)}` }];
  },
};
