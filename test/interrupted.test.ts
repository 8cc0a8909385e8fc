/**
 * Interrupted is not finished: a turn of the loop that is aborted, paused, stopped, that fails, or whose engine is killed,
 * at points in every stage, ends as one that was left alone, to the last bit of its weights, or says that it has no result.
 * Processes killed with SIGKILL are in loop.slow.test.ts and interrupted.slow.test.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { moveRollout } from '../src/deploy/reconcile.ts';
import type { Engine } from '../src/engine/engine.ts';
import { createOnnxEngine } from '../src/engine/onnx/engine.ts';
import { startEngine } from '../src/engine/process.ts';
import type { LoopParts } from '../src/loop/parts.ts';
import { type LoopTurn, type StageName, stageNames } from '../src/loop/turn.ts';
import type { Advanced } from '../src/loop.ts';
import type { Store } from '../src/store/postgres.ts';
import { servingRelease } from '../src/store/releases.ts';
import { postgresRunStore } from '../src/store/runs.ts';
import { withStore } from '../src/store/test-store.ts';
import { isThorough, until } from './pawl.ts';
import { lastTurn, type More, outcomeOf, prepareHome, run, turnOnce } from './tiny/turn.ts';
import { agent, definition } from './tiny/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-interrupted-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let homes = 0;
const newHome = async () => {
  const store = await withStore();
  const home = join(folder, String(++homes));
  await prepareHome(store, home);
  return { store, home };
};

/** Runs the turn on an engine of its own, as a new process would. */
async function advanced(
  { store, home }: { store: Store; home: string },
  more: More = {},
  wrap: (engine: Engine) => Engine = (engine) => engine,
): Promise<Advanced> {
  const engine = createOnnxEngine({ threads: 1 });
  try {
    return await turnOnce(store, home, wrap(engine), more);
  } finally {
    await engine.close();
  }
}

const start = async (...args: Parameters<typeof advanced>): Promise<LoopTurn> => (await advanced(...args)).turn!;

/** The same engine; `before` is told of every call and may throw instead of it. */
const watched = (engine: Engine, before: (call: keyof Engine) => unknown): Engine =>
  new Proxy(engine, {
    get: (target, name: keyof Engine) =>
      typeof target[name] !== 'function'
        ? target[name]
        : async (...args: unknown[]) => {
            await before(name);
            return (target[name] as (...args: unknown[]) => unknown)(...args);
          },
  });

/** `say` that calls `then` at the nth word about a stage. */
const atWord = (stage: StageName, nth: number, then: () => unknown): LoopParts['say'] => {
  let seen = 0;
  return {
    progress: (of) => {
      if (of === stage && ++seen === nth) then();
    },
    done: () => {},
  };
};

let whole: Awaited<ReturnType<typeof outcomeOf>>;
beforeAll(async () => {
  const { store, home } = await newHome();
  whole = await outcomeOf(store, home, await start({ store, home }));
  expect(whole.summary).toMatchObject({ before: 0, verdict: 'pass', promoted: true });
  expect(whole.run).toEqual(['finished', 11, 11, expect.any(Number)]); // 5 steps of SFT, 6 of GRPO
});

describe('a turn', () => {
  it('aborted in every stage, goes on with it at the next start and ends the same', async () => {
    const home = await newHome();
    const points: readonly (readonly [StageName, number])[] = [
      ['collect', 1],
      ['collect', 30],
      ['train', 1],
      ['train', 4],
      ['train', 5], // after the last step of SFT
      ['train', 2], // in GRPO
      ['train', 4],
      ['evaluate', 1],
      ['evaluate', 60],
      ['deploy', 1],
      ['deploy', 2],
    ];
    for (const [stage, nth] of points) {
      const abort = new AbortController();
      setMaxListeners(0, abort.signal);
      const say = atWord(stage, nth, () => abort.abort());
      await expect(start(home, { signal: abort.signal, say })).rejects.toThrow(/abort/i);
      const turn = await lastTurn(home.store);
      // Customers come before the turn that learns from them.
      if (stage === 'collect') expect(turn).toBeUndefined();
      else
        expect(turn).toMatchObject({ number: 1, done: stageNames.slice(0, stageNames.indexOf(stage)), endedAt: null });
      expect((await servingRelease(home.store, agent))!.name).toBe(`${agent}-0`);
      expect(existsSync(join(home.home, 'models', run))).toBe(stageNames.indexOf(stage) > 3);
    }
    // Between two stages nothing is under way: what was done stays done.
    expect(await outcomeOf(home.store, home.home, await start(home))).toEqual(whole);
    // The windows that were cut off are in the database, and in nobody's dataset.
    const { rows } = await home.store.pool.query(
      `select count(*)::int as n from pawl.trajectories where id ~ '^turn-1-[^w]'`,
    );
    expect(rows[0].n).toBeGreaterThan(40);
  });

  it('aborted before score and curate, does them at the next start', async () => {
    const home = await newHome();
    for (const stage of ['collect', 'score'] as const) {
      const abort = new AbortController();
      const done = (of: StageName) => void (of === stage && abort.abort());
      await expect(start(home, { signal: abort.signal, say: { progress: () => {}, done } })).rejects.toThrow(/abort/i);
      expect((await lastTurn(home.store))!.done.at(-1)).toBe(stage);
    }
    expect(await outcomeOf(home.store, home.home, await start(home))).toEqual(whole);
  });

  it('whose run somebody paused, waits until somebody says otherwise, in whichever way', async () => {
    const home = await newHome();
    const runs = postgresRunStore(home.store);
    const waiting = {
      turn: { done: ['collect', 'score', 'curate'], endedAt: null },
      next: {
        kind: 'ask',
        reason: expect.stringMatching(
          /paused at step \d+ of 11 on request.*pawl loop resume --agent tiny.*pawl runs resume tiny-turn-1/,
        ),
      },
    };
    // Asked within a step, it pauses after it.
    const pause = atWord('train', 2, () => void runs.request(run, 'pause'));
    expect(await advanced(home, { say: pause })).toMatchObject(waiting);
    const { step, ...paused } = (await runs.get(run))!;
    expect([step >= 2 && step <= 4, paused.status, paused.request]).toEqual([true, 'paused', 'pause']);
    // Starting again is not saying so.
    expect(await advanced(home)).toMatchObject(waiting);
    expect((await runs.get(run))!.step).toBe(step);
    expect(existsSync(join(home.home, 'models'))).toBe(false);

    // `pawl runs resume` builds the same stages from the record alone; Ctrl-C pauses it again.
    // Held in its first step, until it has heard.
    const holder = await home.store.pool.connect();
    await holder.query('begin; lock table pawl.run_steps in share mode');
    const first = await pawl(home, ['runs', 'resume', run], async (child, printed) => {
      const held = `select 1 from pg_locks where not granted and relation = 'pawl.run_steps'::regclass`;
      await until(
        () => home.store.pool.query(held),
        ({ rowCount }) => rowCount! > 0,
      );
      child.kill('SIGINT');
      await printed(/Pausing after this step/);
      await holder.query('rollback');
      holder.release();
    });
    expect([first.code, first.text]).toEqual([0, expect.stringContaining(`Go on with: pawl runs resume ${run}`)]);
    expect(await advanced(home)).toMatchObject(waiting);
    const later = (await runs.get(run))!;
    expect(later).toMatchObject({ status: 'paused', request: 'pause' });
    expect(later.step).toBeGreaterThan(step);
    expect(await outcomeOf(home.store, home.home, await start(home, { resume: true }))).toEqual(whole);
  });

  it.runIf(isThorough)('whose run was finished by another process, goes on with its result', async () => {
    const home = await newHome();
    const runs = postgresRunStore(home.store);
    await start(home, { say: atWord('train', 7, () => void runs.request(run, 'pause')) });
    const { code, text } = await pawl(home, ['runs', 'resume', run]);
    expect([code, text]).toEqual([0, expect.stringContaining(`Run ${run} is finished`)]);
    expect(await outcomeOf(home.store, home.home, await start(home))).toEqual(whole);
  });

  it('whose run was stopped, ends without a candidate and says so', async () => {
    const home = await newHome();
    const runs = postgresRunStore(home.store);
    const say = atWord('train', 7, () => void runs.request(run, 'stop'));
    const turn = await start(home, { say });
    expect(turn).toMatchObject({
      done: ['collect', 'score', 'curate'],
      endedAt: expect.any(Number),
      state: { ended: expect.stringMatching(/was stopped at step \d+ of 11.*There is no candidate/) },
    });
    expect((await servingRelease(home.store, agent))!.name).toBe(`${agent}-0`);
    expect(existsSync(join(home.home, 'models'))).toBe(false);
    expect((await lastTurn(home.store))!.endedAt).not.toBeNull();
  });

  it.runIf(isThorough)('whose run was paused or stopped while nobody trained it, waits or ends just so', async () => {
    const home = await newHome();
    const abort = new AbortController();
    setMaxListeners(0, abort.signal);
    const stopped = start(home, { signal: abort.signal, say: atWord('train', 3, () => abort.abort()) });
    await expect(stopped).rejects.toThrow(/abort/i);
    expect((await pawl(home, ['runs', 'pause', run])).text).toContain('Paused: nobody trains it now.');
    expect((await advanced(home)).next.reason).toMatch(/paused at step 3 of 11 on request/);
    expect((await pawl(home, ['runs', 'stop', run])).text).toContain('Stopped: nobody trains it now.');
    expect(await start(home)).toMatchObject({ endedAt: expect.any(Number), state: { ended: expect.any(String) } });
  });

  it('whose rollout waits for a person, waits too, and ends when it is approved', async () => {
    const home = await newHome();
    const asking = { agent: { deploy: { ...definition.deploy, approval: 'human' as const } } };
    for (let again = 0; again < 2; again++)
      expect(await advanced(home, asking)).toMatchObject({
        turn: { done: stageNames.slice(0, 5), endedAt: null },
        next: {
          kind: 'ask',
          command: 'pawl rollouts approve tiny-turn-1',
          reason: expect.stringMatching(/Rollout tiny-turn-1 is waiting: .* `pawl rollouts approve tiny-turn-1`/),
        },
      });
    await moveRollout(home.store, run, 'approve', 'kim', 'Looks good.', Date.now());
    const turn = await start(home, asking);
    expect(await outcomeOf(home.store, home.home, turn)).toEqual(whole);
  });

  it('whose run failed, says what to do and goes on from the newest checkpoint at the next start', async () => {
    const home = await newHome();
    let steps = 0;
    const fails = start(home, {}, (engine) =>
      watched(engine, (call) => {
        if (call === 'optimStep' && ++steps === 8) throw new Error('The disk is full.');
      }),
    );
    await expect(fails).rejects.toThrow(
      /Run tiny-turn-1 failed: The disk is full\. It goes on .*pawl runs stop tiny-turn-1/,
    );
    expect(await postgresRunStore(home.store).get(run)).toMatchObject({
      status: 'failed',
      reason: 'The disk is full.',
    });
    expect(await outcomeOf(home.store, home.home, await start(home))).toEqual(whole);
  });

  it.runIf(isThorough)(
    'whose engine is killed while it learns, saves, plays and is judged, ends the same by itself',
    async () => {
      const home = await newHome();
      const engine = await startEngine({ threads: 1 });
      /** By call and its number: killed under the call, or before it, so that the call meets the engine that came back. */
      const deaths: Record<string, 'under' | 'before'> = {
        'optimStep 3': 'before',
        'forwardBackward 9': 'under',
        'save 3': 'before',
        'sample 12': 'before', // of practice
        'sample 70': 'under', // of the evaluation
      };
      const counts: Record<string, number> = {};
      const kill = async (call: keyof Engine) => {
        counts[call] = (counts[call] ?? 0) + 1;
        const how = deaths[`${call} ${counts[call]}`];
        if (how === undefined) return;
        const { restarts } = engine;
        process.kill(engine.pid!, 'SIGKILL');
        if (how === 'before')
          await until(
            () => engine.restarts,
            (now) => now > restarts,
          );
      };
      try {
        const { turn } = await turnOnce(home.store, home.home, watched(engine.engine, kill));
        expect(engine.restarts).toBe(5);
        expect(await outcomeOf(home.store, home.home, turn!)).toEqual(whole);
      } finally {
        await engine.close();
      }
    },
  );

  it('leaves no files behind that nobody names', async () => {
    for (const home of readdirSync(folder)) {
      const at = join(folder, home);
      for (const name of readdirSync(at, { recursive: true, encoding: 'utf8' }))
        expect(name).not.toMatch(/\.(new|next|previous)$|writing-|draft/);
    }
  });
});

/** A pawl command on the database and folder of a test, and what is done while it runs. */
async function pawl(
  { store, home }: { store: Store; home: string },
  args: readonly string[],
  meanwhile: (child: ChildProcess, printed: (what: RegExp) => Promise<unknown>) => Promise<void> = async () => {},
) {
  const child = spawn(process.execPath, ['bin/pawl.js', ...args, '--config', 'test/tiny/config.ts'], {
    env: { ...process.env, DATABASE_URL: store.url, PAWL_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close');
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  await meanwhile(child, (what) =>
    until(
      () => text,
      (all) => what.test(all),
    ),
  );
  await closed;
  return { code: child.exitCode, text };
}
