/**
 * Keeping a policy step honest when the tokens came from slightly different weights. r = exp(log π − log π_old).
 *
 * - Clipping (PPO, Schulman et al. 2017): −min(r·A, clip(r, low, high)·A). The upper bound is wider than the lower
 *   ("clip-higher", DAPO, Yu et al. 2025, arXiv 2503.14476): a rare good token has room to become common.
 * - Truncated importance weights (Ionides 2008; TIS, Yao et al. 2025): where the sampler q and the trainer's own π_old
 *   disagree (other numerics, stale weights), each token counts min(π_old/q, C) instead of 1.
 *
 * On policy with one step per batch π = π_old, so r = 1 and nothing is clipped: the gradient is −min(π/q, C)·A.
 */
export type ClipBounds = { readonly low: number; readonly high: number };

/** Ratio bounds from the two epsilons papers quote. 0.2 and 0.28 are DAPO's. */
export function clipBounds(epsilonLow = 0.2, epsilonHigh = 0.28): ClipBounds {
  if (!(epsilonLow >= 0 && epsilonLow <= 1 && epsilonHigh >= 0))
    throw new Error(`Clip epsilons ${epsilonLow} and ${epsilonHigh} are not usable; low must be in 0–1 and high ≥ 0.`);
  return { low: 1 - epsilonLow, high: 1 + epsilonHigh };
}

/** Two computations of the same logprob differ by less than this; two policies by more. */
const rounding = 1e-4;

/** min(exp(new − sampled), cap); exactly 1 where the two are the same but for rounding. */
export function truncatedWeight(logprob: number, sampled: number, cap: number): number {
  const gap = logprob - sampled;
  return Math.abs(gap) < rounding ? 1 : Math.min(Math.exp(gap), cap);
}

/** The clipped surrogate of one token: its loss, ∂loss/∂log π, and whether the clip cut the gradient off. */
export function clippedSurrogate(
  logprob: number,
  old: number,
  advantage: number,
  bounds: ClipBounds,
): { loss: number; gradient: number; clipped: boolean } {
  const ratio = Math.exp(logprob - old);
  const clipped = (advantage > 0 && ratio > bounds.high) || (advantage < 0 && ratio < bounds.low);
  const bounded = Math.min(Math.max(ratio, bounds.low), bounds.high);
  // When the ratio is out of bounds on the side that does not matter, min() picks the unclipped branch and it flows.
  return {
    loss: -Math.min(ratio * advantage, bounded * advantage),
    gradient: clipped ? 0 : -ratio * advantage,
    clipped,
  };
}
