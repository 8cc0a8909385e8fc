/**
 * How much memory a model takes, in bytes, before any of it is taken: a model or a batch too large for the machine is
 * refused with the numbers, because an engine killed for its memory answers nobody. Upper estimates, from the tensors a
 * pass keeps (ops.ts); ONNX Runtime frees each after its last use, so a real pass stays below.
 */
import { type ModelConfig, parameterCount } from './config.ts';

/** Weights, and for training the gradient and two moments of the trainable ones. */
export function modelBytes(config: ModelConfig, trainable: number): number {
  return 4 * (parameterCount(config) + 3 * trainable);
}

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
