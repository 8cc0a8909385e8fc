/**
 * How much better than its peers an attempt was, which is all a group of attempts can tell.
 *
 * One number per attempt: A = R − mean(R of the group). It is not divided by the group's deviation: dividing makes a task
 * that nearly always succeeds pull as hard as one that is undecided (Dr. GRPO, Liu et al. 2025, arXiv 2503.20783).
 *
 * Turn-level credit: turn k of an attempt answers for the whole, and for what it earned itself (with γ > 0, for what came
 * after it too). With per-turn rewards r and g(k) = r(k) + γ·r(k+1) + …,
 *
 *     A(k) = (R − mean R) + w·(g(k) − mean of g(k) over the attempts of the group that reached turn k)
 *
 * so turn k is compared with turn k of its peers (after MT-GRPO, Zeng et al. 2025, arXiv 2505.11821). Where fewer than two attempts reached turn k there is nothing to compare with, and the
 * second term is 0. What is left out: anchoring by equal states (GiGPO); states of real traffic seldom repeat.
 *
 * A group whose attempts all earned the same says nothing: its advantages are exactly 0, and it is skipped and counted.
 */
import type { Group } from './attempt.ts';

export type Credit =
  | { readonly kind: 'attempt' }
  | {
      readonly kind: 'turn';
      /** w: weight of the turn's own part. */
      readonly weight: number;
      /** γ: how much of a later turn's reward counts for an earlier one. */
      readonly discount: number;
    };

/**
 * γ is 0: a turn answers for itself through r(k) and for the rest through R. Turn rewards are 0–1, so a sum of those to
 * come would pay for talking longer.
 */
export const turnCredit: Credit = { kind: 'turn', weight: 0.5, discount: 0 };

/** Numbers minus their mean; exactly zeros when all are equal, whatever the rounding of the mean. */
export function centred(values: readonly number[]): number[] {
  const first = values[0];
  if (values.every((v) => v === first)) return values.map(() => 0);
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return values.map((v) => v - mean);
}

/** g(k) = r(k) + γ·g(k + 1). */
export function returnsToGo(rewards: readonly number[], discount: number): number[] {
  const out = new Array<number>(rewards.length);
  let ahead = 0;
  for (let k = rewards.length - 1; k >= 0; k--) {
    ahead = rewards[k]! + discount * ahead;
    out[k] = ahead;
  }
  return out;
}

/** [attempt][turn]. */
export function groupAdvantages(group: Group, credit: Credit = { kind: 'attempt' }): number[][] {
  for (const { id, reward } of group)
    if (!Number.isFinite(reward)) throw new Error(`Attempt ${id} has the reward ${reward}; a reward must be a number.`);
  const whole = centred(group.map((a) => a.reward));
  const advantages = group.map((a, i) => a.turns.map(() => whole[i]!));
  if (credit.kind === 'attempt') return advantages;
  const returns = group.map((a) =>
    returnsToGo(
      a.turns.map((t) => t.reward ?? 0),
      credit.discount,
    ),
  );
  const longest = Math.max(0, ...returns.map((r) => r.length));
  for (let k = 0; k < longest; k++) {
    const reached = returns.flatMap((r, i) => (k < r.length ? [i] : []));
    if (reached.length < 2) continue;
    const part = centred(reached.map((i) => returns[i]![k]!));
    for (const [j, i] of reached.entries()) advantages[i]![k]! += credit.weight * part[j]!;
  }
  return advantages;
}

/** Whether the group teaches nothing: every advantage is exactly 0. */
export function isFlat(advantages: readonly (readonly number[])[]): boolean {
  return advantages.every((turns) => turns.every((a) => a === 0));
}
