/** Every operation's gradient against central finite differences, on ONNX Runtime itself. */
import { describe, expect, test } from 'vitest';
import { Graph, type Tensor } from './graph.ts';
import {
  add,
  attention,
  embedding,
  linear,
  reshape,
  rmsNorm,
  rotary,
  swiglu,
  targetLogprob,
  transpose,
} from './ops.ts';
import type { Dim } from './proto.ts';
import { normal, seededRandom } from './random.ts';
import { createSession, float32, int32, type Values } from './session.ts';

const draw = normal(seededRandom(5));
const random = (...shape: number[]) => ({
  shape,
  values: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, draw),
});
type Given = { readonly shape: number[]; readonly values: Float32Array };

async function run(graph: Graph, feeds: Values, threads = 1): Promise<Record<string, Float32Array>> {
  const session = await createSession(graph, 'test', { threads });
  const found = await session.run(feeds);
  const data = Object.fromEntries(Object.entries(found).map(([name, t]) => [name, t.data as Float32Array]));
  await session.release();
  return data;
}

/** L = Σ c·y with random c: its gradient by every input must be what a small push of each number shows. */
async function expectGradients(
  inputs: Record<string, Given>,
  outputShape: number[],
  build: (g: Graph, t: Record<string, Tensor>) => Tensor,
  dims: Record<string, readonly Dim[]> = {},
) {
  const c = random(...outputShape);
  const g = new Graph();
  const tensors: Record<string, Tensor> = {};
  for (const [name, { shape }] of Object.entries(inputs)) tensors[name] = g.input(name, 'float32', dims[name] ?? shape);
  const y = build(g, tensors);
  const gradients = g.gradients([{ of: y, gradient: g.input('c', 'float32', y.shape) }], Object.values(tensors));
  g.output('y', y);
  for (const [name, t] of Object.entries(tensors)) g.output(`d ${name}`, gradients.get(t)!);
  const session = await createSession(g, 'test', { threads: 1 });
  const feeds = (): Values => ({
    c: float32(c.values, c.shape),
    ...Object.fromEntries(Object.entries(inputs).map(([name, { shape, values }]) => [name, float32(values, shape)])),
  });
  const analytic = await session.run(feeds());
  expect(analytic.y!.dims).toEqual(outputShape);
  const loss = async () => {
    const out = (await session.run(feeds(), ['y'])).y!.data as Float32Array;
    return out.reduce((sum, v, i) => sum + v * c.values[i]!, 0);
  };
  const h = 1 / 128;
  for (const [name, { values }] of Object.entries(inputs)) {
    const gradient = analytic[`d ${name}`]!.data as Float32Array;
    const scale = Math.max(...gradient.map(Math.abs));
    expect(scale, name).toBeGreaterThan(0.01);
    for (let i = 0; i < values.length; i += Math.ceil(values.length / 40)) {
      const kept = values[i]!;
      values[i] = kept + h;
      const up = await loss();
      values[i] = kept - h;
      const down = await loss();
      values[i] = kept;
      expect(Math.abs((up - down) / (2 * h) - gradient[i]!), `${name}[${i}]`).toBeLessThan(2e-3 * scale);
    }
  }
  await session.release();
}

describe('the gradient of', () => {
  test('add, where one tensor is used twice', () =>
    expectGradients({ a: random(3, 4), b: random(3, 4) }, [3, 4], (g, { a, b }) => add(g, add(g, a!, b!), a!)));

  test('reshape and transpose with sizes known only at run time', () =>
    expectGradients(
      { x: random(2, 3, 4) },
      [4, 6],
      (g, { x }) => reshape(g, transpose(g, x!, [2, 0, 1]), [4, 'rest']),
      { x: ['rows', 'length', 4] },
    ));

  test('linear', () =>
    expectGradients({ x: random(5, 3), w: random(4, 3) }, [5, 4], (g, { x, w }) => linear(g, x!, w!)));

  test('linear with an addend, a factor, and an input that two layers share', () =>
    expectGradients({ x: random(5, 3), w: random(4, 3), v: random(4, 3) }, [5, 4], (g, { x, w, v }) =>
      linear(g, x!, w!, linear(g, x!, v!), 0.5),
    ));

  test('linear with a bias, which every row adds', () =>
    expectGradients({ x: random(5, 3), w: random(4, 3), b: random(4) }, [5, 4], (g, { x, w, b }) =>
      linear(g, x!, w!, b!),
    ));

  test('rmsNorm', () =>
    expectGradients({ x: random(6, 8), w: random(8) }, [6, 8], (g, { x, w }) => rmsNorm(g, x!, w!, 1e-3)));

  test('swiglu', () =>
    expectGradients({ gate: random(4, 6), up: random(4, 6) }, [4, 6], (g, { gate, up }) => swiglu(g, gate!, up!)));

  test('attention where two query heads share a key head, under a causal mask', async () => {
    const length = 5;
    const mask = Array.from({ length: length * length }, (_, i) => (i % length <= Math.floor(i / length) ? 0 : -1e30));
    const inputs = { q: random(2, 2, 2 * length, 4), k: random(2, 2, length, 4), v: random(2, 2, length, 4) };
    await expectGradients(inputs, [2, 2, 2 * length, 4], (g, { q, k, v }) =>
      attention(g, q!, k!, v!, g.constant('float32', [1, 1, length, length], mask), 4, 0.5),
    );
  });

  test('rotary', () => {
    const angles = Array.from({ length: 9 * 2 }, (_, i) => i * 0.37);
    return expectGradients({ x: random(4, 8) }, [4, 8], (g, { x }) => {
      const table = (f: (x: number) => number) => g.constant('float32', [9, 2], angles.map(f));
      const tables = { cos: table(Math.cos), sin: table(Math.sin), minusSin: table((a) => -Math.sin(a)) };
      return rotary(g, x!, g.constant('int64', [4, 1], [0, 8, 3, 3]), tables);
    });
  });

  test('the logprob of a target', () =>
    expectGradients(
      { logits: random(5, 7) },
      [5, 1],
      (g, { logits }) => targetLogprob(g, logits!, g.constant('int64', [5, 1], [0, 6, 3, 3, 1])).logprob,
    ));

  test('an embedding, where ids repeat', () =>
    expectGradients({ table: random(4, 3) }, [6, 3], (g, { table }) =>
      embedding(g, table!, g.constant('int64', [6, 1], [2, 0, 2, 2, 3, 1])),
    ));
});

test('an embedding counts every repeated id when several threads add', async () => {
  const g = new Graph();
  const table = g.input('table', 'float32', [3, 64]);
  const ids = g.input('ids', 'int32', ['n', 1]);
  const wide = g.node('Cast', [ids], 'int64', ids.shape, { attributes: { to: { int: 7 } } });
  const y = embedding(g, table, wide);
  const gradient = g.gradients([{ of: y, gradient: g.input('dy', 'float32', y.shape) }], [table]).get(table)!;
  g.output('gradient', gradient);
  const n = 3000;
  const found = await run(
    g,
    {
      table: float32(new Float32Array(3 * 64), [3, 64]),
      ids: int32(
        Int32Array.from({ length: n }, (_, i) => i % 3),
        [n, 1],
      ),
      dy: float32(new Float32Array(n * 64).fill(1), [n, 64]),
    },
    4,
  );
  expect(new Set(found.gradient)).toEqual(new Set([n / 3]));
});

test('the entropy of a row is that of its distribution', async () => {
  const g = new Graph();
  const logits = g.constant('float32', [2, 4], [0, 0, 0, 0, Math.log(3), 0, -1e9, -1e9]);
  const { logprob, entropy } = targetLogprob(g, logits, g.constant('int64', [2, 1], [1, 0]));
  g.output('logprob', logprob);
  g.output('entropy', entropy);
  const found = await run(g, {});
  expect(found.logprob![0]).toBeCloseTo(-Math.log(4), 6);
  expect(found.logprob![1]).toBeCloseTo(Math.log(3 / 4), 6);
  expect(found.entropy![0]).toBeCloseTo(Math.log(4), 6);
  expect(found.entropy![1]).toBeCloseTo(-0.75 * Math.log(0.75) - 0.25 * Math.log(0.25), 6);
});

test('a gradient is added to the sum it is given, and frozen inputs get no backward nodes', async () => {
  const build = (frozen: boolean) => {
    const g = new Graph();
    const x = g.input('x', 'float32', [2, 2]);
    const w = g.input('w', 'float32', [2, 2]);
    const y = linear(g, x, w);
    const sum = g.input('sum', 'float32', [2, 2]);
    const seeds = [{ of: y, gradient: g.input('c', 'float32', [2, 2]) }];
    g.output('gradient', g.gradients(seeds, frozen ? [w] : [w, x], new Map([[w, sum]])).get(w)!);
    return g;
  };
  const square = (...values: number[]) => float32(Float32Array.from(values), [2, 2]);
  const feeds = { x: square(1, 2, 3, 4), w: square(0, 0, 0, 0), sum: square(10, 20, 30, 40), c: square(1, 0, 0, 1) };
  // cᵀ·x = x when c is the identity.
  expect([...(await run(build(true), feeds)).gradient!]).toEqual([11, 22, 33, 44]);
  expect(build(true).encode('a').length).toBeLessThan(build(false).encode('a').length);
});
