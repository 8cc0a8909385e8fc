/**
 * How fast the embedded engine trains and samples, beside what this machine's matrix products can do. Everything is measured in turns
 * inside one process, a round of each after the other, so that a busy machine slows all alike; figures are medians.
 *
 *   gemm_gflops         a plain 1024³ ONNX Runtime Gemm
 *   train_gflops        full steps (forwardBackward + optimStep), d 256, 4 layers, vocabulary 512, 32 × 160 tokens,
 *                       counted as 6 · parameters · tokens, which leaves attention out
 *   train_ratio         the median over rounds of the two above, divided
 *   train_tokens_per_s  full steps, d 128, 4 layers, 64 × 256 tokens
 *   sample_tokens_per_s the same model: 64 prompts at a time, from the first token to a context of 256, temperature 1
 *   sample_ratio        the median over rounds of sampling divided by training, both in tokens per second
 *   snapshot_ms         from new weights to a sampler that can answer
 *
 * Options: --rounds N (default 7).
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Datum } from '../src/engine/engine.ts';
import { type ModelConfig, parseModelConfig } from '../src/engine/onnx/config.ts';
import { Graph, type Tensor } from '../src/engine/onnx/graph.ts';
import { linear } from '../src/engine/onnx/ops.ts';
import { seededRandom } from '../src/engine/onnx/random.ts';
import { createSampler } from '../src/engine/onnx/sampler.ts';
import { createSession, float32 } from '../src/engine/onnx/session.ts';
import { Trainer } from '../src/engine/onnx/trainer.ts';
import { randomWeights } from '../src/engine/onnx/weights.ts';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '7' } } });
const rounds = Number(options.rounds);
const threads = availableParallelism();

const qwen = (hidden: number): ModelConfig =>
  parseModelConfig({
    model_type: 'qwen3',
    hidden_size: hidden,
    intermediate_size: 3 * hidden,
    num_hidden_layers: 4,
    num_attention_heads: hidden / 64,
    num_key_value_heads: hidden / 128,
    head_dim: 64,
    vocab_size: 512,
    max_position_embeddings: 1024,
    tie_word_embeddings: true,
  });

function randomData(count: number, length: number): Datum[] {
  const random = seededRandom(1);
  const weights = new Float32Array(length).fill(1 / (count * length));
  return Array.from({ length: count }, () => {
    const ids = Int32Array.from({ length: length + 1 }, () => Math.floor(random() * 512));
    return { tokens: ids.slice(0, -1), targets: ids.slice(1), weights };
  });
}

const seconds = async (work: () => Promise<unknown>) => {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
};

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function gemm() {
  const size = 1024;
  const graph = new Graph();
  const [a, b] = ['a', 'b'].map((name) => graph.input(name, 'float32', [size, size])) as [Tensor, Tensor];
  graph.output('y', linear(graph, a, b));
  const session = await createSession(graph, 'gemm', { threads, spin: false });
  const random = seededRandom(2);
  const matrix = () => float32(Float32Array.from({ length: size * size }, random), [size, size]);
  const [feeds, fetches] = [{ a: matrix(), b: matrix() }, { y: matrix() }];
  return async () => {
    const times: number[] = [];
    for (let i = 0; i < 10; i++) times.push(await seconds(() => session.run(feeds, fetches)));
    return (2 * size ** 3) / median(times) / 1e9;
  };
}

function training(config: ModelConfig, count: number, length: number) {
  const trainer = new Trainer({ config, weights: randomWeights(config, 1) }, { threads });
  const data = randomData(count, length);
  const step = async () => {
    await trainer.forwardBackward(data, { kind: 'cross_entropy' });
    trainer.optimStep({ learningRate: 1e-3, gradClipNorm: 1 });
  };
  return { step, trainer, tokens: count * length, flops: 6 * trainer.parameters * count * length };
}

/** On-policy sampling as reinforcement learning does it: a snapshot of the trainer's weights, then 64 attempts. */
async function sampling(trainer: Trainer, count: number, length: number, seed: number) {
  const start = performance.now();
  const sampler = await createSampler(trainer.config, trainer.merged(), { threads, slots: count });
  const snapshot = performance.now() - start;
  const prompts = Array.from({ length: count }, (_, i) => [i]);
  const params = { maxTokens: length - 1, temperature: 1, stopTokens: [], seed };
  const time = await seconds(() => sampler.sample(prompts, params));
  await sampler.close();
  return { snapshot, perSecond: (count * (length - 1)) / time };
}

const product = await gemm();
const wide = training(qwen(256), 32, 160);
const narrow = training(qwen(128), 64, 256);

const figures: { gemm: number; train: number; tokens: number; sampled: number; snapshot: number }[] = [];
for (let round = -1; round < rounds; round++) {
  const before = await product();
  const train = wide.flops / (await seconds(wide.step)) / 1e9;
  const tokens = narrow.tokens / (await seconds(narrow.step));
  const { perSecond: sampled, snapshot } = await sampling(narrow.trainer, 64, 256, round + 1);
  const found = { gemm: (before + (await product())) / 2, train, tokens, sampled, snapshot };
  if (round < 0) continue; // the first makes the sessions and fills the caches
  figures.push(found);
  console.log(
    `round ${round + 1}: gemm ${found.gemm.toFixed(1)} GFLOP/s, train ${train.toFixed(1)} GFLOP/s (ratio ` +
      `${(train / found.gemm).toFixed(2)}), d 128 ${tokens.toFixed(0)} tokens/s, sampled ${sampled.toFixed(0)} tokens/s ` +
      `(ratio ${(sampled / tokens).toFixed(2)}), snapshot ${snapshot.toFixed(0)} ms`,
  );
}

const figure = (of: (f: (typeof figures)[number]) => number, digits: number) =>
  Number(median(figures.map(of)).toFixed(digits));
console.log(
  JSON.stringify({
    gemm_gflops: figure((f) => f.gemm, 1),
    train_gflops: figure((f) => f.train, 1),
    train_ratio: figure((f) => f.train / f.gemm, 3),
    train_tokens_per_s: figure((f) => f.tokens, 0),
    sample_tokens_per_s: figure((f) => f.sampled, 0),
    sample_ratio: figure((f) => f.sampled / f.tokens, 3),
    snapshot_ms: figure((f) => f.snapshot, 1),
    threads,
  }),
);
