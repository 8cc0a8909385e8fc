/**
 * Whether each release got its share of the users. Where it did not (p < 0.001), users were not drawn as they should have been
 * and no other figure means what it says: nothing goes on until it does, or a person has looked. It never rolls back.
 */
import { upperTail } from '../sequential.ts';
import type { Check } from './check.ts';

type Ratio = { readonly baseline: number; readonly candidate: number; readonly share: number };

/** The usual bar for a sample-ratio mismatch, and the users each side must be expected to have. */
const unlikely = 0.001;
const leastExpected = 8;

export const ratio: Check<Ratio> = {
  name: 'ratio',
  measure: async (sides) => ({ ...(await sides.units()), share: sides.share }),
  judge({ baseline, candidate, share }) {
    if (share >= 1) return [];
    const n = baseline + candidate;
    const found = { name: 'ratio', needed: true };
    const had = `Users: ${candidate} of ${n} have had the candidate, where ${share * 100}% should`;
    if (n * Math.min(share, 1 - share) < leastExpected)
      return [{ ...found, needed: false, end: 'unmeasured', reason: `${had}; too few to tell.` }];
    const z = Math.abs(candidate - n * share) / Math.sqrt(n * share * (1 - share));
    return 2 * upperTail(z) < unlikely
      ? [
          {
            ...{ ...found, end: 'inconclusive' },
            reason: `${had}; chance does not explain it, so what is compared is not what was drawn.`,
          },
        ]
      : [{ ...found, end: 'pass', reason: `${had}; as drawn.` }];
  },
};
