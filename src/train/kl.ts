/**
 * The divergence of the policy from a reference, KL(π ‖ ref), from the tokens the policy sampled. With d = log π − log ref
 * at such a token (Schulman, "Approximating KL divergence", 2020):
 *
 *   k1 = d                unbiased, may be negative, noisy
 *   k2 = d²/2             biased, never negative; its gradient is d·∇log π, the true gradient of the KL at that state
 *   k3 = e^−d − 1 + d     unbiased, never negative; what TRL adds to the loss. Its gradient (1 − e^−d)·∇log π is that of
 *                         KL(ref ‖ π) in expectation, gentler than the true one where the policy moved far up
 *
 * What is reported is k3. What is trained on is a penalty: the advantage of each token loses c·(d − mean d), which is the gradient
 * of k2 with a baseline, and costs one forward of the reference and nothing else (Zhang et al. 2025, "On the design of
 * KL-regularized policy gradient"). The k3 term in the loss, as in GRPO's paper and in TRL, would cost a second forward and is
 * left out.
 */
export type KlSetting = { readonly coefficient: number };

export const klDefault: KlSetting = { coefficient: 0.05 };

/** k3 of one token. */
export function klEstimate(logprob: number, reference: number): number {
  const d = logprob - reference;
  return Math.expm1(-d) + d;
}

/** What each token's advantage gains: c·(mean d − d), over all own tokens of the batch. */
export function klPenalty(logprobs: Float64Array, references: Float64Array, coefficient: number): Float64Array {
  const d = logprobs.map((lp, i) => lp - references[i]!);
  const mean = d.reduce((a, b) => a + b, 0) / Math.max(1, d.length);
  return d.map((x) => coefficient * (mean - x));
}
