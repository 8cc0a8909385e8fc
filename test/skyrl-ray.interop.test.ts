/**
 * `pawl train` at SkyRL on Ray, its model spread over two workers: the support desk's base learns from an expert's conversations with LoRA,
 * both sides are killed in the middle, Pawl first and then SkyRL, and what comes home does better on golden cases. A quarter of an hour on two
 * cores. What it needs and where it is installed: skyrl-server.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { supportDesk } from '../examples/support-desk/desk.ts';
import { expert } from '../examples/support-desk/expert.ts';
import { readGolden } from '../examples/support-desk/golden.ts';
import { readCheckpoint, writeCheckpoint } from '../src/engine/checkpoint.ts';
import { createOnnxEngine } from '../src/engine/onnx/engine.ts';
import { loadChatCodec } from '../src/simulate/chat-codec.ts';
import { makeTasks } from '../src/simulate/environment.ts';
import { play } from '../src/simulate/episode.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { measureSuccess } from '../src/train/episodes.ts';
import { until } from './pawl.ts';
import { leftOut, pythonMissing } from './python.ts';
import { onRay, type SkyRL, startSkyRL } from './skyrl-server.ts';

// The first run installs 7 GB, Ray takes two minutes to start, and every new shape is compiled.
vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 3_600_000 });

describe.skipIf(pythonMissing !== null)(`SkyRL on Ray${leftOut}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-ray-'));
  const home = join(folder, '.pawl');
  const model = join(folder, 'model');
  let server: SkyRL;
  let store: Store;
  let running: ChildProcess | undefined;

  beforeAll(async () => {
    const { config, weights, files } = await readCheckpoint('examples/support-desk/model');
    await writeCheckpoint(model, { config, weights, files });
    const tasks = makeTasks(supportDesk, 'train', 320, 1);
    const episodes = (await play(supportDesk, expert(tasks), tasks)).flat();
    const lines = episodes.map(({ messages, type }) => JSON.stringify({ messages, taskType: type, quality: 1 }));
    writeFileSync(join(folder, 'examples.jsonl'), `${lines.join('\n')}\n`);
    server = await startSkyRL({ model, folder: join(folder, 's'), backend: onRay(2) });
    const settings = {
      agents: [{ name: 'desk', train: { base: model, recipe: 'sft' } }],
      engine: { kind: 'tinker', url: server.url, baseModel: model, folder: model, patienceSeconds: 1200 },
    };
    writeFileSync(join(folder, 'pawl.config.ts'), `export default ${JSON.stringify(settings)};\n`);
    store = await openStore({ home });
  });
  afterAll(async () => {
    running?.kill('SIGKILL');
    await server?.kill('SIGKILL');
    await store?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') console.error(server.log());
  });

  let text = '';
  const start = (...args: string[]): Promise<number | null> => {
    const { DATABASE_URL: _, ...env } = process.env;
    const child = spawn(process.execPath, [resolve('bin/pawl.js'), ...args], { cwd: folder, env });
    running = child;
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (some) => (text += some));
    return once(child, 'close').then(([code]) => code as number | null);
  };
  const metrics = join(home, 'runs', 'ray', 'metrics.jsonl');
  const steps = () => (existsSync(metrics) ? readFileSync(metrics, 'utf8').trim().split('\n').length : 0);
  const reach = (step: number, ended: Promise<unknown>) => Promise.race([until(steps, (n) => n >= step, 500), ended]);

  /** Share of golden cases solved at temperature 1, two attempts each, by the embedded engine. */
  async function golden(checkpoint: string): Promise<number> {
    const engine = createOnnxEngine();
    try {
      await engine.load('m', checkpoint);
      const codec = await loadChatCodec(model);
      return (await measureSuccess(supportDesk, readGolden(), codec, engine, 'm', { seed: 1, attempts: 2 })).success;
    } finally {
      await engine.close();
    }
  }

  test('learns with two workers, though Pawl and then SkyRL are killed in the middle', async () => {
    const begun = start(
      'train',
      '--examples',
      'examples.jsonl',
      ...'--lora 16 --learning-rate 0.003 --no-probe --id ray'.split(' '),
    );
    await reach(12, begun);
    running!.kill('SIGKILL');
    await begun;
    expect(steps()).toBeGreaterThanOrEqual(12);

    const resumed = start('runs', 'resume', 'ray');
    await reach(22, resumed);
    await server.kill('SIGKILL');
    server = await server.restart();
    const code = await resumed;
    expect(text).toContain('Run ray is finished');
    expect(code).toBe(0);
    expect(steps()).toBe(40);

    const [before, after] = [await golden(model), await golden(join(home, 'models', 'ray'))];
    console.log(`golden ${before.toFixed(3)} → ${after.toFixed(3)}`);
    expect(after - before).toBeGreaterThanOrEqual(0.15);
  });
});
