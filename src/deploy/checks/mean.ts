/** Judges a mean per user against the baseline's: what outcome and feedback have in common. */
import { isWorse, meanOf } from '../evidence.ts';
import type { RolloutSettings } from '../rollout.ts';
import type { Sample } from '../slice.ts';
import { type Both, type Finding, figures, tooFew, words } from './check.ts';

export function meanFinding(
  found: Pick<Finding, 'name' | 'needed'>,
  called: string,
  sides: Both<Sample>,
  { minUnits, outcomeMargin }: RolloutSettings,
  alpha: number,
): Finding {
  const { baseline, candidate } = sides;
  const counts = { baseline: baseline.n, candidate: candidate.n };
  if (Math.min(counts.baseline, counts.candidate) < minUnits)
    return { ...found, end: 'unmeasured', reason: tooFew(`users with ${called}`, counts, minUnits) };
  const isNear = meanOf(candidate) - meanOf(baseline) >= -outcomeMargin;
  const end = isWorse(baseline, candidate, minUnits * 4, alpha) ? 'fail' : isNear ? 'pass' : 'inconclusive';
  return { ...found, end, reason: `${figures(called, sides)}; ${words(end, 'worse')}` };
}
