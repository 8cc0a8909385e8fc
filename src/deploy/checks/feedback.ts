/** The mean vote per user, against the baseline's. Not waited for: many users never vote. */
import type { Sample } from '../slice.ts';
import type { Both, Check } from './check.ts';
import { meanFinding } from './mean.ts';

export const feedback: Check<Both<Sample>> = {
  name: 'feedback',
  async measure(sides) {
    const { baseline, candidate } = await sides.said();
    return { baseline: baseline.feedback, candidate: candidate.feedback };
  },
  judge: (measured, settings, alpha) => [
    meanFinding({ name: 'feedback', needed: false }, 'feedback', measured, settings, alpha),
  ],
};
