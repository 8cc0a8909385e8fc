/**
 * The training graphs: the decoder with gradients. All sequences of a batch lie packed in `rows` of `length` tokens; `mask`
 * keeps them apart and `positions` restart with each, so short sequences share a row and padding is not paid for.
 */
import { familyOf, type LinearLayer, linearLayer, type ModelConfig, parameterShapes } from './config.ts';
import { decoder, headName } from './decoder.ts';
import { Graph, type Tensor } from './graph.ts';
import { runsInPlace } from './in-place.ts';
import { type AdapterShape, adapterNames, adapterShapes } from './lora.ts';
import {
  add,
  attention,
  embedding,
  linear,
  type RotaryTables,
  reshape,
  rotary,
  swiglu,
  targetLogprob,
  transpose,
} from './ops.ts';

/** What a graph of this model is made of: the weights by name, and an adapter if there is one. */
type ModelGraph = {
  readonly graph: Graph;
  readonly config: ModelConfig;
  readonly adapter?: AdapterShape;
  readonly weight: (name: string) => Tensor;
};

/** Declares every weight as an input of the graph under its own name. */
function modelGraph(config: ModelConfig, adapter?: AdapterShape): ModelGraph {
  const graph = new Graph();
  const inputs = new Map<string, Tensor>();
  const shapes = [...parameterShapes(config), ...(adapter === undefined ? [] : adapterShapes(config, adapter))];
  for (const [name, shape] of shapes) inputs.set(name, graph.input(name, 'float32', shape));
  const weight = (name: string) => {
    const tensor = inputs.get(name);
    if (tensor === undefined) throw new Error(`The model has no tensor ${name}.`);
    return tensor;
  };
  return { graph, config, weight, ...(adapter === undefined ? {} : { adapter }) };
}

/** A linear layer of block `index`, with its bias and adapter if it has them: x·Wᵀ + bias + scale · (x·Aᵀ)·Bᵀ. */
function project(m: ModelGraph, x: Tensor, index: number, layer: LinearLayer): Tensor {
  const { module } = linearLayer(m.config, index, layer);
  const bias = familyOf(m.config).biased.includes(layer) ? m.weight(`${module}.bias`) : undefined;
  const y = linear(m.graph, x, m.weight(`${module}.weight`), bias);
  if (!m.adapter?.targets.includes(layer)) return y;
  const { a, b } = adapterNames(module);
  return linear(m.graph, linear(m.graph, x, m.weight(a)), m.weight(b), y, m.adapter.scale);
}

type Layout = {
  /** int64 [tokens, 1] */
  readonly positions: Tensor;
  readonly tables: RotaryTables;
  /** Added to the scores: 0 where a token may look, very negative elsewhere; [rows or 1, 1, length, length]. */
  readonly mask: Tensor;
};

function selfAttention(m: ModelGraph, [q, k, v]: readonly [Tensor, Tensor, Tensor], layout: Layout): Tensor {
  const { graph: g, config } = m;
  const { head_dim: d, num_attention_heads: heads, num_key_value_heads: keyHeads } = config;
  const turned = (t: Tensor, n: number) => rotary(g, reshape(g, t, ['tokens', n * d]), layout.positions, layout.tables);
  /** [tokens, n · d] → [rows, n, length, d] */
  const split = (t: Tensor, n: number) => transpose(g, reshape(g, t, ['rows', 'length', n, d]), [0, 2, 1, 3]);
  const queries = split(turned(q, heads), heads);
  const keys = split(turned(k, keyHeads), keyHeads);
  const grouped = reshape(g, queries, ['rows', keyHeads, 'group · length', d]);
  const y = attention(g, grouped, keys, split(v, keyHeads), layout.mask, heads, 1 / Math.sqrt(d));
  const perHead = reshape(g, y, ['rows', heads, 'length', d]);
  return reshape(g, transpose(g, perHead, [0, 2, 1, 3]), ['tokens', heads * d]);
}

/** Ids to the last hidden state, with a product for every layer: an adapter may lie beside any of them. */
function hiddenStates(m: ModelGraph, ids: Tensor, layout: Layout): Tensor {
  const { graph: g, config } = m;
  return decoder(config, {
    graph: g,
    weight: m.weight,
    head: { size: config.head_dim, epsilon: config.rms_norm_eps },
    embed: () => embedding(g, m.weight('model.embed_tokens.weight'), ids),
    project: (x, index, layers) => layers.map((layer) => project(m, x, index, layer)),
    addProjection: (x, y, index, layer) => add(g, x, project(m, y, index, layer)),
    attend: (q, k, v) => selfAttention(m, [q, k, v], layout),
    gated: (gate, up) => swiglu(g, gate, up),
  });
}

/** Declares the batch as inputs and returns the logprob of every target, [tokens, 1], and its row's entropy. */
function batchLogprobs(m: ModelGraph): { logprob: Tensor; entropy: Tensor } {
  const { graph: g, config } = m;
  const half = config.head_dim / 2;
  const int64 = (t: Tensor, shape: (number | string)[]) => {
    const wide = g.node('Cast', [t], 'int64', t.shape, { attributes: { to: { int: 7 } } });
    return g.node('Reshape', [wide, g.shapeVector(shape)], 'int64', shape);
  };
  const tokens = g.input('tokens', 'int32', ['rows', 'length']);
  const targets = g.input('targets', 'int32', ['rows', 'length']);
  const positions = g.input('positions', 'int32', ['rows', 'length']);
  const mask = g.input('mask', 'float32', ['mask rows', 1, 'length', 'length']);
  const cos = g.input('cos', 'float32', ['positions', half]);
  const sin = g.input('sin', 'float32', ['positions', half]);
  const minusSin = g.node('Neg', [sin], 'float32', sin.shape);
  const layout = { positions: int64(positions, ['tokens', 1]), tables: { cos, sin, minusSin }, mask };
  const hidden = hiddenStates(m, int64(tokens, ['tokens', 1]), layout);
  const logits = linear(g, hidden, m.weight(headName(config)));
  return targetLogprob(g, logits, int64(targets, ['tokens', 1]));
}

/** The graph behind `forward`: logprobs and entropies. */
export function forwardGraph(config: ModelConfig, adapter?: AdapterShape): Graph {
  const m = modelGraph(config, adapter);
  const { logprob, entropy } = batchLogprobs(m);
  m.graph.output('logprobs', logprob);
  m.graph.output('entropies', entropy);
  runsInPlace(m.graph);
  return m.graph;
}

/** The name under which a weight's summed gradient enters the backward graph, and the one under which it leaves. */
export const gradientIn = (name: string) => `gradient of ${name}`;
export const gradientOut = (name: string) => `new gradient of ${name}`;

/**
 * The graph behind `forwardBackward`: logprobs and entropies, and the gradient of the loss by every trainable weight added
 * to the sum so far. The loss comes in as four numbers and per-token weights or advantages: see losses.ts.
 */
export function backwardGraph(config: ModelConfig, adapter?: AdapterShape): Graph {
  const m = modelGraph(config, adapter);
  const { graph: g } = m;
  const { logprob, entropy } = batchLogprobs(m);
  const column = (name: string) => {
    const given = g.input(name, 'float32', ['rows', 'length']);
    return g.node('Reshape', [given, g.shapeVector(logprob.shape)], 'float32', logprob.shape);
  };
  const coefficient = lossCoefficient(g, logprob, column('sampled'), column('advantages'));
  const names =
    adapter === undefined ? [...parameterShapes(config).keys()] : [...adapterShapes(config, adapter).keys()];
  const sums = new Map(names.map((n) => [m.weight(n), g.input(gradientIn(n), 'float32', m.weight(n).shape)]));
  const seeds = [{ of: logprob, gradient: coefficient }];
  const gradients = g.gradients(
    seeds,
    names.map((n) => m.weight(n)),
    sums,
  );
  g.output('logprobs', logprob);
  g.output('entropies', entropy);
  for (const n of names) g.output(gradientOut(n), gradients.get(m.weight(n))!);
  runsInPlace(g);
  return g;
}

/** ∂L/∂logprob of every token, as losses.ts has it. */
function lossCoefficient(g: Graph, logprob: Tensor, sampled: Tensor, advantages: Tensor): Tensor {
  const { shape } = logprob;
  const bound = (name: string) => g.input(name, 'float32', []);
  const logRatio = g.node('Sub', [logprob, sampled], 'float32', shape);
  const ratio = g.node('Exp', [logRatio], 'float32', shape);
  const clipped = g.node('Clip', [ratio, bound('low'), bound('high')], 'float32', shape);
  const positive = g.node('Greater', [advantages, g.scalar(0)], 'bool', shape);
  const below = g.node('LessOrEqual', [ratio, bound('keepHigh')], 'bool', shape);
  const above = g.node('GreaterOrEqual', [ratio, bound('keepLow')], 'bool', shape);
  const negative = g.node('Neg', [g.node('Mul', [clipped, advantages], 'float32', shape)], 'float32', shape);
  const where = (condition: Tensor, yes: Tensor, no: Tensor) => g.node('Where', [condition, yes, no], 'float32', shape);
  const zero = g.scalar(0);
  return where(positive, where(below, negative, zero), where(above, negative, zero));
}
