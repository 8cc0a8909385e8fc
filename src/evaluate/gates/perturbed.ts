/**
 * Learned by heart: solved cases that are no longer solved when they are said a little differently (perturb.ts). Below the
 * limit a person looks, unless the baseline minds it as much: a small model that was always put off by small letters has not
 * learned that from its rewards.
 */
import type { Gate } from './gate.ts';
import { percent, unmeasured } from './gate.ts';

const name = 'perturbed';

export type PerturbedCase = {
  readonly id: string;
  readonly kind: string;
  /** Shares of attempts that solved it, as it was and said differently. */
  readonly baseline: { readonly original: number; readonly perturbed: number };
  readonly candidate: { readonly original: number; readonly perturbed: number };
};

const fewestSolved = 5;

/** `limit`: share of solved cases that must stay solved, e.g. 0.8. */
export function perturbedGate(cases: readonly PerturbedCase[], limit: number): Gate {
  const kept = (side: 'baseline' | 'candidate') => {
    const sum = (which: 'original' | 'perturbed') => cases.reduce((total, one) => total + one[side][which], 0);
    return { original: sum('original'), share: sum('perturbed') / sum('original') };
  };
  const [before, after] = [kept('baseline'), kept('candidate')];
  if (after.original < fewestSolved)
    return unmeasured(name, limit, `The candidate solves fewer than ${fewestSolved} of the cases that are perturbed.`);
  const baseline = before.original < fewestSolved ? null : before.share;
  const asks = after.share < limit && (baseline === null || after.share < baseline);
  const shaken = cases.filter(({ candidate }) => candidate.original > candidate.perturbed);
  return {
    ...{ name, verdict: asks ? 'inconclusive' : 'pass', baseline, candidate: after.share, limit },
    reason: `Of the cases it solves, ${percent(after.share)} are also solved when they are said differently${baseline === null ? '' : `, ${percent(baseline)} of the baseline’s`}${asks ? ': learned by heart, perhaps' : after.share < limit ? ': few, and no fewer than before' : ''}.`,
    look: asks
      ? shaken
          .slice(0, 3)
          .map(({ id, kind }) => ({ task: id, attempt: 0, answer: `solved as it was, not with ${kind}` }))
      : [],
  };
}
