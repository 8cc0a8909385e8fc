/** Loops as `pawl serve` runs them, on a real database, with traffic that nobody may learn from: turns end without training. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../test/pawl.ts';
import { type Agent, agentSchema } from '../agent.ts';
import { openArtifacts } from '../artifacts/open.ts';
import { createRelease, serveRelease } from '../deploy/reconcile.ts';
import { advance } from '../loop.ts';
import { deskReward } from '../score/fixtures.ts';
import { readAudit } from '../store/audit.ts';
import { listDatasets } from '../store/datasets.ts';
import { entry } from '../store/fixtures.ts';
import { leading } from '../store/lead.ts';
import { listLoopTurns, saveLoopTurn } from '../store/loop-turns.ts';
import { saveLoop } from '../store/loops.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { readFacts } from './facts.ts';
import { nextStep } from './next-step.ts';
import { pauseLoop, resumeLoop, wantTurn } from './people.ts';
import { startLoops } from './runner.ts';
import type { LoopTurn } from './turn.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-loops-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const desk = (loop: Parameters<typeof agentSchema.parse>[0]) =>
  agentSchema.parse({ name: 'desk', reward: deskReward, evaluate: { golden: '/nowhere.jsonl' }, loop });

async function newStore(): Promise<Store> {
  const store = await withStore();
  const base = { agent: 'desk', name: 'desk-0', upstream: 'engine', model: 'desk-0', checkpoint: '/nowhere' };
  await serveRelease(store, await createRelease(store, base, 'pawl', 1), 'pawl', 1);
  return store;
}

/** Conversations with an outcome, of users who never agreed to anything. */
async function traffic(store: Store, count: number, prefix = 'c'): Promise<void> {
  const at = Date.now() - 1000;
  const entries = Array.from({ length: count }, (_, i) => [
    entry.turn({ agent: 'desk', user: `u${i}`, trajectory: `${prefix}-${i}`, startedAt: at + i }),
    entry.signal({
      ...{ agent: 'desk', user: null, kind: 'outcome', name: 'resolved', value: 1, at },
      ...{ identity: `resolved ${prefix}-${i}`, target: { kind: 'trajectory', id: `${prefix}-${i}` } },
    }),
  ]);
  await writeEntries(store, entries.flat());
}

let started = 0;
function start(store: Store, agent: Agent) {
  let recorded = 0;
  const loops = startLoops({
    store,
    artifacts: openArtifacts({ home }),
    config: { agents: [agent] },
    engine: () => Promise.reject(new Error('There is no engine here.')),
    trainer: () => Promise.reject(new Error('There is no engine here.')),
    gatewayUrl: async () => 'http://127.0.0.1:1',
    process: `test:${process.pid}:${++started}`,
    recorded: async () => void recorded++,
    log: pino({ level: 'silent' }),
  });
  onTestFinished(() => loops.close());
  return { ...loops, recorded: () => recorded };
}

const turnsOf = (store: Store) => listLoopTurns(store, 'desk');
const ended = (store: Store, n: number) =>
  until(
    () => turnsOf(store),
    (turns) => turns.length >= n && turns.every(({ endedAt }) => endedAt !== null),
  );

describe('a loop that runs by itself', () => {
  it('turns when enough new trajectories can be scored, in one process at a time, and says why it came to nothing', async () => {
    const store = await newStore();
    await traffic(store, 6);
    const agent = desk({ every: null, after: { scored: 5 } });
    const two = [start(store, agent), start(store, agent)];
    const [turn, ...others] = await ended(store, 1);
    expect(others).toEqual([]);
    expect(turn).toMatchObject({
      number: 1,
      seed: 1,
      done: ['collect', 'score', 'curate'],
      state: {
        begun: { trigger: 'evidence', reason: '5 new trajectories have a score.' },
        collect: { since: 0, conversations: 6 },
        score: { trajectories: 6, scored: 6 },
        curate: { rows: 0, nothing: expect.any(String) },
        ended: expect.stringMatching(/^None of 6 conversations passed every gate:\n.*consent/),
        spent: { tokens: 0, money: 0 },
      },
    });
    expect(turn!.state.curate).not.toHaveProperty('dataset');
    expect(await listDatasets(store, { limit: 5 })).toEqual([]);
    expect(two.map(({ recorded }) => recorded()).sort()).toEqual([0, 1]);
    // What came before has had its turn; nothing begins on it again.
    const { facts } = await readFacts(store, agent, Date.now());
    expect(facts.evidence).toMatchObject({ trajectories: 0, scored: 0, firstAt: null });
  });

  it('hears at once when a person asks for a turn, takes their seed, and looks at the old traffic again', async () => {
    const store = await newStore();
    await traffic(store, 3);
    const byHand = desk({ every: null, after: null });
    start(store, byHand);
    for (const [n, seed] of [42, undefined].entries()) {
      await wantTurn(store, { agent: 'desk', by: 'kim', now: Date.now(), seed });
      const turns = await ended(store, n + 1);
      expect(turns[0]).toMatchObject({
        seed: seed ?? 2,
        state: { begun: { trigger: 'person', reason: 'kim asked for it.' }, score: { scored: 3 } },
      });
    }
    const events = (await readAudit(store, { agent: 'desk', limit: 10 })).map(({ event, actor }) => [event, actor]);
    expect(events.filter(([event]) => event === 'loop-asked')).toEqual([
      ['loop-asked', 'kim'],
      ['loop-asked', 'kim'],
    ]);
  });

  it('does nothing while it is paused, and goes on when somebody says so', async () => {
    const store = await newStore();
    await traffic(store, 6);
    const agent = desk({ every: null, after: { scored: 5 } });
    await pauseLoop(store, { agent: 'desk', by: 'kim', now: Date.now() });
    await expect(wantTurn(store, { agent: 'desk', by: 'lee', now: Date.now() })).rejects.toThrow(
      /was paused by kim; say `pawl loop resume --agent desk` first/,
    );
    const { recorded } = start(store, agent);
    const { turn, facts } = await readFacts(store, agent, Date.now());
    expect(nextStep(turn, facts, Date.now())).toMatchObject({ kind: 'wait', until: null });
    expect([await turnsOf(store), recorded()]).toEqual([[], 0]);
    await resumeLoop(store, { agent: 'desk', by: 'lee', now: Date.now() });
    await ended(store, 1);
  });

  it('writes down on the way how long a stage has worked, so that a killed process takes little of it along', async () => {
    const store = await newStore();
    await traffic(store, 3);
    const agent = desk({ every: null, after: null });
    await wantTurn(store, { agent: 'desk', by: 'kim', now: Date.now() });
    const noEngine = () => Promise.reject(new Error('There is no engine here.'));
    const seconds = async () => (await turnsOf(store))[0]?.state.seconds?.collect ?? 0;
    /** Collect does not come to its end; what is noted at `end` is what a kill there would leave. */
    const work = (end: () => Promise<void>) =>
      leading(store, 'loop', 'test', async (lead) => {
        const stop = new AbortController();
        const parts = { store, agent, artifacts: openArtifacts({ home }), engine: noEngine, trainer: noEngine, lead };
        const held = new Promise<never>((_, reject) =>
          stop.signal.addEventListener('abort', () => reject(stop.signal)),
        );
        const advanced = advance({
          ...{ ...parts, gatewayUrl: async () => null, recorded: () => held, noteMs: 10, signal: stop.signal },
          say: { progress: () => {}, done: () => {} },
        });
        await Promise.all([expect(advanced).rejects.toBe(stop.signal), end().finally(() => stop.abort())]);
      });
    await work(async () => void (await until(seconds, (noted) => noted > 0.05)));
    const before = await seconds();
    await work(async () => void (await until(seconds, (noted) => noted > before + 0.05)));
    expect((await turnsOf(store))[0]).toMatchObject({ number: 1, done: [], endedAt: null });
  });

  it('does not turn by itself where there is nothing to train from or to judge by, and says so', async () => {
    const store = await withStore();
    await traffic(store, 6);
    const next = async (agent: Agent) => {
      const { turn, facts } = await readFacts(store, agent, Date.now());
      return nextStep(turn, facts, Date.now());
    };
    const after = { every: null, after: { scored: 5 } } as const;
    expect(await next(desk(after))).toMatchObject({ kind: 'wait', reason: expect.stringMatching(/no release/) });
    const release = { agent: 'desk', name: 'desk-vllm', upstream: 'vllm', model: 'qwen', checkpoint: null };
    await serveRelease(store, await createRelease(store, release, 'pawl', 1), 'pawl', 1);
    expect(await next(desk(after))).toMatchObject({ reason: expect.stringMatching(/names no `train.base`/) });
    const trained = agentSchema.parse({ name: 'desk', reward: deskReward, train: { base: '/nowhere' }, loop: after });
    expect(await next(trained)).toMatchObject({ reason: expect.stringMatching(/names no `evaluate.golden`/) });
    expect(await next({ ...trained, evaluate: desk(after).evaluate })).toMatchObject({ kind: 'run', stage: 'score' });
  });

  it('notes a stage that failed, waits, and asks a person at last; resuming tries again', async () => {
    const store = await newStore();
    const agent = { ...desk({ every: null, after: null, retries: 0 }), environment: {} as never };
    const now = Date.now();
    // It has a dataset to learn from, and there is no engine to learn with.
    const begun: LoopTurn = {
      ...{ agent: 'desk', number: 1, seed: 1, done: ['collect', 'score', 'curate'], startedAt: now, endedAt: null },
      state: {
        baseline: { release: 'desk-0', checkpoint: '/nowhere' },
        collect: { since: 0, until: now, conversations: 0 },
        curate: { dataset: 'desk-v1', rows: 1, funnel: [] },
      },
    };
    await leading(store, 'loop', 'test', (lead) => saveLoopTurn(store, begun, lead));
    start(store, agent);
    const failed = async (times: number) => {
      const [turn] = await until(
        () => turnsOf(store),
        ([one]) => one!.state.failures?.length === times,
      );
      const { facts } = await readFacts(store, agent, Date.now());
      return nextStep(turn!, facts, Date.now());
    };
    const asked = {
      kind: 'ask',
      command: 'pawl loop resume --agent desk',
      reason: expect.stringMatching(/^Stage train failed once, the last time with: There is no engine here\./),
    };
    expect(await failed(1)).toMatchObject(asked);
    await resumeLoop(store, { agent: 'desk', by: 'kim', now: Date.now() });
    expect(await failed(2)).toMatchObject(asked);
    await wantTurn(store, { agent: 'desk', by: 'kim', now: Date.now() });
    await failed(3);
    await expect(wantTurn(store, { agent: 'desk', by: 'kim', now: Date.now(), seed: 9 })).rejects.toThrow(
      /Turn 1 was begun with seed 1 and has not ended; leave out --seed 9/,
    );
  });

  it('keeps what people said when it starts again', async () => {
    const store = await newStore();
    const loop = await saveLoop(store, 'desk', 1000, { paused: { at: 900, by: 'kim' } });
    expect(await saveLoop(store, 'desk', 5000)).toEqual(loop);
    expect(loop).toEqual({
      ...{ agent: 'desk', since: 1000, paused: { at: 900, by: 'kim' }, wanted: null },
      ...{ resumedAt: null, lookedAt: null },
    });
  });
});
