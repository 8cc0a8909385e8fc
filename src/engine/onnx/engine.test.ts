import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeCheckpoint } from '../checkpoint.ts';
import { engineConformance } from '../conformance.ts';
import type { Datum, Engine } from '../engine.ts';
import { modelConfigJson, parameterShapes, parseModelConfig } from './config.ts';
import { createOnnxEngine } from './engine.ts';
import { randomWeights } from './weights.ts';

const config = parseModelConfig({
  model_type: 'qwen3',
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 8,
  vocab_size: 24,
  max_position_embeddings: 48,
  tie_word_embeddings: true,
});

let scratch: string;
let folder: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'pawl-engine-'));
  folder = join(scratch, 'checkpoint');
  const shapes = parameterShapes(config);
  // Ten times the usual start: differences between tokens are large enough to see.
  const weights = [...randomWeights(config, 5)].map(([name, data]) => {
    const shape = shapes.get(name)!;
    return [name, { shape, data: shape.length === 1 ? data : data.map((x) => 10 * x) }] as const;
  });
  await writeCheckpoint(folder, { config: modelConfigJson(config), weights: new Map(weights) });
});
afterEach(() => rm(scratch, { recursive: true }));

const create = (options = {}) => createOnnxEngine({ threads: 1, ...options });

describe('the embedded engine conforms:', () => {
  const checks = engineConformance(async () => {
    const engine = create();
    return { engine, folder, scratch, close: () => engine.close() };
  });
  test.each(checks)('$name', ({ run }) => run());
});

const datum: Datum = { tokens: [1, 2, 3], targets: [2, 3, 4], weights: [1, 1, 1] };

async function using(engine: Engine, work: (engine: Engine) => Promise<void>) {
  try {
    await work(engine);
  } finally {
    await engine.close();
  }
}

test('calls made without waiting run in the order they were made', () =>
  using(create(), async (engine) => {
    await engine.load('m', folder);
    const calls = [0, 1, 2].flatMap(() => [
      engine.forwardBackward('m', [datum], { kind: 'cross_entropy' }),
      engine.optimStep('m', { learningRate: 0.002 }),
    ]);
    const results = await Promise.all(calls);
    expect(results.map((r) => ('version' in r ? r.version : undefined)).filter(Boolean)).toEqual([1, 2, 3]);
    const losses = results.flatMap((r) => ('loss' in r ? [r.loss] : []));
    expect(losses[2]).toBeLessThan(losses[1]!);
    expect(losses[1]).toBeLessThan(losses[0]!);
  }));

test('a sample asked for after a step sees the step, and does not wait for gradients', () =>
  using(create(), async (engine) => {
    await engine.load('m', folder);
    const before = await engine.sample('m', [[1, 2]], { maxTokens: 2 });
    const data = Array.from({ length: 100 }, () => ({ tokens: Array(40).fill(1), targets: Array(40).fill(2) }));
    const step = engine.optimStep('m', { learningRate: 0.1 });
    let ended = 0;
    const forwards = Array.from({ length: 40 }, async () => {
      await engine.forward('m', data);
      ended++;
    });
    const [after] = await engine.sample('m', [[1, 2]], { maxTokens: 1 });
    expect(ended).toBeLessThan(40);
    expect(after!.version).toBe(before[0]!.version + 1);
    await Promise.all([step, ...forwards]);
  }));

test('a failed call does not hold up the next', () =>
  using(create(), async (engine) => {
    await engine.load('m', folder);
    const bad = engine.forward('m', [{ tokens: [99], targets: [0] }]);
    const good = engine.forward('m', [datum]);
    await expect(bad).rejects.toThrow(/99 among its tokens/);
    expect((await good).logprobs[0]!.length).toBe(3);
  }));

test('a restored model goes on to the last bit', () =>
  using(create(), async (engine) => {
    await engine.load('m', folder);
    const step = async (m: string) => {
      const { loss } = await engine.forwardBackward(m, [datum], { kind: 'cross_entropy' });
      return { loss, ...(await engine.optimStep(m, { learningRate: 0.01 })) };
    };
    await step('m');
    await engine.save('m', join(scratch, 'saved'));
    await engine.load('again', join(scratch, 'saved'));
    expect(await step('again')).toEqual(await step('m'));
    expect(await step('again')).toEqual(await step('m'));
  }));

test('a model too large for the memory is refused with the numbers, and nothing is taken', () =>
  using(create({ memory: 50_000 }), async (engine) => {
    await expect(engine.load('m', folder)).rejects.toThrow(
      /needs 0\.1 MiB; of the 0\.0 MiB this engine may use, 0\.0 MiB are taken/,
    );
    expect(await engine.models()).toEqual([]);
  }));

test('two models that fit one by one but not together are not both loaded', async () => {
  const bytes =
    4 * 4 * [...parameterShapes(config).values()].reduce((sum, shape) => sum + shape.reduce((a, b) => a * b), 0);
  await using(create({ memory: 1.5 * bytes }), async (engine) => {
    const both = await Promise.allSettled([engine.load('a', folder), engine.load('b', folder)]);
    expect(both.map((r) => r.status).sort()).toEqual(['fulfilled', 'rejected']);
    await engine.unload((await engine.models())[0]!.name);
    await engine.load('c', folder);
  });
});

test('a snapshot is saved as full weights, its adapter merged in', () =>
  using(create(), async (engine) => {
    await engine.load('m', folder, { lora: { rank: 2, alpha: 2 } });
    await engine.forwardBackward('m', [datum], { kind: 'cross_entropy' });
    await engine.optimStep('m', { learningRate: 0.1 });
    await engine.snapshot('m', 'frozen');
    await engine.save('frozen', join(scratch, 'frozen'));
    expect((await readdir(join(scratch, 'frozen'))).sort()).toEqual(['config.json', 'model.safetensors']);
    await engine.load('whole', join(scratch, 'frozen'));
    const [a, b] = await Promise.all([engine.forward('m', [datum]), engine.forward('whole', [datum])]);
    for (const [i, lp] of a.logprobs[0]!.entries()) expect(b.logprobs[0]![i]).toBeCloseTo(lp, 4);
    await expect(engine.forward('frozen', [datum])).rejects.toThrow(/frozen is a snapshot/);
  }));

test('an adapter folder refuses a second adapter on top', () =>
  using(create(), async (engine) => {
    await engine.load('m', folder, { lora: { rank: 2, alpha: 2 } });
    await engine.save('m', join(scratch, 'adapter'));
    await expect(engine.load('n', join(scratch, 'adapter'), { lora: { rank: 1, alpha: 1 } })).rejects.toThrow(
      /adapter of its own/,
    );
  }));

test('a closed engine refuses work', async () => {
  const engine = create();
  await engine.load('m', folder);
  await engine.close();
  await expect(engine.load('n', folder)).rejects.toThrow(/closed/);
  await expect(engine.forward('m', [datum])).rejects.toThrow(/no model called m/);
});
