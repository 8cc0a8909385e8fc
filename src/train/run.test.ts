import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EngineError } from '../errors.ts';
import type { AttemptSource } from './attempt.ts';
import { curve } from './fixtures/curve.ts';
import { TabularEngine } from './fixtures/tabular-engine.ts';
import { toy, toySource, toyStages } from './fixtures/toy.ts';
import { grpo } from './grpo.ts';
import type { Played } from './kept-episodes.ts';
import type { StepMetrics } from './metrics.ts';
import { exportResult, resultOf } from './result.ts';
import { rft } from './rft.ts';
import { createRun, type RunParts, train } from './run.ts';
import { bestCheckpoint, claimRefusal, memoryRunStore, type RunRecord, type RunStore } from './run-record.ts';
import type { Stage } from './stage.ts';
import { timeParts } from './step-clock.ts';

let folder: string;
let store: RunStore;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-run-'));
  store = memoryRunStore();
  const engine = new TabularEngine(toy.vocabulary);
  engine.create('m');
  await engine.save('m', join(folder, 'base'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const schedule = { peak: 0.1, shape: 'constant', warmup: 0, floor: 1 } as const;
const stages = toyStages;

async function create(id: string, list: readonly Stage[] = stages(), budget = {}) {
  const run = {
    id,
    agent: 'toy',
    recipe: 'test',
    settings: {},
    base: join(folder, 'base'),
    folder: join(folder, id),
    seed: 5,
    budget,
  };
  await createRun(store, run, list, 0);
}

/** A fresh engine each time: what survives is on disk and in the store. */
const parts = (more: Partial<RunParts> = {}): RunParts => ({
  engine: new TabularEngine(toy.vocabulary),
  store,
  stages: stages(),
  model: 'm',
  checkpointEvery: 4,
  ...more,
});

async function drain(id: string, given: RunParts, limit = Infinity): Promise<StepMetrics[]> {
  const seen: StepMetrics[] = [];
  for await (const metrics of train(id, given)) {
    seen.push(metrics);
    if (seen.length >= limit) break;
  }
  return seen;
}

describe('a run', () => {
  it('goes through its stages and ends finished, with metrics, a JSONL file and checkpoints', async () => {
    await create('a');
    const seen = await drain('a', parts());
    const run = await store.get('a');
    expect(run).toMatchObject({ status: 'finished', step: 22, steps: 22, owner: null });
    expect(seen.map((m) => m.stage)).toEqual([
      ...Array(8).fill('sft'),
      ...Array(8).fill('rft'),
      ...Array(6).fill('grpo'),
    ]);
    const lines = readFileSync(join(folder, 'a', 'metrics.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((l) => JSON.parse(l));
    expect(lines).toHaveLength(22);
    expect(lines[21]).toMatchObject({ run: 'a', step: 21, stage: 'grpo', stageStep: 5 });
    const kept = await store.checkpoints('a');
    expect(kept.filter((c) => c.kind === 'stage').map((c) => c.step)).toEqual([0, 8, 16]);
    expect(bestCheckpoint(kept)!.step).toBe(22);
    for (const c of kept) expect(existsSync(c.folder)).toBe(true);
    expect(readdirSync(join(folder, 'a'))).toHaveLength(kept.length + 2);
    await expect(drain('a', parts())).rejects.toThrow(/finished/);
  });

  it.each([1, 5, 9, 13, 16, 19])(
    'interrupted after step %i, resumes onto the same curve and the same weights',
    async (cut) => {
      await create('whole');
      const engine = new TabularEngine(toy.vocabulary);
      await drain('whole', parts({ engine }));
      await create('cut');
      await drain('cut', parts(), cut);
      expect((await store.get('cut'))!.status).toBe('paused');
      const again = new TabularEngine(toy.vocabulary);
      await drain('cut', parts({ engine: again }));
      expect(curve(await store.metrics('cut'))).toEqual(curve(await store.metrics('whole')));
      expect(again.table('m')).toEqual(engine.table('m'));
      expect(
        readFileSync(join(folder, 'cut', 'metrics.jsonl'), 'utf8')
          .trim()
          .split('\n'),
      ).toHaveLength(22);
    },
  );

  it.each([1, 3, 4, 5, 8])(
    'that plays ahead of its weights, interrupted after step %i, resumes onto the same curve and weights',
    async (cut) => {
      const ahead = () => [
        grpo(toySource(), { steps: 10, tasksPerStep: 4, attempts: 8, lengthNormaliser: 2, schedule, lag: 1 }),
      ];
      await create('whole', ahead());
      const engine = new TabularEngine(toy.vocabulary);
      await drain('whole', parts({ engine, stages: ahead() }));
      await create('cut', ahead());
      await drain('cut', parts({ stages: ahead() }), cut);
      const again = new TabularEngine(toy.vocabulary);
      await drain('cut', parts({ engine: again, stages: ahead() }));
      expect(curve(await store.metrics('cut'))).toEqual(curve(await store.metrics('whole')));
      expect(again.table('m')).toEqual(engine.table('m'));
    },
  );

  it('keeps episodes of each step that plays, and again those of steps that were done twice', async () => {
    const playing = (): Stage[] => {
      const source = toySource();
      const played = (step: number): Played => [
        [0, 1].map((attempt) => ({
          ...{ id: `${step}`, environment: 'toy', task: `step ${step}`, type: 'toy', split: 'train', seed: 1, attempt },
          ...{ messages: [], turns: [], reward: attempt, success: true, parts: {}, reasons: [], outcome: 'done' },
          ...{ detail: '', milliseconds: 1 },
          counts: { toolCalls: 0, mistakes: 0, contextTokens: 0, completionTokens: 0 },
        })),
      ];
      let calls = 0;
      const telling: AttemptSource = {
        ...source,
        play: (request) => {
          request.onPlayed?.(played(calls++));
          return source.play(request);
        },
      };
      return [
        rft(telling, { rounds: 1, tasksPerRound: 4, attempts: 4, learningSteps: 1, batchSize: 2, schedule }),
        grpo(telling, { steps: 4, tasksPerStep: 4, attempts: 8, lengthNormaliser: 2, schedule }),
      ];
    };
    await create('a', playing());
    const given = () => parts({ stages: playing(), checkpointEvery: 3 });
    await drain('a', given(), 4);
    const before = await store.episodeSteps('a');
    expect(before).toMatchObject([
      { step: 0, task: 'step 0', rewards: [1, 0] },
      { step: 2, task: 'step 1' },
      { step: 3, task: 'step 2' },
    ]);
    await drain('a', given());
    expect((await store.episodeSteps('a')).map(({ step }) => step)).toEqual([0, 2, 3, 4, 5]);
    expect(await store.episodes('a', 1)).toEqual([]);
    expect(await store.episodes('a', 5)).toMatchObject([{ attempt: 1 }, { attempt: 0 }]);
  });

  it('says of every step where its time went', async () => {
    await create('a');
    for (const { values } of await drain('a', parts({ now: () => performance.now() }))) {
      const sum = timeParts.reduce((total, part) => total + values[`${part}_seconds`]!, 0);
      expect(Math.abs(sum - values.seconds!)).toBeLessThan(0.01);
    }
  });

  it('pauses and stops on request, and goes on when resumed', async () => {
    await create('a');
    const steps = train('a', parts());
    await steps.next();
    await store.request('a', 'pause');
    await steps.next();
    const { value, done } = await steps.next();
    expect(done).toBe(true);
    expect(value).toMatchObject({ status: 'paused', step: 2, reason: 'Paused on request.' });
    expect(await drain('a', parts())).toHaveLength(20);
  });

  it('ends at its budget and says so', async () => {
    await create('a', stages(), { tokens: 50 });
    await drain('a', parts());
    const run = await store.get('a');
    expect(run!.status).toBe('stopped');
    expect(run!.reason).toMatch(/budget of 50 tokens is spent/);
    expect(run!.step).toBeLessThan(22);
  });

  it('counts money by the hour', async () => {
    let clock = 0;
    await create('a', stages(), { money: 5 });
    // Every look at the clock is 15 minutes later; a step looks twice, so it lasts a quarter of an hour and costs 1.
    await drain('a', parts({ now: () => (clock += 15 * 60_000), moneyPerHour: 4 }));
    expect(await store.get('a')).toMatchObject({ status: 'stopped', step: 5, spent: { money: 5 } });
  });

  it('keeps the checkpoint that validated best', async () => {
    const scores = [0.5, 0.9, 0.7, 0.6, 0.5, 0.4];
    const list = [grpo(toySource(), { steps: 6, tasksPerStep: 4, attempts: 8, lengthNormaliser: 2, schedule })];
    await create('a', list);
    const given = parts({ stages: list, validateEvery: 1, validate: async () => scores.shift()! });
    await drain('a', given);
    expect(bestCheckpoint(await store.checkpoints('a'))).toMatchObject({ step: 2, validation: 0.9 });
    expect((await store.metrics('a')).map((m) => m.values.validation_success)).toEqual([0.5, 0.9, 0.7, 0.6, 0.5, 0.4]);
  });

  it('a step that throws makes the run failed, and it can be resumed', async () => {
    let broken = true;
    const flaky: Stage = {
      ...stages()[0]!,
      async begin(context, state) {
        const active = await stages()[0]!.begin(context, state);
        return {
          ...active,
          step: async (i) => {
            if (i === 3 && broken) throw new Error('The engine died.');
            return active.step(i);
          },
        };
      },
    };
    await create('a', [flaky]);
    await expect(drain('a', parts({ stages: [flaky] }))).rejects.toThrow('The engine died.');
    expect(await store.get('a')).toMatchObject({ status: 'failed', reason: 'The engine died.' });
    broken = false;
    await drain('a', parts({ stages: [flaky] }));
    expect(await store.get('a')).toMatchObject({ status: 'finished', step: 8 });
  });

  it('weights that became NaN are not kept', async () => {
    const poison: Stage = {
      ...stages()[0]!,
      async begin(context) {
        const active = await stages()[0]!.begin(context);
        return {
          ...active,
          step: async (i) => (i === 5 ? { values: { loss: Number.NaN } } : active.step(i)),
        };
      },
    };
    await create('a', [poison]);
    await drain('a', parts({ stages: [poison] }));
    expect(await store.get('a')).toMatchObject({ status: 'stopped', reason: 'loss became NaN at step 5.' });
    expect(bestCheckpoint(await store.checkpoints('a'))!.step).toBe(4);
  });
});

describe('an interrupted run', () => {
  const whole = async (more: Partial<RunParts> = {}) => {
    await create('whole', more.stages, {});
    const engine = new TabularEngine(toy.vocabulary);
    await drain('whole', parts({ engine, ...more }));
    return { engine, curve: curve(await store.metrics('whole')) };
  };

  it('that was aborted throws, is not finished, and has no result', async () => {
    const { engine, curve: expected } = await whole();
    await create('a');
    const abort = new AbortController();
    const stopped = (async () => {
      for await (const { step } of train('a', parts({ signal: abort.signal }))) if (step === 9) abort.abort();
    })();
    await expect(stopped).rejects.toThrow(/abort/i);
    expect(await store.get('a')).toMatchObject({ status: 'paused', reason: 'Interrupted.', step: 10, request: null });
    const out = join(folder, 'out');
    const again = new TabularEngine(toy.vocabulary);
    await expect(exportResult('a', out, { store, engine: again })).rejects.toThrow(
      /Run a is paused at step 10 of 22; only a finished run has a model to use.*pawl runs resume a/,
    );
    expect(existsSync(out)).toBe(false);
    await drain('a', parts({ engine: again }));
    expect(curve(await store.metrics('a'))).toEqual(expected);
    expect(again.table('m')).toEqual(engine.table('m'));
    await exportResult('a', out, { store, engine: again });
    await again.load('out', out);
    expect(again.table('out')).toEqual(engine.table('m'));
  });

  it('takes no step more when it was killed after the step that a rule called the last', async () => {
    // Reward never moves, so after three steps without a better one the stage has had enough.
    const still = (): Stage[] => {
      const [first, , last] = stages();
      const begin: Stage['begin'] = async (context, state) => {
        const active = await first!.begin(context, state);
        const step = async (i: number) => ({ values: { ...(await active.step(i)).values, reward_mean: 0.5 } });
        return { ...active, step };
      };
      return [{ ...first!, begin }, last!];
    };
    const rules = { patience: 3, window: 1 };
    const { engine, curve: expected } = await whole({ stages: still(), rules });
    expect(expected.map((m) => m.stage)).toEqual([...Array(4).fill('sft'), ...Array(6).fill('grpo')]);
    await create('a', still());
    await drain('a', parts({ stages: still(), rules }), 4);
    const again = new TabularEngine(toy.vocabulary);
    await drain('a', parts({ stages: still(), rules, engine: again }));
    expect(curve(await store.metrics('a'))).toEqual(expected);
    expect(again.table('m')).toEqual(engine.table('m'));
  });

  it('counts the tokens of steps done again once, so that a budget of tokens ends at the same step', async () => {
    await create('whole', stages(), { tokens: 120 });
    await drain('whole', parts());
    await create('a', stages(), { tokens: 120 });
    for (const cut of [3, 2, 3]) await drain('a', parts(), cut); // each goes back to the checkpoint before it
    await drain('a', parts());
    const [one, other] = [(await store.get('whole'))!, (await store.get('a'))!];
    expect([one.status, one.step < 22]).toEqual(['stopped', true]);
    expect([other.status, other.step, other.spent.tokens]).toEqual([one.status, one.step, one.spent.tokens]);
  });

  it('goes on from an older checkpoint when the newest is gone, and clears away what no row names', async () => {
    const { engine, curve: expected } = await whole();
    for (const gone of ['step-000019', 'stage-2']) {
      await create(gone);
      await drain(gone, parts({ checkpointEvery: 3 }), 20);
      const at = join(folder, gone);
      expect(readdirSync(at)).toContain(gone);
      rmSync(join(at, gone), { recursive: true });
      mkdirSync(join(at, 'step-000020')); // a save or a prune that was killed
      mkdirSync(join(at, '.step-000021.writing-1-ab'));
      const again = new TabularEngine(toy.vocabulary);
      await drain(gone, parts({ checkpointEvery: 3, engine: again }));
      expect(curve(await store.metrics(gone))).toEqual(expected);
      expect(again.table('m')).toEqual(engine.table('m'));
      const kept = (await store.checkpoints(gone)).map((c) => c.folder);
      expect(readdirSync(at).sort()).toEqual(
        ['events.out.tfevents.0.pawl', 'metrics.jsonl', ...kept.map((path) => basename(path))].sort(),
      );
    }
  });

  it('is refused where what it learns from has changed since', async () => {
    await create('a');
    await drain('a', parts(), 3);
    await expect(drain('a', parts({ stages: stages().slice(0, 2) }))).rejects.toThrow(
      /begun with 22 steps and now has 16: what it learns from has changed/,
    );
  });

  /** Dies at the nth optimizer step and comes back with what was loaded from disk and has not learned since. */
  class MortalEngine extends TabularEngine {
    left: number;
    constructor(steps: number) {
      super(toy.vocabulary);
      this.left = steps;
    }
    override async optimStep(...call: Parameters<TabularEngine['optimStep']>) {
      if (--this.left === 0) {
        await this.close();
        throw new EngineError('The engine died.', { retryable: true });
      }
      return super.optimStep(...call);
    }
  }

  it.each([1, 6, 15])('whose engine dies at its optimizer step %i goes on by itself', async (nth) => {
    const { engine, curve: expected } = await whole();
    await create('a');
    const mortal = new MortalEngine(nth);
    await drain('a', parts({ engine: mortal }));
    expect(curve(await store.metrics('a'))).toEqual(expected);
    expect(mortal.table('m')).toEqual(engine.table('m'));
    expect(await store.get('a')).toMatchObject({ status: 'finished', step: 22 });
  });

  it('whose engine dies at the same step each time fails, and says of what', async () => {
    await create('a');
    const mortal = new MortalEngine(1);
    const dies = drain(
      'a',
      parts({
        engine: mortal,
        stages: stages().map((s) => ({
          ...s,
          begin: (...given) => {
            mortal.left = 1;
            return s.begin(...given);
          },
        })),
      }),
    );
    await expect(dies).rejects.toThrow('The engine died.');
    expect(await store.get('a')).toMatchObject({ status: 'failed', step: 0 });
  });
});

describe('what a run has come to', () => {
  const record = async (change: Partial<RunRecord>) => {
    await create('a');
    return { ...(await store.get('a'))!, ...change };
  };

  it.each<[Partial<RunRecord>, string]>([
    [{ status: 'paused', reason: 'Not begun.' }, 'open'],
    [{ status: 'paused', reason: 'Interrupted.' }, 'open'],
    [{ status: 'running' }, 'open'],
    [{ status: 'failed' }, 'open'],
    [{ status: 'paused', request: 'pause' }, 'held'],
    [{ status: 'running', request: 'pause' }, 'held'], // its process died before it heard
    [{ status: 'running', request: 'stop' }, 'stopped'],
    [{ status: 'stopped' }, 'stopped'],
  ])('%o is %s', async (change, kind) => {
    expect(resultOf(await record(change), []).kind).toBe(kind);
  });

  it('is its best checkpoint if it is finished, and nothing else is', async () => {
    await create('a');
    await drain('a', parts());
    const all = await store.checkpoints('a');
    expect(resultOf((await store.get('a'))!, all)).toEqual({ kind: 'finished', checkpoint: all.at(-1) });
  });
});

describe('taking a run over', () => {
  const run = async () => {
    await create('a');
    await store.claim('a', { owner: null, request: null }, 'host 1 start', 1000);
    return (await store.get('a'))!;
  };

  it('is refused while its process lives, and allowed once it is gone or silent', async () => {
    const record = await run();
    expect(claimRefusal(record, 2000, () => true)).toMatch(/being run by process 1 on host/);
    expect(claimRefusal(record, 2000, () => false)).toBeNull();
    expect(claimRefusal(record, 2000, () => null)).toMatch(/being run/);
    expect(claimRefusal(record, 100_000, () => null)).toBeNull();
  });

  it('goes to one of two', async () => {
    await run();
    const seen = { owner: 'host 1 start', request: null };
    expect(await store.claim('a', seen, 'host 2 start', 0)).toBe(true);
    expect(await store.claim('a', seen, 'host 3 start', 0)).toBe(false);
  });

  it('fails when somebody asked it to pause since it was looked at', async () => {
    await run();
    await store.request('a', 'pause');
    expect(await store.claim('a', { owner: 'host 1 start', request: null }, 'host 2 start', 0)).toBe(false);
  });
});
