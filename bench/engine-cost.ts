/**
 * How the cost of training grows: with parameters, with the tokens of a step, and with the length of a sequence. Costs are
 * in processor time of all threads, which a busy machine does not change much; on two idle cores a step takes half of it.
 * `of Gemm` is what a step reaches of a plain 1024³ Gemm by the same clock. docs/engine.md has the table it prints.
 *
 * Options: --rounds N (default 3).
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { parseModelConfig } from '../src/engine/onnx/config.ts';
import { Graph, type Tensor } from '../src/engine/onnx/graph.ts';
import { batchBytes, modelBytes } from '../src/engine/onnx/memory.ts';
import { linear } from '../src/engine/onnx/ops.ts';
import { createSession, float32 } from '../src/engine/onnx/session.ts';
import { Trainer } from '../src/engine/onnx/trainer.ts';
import { randomWeights } from '../src/engine/onnx/weights.ts';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });
const rounds = Number(options.rounds);
const threads = availableParallelism();
const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

const graph = new Graph();
const [a, b] = ['a', 'b'].map((name) => graph.input(name, 'float32', [1024, 1024])) as [Tensor, Tensor];
graph.output('y', linear(graph, a, b));
const session = await createSession(graph, 'gemm', { threads, spin: false });
const ones = () => float32(new Float32Array(2 ** 20).fill(1), [1024, 1024]);
const [feeds, fetches] = [{ a: ones(), b: ones() }, { y: ones() }];
/** Processor seconds of all threads. */
async function cost(work: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

/** GFLOP per processor second. */
async function gemm(): Promise<number> {
  const seconds = await cost(async () => {
    for (let i = 0; i < 10; i++) await session.run(feeds, fetches);
  });
  return (10 * 2 ** 31) / seconds / 1e9;
}

type Case = { readonly hidden: number; readonly layers: number; readonly rows: number; readonly length: number };
const cases: Case[] = [
  { hidden: 128, layers: 4, rows: 16, length: 128 },
  { hidden: 256, layers: 4, rows: 16, length: 128 },
  { hidden: 512, layers: 4, rows: 16, length: 128 },
  { hidden: 256, layers: 8, rows: 16, length: 128 },
  { hidden: 256, layers: 4, rows: 1, length: 128 },
  { hidden: 256, layers: 4, rows: 4, length: 128 },
  { hidden: 256, layers: 4, rows: 64, length: 128 },
  { hidden: 256, layers: 4, rows: 4, length: 512 },
  { hidden: 256, layers: 4, rows: 1, length: 2048 },
];

console.log(
  '| hidden | layers | parameters | sequences × length | s per 1000 tokens | of Gemm | model MiB | batch MiB |',
);
console.log('|---|---|---|---|---|---|---|---|');
const lines = [];
for (const { hidden, layers, rows, length } of cases) {
  const config = parseModelConfig({
    model_type: 'qwen3',
    hidden_size: hidden,
    intermediate_size: 3 * hidden,
    num_hidden_layers: layers,
    num_attention_heads: hidden / 64,
    num_key_value_heads: hidden / 128,
    head_dim: 64,
    vocab_size: 512,
    max_position_embeddings: 4096,
    tie_word_embeddings: true,
  });
  const trainer = new Trainer({ config, weights: randomWeights(config, 1) }, { threads });
  const ids = Int32Array.from({ length: length + 1 }, (_, i) => (i * i + 7 * i) % 512);
  const datum = { tokens: ids.slice(0, -1), targets: ids.slice(1), weights: new Float32Array(length).fill(1e-3) };
  const data = Array.from({ length: rows }, () => datum);
  const found: { seconds: number; ratio: number }[] = [];
  for (let round = -1; round < rounds; round++) {
    const before = await gemm();
    const seconds = await cost(async () => {
      await trainer.forwardBackward(data, { kind: 'cross_entropy' });
      trainer.optimStep({ learningRate: 1e-4 });
    });
    const gflops = (6 * trainer.parameters * rows * length) / seconds / 1e9;
    if (round >= 0) found.push({ seconds, ratio: gflops / ((before + (await gemm())) / 2) });
  }
  const batchRows = Math.min(rows, Math.max(1, Math.floor(1280 / length)));
  const line = {
    hidden,
    layers,
    parameters: trainer.parameters,
    rows,
    length,
    seconds_per_1000_tokens: Number(((1000 * median(found.map((f) => f.seconds))) / (rows * length)).toFixed(3)),
    ratio: Number(median(found.map((f) => f.ratio)).toFixed(2)),
    model_mib: Number((modelBytes(config, trainer.trainableParameters) / 2 ** 20).toFixed(1)),
    batch_mib: Math.round(batchBytes(config, batchRows, length, true) / 2 ** 20),
  };
  lines.push(line);
  console.log(
    `| ${hidden} | ${layers} | ${(line.parameters / 1e6).toFixed(1)}M | ${rows} × ${length} | ` +
      `${line.seconds_per_1000_tokens} | ${line.ratio} | ${line.model_mib} | ${line.batch_mib} |`,
  );
  await trainer.close();
}
console.log(JSON.stringify({ lines, threads }));
