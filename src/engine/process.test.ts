import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isAlive } from '../durable.ts';
import { writeModel } from './fixtures/write-model.ts';
import { restartDelay, startEngine } from './process.ts';

let dir: string;
let folder: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'pawl-process-'));
  folder = join(dir, 'tiny');
  await writeModel(folder, 'd16-l2-h2-kv1-v280-f24-c128');
});
afterAll(() => rm(dir, { recursive: true }));

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((done) => setTimeout(done, 10));
}

test('the engine answers over HTTP, dies, comes back with what it had, and goes with its parent', async () => {
  const log: string[] = [];
  const running = await startEngine({ models: [{ name: 'tiny', folder }], threads: 1, log: (line) => log.push(line) });
  let pid = running.pid!;
  try {
    const client = new OpenAI({ baseURL: `${running.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const ask = async () => {
      const body = { model: 'tiny', messages: [{ role: 'user' as const, content: 'hi' }], max_tokens: 8, seed: 3 };
      const answer = await client.chat.completions.create({ ...body, return_token_ids: true } as typeof body);
      return (answer.choices[0] as unknown as { token_ids: number[] }).token_ids;
    };
    const before = await ask();
    expect(before.length).toBeGreaterThan(0);
    expect(await ask()).toEqual(before); // the same seed, the same answer

    // Trained and saved: what a restart must find.
    const { engine } = running;
    const data = [{ tokens: [1, 2, 3], targets: [2, 3, 4], weights: [1, 1, 1] }];
    await engine.forwardBackward('tiny', data, { kind: 'cross_entropy' });
    await engine.optimStep('tiny', { learningRate: 0.01 });
    const saved = join(dir, 'saved');
    await engine.save('tiny', saved);
    await engine.load('other', folder);
    // Trained and not saved: older weights under its name would be taken for it.
    await engine.load('learner', folder);
    await engine.forwardBackward('learner', data, { kind: 'cross_entropy' });
    process.kill(pid, 'SIGINT'); // Ctrl-C in a terminal reaches it too; its parent decides when it ends
    const trained = await engine.forward('tiny', data);

    let seen = () => {};
    const firstToken = new Promise<void>((done) => {
      seen = done;
    });
    const endless = engine.sample('tiny', [[1]], { maxTokens: 120, n: 64 }, { onToken: () => seen() });
    const lost = expect(endless).rejects.toMatchObject({ name: 'EngineError', retryable: true });
    await firstToken;
    process.kill(pid, 'SIGKILL');
    await lost;
    await until(() => !isAlive(pid));

    const models = await engine.models(); // waits for the new process
    expect(models.map(({ name, version }) => [name, version])).toEqual([
      ['tiny', 1],
      ['other', 0],
    ]);
    expect(running.restarts).toBe(1);
    await expect(engine.optimStep('learner', { learningRate: 0.01 })).rejects.toThrow(/no model "learner"/);
    expect(running.pid).not.toBe(pid);
    pid = running.pid!;
    expect(await engine.forward('tiny', data)).toEqual(trained);
    expect((await ask()).length).toBeGreaterThan(0); // at the same address
    expect(log.join('\n')).toMatch(/ended by SIGKILL; it is started again in 100 ms/);
    const health = (await (await fetch(`${running.url}/health`)).json()) as { pid: number; memory: { rss: number } };
    expect(health.pid).toBe(pid);
    expect(health.memory.rss).toBeGreaterThan(2 ** 20);
  } finally {
    await running.close();
  }
  expect(isAlive(pid)).toBe(false);
  expect(existsSync(running.socket)).toBe(false);
});

test('a model that is missing, or too large, is said at once and with the numbers', async () => {
  await expect(startEngine({ models: [{ name: 'x', folder: join(dir, 'nowhere') }] })).rejects.toThrow(
    /could not be started: There is no checkpoint folder .*nowhere/,
  );
  await expect(startEngine({ models: [{ name: 'x', folder }], memory: 1000 })).rejects.toThrow(
    /needs 1 MiB; of the 1 MiB this engine may use|needs .* MiB/,
  );
});

test.skipIf(process.platform === 'win32')('an engine whose parent was killed ends by itself', async () => {
  const script = join(import.meta.dirname, 'fixtures/engine-parent.ts');
  const parent = spawn(process.execPath, ['--import', 'tsx', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said = await new Promise<string>((done) => parent.stdout.once('data', (text: Buffer) => done(String(text))));
  const [pid, socket] = [Number(said.split(' ')[0]), said.trim().split(' ')[1]!];
  expect(isAlive(pid)).toBe(true);
  parent.kill('SIGKILL');
  await until(() => !isAlive(pid));
  expect(existsSync(socket)).toBe(false);
});

test('restarts wait longer each time, up to ten seconds', () => {
  expect([0, 1, 2, 3, 7, 50].map(restartDelay)).toEqual([100, 200, 400, 800, 10_000, 10_000]);
});
