import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LoggedRun, type MlflowStandIn, replay, startMlflow } from './fixtures/mlflow.ts';
import { TabularEngine } from './fixtures/tabular-engine.ts';
import { toy, toyStages } from './fixtures/toy.ts';
import { batchesOf, type MlflowTimes, mlflowTracker, paramsOf, sendRun } from './mlflow.ts';
import { mlflowSettings } from './mlflow-settings.ts';
import { createRun, train } from './run.ts';
import { memoryRunStore, type RunRecord, type RunStore } from './run-record.ts';
import { scalarsOf } from './scalars.ts';

const recorded = JSON.parse(readFileSync(new URL('./fixtures/mlflow-recorded.json', import.meta.url), 'utf8'));

let folder: string;
let store: RunStore;
let server: MlflowStandIn;
let warned: string[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-mlflow-'));
  store = memoryRunStore();
  server = await startMlflow();
  warned = [];
  const engine = new TabularEngine(toy.vocabulary);
  engine.create('m');
  await engine.save('m', join(folder, 'base'));
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

const quick = { gatherMs: 1, longestWaitMs: 5, endMs: 2_000, endAwayMs: 50, againMs: 5, answerMs: 500 };
const settings = (more: object = {}) => mlflowSettings.parse({ url: server.url, ...more });
const tracker = (times: Partial<MlflowTimes> = {}, more: object = {}) =>
  mlflowTracker(settings(more), (sentence) => void warned.push(sentence), { ...quick, ...times });

const create = (id: string) =>
  createRun(
    store,
    {
      ...{ id, agent: 'desk', recipe: 'sft-grpo', base: join(folder, 'base'), folder: join(folder, id), seed: 5 },
      settings: { dataset: 'desk-v3', stages: { grpo: { schedule: { peak: 0.1 }, lag: 0 } } },
      budget: { tokens: 100_000 },
    },
    toyStages(),
    Date.UTC(2026, 0, 31),
  );

async function drain(id: string, track = tracker(), limit = Infinity): Promise<void> {
  let seen = 0;
  const engine = new TabularEngine(toy.vocabulary);
  for await (const _ of train(id, {
    engine,
    store,
    stages: toyStages(),
    model: 'm',
    checkpointEvery: 4,
    tracker: track,
  }))
    if (++seen >= limit) break;
}

/** By step and name; a figure that was sent twice is here twice. */
const figuresOf = ({ metrics }: LoggedRun) =>
  metrics.map(({ step, key, value }) => `${step} ${key} ${value}`).toSorted();
const storedFigures = async (id: string) =>
  (await store.metrics(id))
    .flatMap((metrics) => scalarsOf(metrics).map(([key, value]) => `${metrics.step} ${key} ${value}`))
    .toSorted();

it('the stand-in answers as MLflow did', async () => {
  expect(await replay(server.url, 'somewhere-new')).toEqual(recorded);
});

describe('a run that is logged at MLflow', () => {
  it('is there with every figure of every step once, its params, tags and how it ended', async () => {
    await create('a');
    await drain('a');
    expect([...server.experiments.keys()]).toEqual(['pawl']);
    const [run] = server.runs;
    expect(server.runs).toHaveLength(1);
    expect(run).toMatchObject({ name: 'a', status: 'FINISHED', startTime: Date.UTC(2026, 0, 31) });
    expect(run!.endTime).toBeGreaterThan(0);
    expect(Object.fromEntries(run!.params)).toEqual({
      ...{ recipe: 'sft-grpo', base: join(folder, 'base'), seed: '5', steps: '22', dataset: 'desk-v3' },
      ...{ 'budget.tokens': '100000', 'stages.grpo.schedule.peak': '0.1', 'stages.grpo.lag': '0' },
    });
    expect(Object.fromEntries(run!.tags)).toMatchObject({
      ...{ 'pawl.run': 'a', 'pawl.agent': 'desk', 'pawl.recipe': 'sft-grpo', 'pawl.dataset': 'desk-v3' },
      ...{ 'pawl.status': 'finished', 'pawl.internal': 'false', 'mlflow.runName': 'a' },
    });
    expect(figuresOf(run!)).toEqual(await storedFigures('a'));
    expect(run!.metrics.some(({ key }) => key === 'task types/low reward')).toBe(true);
    const times = run!.metrics.map(({ timestamp }) => timestamp);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times.every((at) => Number.isInteger(at) && at >= Date.UTC(2026, 0, 31))).toBe(true);
    expect(warned).toEqual([]);
  });

  it.each([1, 5, 11, 16])(
    'interrupted after step %i, goes on as the same run of MLflow, each step once',
    async (cut) => {
      await create('a');
      await drain('a', tracker(), cut);
      expect(server.runs[0]).toMatchObject({ status: 'SCHEDULED', endTime: null });
      const before = server.runs[0]!.metrics.length;
      expect(before).toBeGreaterThan(0);
      await drain('a');
      expect(server.runs).toHaveLength(1);
      expect(server.runs[0]).toMatchObject({ status: 'FINISHED' });
      const { metrics } = server.runs[0]!;
      const names = metrics.map(({ step, key }) => `${step} ${key}`);
      expect(new Set(names).size).toBe(names.length);
      const losses = metrics.filter(({ key }) => key.endsWith('/loss')).map(({ step }) => step);
      const stored = (await store.metrics('a')).filter(({ values }) => values.loss !== undefined);
      expect(losses).toEqual(stored.map(({ step }) => step));
      expect(losses.length).toBeGreaterThan(cut);
    },
  );

  it('a run of the same name from another time is another run there', async () => {
    await create('a');
    await drain('a', tracker(), 2);
    store = memoryRunStore();
    await createRun(store, { ...(await recordOf('a')), folder: join(folder, 'b') }, toyStages(), 7);
    await drain('a', tracker(), 2);
    expect(server.runs.map(({ tags }) => tags.get('pawl.begun'))).toEqual([String(Date.UTC(2026, 0, 31)), '7']);
  });

  it('is sent whole when the server comes back while it runs', async () => {
    await create('a');
    server.mode = 'away';
    let steps = 0;
    const engine = new TabularEngine(toy.vocabulary);
    const track = tracker({ endAwayMs: 2_000 });
    for await (const _ of train('a', { engine, store, stages: toyStages(), model: 'm', tracker: track })) {
      if (++steps === 4) while (warned.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      if (steps === 10) server.mode = 'well';
    }
    expect(warned).toEqual([
      expect.stringMatching(
        /^MLflow at http.* cannot be told of run a \(.+\)\. The run goes on without it, and what is missing/,
      ),
    ]);
    expect(figuresOf(server.runs[0]!)).toEqual(await storedFigures('a'));
    expect(server.runs[0]).toMatchObject({ status: 'FINISHED' });
  });

  it.each(['away', 'silent', 'busy'] as const)(
    'is trained as ever where the server is %s, and that is said once',
    async (mode) => {
      server.mode = mode;
      await create('a');
      const begun = performance.now();
      await drain('a', tracker({ answerMs: 40, endMs: 100 }));
      expect(await store.get('a')).toMatchObject({ status: 'finished', step: 22 });
      expect(warned).toHaveLength(1);
      // What it waited for is its own limit at the end, and nothing on the way: 22 steps of 40 ms would be more.
      expect(performance.now() - begun).toBeLessThan(100 + 22 * 40 + 5_000);
      server.mode = 'well';
      await sendRun(settings(), 'a', store);
      expect(figuresOf(server.runs[0]!)).toEqual(await storedFigures('a'));
      expect(server.runs[0]).toMatchObject({ status: 'FINISHED' });
      const sent = server.asked.length;
      await sendRun(settings(), 'a', store);
      expect(server.asked.slice(sent).some(({ bytes }) => bytes > 1_000)).toBe(false);
      expect(figuresOf(server.runs[0]!)).toEqual(await storedFigures('a'));
    },
  );

  it('is not asked again by whoever refuses, and the reason is said', async () => {
    server.mode = 'locked';
    await create('a');
    await drain('a');
    expect(await store.get('a')).toMatchObject({ status: 'finished' });
    expect(warned).toEqual([expect.stringContaining('it answered 401: UNAUTHENTICATED')]);
    expect(server.asked).toHaveLength(1);
  });

  it('failed and stopped runs end so there', async () => {
    await create('a');
    const failing = toyStages().map((stage) => ({
      ...stage,
      begin: async (...given: Parameters<typeof stage.begin>) => {
        const active = await stage.begin(...given);
        return { ...active, step: async () => Promise.reject(new Error('The environment is gone.')) };
      },
    }));
    const engine = new TabularEngine(toy.vocabulary);
    const run = train('a', { engine, store, stages: failing, model: 'm', tracker: tracker() });
    await expect(run.next()).rejects.toThrow('The environment is gone.');
    expect(server.runs[0]).toMatchObject({ status: 'FAILED' });
    expect(server.runs[0]!.tags.get('pawl.reason')).toBe('The environment is gone.');
    await create('b');
    await store.claim('b', { owner: null, request: null }, 'x', 0);
    await store.setStatus('b', 'stopped', 'Stopped on request.', 0);
    await sendRun(settings(), 'b', store);
    expect(server.runs[1]).toMatchObject({ status: 'KILLED' });
  });
});

it('a token is a bearer’s, or with a user its password', async () => {
  await create('a');
  await drain('a', tracker({}, { token: 'secret' }), 1);
  await drain('a', tracker({}, { token: 'secret', user: 'ann' }), 1);
  expect(new Set(server.asked.map(({ authorization }) => authorization))).toEqual(
    new Set(['Bearer secret', `Basic ${Buffer.from('ann:secret').toString('base64')}`]),
  );
});

it('what MLflow would refuse is not sent: signs in names, long texts, empty params', async () => {
  const record = { ...(await create('a')), settings: { 'a?b': 'x'.repeat(9_000), empty: '', list: [1, 2], no: null } };
  expect(Object.fromEntries(paramsOf(record as RunRecord))).toMatchObject({ a_b: 'x'.repeat(500), list: '[1,2]' });
  expect(paramsOf(record as RunRecord).some(([key]) => key === 'empty' || key === 'no')).toBe(false);
});

it('batches hold whole steps, and a step that is larger than a batch goes by itself', () => {
  const metrics = (step: number, n: number) =>
    Array.from({ length: n }, (_, i) => ({ key: `k${i}`, value: i, timestamp: 0, step }));
  const sizes = (lengths: readonly number[]) =>
    [
      ...batchesOf(
        lengths.map((n, step) => metrics(step, n)),
        10,
      ),
    ].map((batch) => batch.map(({ step }) => step).join(''));
  expect(sizes([4, 4, 4])).toEqual(['00001111', '2222']);
  expect(sizes([10, 1])).toEqual(['0000000000', '1']);
  expect(sizes([3, 25, 2])).toEqual(['000', '1111111111', '1111111111', '1111122']);
  expect(sizes([])).toEqual([]);
});

const recordOf = async (id: string): Promise<RunRecord> => ({
  ...{ id, agent: 'desk', recipe: 'sft-grpo', settings: {}, base: join(folder, 'base'), folder, seed: 5, steps: 22 },
  ...{ step: 0, status: 'paused', reason: null, budget: {}, spent: { seconds: 0, tokens: 0, money: 0 } },
  ...{ request: null, owner: null, heartbeatAt: 0, createdAt: 0, internal: false },
});
