import { describe, expect, test } from 'vitest';
import { EngineError } from '../../errors.ts';
import { modelConfigJson, parameterCount, parameterShapes, parseModelConfig } from './config.ts';

/** What Qwen/Qwen3-0.6B says of itself, settings this engine has no use for included. */
const qwen = {
  architectures: ['Qwen3ForCausalLM'],
  attention_bias: false,
  attention_dropout: 0.0,
  bos_token_id: 151643,
  eos_token_id: 151645,
  head_dim: 128,
  hidden_act: 'silu',
  hidden_size: 1024,
  initializer_range: 0.02,
  intermediate_size: 3072,
  max_position_embeddings: 40960,
  max_window_layers: 28,
  model_type: 'qwen3',
  num_attention_heads: 16,
  num_hidden_layers: 28,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-6,
  rope_scaling: null,
  rope_theta: 1000000,
  sliding_window: null,
  tie_word_embeddings: true,
  torch_dtype: 'bfloat16',
  use_sliding_window: false,
  vocab_size: 151936,
};

test('Qwen3-0.6B has 596 million parameters in 310 tensors', () => {
  const config = parseModelConfig(qwen);
  expect(parameterCount(config)).toBe(596_049_920);
  expect(parameterShapes(config).size).toBe(1 + 28 * 11 + 1);
  expect(parameterShapes(config).get('model.layers.27.self_attn.k_proj.weight')).toEqual([1024, 1024]);
  expect(parameterShapes(config).has('lm_head.weight')).toBe(false);
  expect(config.eos_token_ids).toEqual([151645]);
});

test('what is written reads as the same model', () => {
  const config = parseModelConfig({ ...qwen, eos_token_id: [1, 2], tie_word_embeddings: false });
  expect(parseModelConfig(modelConfigJson(config))).toEqual(config);
  expect(parameterShapes(config).has('lm_head.weight')).toBe(true);
});

test('newer files keep the rotary base under rope_parameters', () => {
  const { rope_theta: _, ...rest } = qwen;
  expect(parseModelConfig({ ...rest, rope_parameters: { rope_type: 'default', rope_theta: 5000 } }).rope_theta).toBe(
    5000,
  );
});

describe('a model this engine would compute wrongly is refused:', () => {
  test.each([
    ['another architecture', { model_type: 'llama' }, /model_type/],
    ['scaled rotary positions', { rope_scaling: { rope_type: 'yarn', factor: 4 } }, /rope type yarn/],
    ['a sliding window', { use_sliding_window: true }, /use_sliding_window/],
    ['attention with biases', { attention_bias: true }, /attention_bias/],
    ['another activation', { hidden_act: 'gelu' }, /hidden_act/],
    ['heads that do not divide', { num_key_value_heads: 3 }, /16 must be a multiple of num_key_value_heads 3/],
    ['an odd head', { head_dim: 7 }, /head_dim 7 must be an even/],
    ['a size that is no size', { hidden_size: -1, vocab_size: 2 ** 60 }, /hidden_size.*vocab_size/],
  ])('%s', (_, change, reason) => {
    expect(() => parseModelConfig({ ...qwen, ...change })).toThrow(EngineError);
    expect(() => parseModelConfig({ ...qwen, ...change })).toThrow(reason);
  });

  test('nothing at all', () => {
    expect(() => parseModelConfig(null)).toThrow(EngineError);
  });
});
