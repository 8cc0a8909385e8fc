/**
 * The decoder as a graph with a key-value cache: one graph serves prompts (many tokens per sequence, empty cache) and
 * single steps. What it computes is model.ts's decoder; how differs, because here nothing is differentiated: queries,
 * keys and values come from one product, gate and up from another, and ONNX Runtime's GroupQueryAttention appends to the
 * cache in place, turns by position and attends only over each sequence's own length.
 *
 * Weights are inputs, not initialisers: a snapshot is then a copy of the arrays and no compilation, and from 8 rows up
 * it is the faster way, too (docs/log.md has the figures).
 */
import { linearLayer, type ModelConfig } from './config.ts';
import { Graph, type Tensor } from './graph.ts';
import { runsInPlace } from './in-place.ts';
import { headName } from './model.ts';
import { linear, reshape, rmsNorm } from './ops.ts';
import { paddedHeadDim, paddedNormEpsilon, padHeads } from './pad-heads.ts';
import type { Dim } from './proto.ts';
import type { Weights } from './weights.ts';

/** A weight of this graph: model tensors laid behind one another, [sum of rows, columns] or [size]. */
export type DecodeWeight = { readonly name: string; readonly parts: readonly string[]; readonly shape: number[] };

/** What the graph needs of the model's weights. A tied head is the embedding's own entry, not a copy. */
export function decodeWeights(config: ModelConfig): DecodeWeight[] {
  const { hidden_size: d, vocab_size: vocabulary } = config;
  const headDim = paddedHeadDim(config);
  const whole = (name: string, shape: number[]): DecodeWeight => ({ name, parts: [name], shape });
  const stacked = (index: number, name: string, ...layers: Parameters<typeof linearLayer>[2][]): DecodeWeight => {
    const found = layers.map((layer) => linearLayer({ ...config, head_dim: headDim }, index, layer));
    const rows = found.reduce((sum, { shape }) => sum + shape[0], 0);
    return { name, parts: found.map(({ module }) => `${module}.weight`), shape: [rows, found[0]!.shape[1]] };
  };
  const weights = [whole('model.embed_tokens.weight', [vocabulary, d])];
  for (let i = 0; i < config.num_hidden_layers; i++) {
    const block = `model.layers.${i}`;
    weights.push(
      whole(`${block}.input_layernorm.weight`, [d]),
      stacked(i, `${block}.qkv`, 'q_proj', 'k_proj', 'v_proj'),
      whole(`${block}.self_attn.q_norm.weight`, [headDim]),
      whole(`${block}.self_attn.k_norm.weight`, [headDim]),
      stacked(i, `${block}.o`, 'o_proj'),
      whole(`${block}.post_attention_layernorm.weight`, [d]),
      stacked(i, `${block}.gate_up`, 'gate_proj', 'up_proj'),
      stacked(i, `${block}.down`, 'down_proj'),
    );
  }
  weights.push(whole('model.norm.weight', [d]));
  if (!config.tie_word_embeddings) weights.push(whole('lm_head.weight', [vocabulary, d]));
  return weights;
}

/** A copy of a model's weights in this graph's arrangement. */
export function arrange(config: ModelConfig, weights: ReadonlyMap<string, Float32Array>): Weights {
  const arranged: Weights = new Map();
  for (const { name, parts, shape } of decodeWeights(config)) {
    const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
    let at = 0;
    for (const part of parts) {
      const padded = padHeads(config, part, weights.get(part)!);
      values.set(padded, at);
      at += padded.length;
    }
    arranged.set(name, values);
  }
  return arranged;
}

export const cacheNames = (layer: number) => ({
  past: [`past key ${layer}`, `past value ${layer}`] as const,
  present: [`key ${layer}`, `value ${layer}`] as const,
});

/**
 * Inputs: the weights; `tokens` int32 [batch, length]; `last` int32 [batch], the index of each sequence's last token in its
 * cache; `total` int32 [1], the longest sequence with this call's tokens; the rotary tables; the caches [batch, keyHeads,
 * capacity, headDim]; `rows` int32 [rows], the tokens (as indices into batch · length) whose scores are wanted;
 * `inverse temperature` [rows, 1]. Outputs: the caches; `hidden` [batch · length, d] after the final norm; `logits`,
 * `plain` and `tempered` [rows, vocabulary].
 */
export function decodeGraph(config: ModelConfig): Graph {
  const g = new Graph();
  runsInPlace(g);
  const { num_attention_heads: heads, num_key_value_heads: keyHeads, rms_norm_eps: eps } = config;
  const headDim = paddedHeadDim(config);
  const headEps = paddedNormEpsilon(config);
  const weights = new Map(decodeWeights(config).map(({ name, shape }) => [name, g.input(name, 'float32', shape)]));
  const weight = (name: string) => weights.get(name)!;
  const tokens = g.input('tokens', 'int32', ['batch', 'length']);
  const last = g.input('last', 'int32', ['batch']);
  const total = g.input('total', 'int32', [1]);
  const cos = g.input('cos', 'float32', ['positions', headDim / 2]);
  const sin = g.input('sin', 'float32', ['positions', headDim / 2]);
  const rows = g.input('rows', 'int32', ['rows']);
  const inverseTemperature = g.input('inverse temperature', 'float32', ['rows', 1]);
  const cache = ['batch', keyHeads, 'capacity', headDim];

  const attend = (x: Tensor, layer: number): Tensor => {
    const name = `model.layers.${layer}`;
    const sizes = [heads * headDim, keyHeads * headDim, keyHeads * headDim];
    const [q, k, v] = split(g, linear(g, x, weight(`${name}.qkv`)), sizes);
    const normed = (t: Tensor, norm: string) =>
      rmsNorm(g, reshape(g, t, ['heads', headDim]), weight(`${name}.self_attn.${norm}.weight`), headEps);
    const lifted = (t: Tensor, size: number) => reshape(g, t, ['batch', 'length', size]);
    const { past, present } = cacheNames(layer);
    const [y, key, value] = g.nodes(
      'GroupQueryAttention',
      [
        lifted(normed(q!, 'q_norm'), sizes[0]!),
        lifted(normed(k!, 'k_norm'), sizes[1]!),
        lifted(v!, sizes[2]!),
        g.input(past[0], 'float32', cache),
        g.input(past[1], 'float32', cache),
        last,
        total,
        cos,
        sin,
      ],
      [
        { type: 'float32', shape: ['batch', 'length', sizes[0]!] },
        { type: 'float32', shape: cache },
        { type: 'float32', shape: cache },
      ],
      {
        domain: 'com.microsoft',
        attributes: {
          num_heads: { int: heads },
          kv_num_heads: { int: keyHeads },
          scale: { float: 1 / Math.sqrt(config.head_dim) },
          do_rotary: { int: 1 },
        },
      },
    ) as [Tensor, Tensor, Tensor];
    g.output(present[0], key);
    g.output(present[1], value);
    return reshape(g, y, ['tokens', sizes[0]!]);
  };

  const flat = reshape(g, tokens, ['tokens']);
  let x = g.node('Gather', [weight('model.embed_tokens.weight'), flat], 'float32', ['tokens', config.hidden_size]);
  for (let i = 0; i < config.num_hidden_layers; i++) {
    const name = `model.layers.${i}`;
    const attended = attend(rmsNorm(g, x, weight(`${name}.input_layernorm.weight`), eps), i);
    x = linear(g, attended, weight(`${name}.o`), x);
    const inner = rmsNorm(g, x, weight(`${name}.post_attention_layernorm.weight`), eps);
    const size = config.intermediate_size;
    const [gate, up] = split(g, linear(g, inner, weight(`${name}.gate_up`)), [size, size]);
    x = linear(g, gated(g, gate!, up!), weight(`${name}.down`), x);
  }
  const hidden = rmsNorm(g, x, weight('model.norm.weight'), eps);
  const chosen = g.node('Gather', [hidden, rows], 'float32', ['rows', config.hidden_size]);
  const logits = linear(g, chosen, weight(headName(config)));
  const softmax = (t: Tensor) => g.node('Softmax', [t], 'float32', t.shape, { attributes: { axis: { int: -1 } } });
  g.output('hidden', hidden);
  g.output('plain', softmax(logits));
  g.output('tempered', softmax(g.node('Mul', [logits, inverseTemperature], 'float32', logits.shape)));
  g.output('logits', logits);
  return g;
}

/** The head alone, for scores of many tokens piece by piece: `hidden` [rows, d] and the head's weight to `logits`, `plain`. */
export function headGraph(config: ModelConfig): Graph {
  const g = new Graph();
  runsInPlace(g);
  const hidden = g.input('hidden', 'float32', ['rows', config.hidden_size]);
  const head = g.input(headName(config), 'float32', [config.vocab_size, config.hidden_size]);
  const logits = linear(g, hidden, head);
  g.output('plain', g.node('Softmax', [logits], 'float32', logits.shape, { attributes: { axis: { int: -1 } } }));
  g.output('logits', logits);
  return g;
}

/** Columns of x [n, sum of sizes], as consecutive pieces. */
function split(g: Graph, x: Tensor, sizes: readonly number[]): Tensor[] {
  const outputs = sizes.map((size) => ({ type: 'float32' as const, shape: [x.shape[0]!, size] as Dim[] }));
  const parts = g.constant('int64', [sizes.length], sizes);
  return g.nodes('Split', [x, parts], outputs, { attributes: { axis: { int: 1 } } });
}

/** up · silu(gate): QuickGelu with alpha 1 is silu in one pass over memory. */
function gated(g: Graph, gate: Tensor, up: Tensor): Tensor {
  const attributes = { alpha: { float: 1 } };
  const silu = g.node('QuickGelu', [gate], 'float32', gate.shape, { domain: 'com.microsoft', attributes });
  return g.node('Mul', [silu, up], 'float32', gate.shape);
}
