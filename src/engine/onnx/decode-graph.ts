/**
 * The decoder as a graph with a key-value cache: one graph serves prompts (many tokens per sequence, empty cache) and
 * single steps. Arranged for speed, because here nothing is differentiated: queries, keys and values come from one
 * product, gate and up from another, and ONNX Runtime's GroupQueryAttention appends to the cache in place, turns by
 * position and attends only over each sequence's own length.
 *
 * Weights are inputs, not initialisers: a snapshot is then a copy of the arrays and no compilation, and from 8 rows up
 * it is the faster way, too (docs/log.md has the figures).
 */
import { type LinearLayer, linearLayer, type ModelConfig, parameterShapes } from './config.ts';
import { decoder, headName } from './decoder.ts';
import { Graph, type Tensor } from './graph.ts';
import { runsInPlace } from './in-place.ts';
import { linear, reshape } from './ops.ts';
import { paddedHeadDim, paddedNormEpsilon, padHeads } from './pad-heads.ts';
import type { Dim } from './proto.ts';
import type { Weights } from './weights.ts';

/** A weight of this graph: model tensors laid behind one another, [sum of rows, columns] or [size]. */
export type DecodeWeight = { readonly name: string; readonly parts: readonly string[]; readonly shape: number[] };

/** Layers that read the same input share a weight here, and a bias where they have one. */
const stackOf = (name: string) => name.replace(/\.[qkv]_proj\./, '.qkv.').replace(/\.(gate|up)_proj\./, '.gate_up.');

/** What the graph needs of the model's weights. A tied head is the embedding's own entry, not a copy. */
export function decodeWeights(config: ModelConfig): DecodeWeight[] {
  const stacks = new Map<string, { name: string; parts: string[]; shape: number[] }>();
  for (const [part, shape] of parameterShapes(paddedConfig(config))) {
    const name = stackOf(part);
    const stack = stacks.get(name);
    if (stack === undefined) stacks.set(name, { name, parts: [part], shape });
    else {
      stack.parts.push(part);
      stack.shape[0]! += shape[0]!;
    }
  }
  return [...stacks.values()];
}

const paddedConfig = (config: ModelConfig): ModelConfig => ({ ...config, head_dim: paddedHeadDim(config) });

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
  const { num_attention_heads: heads, num_key_value_heads: keyHeads } = config;
  const headDim = paddedHeadDim(config);
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

  /** The product of layers that share a weight, [tokens, sum of sizes], `plus` or the bias added. */
  const product = (x: Tensor, index: number, layers: readonly LinearLayer[], plus?: Tensor): Tensor => {
    const { module } = linearLayer(config, index, layers[0]!);
    return linear(g, x, weight(stackOf(`${module}.weight`)), plus ?? weights.get(stackOf(`${module}.bias`)));
  };
  const project = (x: Tensor, index: number, layers: readonly LinearLayer[]): Tensor[] => {
    const sizes = layers.map((layer) => linearLayer(paddedConfig(config), index, layer).shape[0]);
    return split(g, product(x, index, layers), sizes);
  };
  const attend = (q: Tensor, k: Tensor, v: Tensor, layer: number): Tensor => {
    const lifted = (t: Tensor, n: number) => reshape(g, t, ['batch', 'length', n * headDim]);
    const { past, present } = cacheNames(layer);
    const [y, key, value] = g.nodes(
      'GroupQueryAttention',
      [
        lifted(q, heads),
        lifted(k, keyHeads),
        lifted(v, keyHeads),
        g.input(past[0], 'float32', cache),
        g.input(past[1], 'float32', cache),
        last,
        total,
        cos,
        sin,
      ],
      [
        { type: 'float32', shape: ['batch', 'length', heads * headDim] },
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
    return reshape(g, y, ['tokens', heads * headDim]);
  };

  const flat = reshape(g, tokens, ['tokens']);
  const hidden = decoder(config, {
    graph: g,
    weight,
    head: { size: headDim, epsilon: paddedNormEpsilon(config) },
    embed: () =>
      g.node('Gather', [weight('model.embed_tokens.weight'), flat], 'float32', ['tokens', config.hidden_size]),
    project,
    addProjection: (x, y, index, layer) => product(y, index, [layer], x),
    attend,
    gated: (gate, up) => gated(g, gate, up),
  });
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
