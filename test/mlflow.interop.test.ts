/**
 * Runs at a real MLflow server: what the stand-in of the other tests answers is what MLflow answers, and what was trained is read back with
 * MLflow's own client. Needs Python 3.12; MLflow is 0.8 GB, once (python.ts says where).
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { replay } from '../src/train/fixtures/mlflow.ts';
import { TabularEngine } from '../src/train/fixtures/tabular-engine.ts';
import { toy, toyStages } from '../src/train/fixtures/toy.ts';
import { mlflowTracker } from '../src/train/mlflow.ts';
import { mlflowSettings } from '../src/train/mlflow-settings.ts';
import { createRun, train } from '../src/train/run.ts';
import { memoryRunStore } from '../src/train/run-record.ts';
import { leftOut, pythonMissing, venv } from './python.ts';

// The first run installs it.
vi.setConfig({ testTimeout: 900_000, hookTimeout: 1_800_000 });

const release = '3.17.2';
const python = venv(`mlflow-${release}`);
const run = promisify(execFile);

type Read = {
  readonly name: string;
  readonly status: string;
  readonly start: number;
  readonly end: number | null;
  readonly params: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  /** By name: step, value, when. */
  readonly history: Readonly<Record<string, readonly (readonly [number, number, number])[]>>;
};

describe.skipIf(pythonMissing !== null)(`runs at MLflow${leftOut}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-mlflow-'));
  const env = { ...python.env, MLFLOW_DISABLE_TELEMETRY: 'true', DO_NOT_TRACK: 'true' };
  let server: ChildProcess;
  let url: string;

  const read = async (experiment: string): Promise<Read[]> => {
    const { stdout } = await run(python.bin('python'), ['test/python/mlflow-read.py', url, experiment], {
      ...{ env, maxBuffer: 2 ** 26 },
    });
    return JSON.parse(stdout.trim().split('\n').at(-1)!);
  };

  beforeAll(async () => {
    await python.once('mlflow', (pip) => pip(`mlflow==${release}`));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    server = spawn(
      python.bin('mlflow'),
      [
        ...['server', '--host', '127.0.0.1', '--port', String(port), '--workers', '1'],
        ...['--backend-store-uri', `sqlite:///${join(folder, 'mlflow.db')}`],
        ...['--artifacts-destination', join(folder, 'artifacts')],
      ],
      { cwd: folder, env, detached: true, stdio: 'ignore' }, // a group of its own: it starts workers as children
    );
    for (;;) {
      if (server.exitCode !== null) throw new Error(`mlflow server ended with ${server.exitCode}.`);
      const answers = await fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (answers) return;
      await sleep(200);
    }
  });
  afterAll(async () => {
    if (server?.exitCode === null) {
      const gone = once(server, 'exit');
      process.kill(-server.pid!, 'SIGKILL');
      await gone;
    }
    rmSync(folder, { recursive: true, force: true });
  });

  test('answers what is recorded of it', async () => {
    const recorded = readFileSync('src/train/fixtures/mlflow-recorded.json', 'utf8');
    expect(await replay(url, 'recorded-anew')).toEqual(JSON.parse(recorded));
  });

  test('a run of `pawl train` is there with its params, tags and every figure of every step', async () => {
    const home = join(folder, 'home');
    const examples = ['red', 'green', 'blue', 'grey'].map((word) => ({
      messages: [
        { role: 'user', content: `Say ${word}.` },
        { role: 'assistant', content: word },
      ],
      ...{ quality: 1, taskType: 'words' },
    }));
    writeFileSync(join(folder, 'examples.jsonl'), examples.map((one) => `${JSON.stringify(one)}\n`).join(''));
    writeFileSync(
      join(folder, 'pawl.config.ts'),
      `export default { agents: [{ name: 'desk' }], mlflow: { url: '${url}', experiment: 'desk' } };\n`,
    );
    const pawl = (...args: string[]) =>
      run(process.execPath, [resolve('bin/pawl.js'), ...args], {
        cwd: folder,
        env: { ...process.env, DATABASE_URL: '', PAWL_HOME: home },
      });
    await pawl(
      ...['train', '--recipe', 'sft', '--examples', 'examples.jsonl', '--base', resolve('examples/support-desk/model')],
      ...['--id', 'sft-1', '--no-probe'],
    );
    const { stdout } = await pawl('runs', 'show', 'sft-1', '--jsonl');
    const steps = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(steps.length).toBeGreaterThan(0);
    const [logged, ...others] = await read('desk');
    expect(others).toEqual([]);
    expect(logged).toMatchObject({ name: 'sft-1', status: 'FINISHED' });
    expect(logged!.end).toBeGreaterThan(logged!.start);
    expect(logged!.params).toMatchObject({ recipe: 'sft', seed: '1', steps: String(steps.length) });
    expect(Number(logged!.params['stages.sft.schedule.peak'])).toBeGreaterThan(0);
    expect(logged!.tags).toMatchObject({
      ...{ 'pawl.run': 'sft-1', 'pawl.agent': 'desk', 'pawl.recipe': 'sft', 'pawl.status': 'finished' },
    });
    const loss = logged!.history['sft/loss']!;
    expect(loss.map(([step, value]) => [step, value])).toEqual(steps.map((one) => [one.step, one.loss]));

    // What it has is not sent again.
    expect((await pawl('runs', 'mlflow', 'sft-1')).stdout).toContain('Run sft-1 is in experiment desk');
    expect((await read('desk'))[0]!.history).toEqual(logged!.history);
  });

  test('a run that was interrupted goes on as the same run of MLflow', async () => {
    const store = memoryRunStore();
    const engine = new TabularEngine(toy.vocabulary);
    engine.create('m');
    await engine.save('m', join(folder, 'base'));
    const warned: string[] = [];
    const tracker = mlflowTracker(mlflowSettings.parse({ url, experiment: 'toy' }), (one) => void warned.push(one));
    const settings = { dataset: 'desk-v3', note: '환불 requests' };
    const what = { id: 'cut', agent: 'desk', recipe: 'test', base: join(folder, 'base'), folder: join(folder, 'cut') };
    await createRun(store, { ...what, settings, seed: 5, budget: {} }, toyStages(), Date.now());
    const parts = () => ({
      engine: new TabularEngine(toy.vocabulary),
      store,
      stages: toyStages(),
      model: 'm',
      tracker,
    });
    let seen = 0;
    for await (const _ of train('cut', parts())) if (++seen === 9) break;
    expect(await read('toy')).toMatchObject([{ status: 'SCHEDULED', end: null }]);
    for await (const _ of train('cut', parts()));
    const [logged, ...others] = await read('toy');
    expect(others).toEqual([]);
    expect(logged).toMatchObject({ status: 'FINISHED', params: { note: '환불 requests', dataset: 'desk-v3' } });
    expect(logged!.tags).toMatchObject({ 'pawl.dataset': 'desk-v3', 'mlflow.source.name': 'pawl' });
    const stored = (await store.metrics('cut')).filter(({ values }) => values.loss !== undefined);
    const there = Object.entries(logged!.history).filter(([key]) => key.endsWith('/loss'));
    expect(there.flatMap(([, points]) => points.map(([step]) => step)).toSorted((a, b) => a - b)).toEqual(
      stored.map(({ step }) => step),
    );
    expect(warned).toEqual([]);
  });
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  await new Promise((done) => probe.close(done));
  return port;
}
