import { describe, expect, test } from 'vitest';
import type { JournalEntry } from '../collect/signal.ts';
import { StoreError } from '../errors.ts';
import { entry, noon, turn, uuidAt } from './fixtures.ts';
import type { Store } from './postgres.ts';
import { writeEntries } from './record.ts';
import { withStore } from './test-store.ts';
import { readTurn } from './turns.ts';

const trajectories = async (store: Store) =>
  (await store.pool.query('select * from pawl.trajectories order by day, agent, id')).rows;
const count = async (store: Store, table: string): Promise<number> =>
  (await store.pool.query(`select count(*) from pawl.${table}`)).rows[0].count;

describe('writing turns', () => {
  test('a trajectory is the sum of its turns', async () => {
    const store = await withStore();
    const written = await writeEntries(store, [
      entry.turn({
        startedAt: noon,
        latencyMs: 100,
        promptTokens: 10,
        completionTokens: 1,
        release: 'base',
        user: 'ann',
      }),
      entry.turn({
        startedAt: noon + 1000,
        latencyMs: 200,
        promptTokens: 20,
        completionTokens: 2,
        release: 'tuned',
        status: 'error',
      }),
      entry.turn({
        startedAt: noon + 500,
        latencyMs: 50,
        promptTokens: null,
        completionTokens: null,
        status: 'disconnected',
      }),
    ]);
    expect(written).toEqual({ inserted: 3, duplicates: 0, refused: [] });
    expect(await trajectories(store)).toMatchObject([
      {
        id: 'conversation-1',
        agent: 'desk',
        day: '2026-05-20',
        user_id: 'ann',
        turns: 3,
        errors: 1,
        prompt_tokens: 30,
        completion_tokens: 3,
        latency_ms: 350,
        release: 'tuned',
        started_at: new Date(noon),
        ended_at: new Date(noon + 1200),
      },
    ]);
  });

  test('a turn counts once, in the same batch, in a later batch, and from writers at the same time', async () => {
    const store = await withStore();
    const turns = Array.from({ length: 40 }, (_, i) =>
      entry.turn({ startedAt: noon + i, trajectory: `c${i % 4}`, agent: i % 2 ? 'desk' : 'shop', latencyMs: 1 }),
    );
    expect(await writeEntries(store, [...turns.slice(0, 10), ...turns.slice(0, 10)])).toMatchObject({
      inserted: 10,
      duplicates: 10,
    });
    const rounds = await Promise.all(
      Array.from({ length: 8 }, (_, i) => writeEntries(store, i % 2 ? turns : [...turns].reverse())),
    );
    expect(rounds.reduce((sum, { inserted }) => sum + inserted, 0)).toBe(30);
    const rows = await trajectories(store);
    expect(rows.map((row) => [row.agent, row.id, row.turns, row.latency_ms])).toEqual([
      ['desk', 'c1', 10, 10],
      ['desk', 'c3', 10, 10],
      ['shop', 'c0', 10, 10],
      ['shop', 'c2', 10, 10],
    ]);
  });

  test('any order of arrival, in any batches, gives the same trajectory', async () => {
    const turns = [0, 1, 2, 3].map((i) =>
      entry.turn({ startedAt: noon + i * 60_000, latencyMs: 10, release: `r${i}`, user: i === 0 ? null : 'ann' }),
    );
    const orders = [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [2, 0, 3, 1],
    ];
    for (const order of orders) {
      const store = await withStore();
      for (const i of order) await writeEntries(store, [turns[i]!]);
      expect(await trajectories(store)).toMatchObject([
        { turns: 4, release: 'r3', user_id: 'ann', started_at: new Date(noon), ended_at: new Date(noon + 180_010) },
      ]);
    }
  });

  test('a conversation over midnight UTC stays one trajectory, its turns lie in their own days', async () => {
    const midnight = Date.UTC(2026, 4, 21);
    const store = await withStore();
    await writeEntries(store, [entry.turn({ startedAt: midnight - 1 })]);
    await writeEntries(store, [entry.turn({ startedAt: midnight })]);
    expect(await trajectories(store)).toMatchObject([{ day: '2026-05-20', turns: 2 }]);
    const days = await store.pool.query('select day from pawl.turns order by day');
    expect(days.rows.map(({ day }) => day)).toEqual(['2026-05-20', '2026-05-21']);
  });

  test('over midnight, writers at the same time still make one trajectory', async () => {
    const midnight = Date.UTC(2026, 4, 21);
    const store = await withStore();
    const both = Array.from({ length: 20 }, (_, i) => [
      entry.turn({ trajectory: `c${i}`, startedAt: midnight - 1 }),
      entry.turn({ trajectory: `c${i}`, startedAt: midnight }),
    ]);
    await Promise.all([
      writeEntries(
        store,
        both.map(([before]) => before!),
      ),
      writeEntries(
        store,
        both.map(([, after]) => after!),
      ),
    ]);
    const rows = await trajectories(store);
    expect(rows).toHaveLength(20);
    expect(rows.every((row) => row.turns === 2)).toBe(true);
  });

  test('an id used again more than a week later is a new trajectory', async () => {
    const store = await withStore();
    await writeEntries(store, [entry.turn({ startedAt: noon })]);
    await writeEntries(store, [entry.turn({ startedAt: noon + 7 * 86_400_000 })]);
    await writeEntries(store, [entry.turn({ startedAt: noon + 8 * 86_400_000 })]);
    expect((await trajectories(store)).map(({ day, turns }) => [day, turns])).toEqual([
      ['2026-05-20', 2],
      ['2026-05-28', 1],
    ]);
  });

  test('also when both arrive in one batch', async () => {
    const store = await withStore();
    const days = [0, 8, 3, 300];
    await writeEntries(
      store,
      days.map((days) => entry.turn({ startedAt: noon + days * 86_400_000 })),
    );
    expect((await trajectories(store)).map(({ day, turns }) => [day, turns])).toEqual([
      ['2026-05-20', 2],
      ['2026-05-28', 1],
      ['2027-03-16', 1],
    ]);
  });

  test('two agents may use the same id', async () => {
    const store = await withStore();
    await writeEntries(store, [entry.turn({ agent: 'desk' }), entry.turn({ agent: 'shop' })]);
    expect((await trajectories(store)).map(({ agent, turns }) => [agent, turns])).toEqual([
      ['desk', 1],
      ['shop', 1],
    ]);
  });

  test('one turn that is not production makes the trajectory not production, whichever comes first', async () => {
    for (const origins of [
      ['production', 'simulation'],
      ['simulation', 'production'],
    ] as const) {
      const store = await withStore();
      for (const origin of origins) await writeEntries(store, [entry.turn({ origin })]);
      expect(await trajectories(store)).toMatchObject([{ origin: 'simulation', turns: 2 }]);
    }
  });

  test('a day that retention dropped in between is made again', async () => {
    const store = await withStore();
    await writeEntries(store, [entry.turn()]);
    await store.pool.query('drop table pawl.turns_20260520; drop table pawl.trajectories_20260520');
    expect(await writeEntries(store, [entry.turn()])).toMatchObject({ inserted: 1, refused: [] });
  });
});

describe('consent', () => {
  test('is what the user had said when the turn began', async () => {
    const store = await withStore();
    const day = 86_400_000;
    await store.pool.query(
      `insert into pawl.consent (agent, user_id, given_at, withdrawn_at) values
        ('desk', 'given', to_timestamp($1), null), ('desk', 'later', to_timestamp($2), null),
        ('desk', 'withdrawn', to_timestamp($1), to_timestamp($3)), ('shop', 'other', to_timestamp($1), null)`,
      [(noon - day) / 1000, (noon + 1) / 1000, noon / 1000],
    );
    const users = ['given', 'later', 'withdrawn', 'other', 'silent', null];
    await writeEntries(
      store,
      users.map((user, i) => entry.turn({ trajectory: `c${i}`, user })),
    );
    await writeEntries(store, [entry.turn({ trajectory: 'before', user: 'withdrawn', startedAt: noon - 1 })]);
    expect((await trajectories(store)).map(({ id, consent }) => [id, consent])).toEqual([
      ['before', 'given'],
      ['c0', 'given'],
      ['c1', 'unknown'],
      ['c2', 'withdrawn'],
      ['c3', 'unknown'],
      ['c4', 'unknown'],
      ['c5', 'unknown'],
    ]);
  });

  test('is that of everybody who took part: the worst of the turns, in whatever order they arrive', async () => {
    const agreed = (user: string, at: number, withdrawn: number | null = null) =>
      `('desk', '${user}', to_timestamp(${at / 1000}), ${withdrawn === null ? 'null' : `to_timestamp(${withdrawn / 1000})`})`;
    const said = [agreed('ann', noon), agreed('bob', noon - 9, noon + 2), agreed('cleo', noon + 3)];
    const turn = (user: string | null, at: number) => ({ user, startedAt: noon + at });
    const cases = [
      [[turn('ann', 0), turn('ann', 9)], 'given'],
      [[turn('ann', 0), turn('cleo', 3)], 'given'], // each had agreed by the time of their own turn
      [[turn('ann', 0), turn('cleo', 2)], 'unknown'],
      [[turn('ann', 0), turn('bob', 1)], 'given'],
      [[turn('ann', 0), turn('bob', 2)], 'withdrawn'],
      [[turn('ann', 0), turn(null, 1)], 'unknown'],
      [[turn('ann', 0), turn('dan', 1)], 'unknown'],
      [[turn('ann', 0), turn(null, 1), turn('bob', 2)], 'withdrawn'],
      [[turn('ann', -1), turn('ann', 0)], 'unknown'],
    ] as const;
    const store = await withStore();
    await store.pool.query(
      `insert into pawl.consent (agent, user_id, given_at, withdrawn_at) values ${said.join(', ')}`,
    );
    const arrivals = cases.flatMap(([turns, expected], i) =>
      [[turns], turns.map((one) => [one]), turns.map((one) => [one]).reverse()].map((batches, order) => ({
        id: `${i}-${order}`,
        expected,
        batches: batches.map((batch) => batch.map((at) => entry.turn({ ...at, trajectory: `${i}-${order}` }))),
      })),
    );
    for (const { batches } of arrivals) for (const batch of batches) await writeEntries(store, batch);
    expect((await trajectories(store)).map(({ id, consent }) => [id, consent])).toEqual(
      arrivals.map(({ id, expected }) => [id, expected]),
    );
  });
});

describe('signals and attachments', () => {
  test('the newest `at` of an identity stands, in whatever order they come', async () => {
    const store = await withStore();
    const votes = [
      entry.signal({ at: noon, value: 0 }),
      entry.signal({ at: noon + 2, value: 1 }),
      entry.signal({ at: noon + 1, value: 0.5 }),
    ];
    expect(await writeEntries(store, [votes[1]!])).toMatchObject({ inserted: 1 });
    expect(await writeEntries(store, votes)).toMatchObject({ inserted: 0, duplicates: 3 });
    expect(await writeEntries(store, [entry.signal({ at: noon + 3, value: 0.25 })])).toMatchObject({ inserted: 1 });
    const rows = (await store.pool.query('select value from pawl.signals')).rows;
    expect(rows).toEqual([{ value: 0.25 }]);
  });

  test('a time that no clock’s error explains gives way to the arrival, and does not shut out the true value', async () => {
    const store = await withStore();
    const day = 86_400_000;
    const far = [Date.UTC(9999, 0, 1), Number.MAX_SAFE_INTEGER, noon + day + 1, -1, 0];
    for (const [i, at] of far.entries())
      await writeEntries(store, [entry.signal({ id: uuidAt(noon), identity: `${i}`, at, receivedAt: noon, value: 0 })]);
    await writeEntries(store, [
      entry.signal({ identity: 'ahead', at: noon + day, receivedAt: noon }),
      ...far.map((_, i) => entry.signal({ identity: `${i}`, at: noon + 1, receivedAt: noon + 1, value: 1 })),
    ]);
    const rows = await store.pool.query('select identity, at, value from pawl.signals order by identity');
    expect(rows.rows).toEqual([
      ...far.map((_, i) => ({ identity: `${i}`, at: new Date(noon + 1), value: 1 })),
      { identity: 'ahead', at: new Date(noon + day), value: 1 },
    ]);
  });

  test('keys of a turn, of an attachment by trajectory, and by turn come to the trajectory', async () => {
    const store = await withStore();
    const recorded = turn({ keys: ['order:1'] });
    const unseen = uuidAt(noon);
    await writeEntries(store, [
      { kind: 'turn', turn: recorded },
      entry.attachment({ key: 'order:2', trajectory: 'conversation-1' }),
      entry.attachment({ key: 'order:3', turn: recorded.id, at: noon + 40 * 86_400_000 }),
      entry.attachment({ key: 'order:4', turn: unseen }),
      entry.attachment({ key: 'order:4', turn: unseen }),
    ]);
    const rows = await store.pool.query('select key, target_kind, target_id from pawl.trajectory_keys order by key');
    expect(rows.rows).toEqual([
      { key: 'order:1', target_kind: 'trajectory', target_id: 'conversation-1' },
      { key: 'order:2', target_kind: 'trajectory', target_id: 'conversation-1' },
      { key: 'order:3', target_kind: 'trajectory', target_id: 'conversation-1' },
      { key: 'order:4', target_kind: 'turn', target_id: unseen },
    ]);
  });
});

describe('entries the database will not take', () => {
  test('are reported, and all others are written', async () => {
    const store = await withStore();
    const bad: JournalEntry[] = [
      entry.turn({ id: 'not a uuid' }),
      entry.turn({ startedAt: Number.NaN }),
      entry.turn({ user: Array.from({ length: 5000 }, () => Math.random().toString(36)).join('') }),
      entry.turn({ model: null as unknown as string }),
      entry.attachment(),
    ];
    const good = Array.from({ length: 50 }, (_, i) => entry.turn({ trajectory: `c${i}` }));
    const mixed = good.flatMap((line, i) => (i % 10 === 0 && bad[i / 10] ? [line, bad[i / 10]!] : [line]));
    const written = await writeEntries(store, mixed);
    expect(written.inserted).toBe(50);
    expect(written.duplicates).toBe(0);
    expect(new Set(written.refused.map((refused) => refused.entry))).toEqual(new Set(bad));
    expect(written.refused.every(({ error }) => error.length > 10)).toBe(true);
    expect(await count(store, 'turns')).toBe(50);
  });

  test('NUL and half surrogate pairs become U+FFFD, an escaped backslash stays', async () => {
    const store = await withStore();
    const content = 'a\u0000b \ud83d c \\u0000 😀 \udc00';
    const shown = 'a\ufffdb \ufffd c \\u0000 😀 \ufffd';
    const odd = uuidAt(noon);
    const written = await writeEntries(store, [
      entry.turn({
        id: odd,
        request: { messages: [{ role: 'user', content }], [content]: 1 },
        error: content,
        user: 'a\u0000b',
      }),
      entry.signal({ comment: content }),
    ]);
    expect(written).toEqual({ inserted: 2, duplicates: 0, refused: [] });
    expect(await readTurn(store, odd)).toMatchObject({
      request: { messages: [{ role: 'user', content: shown }], [shown]: 1 },
      error: shown,
      user: 'a\ufffdb',
    });
  });

  test('a connection cut in the middle is a retryable error; the batch can be delivered again', async () => {
    const store = await withStore();
    const batch = [entry.turn(), entry.signal(), entry.attachment({ trajectory: 'conversation-1' })];
    await writeEntries(store, [entry.turn({ trajectory: 'other' })]);
    const other = await store.pool.connect();
    await other.query('begin; lock table pawl.turns_20260520 in access exclusive mode');
    const failing = writeEntries(store, batch).catch((error: unknown) => error);
    for (let cut = 0; cut === 0; ) {
      // Not on `other`: inside a transaction the server shows the same activity again and again.
      const found = await store.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      cut = found.rowCount ?? 0;
    }
    const failure = await failing;
    await other.query('rollback');
    other.release();
    expect(failure).toBeInstanceOf(StoreError);
    expect((failure as StoreError).retryable).toBe(true);
    expect(await count(store, 'turns')).toBe(1);
    expect(await writeEntries(store, batch)).toEqual({ inserted: 3, duplicates: 0, refused: [] });
    expect(await writeEntries(store, batch)).toEqual({ inserted: 0, duplicates: 3, refused: [] });
  });
});
