/** The same algorithms on the embedded engine: a small random transformer learns the toy task, and resumes onto its curve. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeCheckpoint } from '../engine/checkpoint.ts';
import { type ModelConfig, modelConfigJson, parameterShapes } from '../engine/onnx/config.ts';
import { createOnnxEngine } from '../engine/onnx/engine.ts';
import { randomWeights } from '../engine/onnx/weights.ts';
import { createTinkerEngine } from '../engine/tinker/engine.ts';
import { startStandIn } from '../engine/tinker/fixtures/stand-in.ts';
import { toy, toySource } from './fixtures/toy.ts';
import { grpo } from './grpo.ts';
import type { StepMetrics } from './metrics.ts';
import { createRun, train } from './run.ts';
import { memoryRunStore } from './run-record.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-onnx-train-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const config: ModelConfig = {
  model_type: 'qwen3',
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 16,
  vocab_size: toy.vocabulary,
  max_position_embeddings: 16,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  eos_token_ids: [toy.stop],
  pad_token_id: toy.stop,
};

beforeAll(async () => {
  const shapes = parameterShapes(config);
  const weights = new Map(
    [...randomWeights(config, 1)].map(([name, data]) => [name, { shape: shapes.get(name)!, data }]),
  );
  await writeCheckpoint(join(folder, 'base'), { config: modelConfigJson(config), weights, files: new Map() });
});

// A toy's tokens are all decisions, so it moves far from its reference per token: the KL rule is given room below.
const stages = (steps = 30) => [
  grpo(toySource(), {
    steps,
    tasksPerStep: 4,
    attempts: 16,
    lengthNormaliser: 2,
    schedule: { peak: 0.008, shape: 'constant', warmup: 0, floor: 1 },
  }),
];

async function trained(id: string, interruptAfter: number): Promise<readonly StepMetrics[]> {
  const store = memoryRunStore();
  const run = {
    id,
    agent: 'toy',
    recipe: 'grpo',
    settings: {},
    base: join(folder, 'base'),
    folder: join(folder, id),
    seed: 3,
    budget: {},
  };
  await createRun(store, run, stages(), 0);
  for (const limit of [interruptAfter, Infinity]) {
    const engine = createOnnxEngine({ threads: 1 });
    try {
      let done = 0;
      for await (const _ of train(id, { engine, store, stages: stages(), checkpointEvery: 4, rules: { maxKl: 5 } }))
        if (++done >= limit) break;
    } finally {
      await engine.close();
    }
    if (limit === Infinity) break;
  }
  return store.metrics(id);
}

describe('GRPO on the embedded engine', () => {
  it('learns the toy task, samples from the very policy it trains, and resumes onto the same curve', async () => {
    const whole = await trained('cut-late', 29);
    const cut = await trained('cut-early', 10);
    const reward = (m: StepMetrics) => m.values.reward_mean!;
    expect(reward(whole[0]!)).toBeLessThan(0.4);
    expect(whole.slice(-5).reduce((sum, m) => sum + reward(m), 0) / 5).toBeGreaterThan(0.7);
    expect(Math.max(...whole.map((m) => m.values.sampler_gap ?? 0))).toBeLessThan(1e-3);
    expect(cut.map(reward)).toEqual(whole.map(reward));
    for (const [i, m] of whole.entries()) expect(cut[i]!.values.loss).toBeCloseTo(m.values.loss!, 6);
  });
});

describe('GRPO at a server that takes means and samples where it trains', () => {
  it('plays with the very policy it trains, beside its reference, in two places', async () => {
    const base = join(folder, 'base');
    const server = await startStandIn({ folder: base, dialect: 'skyrl', maxModels: 2 });
    const engine = createTinkerEngine({ url: server.url, baseModel: 'base', folder: base, rank: 8 });
    const store = memoryRunStore();
    const about = { id: 'remote', agent: 'toy', recipe: 'grpo', settings: {}, base, seed: 3, budget: {} };
    try {
      await createRun(store, { ...about, folder: join(folder, 'remote') }, stages(3), 0);
      for await (const _ of train('remote', { engine, store, stages: stages(3) }));
    } finally {
      await engine.close();
      await server.close();
    }
    const metrics = await store.metrics('remote');
    expect(metrics).toHaveLength(3);
    for (const { values } of metrics) {
      expect(values.sampler_gap).toBeLessThan(1e-3);
      expect(values.grad_norm).toBeGreaterThan(0);
    }
  });
});
