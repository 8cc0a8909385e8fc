/**
 * The mean outcome for each slice that holds a tenth of the users (deploy/slice.ts): nobody pays for the mean.
 *
 * A slice that looks worse is waited for (it is inconclusive when a plain test, at 10% over the slices there are, says worse).
 * One with too few users is not: at a small share it would hold every rollout for weeks. It is named in the reasons instead.
 */
import { isWorse, looksWorse } from '../evidence.ts';
import { mostSlices, type Served, sampleOf, slicesThatCount, sliceTitle } from '../slice.ts';
import { type Both, type Check, type Finding, figures, tooFew, words } from './check.ts';

export const slice = (outcome: string): Check<Both<Served>> => ({
  name: 'slice',
  async measure(sides) {
    const served = ({ outcome, slices }: Served): Served => ({ outcome, slices });
    const { baseline, candidate } = await sides.said();
    return { baseline: served(baseline), candidate: served(candidate) };
  },
  judge: ({ baseline, candidate }, { minUnits }, alpha) =>
    slicesThatCount([baseline, candidate]).map((one, _, all): Finding => {
      const called = `${outcome}, ${sliceTitle(one)}`;
      const sides = { baseline: sampleOf(baseline, one), candidate: sampleOf(candidate, one) };
      const counts = { baseline: sides.baseline.n, candidate: sides.candidate.n };
      if (Math.min(counts.baseline, counts.candidate) < minUnits)
        return {
          ...{ name: 'slice', needed: false, end: 'unmeasured' },
          reason: tooFew(`users with ${called}`, counts, minUnits),
        };
      // Its part of α is shared by as many slices as there can be, however many turn up.
      const end = isWorse(sides.baseline, sides.candidate, minUnits * 4, alpha / mostSlices)
        ? 'fail'
        : looksWorse(sides.baseline, sides.candidate, all.length)
          ? 'inconclusive'
          : 'pass';
      return { name: 'slice', needed: true, end, reason: `${figures(called, sides)}; ${words(end, 'worse')}` };
    }),
});
