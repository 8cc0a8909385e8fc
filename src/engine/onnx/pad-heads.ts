/**
 * The same model with wider heads. ONNX Runtime's GroupQueryAttention turns positions only where the head's size is a
 * multiple of 16; a model with any other size is given zeros up to the next one, in the weights, once. The result computes
 * the same numbers: zero rows make zero queries, keys and values, zero columns drop them again, and the norm's mean over
 * more numbers is undone in its scale and epsilon. Most models (32, 64, 128) pass through untouched.
 */
import type { ModelConfig } from './config.ts';
import { rotaryTables } from './rotary-tables.ts';

export const paddedHeadDim = (config: ModelConfig) => Math.ceil(config.head_dim / 16) * 16;

/** mean over p of x² = d/p · mean over d, so with this and the scale below the norm is what it was. */
export const paddedNormEpsilon = (config: ModelConfig) =>
  (config.rms_norm_eps * config.head_dim) / paddedHeadDim(config);

/** A tensor of the model as the padded model has it: itself, or a padded copy. */
export function padHeads(config: ModelConfig, name: string, values: Float32Array): Float32Array {
  const [d, p] = [config.head_dim, paddedHeadDim(config)];
  if (d === p) return values;
  if (/\.self_attn\.[qk]_norm\.weight$/.test(name)) return spread(values, 1, d, p, 1, Math.sqrt(d / p));
  if (/\.self_attn\.[qkv]_proj\.weight$/.test(name))
    return spread(values, values.length / (d * config.hidden_size), d, p, config.hidden_size, 1);
  if (/\.self_attn\.[qkv]_proj\.bias$/.test(name)) return spread(values, values.length / d, d, p, 1, 1);
  if (name.endsWith('.self_attn.o_proj.weight'))
    return spread(values, config.hidden_size * config.num_attention_heads, d, p, 1, 1);
  return values;
}

/** [count, d, size] → [count, p, size], each half of d at the start of a half of p: rotary positions pair the halves. */
function spread(values: Float32Array, count: number, d: number, p: number, size: number, scale: number): Float32Array {
  const wide = new Float32Array(count * p * size);
  for (let i = 0; i < count; i++)
    for (let j = 0; j < d; j++) {
      const to = (i * p + (j < d / 2 ? j : j - d / 2 + p / 2)) * size;
      const from = (i * d + j) * size;
      for (let k = 0; k < size; k++) wide[to + k] = scale * values[from + k]!;
    }
  return wide;
}

/** The rotary tables with angle 0 in the padding. */
export function paddedRotaryTables(config: ModelConfig, positions: number): { cos: Float32Array; sin: Float32Array } {
  const tables = rotaryTables(config, positions);
  const [half, wide] = [config.head_dim / 2, paddedHeadDim(config) / 2];
  if (half === wide) return tables;
  const cos = new Float32Array(positions * wide).fill(1);
  const sin = new Float32Array(positions * wide);
  for (let i = 0; i < positions; i++) {
    cos.set(tables.cos.subarray(i * half, (i + 1) * half), i * wide);
    sin.set(tables.sin.subarray(i * half, (i + 1) * half), i * wide);
  }
  return { cos, sin };
}
