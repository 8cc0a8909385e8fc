/**
 * A new model from a few letters: `d128-l4-h4-kv2-v512` is width 128, 4 layers, 4 heads, 2 of them key/value heads, a
 * vocabulary of 512. What is left out is derived the way Qwen3 does it. Pure: text in, config out.
 */
import { EngineError } from '../errors.ts';
import { type ModelConfig, parseModelConfig } from './onnx/config.ts';

export type ModelSpec = {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads?: number; // as many as heads
  readonly vocabulary: number;
  readonly feedForward?: number; // 3 × hidden
  readonly headDim?: number; // hidden ÷ heads
  readonly context?: number; // 1024
  /** Output weights of their own instead of the embedding's. */
  readonly untied?: boolean;
};

const letters = {
  d: 'hidden',
  l: 'layers',
  h: 'heads',
  kv: 'kvHeads',
  v: 'vocabulary',
  f: 'feedForward',
  hd: 'headDim',
  c: 'context',
} as const;

export const specHelp =
  'd hidden size, l layers, h heads, v vocabulary; optional: kv key/value heads, f feed-forward size, hd head size, c context, "untied"';

export function parseSpec(text: string): ModelSpec {
  const spec: Record<string, number | boolean> = {};
  for (const part of text.split('-')) {
    if (part === 'untied') {
      spec.untied = true;
      continue;
    }
    const match = /^([a-z]{1,2})(\d{1,9})$/.exec(part);
    const key = match && Object.hasOwn(letters, match[1]!) ? letters[match[1] as keyof typeof letters] : undefined;
    if (!match || !key)
      throw new EngineError(
        `"${part}" in the spec "${text}" is not known. A spec is like d128-l4-h4-kv2-v512: ${specHelp}.`,
      );
    if (key in spec) throw new EngineError(`The spec "${text}" gives ${key} twice.`);
    spec[key] = Number(match[2]);
  }
  for (const key of ['hidden', 'layers', 'heads', 'vocabulary'] as const) {
    if (!(key in spec))
      throw new EngineError(
        `The spec "${text}" does not give ${key}. A spec is like d128-l4-h4-kv2-v512: ${specHelp}.`,
      );
  }
  return spec as unknown as ModelSpec;
}

export function configOfSpec(spec: ModelSpec): ModelConfig {
  return parseModelConfig({
    model_type: 'qwen3',
    hidden_size: spec.hidden,
    intermediate_size: spec.feedForward ?? 3 * spec.hidden,
    num_hidden_layers: spec.layers,
    num_attention_heads: spec.heads,
    num_key_value_heads: spec.kvHeads ?? spec.heads,
    ...(spec.headDim === undefined ? {} : { head_dim: spec.headDim }),
    vocab_size: spec.vocabulary,
    max_position_embeddings: spec.context ?? 1024,
    tie_word_embeddings: !spec.untied,
    rope_theta: 10_000,
  });
}
