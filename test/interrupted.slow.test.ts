/**
 * The rest of interrupted.test.ts: real processes killed with SIGKILL at many points of a turn, a turn aborted at every so
 * many calls of its engine, and the demo, made short, under the hands of a user: Ctrl-C, SIGTERM, `pawl runs pause`.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../src/engine/engine.ts';
import { createOnnxEngine } from '../src/engine/onnx/engine.ts';
import type { Summary } from '../src/loop/turn.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { withStore } from '../src/store/test-store.ts';
import { demoConfig, startLoop } from './loop-process.ts';
import { until } from './pawl.ts';
import { lastTurn, outcomeOf, prepareHome, turnOnce } from './tiny/turn.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-interrupted-slow-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let homes = 0;
const newHome = async () => {
  const store = await withStore();
  const home = join(folder, String(++homes));
  await prepareHome(store, home);
  return { store, home };
};
type Home = Awaited<ReturnType<typeof newHome>>;

/** Aborts at the nth call of the engine; how many there were. */
async function start({ store, home }: Home, nth = Number.POSITIVE_INFINITY): Promise<number> {
  const engine = createOnnxEngine({ threads: 1 });
  const abort = new AbortController();
  setMaxListeners(0, abort.signal);
  let calls = 0;
  const counting = new Proxy(engine, {
    get:
      (target, name: keyof Engine) =>
      (...args: unknown[]) => {
        if (++calls === nth) abort.abort();
        return (target[name] as (...args: unknown[]) => unknown)(...args);
      },
  });
  try {
    await turnOnce(store, home, counting, { signal: abort.signal });
  } catch (error) {
    if (!abort.signal.aborted) throw error;
  } finally {
    await engine.close();
  }
  return calls;
}
const outcome = async ({ store, home }: Home) => outcomeOf(store, home, (await lastTurn(store))!);

let whole: Awaited<ReturnType<typeof outcomeOf>>;
let calls: number;
beforeAll(async () => {
  const home = await newHome();
  calls = await start(home);
  whole = await outcome(home);
});

describe('a turn', () => {
  it('aborted at any call of its engine ends the same', async () => {
    for (let nth = 3; nth < calls; nth += Math.ceil(calls / 25)) {
      const home = await newHome();
      await start(home, nth);
      await start(home);
      expect([nth, await outcome(home)]).toEqual([nth, whole]);
    }
  }, 1_200_000);

  it('whose process is killed again and again ends the same', async () => {
    const home = await newHome();
    const points = [
      'collect 3',
      'collect 39',
      'collect done 1',
      'score done 1',
      'train 1',
      'train 3',
      'train 5',
      'train 2',
    ];
    for (const point of [
      ...points,
      'train 6',
      'train done 1',
      'evaluate 10',
      'evaluate 70',
      'deploy 1',
      'deploy 2',
      null,
    ]) {
      const [ended, text] = await turnProcess(home.store, home.home, point);
      expect([point, ended, text]).toEqual([point, point === null ? 0 : null, text]);
    }
    expect(await outcome(home)).toEqual(whole);
  }, 1_200_000);
});

async function turnProcess(store: Store, home: string, killAt: string | null): Promise<[number | null, string]> {
  const args = ['--import', 'tsx', 'test/tiny/turn-process.ts', store.url, home];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (killAt !== null && text.includes(`${killAt}\n`)) child.kill('SIGKILL');
    });
  await once(child, 'close');
  return [child.exitCode, text];
}

describe('the demo', () => {
  const config = join(folder, 'pawl.config.ts');
  const summaryOf = (home: string): Summary => JSON.parse(readFileSync(join(home, 'summary.json'), 'utf8'));
  const weightsOf = (home: string) =>
    createHash('sha256')
      .update(readFileSync(join(home, 'models', 'support-desk-turn-1', 'model.safetensors')))
      .digest('hex');

  it('stopped by Ctrl-C, SIGTERM and `pawl runs pause`, promotes the model it would have promoted', async () => {
    writeFileSync(config, demoConfig(12));
    const [alone, disturbed] = [join(folder, 'alone'), join(folder, 'disturbed')];
    const first = startLoop(alone, config, 1, 80);
    expect([await first.ended(), first.output()]).toEqual([0, expect.stringContaining(' serves now')]);
    const run = 'support-desk-turn-1';

    const pawl = async (...args: string[]) => {
      const child = spawn(process.execPath, ['bin/pawl.js', ...args, '--config', config], {
        env: { ...process.env, DATABASE_URL: '', PAWL_HOME: disturbed },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let text = '';
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      await once(child, 'close');
      return text;
    };
    /** Goes on until this many steps are saved, then holds the run in the next one; returns what lets it go. */
    const heldAt = async (steps: number) => {
      const store = await openStore({ home: disturbed, join: true });
      const rows = async (query: string) => (await store.pool.query(query)).rowCount!;
      await until(
        () => rows('select 1 from pawl.run_steps'),
        (n) => n >= steps,
        20,
      );
      const holder = await store.pool.connect();
      await holder.query('begin; lock table pawl.run_steps in share mode');
      await until(
        () => rows(`select 1 from pg_locks where not granted and relation = 'pawl.run_steps'::regclass`),
        (n) => n > 0,
        20,
      );
      return async () => {
        await holder.query('rollback');
        holder.release();
        await store.close();
      };
    };

    for (const [signal, steps] of [['SIGINT', 1] as const, ['SIGTERM', 5] as const]) {
      const loop = startLoop(disturbed, config, 1, 80);
      await loop.printed(steps === 1 ? /^ +curate /m : /going on after curate/);
      const letGo = await heldAt(steps);
      loop.child.kill(signal);
      await loop.printed(/goes on from here/);
      await letGo();
      expect([await loop.ended(), loop.output()]).toEqual([0, expect.not.stringMatching(/^ +train /m)]);
    }
    const paused = startLoop(disturbed, config, 1, 80);
    await paused.printed(/going on after curate/);
    const letGo = await heldAt(8);
    expect(await pawl('runs', 'pause', run)).toContain('Asked. It will pause after the step it is in.');
    await letGo();
    expect([await paused.ended(), paused.output()]).toEqual([1, expect.stringContaining('The turn waits. Run')]);
    const waiting = startLoop(disturbed, config, 1, 80);
    expect([await waiting.ended(), waiting.output()]).toEqual([1, expect.stringContaining('The turn waits. Run')]);
    expect(await pawl('loop', 'status')).toMatch(/at train\n.*paused at step .* on request/);
    expect(await pawl('runs', 'resume', run)).toContain(`Run ${run} is finished`);
    const last = startLoop(disturbed, config, 1, 80);
    expect([await last.ended(), last.output()]).toEqual([0, expect.stringContaining('support-desk-1 serves now')]);
    // What users saw depends on how many came before the rollout was through.
    const [{ seconds: _, users: _1, ...one }, { seconds: _2, users: _3, ...other }] = [
      summaryOf(alone),
      summaryOf(disturbed),
    ];
    expect(other).toEqual(one);
    expect(weightsOf(disturbed)).toBe(weightsOf(alone));
  }, 1_800_000);
});
