/** The mean outcome per user, against the baseline's. */
import type { Sample } from '../slice.ts';
import type { Both, Check } from './check.ts';
import { meanFinding } from './mean.ts';

export const outcome = (called: string): Check<Both<Sample>> => ({
  name: 'outcome',
  async measure(sides) {
    const { baseline, candidate } = await sides.said();
    return { baseline: baseline.outcome, candidate: candidate.outcome };
  },
  judge: (measured, settings, alpha) => [
    meanFinding({ name: 'outcome', needed: true }, called, measured, settings, alpha),
  ],
});
