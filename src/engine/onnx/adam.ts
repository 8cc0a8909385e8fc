/**
 * AdamW (Loshchilov & Hutter 2019): bias-corrected moments, decoupled decay, clipping by the global norm. A plain loop over
 * flat arrays: one pass of a few nanoseconds per weight is a percent or two of a training step, so it is not a graph.
 * Computes in double precision and keeps float32. Decay applies to every trainable weight, norms included, as in torch.
 */
import { EngineError } from '../../errors.ts';
import type { AdamParams } from '../engine.ts';

/** First and second moments of every trainable weight, in the order of the flat weights, and steps taken. */
export type AdamState = { readonly m: Float32Array; readonly v: Float32Array; steps: number };

export const newAdamState = (size: number): AdamState => ({
  m: new Float32Array(size),
  v: new Float32Array(size),
  steps: 0,
});

/** Moves `weights` one step against `gradient` and returns the gradient's norm before clipping. */
export function adamStep(
  weights: Float32Array,
  gradient: Float32Array,
  state: AdamState,
  { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm }: Required<AdamParams>,
): number {
  const norm = globalNorm(gradient);
  if (!Number.isFinite(norm)) throw new EngineError(`The gradient's norm is ${norm}; the step was not taken.`);
  const clip = gradClipNorm > 0 && norm > gradClipNorm ? gradClipNorm / norm : 1;
  const { m, v } = state;
  state.steps++;
  const correction1 = 1 - beta1 ** state.steps;
  const correction2 = Math.sqrt(1 - beta2 ** state.steps);
  const rate = (learningRate * correction2) / correction1;
  const scaledEps = eps * correction2;
  const keep = 1 - learningRate * weightDecay;
  for (let i = 0; i < weights.length; i++) {
    const g = gradient[i]! * clip;
    const first = beta1 * m[i]! + (1 - beta1) * g;
    const second = beta2 * v[i]! + (1 - beta2) * g * g;
    m[i] = first;
    v[i] = second;
    weights[i] = keep * weights[i]! - (rate * first) / (Math.sqrt(second) + scaledEps);
  }
  return norm;
}

export function globalNorm(gradient: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < gradient.length; i++) sum += gradient[i]! * gradient[i]!;
  return Math.sqrt(sum);
}
