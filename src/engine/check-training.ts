/**
 * What every engine refuses before it computes anything: data it cannot learn from, losses and optimizer settings that mean
 * nothing. Pure, so that a remote engine refuses in the same words as the embedded one, and before anything is sent.
 */
import { EngineError } from '../errors.ts';
import type { AdamParams, Datum, Loss, PerToken } from './engine.ts';

/** Of a model's config.json: ids are below the one, sequences not longer than the other. */
export type Bounds = { readonly vocab_size: number; readonly max_position_embeddings: number };

/** Throws an EngineError unless every datum can be computed with; names the first that cannot. */
export function checkData(config: Bounds, data: readonly Datum[], loss?: Loss): void {
  if (data.length === 0) throw new EngineError('There is no data: give at least one datum.');
  if (loss !== undefined) checkLoss(loss);
  for (const [d, datum] of data.entries()) {
    const size = datum.tokens.length;
    if (size === 0) throw new EngineError(`Datum ${d} has no tokens.`);
    if (size > config.max_position_embeddings)
      throw new EngineError(
        `Datum ${d} has ${size} tokens, more than the model's context of ${config.max_position_embeddings}; split or cut it.`,
      );
    for (const name of ['tokens', 'targets'] as const) {
      sameLength(d, name, datum[name], size);
      for (const id of datum[name])
        if (!Number.isInteger(id) || id < 0 || id >= config.vocab_size)
          throw new EngineError(
            `Datum ${d} has ${id} among its ${name}; ids are whole numbers from 0 to ${config.vocab_size - 1}.`,
          );
    }
    if (loss === undefined) continue;
    const needed = loss.kind === 'cross_entropy' ? (['weights'] as const) : (['logprobs', 'advantages'] as const);
    for (const name of needed) {
      const values = datum[name];
      if (values === undefined) throw new EngineError(`Datum ${d} has no ${name}, which ${loss.kind} needs.`);
      sameLength(d, name, values, size);
      for (const value of values)
        if (!Number.isFinite(value))
          throw new EngineError(`Datum ${d} has ${value} among its ${name}; they must be finite.`);
    }
  }
}

function checkLoss(loss: Loss): void {
  if (loss.kind !== 'ppo' && loss.kind !== 'cispo') return;
  const { clipLow, clipHigh } = loss;
  if (!(clipLow >= 0 && clipHigh >= clipLow && clipHigh < Number.POSITIVE_INFINITY))
    throw new EngineError(`${loss.kind} needs 0 ≤ clipLow ≤ clipHigh, as ratios; got ${clipLow} and ${clipHigh}.`);
}

function sameLength(d: number, name: string, values: PerToken | Int32Array, size: number): void {
  if (values.length !== size)
    throw new EngineError(`Datum ${d} has ${values.length} ${name} for ${size} tokens; the two must be as many.`);
}

/** The bounds within which AdamW means something; throws an EngineError outside them. */
export function checkAdamParams(adam: AdamParams): Required<AdamParams> {
  const full = { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClipNorm: 0, ...withoutUndefined(adam) };
  const bounds = {
    learningRate: [0, Number.MAX_VALUE],
    beta1: [0, 1 - 1e-9],
    beta2: [0, 1 - 1e-9],
    eps: [Number.MIN_VALUE, Number.MAX_VALUE],
    weightDecay: [0, Number.MAX_VALUE],
    gradClipNorm: [0, Number.MAX_VALUE],
  } as const;
  for (const [name, [low, high]] of Object.entries(bounds) as [keyof typeof bounds, readonly [number, number]][]) {
    const value = full[name];
    if (!(value >= low && value <= high))
      throw new EngineError(`${name} ${value} must be a number of at least ${low}${high < 2 ? ' and below 1' : ''}.`);
  }
  return full;
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T;
}
