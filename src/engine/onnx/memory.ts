/**
 * How much memory a model takes, in bytes, before any of it is taken: a model or a batch too large for the machine is
 * refused with the numbers, because an engine killed for its memory answers nobody. Upper estimates, from the tensors a
 * pass keeps (ops.ts); ONNX Runtime frees each after its last use, so a real pass stays below. Everything is computed in
 * float32, whatever the files hold.
 */
import { totalmem } from 'node:os';
import { type ModelConfig, parameterCount } from './config.ts';
import { paddedHeadDim } from './pad-heads.ts';

/** What this process may use: the machine's memory, or less where a container sets a limit. */
export function machineMemory(machine = totalmem(), limit = process.constrainedMemory()): number {
  // No limit is said as 0, or as a number beyond any machine.
  return limit > 0 && limit < machine ? limit : machine;
}

/** Weights, and for training the gradient and two moments of the trainable ones. */
export function modelBytes(config: ModelConfig, trainable: number): number {
  return 4 * (parameterCount(config) + 3 * trainable);
}

/** Keys and values of one token. */
export const tokenBytes = (config: ModelConfig) =>
  2 * 4 * config.num_hidden_layers * config.num_key_value_heads * paddedHeadDim(config);

/** Keys and values for `rows` sequences of `tokens`; as decode.ts has it, a lone row has a companion. */
export const cacheBytes = (config: ModelConfig, rows: number, tokens: number) =>
  Math.max(2, rows) * Math.min(tokens, config.max_position_embeddings) * tokenBytes(config);

/** A sampler that cannot hold one conversation of this length is not worth making. */
const LEAST_TOKENS = 2048;

/** What a model takes, part by part. */
export type MemoryNeed = {
  readonly weights: number;
  /** The gradient and the optimizer's two moments. */
  readonly training: number;
  /** The sampler's frozen copy of the weights. */
  readonly frozen: number;
  /** The least a sampler can do with, in keys and values. */
  readonly cache: number;
};

export function memoryNeed(config: ModelConfig, trainable: number): MemoryNeed {
  const weights = modelBytes(config, 0);
  const training = modelBytes(config, trainable) - weights;
  return { weights, training, frozen: weights, cache: cacheBytes(config, 1, LEAST_TOKENS) };
}

/** A model is let in when it can be trained and sampled from at the same time, as learning from its own attempts needs. */
export const leastBytes = ({ weights, training, frozen, cache }: MemoryNeed) => weights + training + frozen + cache;

export const needInWords = ({ weights, training, frozen, cache }: MemoryNeed) =>
  [
    `${inUnits(weights)} of weights as float32`,
    ...(training === 0 ? [] : [`${inUnits(training)} of gradients and optimizer state`]),
    `${inUnits(frozen)} for the copy that answers`,
    `at least ${inUnits(cache)} of keys and values`,
  ].join(', ');

export const inUnits = (bytes: number) =>
  bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;

/** What one pass over a batch of `rows` × `length` tokens keeps, mask included. */
export function batchBytes(config: ModelConfig, rows: number, length: number, backward: boolean): number {
  const { hidden_size: d, intermediate_size: f, num_attention_heads: heads, num_key_value_heads: keyHeads } = config;
  const tokens = rows * length;
  const perToken = 8 * d + 4 * (heads + 2 * keyHeads) * config.head_dim + 5 * f;
  const scores = heads * length;
  // The backward pass needs every layer's activations and one probability per pair; forward keeps one layer at a time.
  const kept = backward
    ? config.num_hidden_layers * (perToken + scores) + 2 * (perToken + scores)
    : perToken + 3 * scores;
  return 4 * tokens * (kept + 4 * config.vocab_size + length);
}
