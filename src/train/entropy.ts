/**
 * The entropy bonus, as a part of the advantage. The gradient of a state's entropy is
 *
 *     ∇H = −E[log π · ∇log π]   (tokens drawn from π; the constant term vanishes because E[∇log π] = 0)
 *
 * so adding c·(−log π(token) − baseline) to the advantage of a sampled token is an unbiased estimate of c·∇H, whatever the
 * baseline, as long as it does not depend on the token. The exact entropy of the state is the best one; where the engine
 * does not report it, the mean of −log π over the batch serves. It needs no logits, only the logprobs that sampling gave.
 */
export function entropyBonus(logprobs: Float64Array, coefficient: number, entropies?: ArrayLike<number>): Float64Array {
  const mean = -logprobs.reduce((a, b) => a + b, 0) / Math.max(1, logprobs.length);
  return logprobs.map((lp, i) => coefficient * (-lp - (entropies?.[i] ?? mean)));
}
