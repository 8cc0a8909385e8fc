import { describe, expect, it } from 'vitest';
import type { Turn } from '../collect/turn.ts';
import { traffic } from '../deploy/fixtures.ts';
import { createRelease } from '../deploy/reconcile.ts';
import { entry, noon } from './fixtures.ts';
import { callsQuery, countSlow, countUnits, readCalls, readSaid, saidQuery, type Window } from './measures.ts';
import { putPin } from './pins.ts';
import type { Store } from './postgres.ts';
import { writeEntries } from './record.ts';
import { withStore } from './test-store.ts';

const second = 1000;
const windowUntil = (until: number): Window => ({
  ...{ agent: 'desk', release: 'v2', since: noon, until, origin: 'production' },
});
const measured = async (window: Window, store: Store) => ({
  ...(await readCalls(store, window)),
  ...(await readSaid(store, window, 'resolved')),
});

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
    const window = windowUntil(noon + 60 * second);
    expect(await measured(window, store)).toEqual({
      calls: 23, // 20, the two odd ones, and the one that v1 answered
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
    const window = windowUntil(noon + second);
    const { outcome, slices } = await measured(window, store);
    expect(outcome).toEqual({ n: 2, sum: 0.5, squares: 0.25 });
    const one = (value: number) => ({ n: 1, sum: value, squares: value });
    expect(slices).toEqual([
      { dimension: 'personal data', name: 'no', outcome: { n: 2, sum: 0, squares: 0 } }, // ann's c, bob
      { dimension: 'task type', name: 'refund', outcome: { n: 2, sum: 1, squares: 1 } }, // ann's a, bob
      { dimension: 'personal data', name: 'yes', outcome: one(1) }, // ann's a
      { dimension: 'task type', name: 'unknown', outcome: one(0) }, // ann's c
    ]);
  });

  it('finds personal data where the request is a bare text of the user', async () => {
    const store = await withStore();
    const found = { redactions: { email: 1 }, release: 'v2' };
    const texts: Partial<Turn>[] = [
      { endpoint: 'responses', request: { instructions: 'Write to [EMAIL_1].', input: 'I am [EMAIL_2].' } },
      { endpoint: 'completions', request: { prompt: 'I am [EMAIL_1].' } },
      { endpoint: 'responses', request: { instructions: 'Write to [EMAIL_1].', input: 'I am Ann.' } },
    ];
    await writeEntries(
      store,
      texts.map((text, i) => entry.turn({ ...found, ...text, trajectory: `t${i}` })),
    );
    const { rows } = await store.pool.query('select personal from pawl.turns order by trajectory');
    expect(rows.map(({ personal }) => personal)).toEqual([true, true, false]);
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
    const window = windowUntil(noon + second);
    const { outcome: found, feedback } = await measured(window, store);
    expect(found).toEqual({ n: 2, sum: 1.5, squares: 1.25 }); // ann ½, bob 1
    expect(feedback).toEqual({ n: 1, sum: 1, squares: 1 });
  });

  it('takes the newest outcome, for outcomes are corrected', async () => {
    const store = await withStore();
    const about = (identity: string, value: number, at: number) =>
      entry.signal({
        ...{ identity, target: { kind: 'trajectory', id: 'a' }, kind: 'outcome', name: 'resolved', value, at },
      });
    await writeEntries(store, [
      entry.turn({ trajectory: 'a', user: 'ann', release: 'v2' }),
      ...[about('1', 1, noon + 1), about('2', 0, noon + 3), about('3', 1, noon + 2)],
    ]);
    expect((await measured(windowUntil(noon + second), store)).outcome).toEqual({ n: 1, sum: 0, squares: 0 });
  });

  it('gives each voter one vote, and all the users that a key invents one together', async () => {
    const store = await withStore();
    const vote = (identity: string, user: string | null, value: number, key: string | null = 'k1') =>
      entry.signal({ identity, user, value, key, target: { kind: 'trajectory', id: 'a' } });
    await writeEntries(store, [
      entry.turn({ trajectory: 'a', user: 'ann', release: 'v2' }),
      entry.turn({ trajectory: 'a', user: 'bob', release: 'v2', startedAt: noon + 1 }),
      // Ann was there and votes twice, Bob once; the others exist only in what k1 and k2 say.
      ...[vote('1', 'ann', 1), vote('2', 'ann', 0), vote('3', 'bob', 1)],
      ...Array.from({ length: 20 }, (_, i) => vote(`made-up-${i}`, `nobody-${i}`, 0)),
      ...[vote('4', 'somebody', 1, 'k2'), vote('5', null, 0, 'k2')],
      vote('6', 'ann', 7), // none of the scale
    ]);
    // ann ½, bob 1, k1 0, k2 ½
    expect((await measured(windowUntil(noon + second), store)).feedback).toEqual({ n: 1, sum: 0.5, squares: 0.25 });
  });

  it('counts nobody who is pinned, by their id or by the key they come with', async () => {
    const store = await withStore();
    const window = windowUntil(noon + 60 * second);
    const nightly = { clientKey: 'k-nightly' };
    await writeEntries(store, [
      ...traffic({ release: 'v2', users: 4, resolved: 3, from: noon, words: { clientKey: 'k-shop' } }),
      ...traffic({ release: 'v2', users: 2, resolved: 0, failed: 2, from: noon + second, words: nightly }),
    ]);
    const found = async () => ({
      ...{ calls: await readCalls(store, window), slow: await countSlow(store, window, 0) },
      ...{ units: await countUnits(store, window), said: (await readSaid(store, window, 'resolved')).outcome },
    });
    expect(await found()).toMatchObject({ calls: { calls: 12, errors: 2 }, units: 6, said: { n: 6, sum: 3 } });
    const about = { agent: 'desk', upstream: 'gpu', model: 'v1' };
    const { id: release } = await createRelease(store, { ...about, name: 'v1' }, 'ann', 1);
    const pin = { agent: 'desk', release, by: 'ann', at: noon };
    await putPin(store.db, { ...pin, kind: 'key', value: 'k-nightly' });
    expect(await found()).toMatchObject({
      ...{ calls: { calls: 8, errors: 0 }, slow: { of: 8, count: 8 } },
      ...{ units: 4, said: { n: 4, sum: 3 } },
    });
    await putPin(store.db, { ...pin, kind: 'user', value: `v2-${noon}-user-0` });
    expect(await found()).toMatchObject({ calls: { calls: 6 }, units: 3, said: { n: 3, sum: 2 } });
  });

  it('reads the window by index and only its own days', async () => {
    const store = await withStore();
    const days = Array.from({ length: 5 }, (_, day) => noon - day * 86_400_000);
    for (const day of days) await writeEntries(store, traffic({ release: 'v2', users: 200, resolved: 1, from: day }));
    await store.pool.query('analyze pawl.turns');
    await store.pool.query('analyze pawl.trajectories');
    for (const [query, ...more] of [[callsQuery], [saidQuery, 'resolved']] as const) {
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
