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

const seven = {
  hidden_size: 3584,
  intermediate_size: 18944,
  num_attention_heads: 28,
  num_hidden_layers: 28,
  num_key_value_heads: 4,
  tie_word_embeddings: false,
  vocab_size: 152064,
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

/** What meta-llama/Llama-3.2-1B-Instruct says of itself. */
const llama = {
  architectures: ['LlamaForCausalLM'],
  attention_bias: false,
  attention_dropout: 0.0,
  bos_token_id: 128000,
  eos_token_id: [128001, 128008, 128009],
  head_dim: 64,
  hidden_act: 'silu',
  hidden_size: 2048,
  initializer_range: 0.02,
  intermediate_size: 8192,
  max_position_embeddings: 131072,
  mlp_bias: false,
  model_type: 'llama',
  num_attention_heads: 32,
  num_hidden_layers: 16,
  num_key_value_heads: 8,
  pretraining_tp: 1,
  rms_norm_eps: 1e-5,
  rope_scaling: {
    factor: 32.0,
    high_freq_factor: 4.0,
    low_freq_factor: 1.0,
    original_max_position_embeddings: 8192,
    rope_type: 'llama3',
  },
  rope_theta: 500000.0,
  tie_word_embeddings: true,
  torch_dtype: 'bfloat16',
  use_cache: true,
  vocab_size: 128256,
};

/** What HuggingFaceTB/SmolLM2-135M-Instruct says of itself. */
const smol = {
  ...llama,
  bos_token_id: 1,
  eos_token_id: 2,
  pad_token_id: 2,
  head_dim: undefined,
  hidden_size: 576,
  intermediate_size: 1536,
  is_llama_config: true,
  max_position_embeddings: 8192,
  num_attention_heads: 9,
  num_hidden_layers: 30,
  num_key_value_heads: 3,
  rope_interleaved: false,
  rope_scaling: null,
  rope_theta: 100000,
  vocab_size: 49152,
};

/** What Qwen/Qwen2.5-0.5B-Instruct says of itself. */
const qwen2 = {
  architectures: ['Qwen2ForCausalLM'],
  attention_dropout: 0.0,
  bos_token_id: 151643,
  eos_token_id: 151645,
  hidden_act: 'silu',
  hidden_size: 896,
  initializer_range: 0.02,
  intermediate_size: 4864,
  max_position_embeddings: 32768,
  max_window_layers: 21,
  model_type: 'qwen2',
  num_attention_heads: 14,
  num_hidden_layers: 24,
  num_key_value_heads: 2,
  rms_norm_eps: 1e-6,
  rope_theta: 1000000.0,
  sliding_window: 32768,
  tie_word_embeddings: true,
  torch_dtype: 'bfloat16',
  use_cache: true,
  use_sliding_window: false,
  vocab_size: 151936,
};

describe('the counts that model cards give:', () => {
  test.each([
    ['Llama 3.2 1B', llama, 1_235_814_400, 16 * 9],
    ['SmolLM2 135M', smol, 134_515_008, 30 * 9],
    ['Qwen2.5 0.5B', qwen2, 494_032_768, 24 * 12],
    ['Qwen2.5 7B, whose head is its own', { ...qwen2, ...seven }, 7_615_616_512, 28 * 12 + 1],
  ])('%s', (_, json, parameters, tensors) => {
    const config = parseModelConfig(json);
    expect(parameterCount(config)).toBe(parameters);
    expect(parameterShapes(config).size).toBe(tensors + 2);
    expect(parseModelConfig(modelConfigJson(config))).toEqual(config);
  });
});

test('positions are stretched as the file says, in its older form and in its newer one', () => {
  const { rope_theta, rope_scaling, ...rest } = llama;
  const older = parseModelConfig(llama);
  expect(older.rope_scaling).toEqual(rope_scaling);
  expect(parseModelConfig({ ...rest, rope_parameters: { ...rope_scaling, rope_theta } })).toEqual(older);
  expect(parseModelConfig(smol).rope_scaling).toBeUndefined();
});

describe('a model this engine would compute wrongly is refused:', () => {
  test.each([
    [
      'another architecture',
      { model_type: 'gemma3' },
      /Qwen3 \(qwen3\), Qwen2\.5 \(qwen2\), Llama \(llama\): model_type/,
    ],
    ['half a rope scaling', { rope_scaling: { rope_type: 'llama3', factor: 8 } }, /not whole: low_freq_factor/],
    [
      'a rope scaling upside down',
      { rope_scaling: { ...llama.rope_scaling, low_freq_factor: 4 } },
      /low_freq_factor 4 must be below high_freq_factor 4/,
    ],
    ['heads turned in part', { partial_rotary_factor: 0.5 }, /partial_rotary_factor/],
    ['feed-forward biases', { mlp_bias: true }, /mlp_bias/],
    ['a layer that sees a window', { layer_types: ['full_attention', 'sliding_attention'] }, /layer_types\.1/],
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
