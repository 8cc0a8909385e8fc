/**
 * The engine that speaks Tinker's protocol, against SkyRL's server itself on the support desk's base model. What it needs and where it is
 * installed: skyrl-server.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { readCheckpoint, writeCheckpoint } from '../src/engine/checkpoint.ts';
import { engineConformance } from '../src/engine/conformance.ts';
import type { Datum } from '../src/engine/engine.ts';
import { createOnnxEngine } from '../src/engine/onnx/engine.ts';
import { dialects } from '../src/engine/tinker/dialects.ts';
import { createTinkerEngine } from '../src/engine/tinker/engine.ts';
import { leftOut, pythonMissing } from './python.ts';
import { type SkyRL, startSkyRL } from './skyrl-server.ts';

// The first run installs 5 GB, and every new shape is compiled.
vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 3_600_000 });

describe.skipIf(pythonMissing !== null)(`SkyRL's server${leftOut}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-skyrl-'));
  let scratch: string;
  let server: SkyRL;
  const model = join(folder, 'model');
  beforeAll(async () => {
    // In full precision: the server computes adapters and optimizer in whatever the config says the base is in.
    const { config, weights, files } = await readCheckpoint('examples/support-desk/model');
    await writeCheckpoint(model, { config, weights, files });
    server = await startSkyRL({ model, folder: join(folder, 'server') });
  });
  afterAll(async () => {
    await server?.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    scratch = mkdtempSync(join(folder, 'scratch-'));
  });
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') console.error(server.log());
  });

  const create = () =>
    createTinkerEngine({ url: server.url, baseModel: server.baseModel, folder: model, dialect: 'skyrl', rank: 8 });

  describe('conforms:', () => {
    const checks = engineConformance(async () => {
      const engine = create();
      return { engine, folder: model, scratch, tolerance: 1e-3, close: () => engine.close() };
    }, dialects.skyrl.cannot);
    for (const { name, cannot, run } of checks) test.skipIf(cannot !== undefined)(name, run);
  });

  const data: Datum[] = [1, 2].map((seed) => ({
    tokens: Array.from({ length: 20 }, (_, i) => (seed * 31 + i * 7) % 200),
    targets: Array.from({ length: 20 }, (_, i) => (seed * 31 + (i + 1) * 7) % 200),
    weights: Array(20).fill(1 / 40),
  }));
  const step = async (engine: ReturnType<typeof create>, name: string) => {
    const [{ loss }] = await Promise.all([
      engine.forwardBackward(name, data, { kind: 'cross_entropy' }),
      engine.optimStep(name, { learningRate: 0.003 }),
    ]);
    return loss;
  };

  test('an adapter that was trained there computes the same here', async () => {
    const engine = create();
    const embedded = createOnnxEngine();
    try {
      await engine.load('m', model);
      for (let i = 0; i < 5; i++) await step(engine, 'm');
      await engine.snapshot('m', 'frozen');
      await engine.save('frozen', join(scratch, 'adapter'));
      await embedded.load('m', join(scratch, 'adapter'));
      const [there, here] = await Promise.all([engine.forward('m', data), embedded.forward('m', data)]);
      for (const [i, lps] of there.logprobs.entries())
        for (const [t, lp] of lps.entries()) expect(Math.abs(lp - here.logprobs[i]![t]!)).toBeLessThan(1e-3);
    } finally {
      await engine.close();
      await embedded.close();
    }
  });

  test('killed and started again, it goes on from what was saved', async () => {
    const engine = create();
    try {
      await engine.load('m', model);
      for (let i = 0; i < 2; i++) await step(engine, 'm');
      await engine.save('m', join(scratch, 'saved'));
      const expected = [await step(engine, 'm'), await step(engine, 'm')];
      await server.kill('SIGKILL');
      server = await server.restart();
      await expect(engine.forward('m', data)).rejects.toMatchObject({ retryable: true });
      expect(await engine.models()).toEqual([]);
      await engine.load('m', join(scratch, 'saved'));
      const again = [await step(engine, 'm'), await step(engine, 'm')];
      for (const [i, loss] of again.entries()) expect(Math.abs(loss - expected[i]!)).toBeLessThan(1e-3);
    } finally {
      await engine.close();
    }
  });
});
