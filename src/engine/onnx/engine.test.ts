import { mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readCheckpoint, writeCheckpoint } from '../checkpoint.ts';
import { engineConformance } from '../conformance.ts';
import type { Datum, Engine } from '../engine.ts';
import { tinyConfig as config, writeTinyCheckpoint } from '../fixtures/tiny-checkpoint.ts';
import { modelConfigJson, parameterCount, parameterShapes, parseModelConfig } from './config.ts';
import { createOnnxEngine } from './engine.ts';
import { leastBytes, memoryNeed } from './memory.ts';

let scratch: string;
let folder: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'pawl-engine-'));
  folder = join(scratch, 'checkpoint');
  await writeTinyCheckpoint(folder);
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

/** A checkpoint of any size that takes no room: the header says where 16 bits of every weight lie, in a file full of holes. */
async function writeHollow(at: string, shape: Record<string, unknown>, more: [string, number[]][] = []): Promise<void> {
  const header: Record<string, unknown> = {};
  let end = 0;
  for (const [name, sizes] of [...parameterShapes(parseModelConfig(shape)), ...more]) {
    const begin = end;
    end += 2 * sizes.reduce((a, b) => a * b, 1);
    header[name] = { dtype: 'BF16', shape: sizes, data_offsets: [begin, end] };
  }
  const json = Buffer.from(JSON.stringify(header));
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(BigInt(json.length));
  await mkdir(at);
  await writeFile(join(at, 'config.json'), JSON.stringify(shape));
  await writeFile(join(at, 'model.safetensors'), Buffer.concat([start, json]));
  await truncate(join(at, 'model.safetensors'), 8 + json.length + end);
}

const llama8b = {
  model_type: 'llama',
  hidden_size: 4096,
  intermediate_size: 14336,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  vocab_size: 128256,
  max_position_embeddings: 8192,
};

test('a checkpoint beyond the memory is refused part by part before a weight is read, and an adapter is offered if that fits', async () => {
  const big = join(scratch, 'llama-8b');
  await writeHollow(big, llama8b);
  await using(create({ memory: 16 * 2 ** 30 }), async (engine) => {
    await expect(engine.load('m', big)).rejects.toThrow(
      /llama-8b \(8030261248 parameters\) needs 150\.6 GiB; of the 16\.0 GiB this engine may use, 0\.0 MiB are taken\. It is made of 29\.9 GiB of weights as float32, 89\.7 GiB of gradients and optimizer state, 29\.9 GiB for the copy that answers, at least 1\.0 GiB of keys and values\. Unload a model/,
    );
    await expect(engine.load('m', big, { lora: { rank: 16, alpha: 32 } })).rejects.toThrow(
      /needs 61\.3 GiB.*480\.0 MiB of gradients and optimizer state/,
    );
  });
  await using(create({ memory: 64 * 2 ** 30 }), async (engine) => {
    await expect(engine.load('m', big)).rejects.toThrow(
      /With an adapter \(lora\) beside frozen weights it needs 61\.3 GiB/,
    );
  });
});

test('a file that holds what its config does not name is refused before it is read', async () => {
  const stuffed = join(scratch, 'stuffed');
  await writeHollow(stuffed, modelConfigJson(config), [['model.extra.weight', [2 ** 20, 2 ** 13]]]);
  await using(create(), async (engine) => {
    await expect(engine.load('m', stuffed)).rejects.toThrow(
      /a tensor model\.extra\.weight that its config\.json does not name/,
    );
  });
});

test('two models that fit one by one but not together are not both loaded', async () => {
  const bytes = leastBytes(memoryNeed(config, parameterCount(config)));
  await using(create({ memory: 1.5 * bytes }), async (engine) => {
    const both = await Promise.allSettled([engine.load('a', folder), engine.load('b', folder)]);
    expect(both.map((r) => r.status).sort()).toEqual(['fulfilled', 'rejected']);
    const { name } = (await engine.models())[0]!;
    // What was let in can be trained and sampled from at once.
    await engine.forwardBackward(name, [datum], { kind: 'cross_entropy' });
    await engine.sample(name, [[1, 2]], { maxTokens: 40 });
    await engine.unload(name);
    await engine.load('c', folder);
  });
});

test('generation ends at every token that generation_config.json names', async () => {
  await using(create(), async (engine) => {
    await engine.load('m', folder);
    const greedy = { maxTokens: 6, temperature: 0, stopTokens: [] };
    const { tokens } = (await engine.sample('m', [[1, 2]], greedy))[0]!.samples[0]!;
    const generation = JSON.stringify({ eos_token_id: [23, tokens[2]] });
    await writeFile(join(folder, 'generation_config.json'), generation);
    await engine.load('n', folder);
    const { samples } = (await engine.sample('n', [[1, 2]], { maxTokens: 6, temperature: 0 }))[0]!;
    expect(samples[0]!.finish).toBe('stop');
    expect(samples[0]!.tokens.at(-1)).toBe(tokens[2]);
  });
});

test('tensors that nobody computes with are left out: rotary tables, and the copy of a tied head', async () => {
  const { config: json, weights } = await readCheckpoint(folder);
  const more = new Map(weights);
  more.set('model.layers.0.self_attn.rotary_emb.inv_freq', { shape: [4], data: new Float32Array(4) });
  more.set('lm_head.weight', weights.get('model.embed_tokens.weight')!);
  await writeCheckpoint(join(scratch, 'more'), { config: json, weights: more });
  await using(create(), async (engine) => {
    const [less, same] = [await engine.load('m', folder), await engine.load('n', join(scratch, 'more'))];
    expect(same.parameters).toBe(less.parameters);
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
