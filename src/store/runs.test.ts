/** Runs in a real Postgres: what goes in comes out, and a run killed with SIGKILL ends on the curve of one that was not. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { curve } from '../train/fixtures/curve.ts';
import { TabularEngine } from '../train/fixtures/tabular-engine.ts';
import { toy, toyStages } from '../train/fixtures/toy.ts';
import type { KeptEpisode } from '../train/kept-episodes.ts';
import type { StepMetrics } from '../train/metrics.ts';
import { createRun, train } from '../train/run.ts';
import { postgresRunStore } from './runs.ts';
import { withStore } from './test-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-runs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const newRun = (id: string) => ({
  id,
  agent: 'toy',
  recipe: 'test',
  settings: { nested: { a: [1, 'x'] } },
  base: join(folder, 'base'),
  folder: join(folder, id),
  seed: 4_000_000_000,
  budget: { seconds: 1000 },
});

async function saveBase() {
  const engine = new TabularEngine(toy.vocabulary);
  engine.create('m');
  await engine.save('m', join(folder, 'base'));
}

describe('runs in Postgres', () => {
  it('keep records, steps and checkpoints as they were given', async () => {
    const runs = postgresRunStore(await withStore());
    const record = await createRun(runs, newRun('a'), toyStages(), 1_700_000_000_123);
    expect(await runs.get('a')).toEqual(record);
    expect(await runs.get('b')).toBeNull();
    await expect(createRun(runs, newRun('a'), toyStages(), 0)).rejects.toThrow(/Creating run a failed/);

    expect(await runs.claim('a', { owner: null, request: null }, 'h:1', 5)).toBe(true);
    expect(await runs.claim('a', { owner: null, request: null }, 'h:2', 5)).toBe(false);
    const spent = { seconds: 1.5, tokens: 20, money: 0.25 };
    const step = (n: number, loss: number): StepMetrics => ({
      step: n,
      stage: 'sft',
      stageStep: n,
      values: { loss, reward_mean: 0.1 },
      taskTypes: { refund: { reward: 1, success: 1, attempts: 2 } },
    });
    expect(await runs.saveStep('a', step(0, 2), spent, 6)).toBeNull();
    await runs.request('a', 'pause');
    expect(await runs.saveStep('a', step(1, Number.NaN), spent, 7)).toBe('pause');
    expect(await runs.saveStep('a', step(1, Number.NaN), spent, 7)).toBe('pause');
    const kept = (attempt: number, reward: number): KeptEpisode => ({
      ...{ task: 't', taskType: 'refund', attempt, reward, success: reward > 0.5, outcome: 'done', reasons: [] },
      ...{ messages: [{ role: 'user', text: 'half \ud800 and \0' }], leftOut: 0 },
    });
    await runs.saveStep('a', step(0, 2), spent, 6, [kept(3, 1), kept(1, 0)]);
    await runs.saveStep('a', step(1, Number.NaN), spent, 7, [kept(0, 0.5)]);
    expect(await runs.episodes('a', 0)).toEqual(
      [kept(3, 1), kept(1, 0)].map((one) => ({ ...one, messages: [{ role: 'user', text: 'half \ufffd and \ufffd' }] })),
    );
    const told = { task: 't', taskType: 'refund' };
    expect(await runs.episodeSteps('a')).toEqual([
      { ...told, step: 0, rewards: [1, 0] },
      { ...told, step: 1, rewards: [0.5] },
    ]);
    expect(await runs.metrics('a')).toEqual([step(0, 2), step(1, Number.NaN)]);
    expect(await runs.get('a')).toMatchObject({ step: 2, spent, status: 'running', owner: 'h:1', heartbeatAt: 7 });
    await runs.rewind('a', 1);
    expect(await runs.metrics('a')).toHaveLength(1);
    expect(await runs.episodeSteps('a')).toHaveLength(1);

    const checkpoint = {
      run: 'a',
      step: 1,
      kind: 'step',
      stage: 0,
      folder: 'x',
      state: [{ id: 'e' }],
      validation: 0.5,
    } as const;
    await runs.saveCheckpoint(checkpoint);
    await runs.saveCheckpoint({ ...checkpoint, folder: 'y', stage: 1, state: null, kind: 'stage', validation: null });
    expect((await runs.checkpoints('a')).map((c) => c.folder)).toEqual(['x', 'y']);
    expect((await runs.checkpoints('a'))[0]).toEqual(checkpoint);
    await runs.dropCheckpoint('a', 'x');
    expect(await runs.checkpoints('a')).toHaveLength(1);
    await runs.setStatus('a', 'failed', 'Because.', 8);
    expect(await runs.list()).toMatchObject([{ id: 'a', status: 'failed', reason: 'Because.', owner: null }]);
  });

  it('killed with SIGKILL at several moments, a run resumes onto the same curve', async () => {
    await saveBase();
    const store = await withStore();
    const runs = postgresRunStore(store);
    await createRun(runs, newRun('whole'), toyStages(), 0);
    const steps = train('whole', {
      engine: new TabularEngine(toy.vocabulary),
      store: runs,
      stages: toyStages(),
      model: 'm',
      checkpointEvery: 3,
    });
    while (!(await steps.next()).done);

    await createRun(runs, newRun('killed'), toyStages(), 0);
    let kills = 0;
    for (const after of [2, 9, Infinity]) {
      const code = await runChild(store.url, 'killed', after);
      if (after === Infinity) expect(code).toBe(0);
      else {
        kills++;
        expect(code).toBe('SIGKILL');
        expect((await runs.get('killed'))!.status).toBe('running');
      }
    }
    expect(kills).toBe(2);
    expect(await runs.get('killed')).toMatchObject({ status: 'finished', step: 22 });
    expect(curve(await runs.metrics('killed'))).toEqual(curve(await runs.metrics('whole')));
  });
});

/** Runs the child until it has saved `after` steps, then kills it. Resolves to its exit code or signal. */
function runChild(url: string, id: string, after: number): Promise<number | string | null> {
  const script = fileURLToPath(new URL('../train/fixtures/kill-run.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script, url, folder, id], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let seen = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    seen += chunk.toString().split('\n').length - 1;
    if (seen >= after) child.kill('SIGKILL');
  });
  return new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)));
}
