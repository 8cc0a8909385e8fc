/** Rollouts on a real database, from turns and signals to the route that gateways read. */
import { describe, expect, it } from 'vitest';
import type { JournalEntry } from '../collect/signal.ts';
import type { Turn } from '../collect/turn.ts';
import { readAudit } from '../store/audit.ts';
import { entry, noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { servingRelease } from '../store/releases.ts';
import { readRollout, readRoutes } from '../store/rollouts.ts';
import { withStore } from '../store/test-store.ts';
import { verifyAudit } from './audit.ts';
import { callsQuery, measureRelease, signalsQuery } from './measure.ts';
import { createRelease, moveRollout, reconcile, serveRelease, startRollout } from './reconcile.ts';
import { weightOf } from './rollout.ts';

const second = 1000;
const settings = { holdSeconds: 60, patienceSeconds: 600, minTurns: 20, minUnits: 10 };
const passing = { id: 'report-1', verdict: 'pass', candidate: 'v2' } as const;

async function begin(store: Store, verdict: 'pass' | 'fail' | 'inconclusive' = 'pass', force = false) {
  const v1 = await createRelease(store, { agent: 'desk', name: 'v1', upstream: 'local', model: 'm1' }, 'ann', noon);
  await serveRelease(store, v1, 'ann', noon);
  const v2 = await createRelease(store, { agent: 'desk', name: 'v2', upstream: 'local', model: 'm2' }, 'ann', noon);
  const start = {
    id: 'r1',
    agent: 'desk',
    candidate: v2,
    report: { ...passing, verdict },
    settings,
    actor: 'ann',
    force,
  };
  return { v1, v2, start, rollout: await startRollout(store, start, noon) };
}

type Traffic = {
  release: string;
  users: number;
  resolved: number;
  from: number;
  failed?: number;
  words?: Partial<Turn>;
};

/** One trajectory of two calls per user; the first `resolved` users have the outcome 1, the others 0. */
function traffic({ release, users, resolved, from, failed = 0, words = {} }: Traffic): JournalEntry[] {
  return Array.from({ length: users }, (_, i) => {
    const trajectory = `${release}-${from}-${i}`;
    const user = `${release}-${from}-user-${i}`;
    const broken = i < failed ? ({ status: 'error', httpStatus: 500 } as const) : {};
    return [
      entry.turn({ trajectory, user, release, startedAt: from + i, ...words, ...broken }),
      entry.turn({ trajectory, user, release, startedAt: from + i + 1, ...words }),
      entry.signal({
        ...{ identity: `${trajectory}/resolved`, target: { kind: 'trajectory', id: trajectory }, kind: 'outcome' },
        ...{ name: 'resolved', value: i < resolved ? 1 : 0, at: from + i + 2 },
      }),
    ];
  }).flat();
}

describe('measuring', () => {
  it('counts calls, errors, latency and outcomes of one release in one window', async () => {
    const store = await withStore();
    await writeEntries(store, [
      ...traffic({ release: 'v2', users: 10, resolved: 7, failed: 2, from: noon }),
      ...traffic({ release: 'v1', users: 5, resolved: 0, from: noon }),
      // Not of this window, this agent, this origin.
      ...traffic({ release: 'v2', users: 3, resolved: 0, from: noon - 60 * second }),
      entry.turn({ release: 'v2', agent: 'other', trajectory: 'x', startedAt: noon }),
      entry.turn({ release: 'v2', origin: 'evaluation', trajectory: 'y', startedAt: noon }),
      // The caller's own mistake, a caller who left, and a call that v2 failed and v1 answered.
      entry.turn({ release: 'v2', trajectory: 'z1', startedAt: noon, status: 'error', httpStatus: 400 }),
      entry.turn({ release: 'v2', trajectory: 'z2', startedAt: noon, status: 'disconnected' }),
      entry.turn({ release: 'v1', assigned: 'v2', trajectory: 'z3', startedAt: noon }),
      entry.turn({
        release: 'v1',
        assigned: 'v2',
        trajectory: 'z4',
        startedAt: noon,
        status: 'error',
        httpStatus: 400,
      }),
    ]);
    const window = { agent: 'desk', release: 'v2', since: noon, until: noon + 60 * second, outcome: 'resolved' };
    expect(await measureRelease(store, window)).toEqual({
      turns: 23, // 20, the two odd ones, and the one that v1 answered
      errors: 3,
      p99Ms: 250,
      outcome: { n: 10, sum: 7, squares: 7 },
      feedback: { n: 0, sum: 0, squares: 0 },
      slices: [
        { dimension: 'personal data', name: 'no', outcome: { n: 10, sum: 7, squares: 7 } },
        { dimension: 'task type', name: 'unknown', outcome: { n: 10, sum: 7, squares: 7 } },
      ],
    });
  });

  it('tells slices by what the user wrote first: the task’s type, and personal data in the user’s own words', async () => {
    const store = await withStore();
    const asked = (user: string, system: string, type?: string) => ({
      messages: [
        { role: 'system', content: system },
        { role: 'user', content: [{ type: 'text', text: user }] },
      ],
      ...(type && { metadata: { task_type: type } }),
    });
    const about = (trajectory: string, user: string, value: number) =>
      entry.signal({
        ...{ identity: trajectory, target: { kind: 'trajectory', id: trajectory }, kind: 'outcome', name: 'resolved' },
        ...{ value, user },
      });
    const found = { redactions: { email: 1 }, release: 'v2' };
    await writeEntries(store, [
      entry.turn({ ...found, trajectory: 'a', user: 'ann', request: asked('I am [email].', 'Be kind.', 'refund') }),
      // The shop's own address is not Bob's; what he writes later is partly the release's doing.
      entry.turn({ ...found, trajectory: 'b', user: 'bob', request: asked('Hi [x].', 'Write to [email].', 'refund') }),
      entry.turn({ ...found, trajectory: 'b', user: 'bob', startedAt: noon + 5, request: asked('[email]', '') }),
      entry.turn({ release: 'v2', trajectory: 'c', user: 'ann', request: asked('[email]?', '', 'no type: [email]') }),
      ...[about('a', 'ann', 1), about('b', 'bob', 0), about('c', 'ann', 0)],
    ]);
    const window = { agent: 'desk', release: 'v2', since: noon, until: noon + second, outcome: 'resolved' };
    const { outcome, slices } = await measureRelease(store, window);
    expect(outcome).toEqual({ n: 2, sum: 0.5, squares: 0.25 });
    const one = (value: number) => ({ n: 1, sum: value, squares: value });
    expect(slices).toEqual([
      { dimension: 'personal data', name: 'no', outcome: { n: 2, sum: 0, squares: 0 } }, // ann's c, bob
      { dimension: 'task type', name: 'refund', outcome: { n: 2, sum: 1, squares: 1 } }, // ann's a, bob
      { dimension: 'personal data', name: 'yes', outcome: one(1) }, // ann's a
      { dimension: 'task type', name: 'unknown', outcome: one(0) }, // ann's c
    ]);
  });

  it('takes a user as one, whatever they did, and finds signals by trajectory, turn and key', async () => {
    const store = await withStore();
    const id = '0196e000-0000-7000-a000-000000000001';
    const turns = [
      entry.turn({ trajectory: 'a', user: 'ann', release: 'v2' }),
      entry.turn({ trajectory: 'b', user: 'ann', release: 'v2', id }),
      entry.turn({ trajectory: 'c', user: 'bob', release: 'v2', keys: ['order:7'] }),
      // Answered by two releases: nobody's.
      entry.turn({ trajectory: 'd', user: 'eve', release: 'v1' }),
      entry.turn({ trajectory: 'd', user: 'eve', release: 'v2', startedAt: noon + 1 }),
    ];
    const outcome = (identity: string, target: { kind: 'trajectory' | 'turn' | 'key'; id: string }, value: number) =>
      entry.signal({ identity, target, kind: 'outcome', name: 'resolved', value });
    await writeEntries(store, [
      ...turns,
      outcome('1', { kind: 'trajectory', id: 'a' }, 1),
      outcome('2', { kind: 'turn', id }, 0),
      outcome('3', { kind: 'key', id: 'order:7' }, 1),
      outcome('4', { kind: 'trajectory', id: 'd' }, 0),
      entry.signal({ identity: '5', target: { kind: 'trajectory', id: 'c' }, value: 1 }),
    ]);
    const window = { agent: 'desk', release: 'v2', since: noon, until: noon + second, outcome: 'resolved' };
    const { outcome: found, feedback } = await measureRelease(store, window);
    expect(found).toEqual({ n: 2, sum: 1.5, squares: 1.25 }); // ann ½, bob 1
    expect(feedback).toEqual({ n: 1, sum: 1, squares: 1 });
  });

  it('reads the window by index and only its own days', async () => {
    const store = await withStore();
    const days = Array.from({ length: 5 }, (_, day) => noon - day * 86_400_000);
    for (const day of days) await writeEntries(store, traffic({ release: 'v2', users: 200, resolved: 1, from: day }));
    await store.pool.query('analyze pawl.turns');
    await store.pool.query('analyze pawl.trajectories');
    for (const [query, ...more] of [[callsQuery], [signalsQuery, 'resolved']] as const) {
      const { rows } = await store.pool.query<{ 'QUERY PLAN': string }>(`explain ${query}`, [
        ...['desk', 'v2', new Date(noon), new Date(noon + 10), 'production', ...more],
      ]);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toMatch(/Index (Only )?Scan/);
      expect(plan).not.toMatch(/Seq Scan on (turns|trajectories)_20260520/);
      expect(plan).not.toMatch(/_20260519/);
    }
  });
});

describe('a rollout', () => {
  it('walks a good candidate to promotion, and the route follows', async () => {
    const store = await withStore();
    const { v1, v2 } = await begin(store);
    const weights: number[] = [];
    let from = noon;
    for (let step = 0; step < 4; step++) {
      weights.push(weightOf((await readRollout(store, 'r1'))!));
      expect((await servingRelease(store, 'desk'))?.id).toBe(v1.id);
      await writeEntries(store, [
        ...(step < 3 ? traffic({ release: 'v1', users: 40, resolved: 20, from }) : []),
        ...traffic({ release: 'v2', users: 20, resolved: 18, from }),
      ]);
      expect((await reconcile(store, { now: from + 30 * second }))[0]?.decision.kind).toBe('hold');
      from += 61 * second;
      expect((await reconcile(store, { now: from }))[0]?.decision.kind).toBe(step < 3 ? 'advance' : 'promote');
    }
    expect(weights).toEqual([0.05, 0.25, 0.5, 1]);
    expect((await servingRelease(store, 'desk'))?.id).toBe(v2.id);
    expect(await readRoutes(store)).toMatchObject([{ agent: 'desk', release: { name: 'v2' }, open: null }]);
    expect(await reconcile(store, { now: from })).toEqual([]);
    const events = (await readAudit(store, { subject: 'r1', oldestFirst: true })).map((row) => row.event);
    expect(events).toEqual(['rollout-started', ...Array(3).fill('rollout-advanced'), 'rollout-promoted']);
    expect((await verifyAudit(store)).problem).toBeNull();
  });

  it('rolls a bad candidate back while the baseline goes on serving', async () => {
    const store = await withStore();
    const { v1 } = await begin(store, 'fail', true);
    await writeEntries(store, [
      ...traffic({ release: 'v1', users: 100, resolved: 70, from: noon }),
      ...traffic({ release: 'v2', users: 15, resolved: 0, from: noon }),
    ]);
    const [first] = await reconcile(store, { now: noon + second });
    expect(first).toMatchObject({ decision: { kind: 'rollback' }, rollout: { phase: 'rolled-back' } });
    expect(await readRoutes(store)).toMatchObject([{ release: { id: v1.id }, open: null }]);
    const [row] = await readAudit(store, { subject: 'r1' });
    expect(row).toMatchObject({ actor: 'pawl', event: 'rollout-rolled-back' });
    expect(row?.details).toMatch(/candidate 0\.000 of 15 users, baseline 0\.700 of 100; worse/);
  });

  it('rolls back a candidate that is better for most and worse for those with personal data', async () => {
    const store = await withStore();
    const { v1 } = await begin(store);
    const words = {
      redactions: { card: 1 },
      request: { messages: [{ role: 'user', content: 'I paid with [card].' }] },
    };
    await writeEntries(store, [
      ...traffic({ release: 'v1', users: 60, resolved: 20, from: noon }),
      ...traffic({ release: 'v1', users: 40, resolved: 34, from: noon + second, words }),
      ...traffic({ release: 'v2', users: 60, resolved: 60, from: noon }),
      ...traffic({ release: 'v2', users: 30, resolved: 0, from: noon + second, words }),
    ]);
    const [first] = await reconcile(store, { now: noon + 30 * second });
    expect(first).toMatchObject({ decision: { kind: 'rollback' }, rollout: { phase: 'rolled-back' } });
    expect(first!.decision.reasons).toEqual([
      'resolved, with personal data: candidate 0.000 of 30 users, baseline 0.850 of 40; worse, and chance does not explain it.',
    ]);
    expect(await readRoutes(store)).toMatchObject([{ release: { id: v1.id }, open: null }]);
  });

  it('does nothing in a quiet night', async () => {
    const store = await withStore();
    await begin(store);
    for (const after of [61, 300, 599]) {
      const [held] = await reconcile(store, { now: noon + after * second });
      expect(held).toMatchObject({ decision: { kind: 'hold' }, rollout: { phase: 'canary', version: 1 } });
    }
    expect(await reconcile(store, { now: noon + 600 * second })).toMatchObject([{ rollout: { phase: 'paused' } }]);
  });

  it('is moved once when two look at it at the same time', async () => {
    const store = await withStore();
    await begin(store);
    await writeEntries(store, [
      ...traffic({ release: 'v1', users: 40, resolved: 20, from: noon }),
      ...traffic({ release: 'v2', users: 20, resolved: 18, from: noon }),
    ]);
    const now = noon + 61 * second;
    await Promise.all([reconcile(store, { now }), reconcile(store, { now }), reconcile(store, { now })]);
    expect(await readRollout(store, 'r1')).toMatchObject({ step: 1, version: 2 });
    expect(await readAudit(store, { event: 'rollout-advanced' })).toHaveLength(1);
  });

  it('is refused after a failed evaluation, waits after an inconclusive one, and says so', async () => {
    const store = await withStore();
    await expect(begin(store, 'fail')).rejects.toThrow('Release v2 is not rolled out: its evaluation ended with fail.');
    const { rollout } = await begin(store, 'inconclusive');
    expect(rollout).toMatchObject({ phase: 'waiting', startedAt: null });
    expect(weightOf(rollout)).toBe(0);
    const approved = await moveRollout(store, 'r1', 'approve', 'bob', 'Worth a try.', noon + 5);
    expect(approved).toMatchObject({ phase: 'canary', stepSince: noon + 5, reasons: ['Worth a try.'] });
    expect((await readAudit(store, { event: 'rollout-approved' }))[0]).toMatchObject({ actor: 'bob', at: noon + 5 });
  });

  it('can be made again without effect, but not beside another', async () => {
    const store = await withStore();
    const { start, rollout } = await begin(store);
    expect(await startRollout(store, start, noon + 99)).toEqual(rollout);
    await expect(startRollout(store, { ...start, id: 'r2' }, noon)).rejects.toThrow('has a rollout that has not ended');
    expect(await readAudit(store)).toHaveLength(4); // two releases, one served, one rollout
  });

  it('is stopped by a person at once, and only once', async () => {
    const store = await withStore();
    await begin(store);
    await moveRollout(store, 'r1', 'abort', 'eve', 'Bad feeling.', noon + 1);
    expect((await readRoutes(store))[0]?.open).toBeNull();
    await expect(moveRollout(store, 'r1', 'abort', 'eve', 'Again.', noon + 2)).rejects.toThrow(
      'Rollout r1 is rolled-back and cannot abort.',
    );
  });
});

describe('a release', () => {
  it('keeps its name: other content needs another', async () => {
    const store = await withStore();
    const given = { agent: 'desk', name: 'v1', upstream: 'local', model: 'm1' };
    const release = await createRelease(store, given, 'ann', noon);
    expect(await createRelease(store, given, 'ann', noon + 5)).toEqual(release);
    await expect(createRelease(store, { ...given, model: 'm9' }, 'ann', noon)).rejects.toThrow(
      'Agent desk has another release named v1; names are used once, choose a new one.',
    );
    expect(await readAudit(store)).toHaveLength(1);
  });
});
