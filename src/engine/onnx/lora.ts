/**
 * Low-rank adapters (LoRA, Hu et al. 2021) in PEFT's layout: beside a frozen linear layer W [out, in] lie A [rank, in] and
 * B [out, rank], and the layer computes x·Wᵀ + (alpha / rank) · (x·Aᵀ)·Bᵀ. B starts at zero, so a fresh adapter changes
 * nothing. Names here are `<module>.lora_A.weight`; PEFT files add the prefix `base_model.model.`.
 */
import { EngineError } from '../../errors.ts';
import type { LoraSpec } from '../engine.ts';
import { addLowRank } from '../low-rank.ts';
import { LINEAR_LAYERS, type LinearLayer, linearLayer, type ModelConfig } from './config.ts';
import { seededRandom } from './random.ts';
import type { Weights } from './weights.ts';

/** A LoraSpec with its defaults filled in and its names checked. */
export type AdapterShape = { readonly rank: number; readonly scale: number; readonly targets: readonly LinearLayer[] };

export function adapterShape(spec: LoraSpec): AdapterShape {
  const { rank, alpha, targets = LINEAR_LAYERS } = spec;
  if (!Number.isInteger(rank) || rank < 1)
    throw new EngineError(`LoRA rank ${rank} must be a whole number of at least 1.`);
  if (!Number.isFinite(alpha) || alpha <= 0) throw new EngineError(`LoRA alpha ${alpha} must be a positive number.`);
  if (targets.length === 0) throw new EngineError('LoRA needs at least one target layer, e.g. q_proj.');
  const known = new Set<string>(LINEAR_LAYERS);
  for (const target of targets)
    if (!known.has(target))
      throw new EngineError(`LoRA target ${target} is not a linear layer; use any of ${LINEAR_LAYERS.join(', ')}.`);
  return { rank, scale: alpha / rank, targets: LINEAR_LAYERS.filter((layer) => targets.includes(layer)) };
}

export const adapterNames = (module: string) => ({ a: `${module}.lora_A.weight`, b: `${module}.lora_B.weight` });

/** Every adapted layer: its weight's name, its adapter's names, and [out, in]. */
function adaptedLayers(config: ModelConfig, adapter: AdapterShape) {
  return Array.from({ length: config.num_hidden_layers }, (_, i) =>
    adapter.targets.map((layer) => {
      const { module, shape } = linearLayer(config, i, layer);
      return { weight: `${module}.weight`, ...adapterNames(module), out: shape[0], in: shape[1] };
    }),
  ).flat();
}

/** Tensor name → shape. */
export function adapterShapes(config: ModelConfig, adapter: AdapterShape): Map<string, number[]> {
  const shapes = new Map<string, number[]>();
  for (const layer of adaptedLayers(config, adapter)) {
    shapes.set(layer.a, [adapter.rank, layer.in]);
    shapes.set(layer.b, [layer.out, adapter.rank]);
  }
  return shapes;
}

/** A fresh adapter: A uniform within ±1/√in as PEFT starts it, B zero. */
export function randomAdapter(config: ModelConfig, adapter: AdapterShape, seed: number): Weights {
  const random = seededRandom(seed, 1);
  const weights: Weights = new Map();
  for (const [name, [rows, columns]] of adapterShapes(config, adapter) as Map<string, [number, number]>) {
    const values = new Float32Array(rows * columns);
    const bound = 1 / Math.sqrt(columns);
    if (name.endsWith('.lora_A.weight')) for (let i = 0; i < values.length; i++) values[i] = bound * (2 * random() - 1);
    weights.set(name, values);
  }
  return weights;
}

/** Full weights that compute the same as base and adapter together: W + scale · B·A. The base is not changed. */
export function mergeAdapter(
  config: ModelConfig,
  adapter: AdapterShape,
  base: ReadonlyMap<string, Float32Array>,
  lora: ReadonlyMap<string, Float32Array>,
): Weights {
  const merged: Weights = new Map(base);
  for (const layer of adaptedLayers(config, adapter)) {
    const [a, b] = [lora.get(layer.a)!, lora.get(layer.b)!];
    const { rank, scale } = adapter;
    merged.set(layer.weight, addLowRank(base.get(layer.weight)!, { a, b, rank, scale }));
  }
  return merged;
}
