/**
 * Which conversations people look at. Pure. Half of the share by a hash of the conversation's id, which is the same whoever asks
 * and whenever, and so is fair to every kind of conversation; the other half where the reward and the user's feedback differ
 * most, since that is where one of the two is wrong. Random ones say how good the reward is; the others say where it is not.
 */
import { position } from '../deploy/assign.ts';

export type Scored = {
  readonly trajectory: string;
  readonly reward: number | null;
  /** Mean of the users' votes, 0–1; null: nobody voted. */
  readonly feedback: number | null;
};
export type Picked = Scored & { readonly why: 'random' | 'disagreement' };

/** Below this the two agree well enough. */
const leastGap = 0.2;

export function pickForReview(agent: string, scored: readonly Scored[], share: number): Picked[] {
  const chosen = scored.filter(({ trajectory }) => position(`review ${agent}`, trajectory) < share / 2);
  const taken = new Set(chosen.map(({ trajectory }) => trajectory));
  const most = share === 0 ? 0 : Math.ceil((scored.length * share) / 2);
  const differing = scored
    .flatMap((one) => {
      const gap = one.reward === null || one.feedback === null ? 0 : Math.abs(one.reward - one.feedback);
      return gap >= leastGap && !taken.has(one.trajectory) ? [{ one, gap }] : [];
    })
    .sort((a, b) => b.gap - a.gap || (a.one.trajectory < b.one.trajectory ? -1 : 1))
    .slice(0, most);
  return [
    ...chosen.map((one) => ({ ...one, why: 'random' as const })),
    ...differing.map(({ one }) => ({ ...one, why: 'disagreement' as const })),
  ];
}
