/**
 * The share of calls that failed: it fails where the candidate's rate is certainly above the baseline's and, as measured, above
 * errorRatio times it. The certainty takes the place of a waiting time: what is sustained shows, what is chance does not.
 */
import { binomialTail } from '../../evaluate/statistics.ts';
import type { Calls } from '../../store/measures.ts';
import { doubt, rateEvidence } from '../evidence.ts';
import { type Both, type Check, type End, tooFew, words } from './check.ts';

export const errors: Check<Both<Pick<Calls, 'calls' | 'errors'>>> = {
  name: 'errors',
  measure: (sides) => sides.calls(),
  /**
   * Of all errors of both, how many are the candidate's? Were its rate r times the baseline's, each error would be its own with
   * probability r·n꜀ / (r·n꜀ + n_b), whatever the rate itself is.
   */
  judge({ baseline, candidate }, { errorRatio, minTurns }, alpha) {
    const found = { name: 'errors', needed: true };
    const counts = { baseline: baseline.calls, candidate: candidate.calls };
    if (Math.min(counts.baseline, counts.candidate) < minTurns)
      return [{ ...found, end: 'unmeasured', reason: tooFew('calls', counts, minTurns) }];
    const all = baseline.errors + candidate.errors;
    const at = (ratio: number) => (ratio * candidate.calls) / (ratio * candidate.calls + baseline.calls);
    const isMore = candidate.errors * baseline.calls > errorRatio * baseline.errors * candidate.calls;
    const end: End =
      isMore && rateEvidence(candidate.errors, all, at(1)) >= 1 / alpha
        ? 'fail'
        : binomialTail(candidate.errors, all, at(errorRatio)) >= doubt
          ? 'pass'
          : 'inconclusive';
    const rates = `Errors: candidate ${candidate.errors} of ${candidate.calls} calls, baseline ${baseline.errors} of ${baseline.calls}`;
    return [{ ...found, end, reason: `${rates}; ${words(end, `more than ${errorRatio} × the baseline’s rate`)}` }];
  },
};
