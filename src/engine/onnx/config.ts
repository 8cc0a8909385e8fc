/**
 * The shape of a model: what the Hugging Face `config.json` of a decoder says, parsed at the door, and the names and shapes
 * of the tensors that follow from it. Settings this engine would have to ignore (other ways to stretch positions, sliding
 * windows, other biases) are refused, because a model that computes something else is worse than no model.
 */
import { z } from 'zod';
import { EngineError } from '../../errors.ts';

/** The linear layers of a decoder block, by the name LoRA targets use. */
export const LINEAR_LAYERS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'] as const;
export type LinearLayer = (typeof LINEAR_LAYERS)[number];

type Family = {
  /** What people call it. */
  readonly name: string;
  readonly architecture: string;
  /** Queries and keys are normed per head before they are turned by position. */
  readonly headNorms: boolean;
  /** Linear layers that add a bias. */
  readonly biased: readonly LinearLayer[];
  /** What its config.json says of the things this engine takes for granted. */
  readonly settled: Readonly<Record<string, unknown>>;
};

/** The decoders this engine knows, by their `model_type`: one description (decoder.ts), and here what sets them apart. */
export const FAMILIES = {
  qwen3: {
    name: 'Qwen3',
    architecture: 'Qwen3ForCausalLM',
    headNorms: true,
    biased: [],
    settled: { attention_bias: false, use_sliding_window: false },
  },
  qwen2: {
    name: 'Qwen2.5',
    architecture: 'Qwen2ForCausalLM',
    headNorms: false,
    biased: ['q_proj', 'k_proj', 'v_proj'],
    settled: { use_sliding_window: false },
  },
  llama: {
    name: 'Llama',
    architecture: 'LlamaForCausalLM',
    headNorms: false,
    biased: [],
    settled: { attention_bias: false, mlp_bias: false },
  },
} as const satisfies Record<string, Family>;
export type ModelType = keyof typeof FAMILIES;

/** What sets this model's family apart. */
export const familyOf = (config: Pick<ModelConfig, 'model_type'>): Family => FAMILIES[config.model_type];

const size = z.int().positive().max(1_000_000);

/** Llama 3.1's way to a longer context: slow rotations are slowed down by `factor`, fast ones are left, with a ramp between. */
const ropeScaling = z.object({
  rope_type: z.literal('llama3'),
  factor: z.number().min(1),
  low_freq_factor: z.number().positive(),
  high_freq_factor: z.number().positive(),
  original_max_position_embeddings: size.max(100_000_000),
});
export type RopeScaling = Readonly<z.infer<typeof ropeScaling>>;

const rope = z.looseObject({ rope_type: z.string().optional(), type: z.string().optional() });

const schema = z.object({
  model_type: z.enum(Object.keys(FAMILIES) as [ModelType]),
  hidden_size: size,
  intermediate_size: size,
  num_hidden_layers: size.max(1000),
  num_attention_heads: size.max(10_000),
  num_key_value_heads: size.max(10_000).nullish(),
  head_dim: size.max(10_000).nullish(),
  vocab_size: size.max(10_000_000),
  max_position_embeddings: size.max(100_000_000),
  rms_norm_eps: z.number().positive().default(1e-6),
  tie_word_embeddings: z.boolean().default(false),
  rope_theta: z.number().positive().optional(),
  // Newer files have everything about positions here, older ones the base outside and the rest in rope_scaling.
  rope_parameters: rope.extend({ rope_theta: z.number().positive() }).nullish(),
  rope_scaling: rope.nullish(),
  partial_rotary_factor: z.literal(1).nullish(),
  hidden_act: z.literal('silu').default('silu'),
  attention_bias: z.literal(false).default(false),
  mlp_bias: z.literal(false).default(false),
  use_sliding_window: z.literal(false).default(false),
  layer_types: z.array(z.literal('full_attention')).max(1000).nullish(),
  bos_token_id: z.int().nonnegative().nullish(),
  eos_token_id: z.union([z.int().nonnegative(), z.array(z.int().nonnegative()).max(64)]).nullish(),
  pad_token_id: z.int().nonnegative().nullish(),
});

/** A decoder's shape. The keys are the file's own words, so that one name serves from disk to graph. */
export type ModelConfig = {
  readonly model_type: ModelType;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly head_dim: number;
  readonly vocab_size: number;
  readonly max_position_embeddings: number;
  readonly rms_norm_eps: number;
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling;
  readonly tie_word_embeddings: boolean;
  readonly bos_token_id?: number;
  /** Tokens that end a generation. */
  readonly eos_token_ids: readonly number[];
  readonly pad_token_id?: number;
};

/** Parses the contents of a `config.json`. Throws an EngineError that lists every problem. */
export function parseModelConfig(input: unknown): ModelConfig {
  const parsed = schema.safeParse(input);
  if (!parsed.success) {
    const known = Object.entries(FAMILIES).map(([type, { name }]) => `${name} (${type})`);
    throw new EngineError(
      `This model's config.json is not a decoder this engine can run, which are ${known.join(', ')}: ${problemsOf(parsed.error)}.`,
    );
  }
  const c = parsed.data;
  const scaling = parseRopeScaling({ ...c.rope_scaling, ...c.rope_parameters });
  const heads = c.num_attention_heads;
  const kvHeads = c.num_key_value_heads ?? heads;
  if (heads % kvHeads !== 0)
    throw new EngineError(`num_attention_heads ${heads} must be a multiple of num_key_value_heads ${kvHeads}.`);
  const headDim = c.head_dim ?? c.hidden_size / heads;
  if (!Number.isInteger(headDim) || headDim % 2 !== 0)
    throw new EngineError(`head_dim ${headDim} must be an even whole number: rotary positions turn pairs.`);
  const eos = c.eos_token_id;
  return {
    model_type: c.model_type,
    hidden_size: c.hidden_size,
    intermediate_size: c.intermediate_size,
    num_hidden_layers: c.num_hidden_layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headDim,
    vocab_size: c.vocab_size,
    max_position_embeddings: c.max_position_embeddings,
    rms_norm_eps: c.rms_norm_eps,
    rope_theta: c.rope_parameters?.rope_theta ?? c.rope_theta ?? 10_000,
    ...(scaling === undefined ? {} : { rope_scaling: scaling }),
    tie_word_embeddings: c.tie_word_embeddings,
    ...(c.bos_token_id == null ? {} : { bos_token_id: c.bos_token_id }),
    eos_token_ids: eos == null ? [] : Array.isArray(eos) ? eos : [eos],
    ...(c.pad_token_id == null ? {} : { pad_token_id: c.pad_token_id }),
  };
}

const problemsOf = (error: z.ZodError) =>
  error.issues.map((issue) => `${issue.path.join('.') || 'config'}: ${issue.message}`).join('; ');

function parseRopeScaling(given: z.infer<typeof rope>): RopeScaling | undefined {
  const type = given.rope_type ?? given.type ?? 'default';
  if (type === 'default') return undefined;
  if (type !== 'llama3')
    throw new EngineError(`rope type ${type} is not supported; plain rotary positions ("default") and "llama3" are.`);
  const parsed = ropeScaling.safeParse({ ...given, rope_type: type });
  if (!parsed.success)
    throw new EngineError(
      `The llama3 rope scaling of this model's config.json is not whole: ${problemsOf(parsed.error)}.`,
    );
  const { low_freq_factor: low, high_freq_factor: high } = parsed.data;
  if (low >= high) throw new EngineError(`low_freq_factor ${low} must be below high_freq_factor ${high}.`);
  return parsed.data;
}

/** The contents of a `config.json` that Hugging Face transformers reads as the same model. */
export function modelConfigJson(config: ModelConfig): Record<string, unknown> {
  const { eos_token_ids: eos, ...rest } = config;
  const { architecture, settled } = familyOf(config);
  return {
    architectures: [architecture],
    ...rest,
    ...(eos.length === 0 ? {} : { eos_token_id: eos.length === 1 ? eos[0] : eos }),
    hidden_act: 'silu',
    ...settled,
    dtype: 'float32',
  };
}

/** [out, in] of a block's linear layer, and its tensor name in layer `index`. */
export function linearLayer(config: ModelConfig, index: number, layer: LinearLayer) {
  const d = config.hidden_size;
  const q = config.num_attention_heads * config.head_dim;
  const kv = config.num_key_value_heads * config.head_dim;
  const f = config.intermediate_size;
  const shapes = {
    q_proj: [q, d],
    k_proj: [kv, d],
    v_proj: [kv, d],
    o_proj: [d, q],
    gate_proj: [f, d],
    up_proj: [f, d],
    down_proj: [d, f],
  } as const;
  const part = layer === 'gate_proj' || layer === 'up_proj' || layer === 'down_proj' ? 'mlp' : 'self_attn';
  return { module: `model.layers.${index}.${part}.${layer}`, shape: shapes[layer] };
}

/** Every tensor of the model: Hugging Face name → shape, linear layers as [out, in]. */
export function parameterShapes(config: ModelConfig): Map<string, number[]> {
  const { headNorms, biased } = familyOf(config);
  const shapes = new Map<string, number[]>();
  shapes.set('model.embed_tokens.weight', [config.vocab_size, config.hidden_size]);
  for (let i = 0; i < config.num_hidden_layers; i++) {
    const block = `model.layers.${i}`;
    shapes.set(`${block}.input_layernorm.weight`, [config.hidden_size]);
    for (const layer of LINEAR_LAYERS) {
      const { module, shape } = linearLayer(config, i, layer);
      shapes.set(`${module}.weight`, [...shape]);
      if (biased.includes(layer)) shapes.set(`${module}.bias`, [shape[0]]);
    }
    if (headNorms) {
      shapes.set(`${block}.self_attn.q_norm.weight`, [config.head_dim]);
      shapes.set(`${block}.self_attn.k_norm.weight`, [config.head_dim]);
    }
    shapes.set(`${block}.post_attention_layernorm.weight`, [config.hidden_size]);
  }
  shapes.set('model.norm.weight', [config.hidden_size]);
  if (!config.tie_word_embeddings) shapes.set('lm_head.weight', [config.vocab_size, config.hidden_size]);
  return shapes;
}

/** How many numbers the model has. */
export function parameterCount(config: ModelConfig): number {
  let count = 0;
  for (const shape of parameterShapes(config).values()) count += shape.reduce((a, b) => a * b, 1);
  return count;
}
