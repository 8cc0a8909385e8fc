/**
 * The losses of engine.ts as functions of logprobs. Their derivatives by the logprob share one form, so that one backward
 * graph serves all of them with four numbers as input:
 *
 *   ∂L/∂lp = −A · clip(r, low, high) · [A > 0 ? r ≤ keepHigh : r ≥ keepLow],   r = exp(lp − q)
 *
 * where A is the weight of cross_entropy and r is then clipped to 1. PPO (Schulman et al. 2017), CISPO (MiniMax-M1 2025).
 */
import { EngineError } from '../errors.ts';
import type { Datum, Loss } from './engine.ts';

/** Stands for infinity in float32 graphs, where ∞ · 0 would be NaN. */
const HUGE = 3e38;

export type LossShape = {
  readonly low: number;
  readonly high: number;
  readonly keepLow: number;
  readonly keepHigh: number;
};

export function lossShape(loss: Loss): LossShape {
  switch (loss.kind) {
    case 'cross_entropy':
      return { low: 1, high: 1, keepLow: 0, keepHigh: HUGE };
    case 'importance_sampling':
      return { low: 0, high: HUGE, keepLow: 0, keepHigh: HUGE };
    case 'ppo':
      return { low: 0, high: HUGE, keepLow: loss.clipLow, keepHigh: loss.clipHigh };
    case 'cispo':
      return { low: loss.clipLow, high: loss.clipHigh, keepLow: 0, keepHigh: HUGE };
    default:
      return loss satisfies never;
  }
}

const clip = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high);

/** One token's loss. `a` is its weight (cross_entropy) or advantage, `q` its logprob when sampled. */
export function tokenLoss(loss: Loss, lp: number, q: number, a: number): number {
  if (a === 0) return 0;
  const r = Math.exp(lp - q);
  switch (loss.kind) {
    case 'cross_entropy':
      return -a * lp;
    case 'importance_sampling':
      return -r * a;
    case 'ppo':
      return -Math.min(r * a, clip(r, loss.clipLow, loss.clipHigh) * a);
    case 'cispo':
      return -clip(r, loss.clipLow, loss.clipHigh) * a * lp;
    default:
      return loss satisfies never;
  }
}

/** The derivative of one token's loss by `lp`. */
export function tokenGradient(loss: Loss, lp: number, q: number, a: number): number {
  if (a === 0) return 0;
  const { low, high, keepLow, keepHigh } = lossShape(loss);
  const r = Math.exp(lp - q);
  const kept = a > 0 ? r <= keepHigh : r >= keepLow;
  return kept ? -a * clip(r, low, high) : 0;
}

/** The sum over all data, as engine.ts promises it. */
export function totalLoss(data: readonly Datum[], loss: Loss, logprobs: readonly Float32Array[]): number {
  let sum = 0;
  for (const [d, lps] of logprobs.entries()) {
    const { weights, advantages, logprobs: sampled } = data[d]!;
    const a = (loss.kind === 'cross_entropy' ? weights : advantages)!;
    for (let i = 0; i < lps.length; i++) sum += tokenLoss(loss, lps[i]!, sampled?.[i] ?? 0, a[i]!);
  }
  if (!Number.isFinite(sum)) throw new EngineError(`The loss is ${sum}: the model or the data has diverged.`);
  return sum;
}
