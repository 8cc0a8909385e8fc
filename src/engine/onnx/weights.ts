/**
 * A model's weights in memory: Hugging Face names, Hugging Face layout ([out, in] for linear layers), float32. Checked
 * against the config before anything computes with them.
 */
import { EngineError } from '../../errors.ts';
import { type ModelConfig, parameterShapes } from './config.ts';
import { normal, seededRandom } from './random.ts';

export type Weights = Map<string, Float32Array>;

/** Fresh weights as these families start: normal with deviation 0.02, norms 1, biases 0. */
export function randomWeights(config: ModelConfig, seed: number): Weights {
  const weights: Weights = new Map();
  const draw = normal(seededRandom(seed));
  for (const [name, shape] of parameterShapes(config)) {
    const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
    if (shape.length === 1) values.fill(name.endsWith('.bias') ? 0 : 1);
    else for (let i = 0; i < values.length; i++) values[i] = 0.02 * draw();
    weights.set(name, values);
  }
  return weights;
}

/** Throws an EngineError unless the weights are exactly those of the config and all finite. */
export function checkWeights(config: ModelConfig, weights: ReadonlyMap<string, Float32Array>): void {
  const shapes = parameterShapes(config);
  for (const [name, shape] of shapes) {
    const values = weights.get(name);
    if (values === undefined)
      throw new EngineError(`The checkpoint has no tensor ${name}; the config needs [${shape}].`);
    const size = shape.reduce((a, b) => a * b, 1);
    if (values.length !== size)
      throw new EngineError(`Tensor ${name} has ${values.length} numbers; the config needs [${shape}], ${size}.`);
    const bad = firstNotFinite(values);
    if (bad !== -1) throw new EngineError(`Tensor ${name} holds ${values[bad]} at ${bad}; weights must be finite.`);
  }
  for (const name of weights.keys())
    if (!shapes.has(name)) throw new EngineError(`The checkpoint has a tensor ${name} that the config does not name.`);
}

/** What files carry along and nobody computes with: rotary tables of older ones, and the copy of a head that is tied. */
export const isIdle = (config: ModelConfig, name: string): boolean =>
  name.endsWith('.rotary_emb.inv_freq') || (config.tie_word_embeddings && name === 'lm_head.weight');

/** Index of the first NaN or infinity, or −1. */
export function firstNotFinite(values: Float32Array): number {
  // x − x is 0 for every finite number and NaN otherwise, so a clean array costs one sum.
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]! - values[i]!;
  return sum === 0 ? -1 : values.findIndex((x) => !Number.isFinite(x));
}
