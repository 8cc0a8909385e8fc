/**
 * The divergence of the policy from a reference, KL(π ‖ ref), from the tokens the policy sampled. With d = log π − log ref
 * at such a token (Schulman, "Approximating KL divergence", 2020):
 *
 *   k1 = d                unbiased, may be negative, noisy
 *   k2 = d²/2             biased, never negative; its gradient is d·∇log π, the true gradient of the KL at that state
 *   k3 = e^−d − 1 + d     unbiased, never negative; what TRL adds to the loss. Its gradient (1 − e^−d)·∇log π is that of
 *                         KL(ref ‖ π) in expectation, gentler than the true one where the policy moved far up
 *
 * It enters training in one of two ways:
 *   penalty   (default) the advantage of each token loses c·(d − mean d): the gradient of k2, with a baseline. It costs one
 *             reference forward and nothing else. Zhang et al. 2025 ("On the design of KL-regularized policy gradient").
 *   loss      c·k3 is added to the loss of each token, as in GRPO's paper and TRL; costs a second forward.
 */
export type KlEstimator = 'k1' | 'k2' | 'k3';

export type KlSetting = { readonly coefficient: number; readonly as: 'penalty' | 'loss' };

export const klDefault: KlSetting = { coefficient: 0.05, as: 'penalty' };

export function klEstimate(logprob: number, reference: number, estimator: KlEstimator): number {
  const d = logprob - reference;
  switch (estimator) {
    case 'k1':
      return d;
    case 'k2':
      return (d * d) / 2;
    case 'k3':
      return Math.expm1(-d) + d;
    default:
      return estimator satisfies never;
  }
}

/** ∂k/∂log π of one token's estimate. */
export function klGradient(logprob: number, reference: number, estimator: KlEstimator): number {
  const d = logprob - reference;
  switch (estimator) {
    case 'k1':
      return 1;
    case 'k2':
      return d;
    case 'k3':
      return -Math.expm1(-d);
    default:
      return estimator satisfies never;
  }
}

/** What each token's advantage gains: c·(mean d − d), over all own tokens of the batch. */
export function klPenalty(logprobs: readonly number[], references: readonly number[], coefficient: number): number[] {
  const d = logprobs.map((lp, i) => lp - references[i]!);
  const mean = d.reduce((a, b) => a + b, 0) / Math.max(1, d.length);
  return d.map((x) => coefficient * (mean - x));
}
