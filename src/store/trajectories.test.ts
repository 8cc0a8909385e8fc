import { beforeAll, describe, expect, test } from 'vitest';
import type { Trajectory } from '../collect/trajectory.ts';
import { RequestError } from '../errors.ts';
import { entry, noon, turn } from './fixtures.ts';
import { dropPartitions, ensurePartitions, partitionDays } from './partitions.ts';
import type { Store } from './postgres.ts';
import { writeEntries } from './record.ts';
import { withStore } from './test-store.ts';
import { firstPageQuery, listTrajectories, reaches, readTrajectory, type TrajectoryFilter } from './trajectories.ts';
import { readTurn } from './turns.ts';

const day = 86_400_000;
const now = new Date(noon + day);

const listAll = async (store: Store, filter: TrajectoryFilter, limit: number): Promise<Trajectory[]> => {
  const all: Trajectory[] = [];
  for (let cursor: string | null = null; ; ) {
    const page = await listTrajectories(store, { ...filter, limit, cursor, now });
    all.push(...page.trajectories);
    if (page.cursor === null) return all;
    cursor = page.cursor;
  }
};

describe('looking back', () => {
  test('reaches twice as far each time and ends at the oldest day, with the week a row may lie later', () => {
    const at = (text: string) => new Date(`${text}T00:00:00Z`);
    const steps = [...reaches(at('2026-05-20'), null, null, '2026-05-10')];
    expect(steps).toEqual([
      { from: at('2026-05-18'), to: null },
      { from: at('2026-05-14'), to: at('2026-05-18') },
      { from: at('2026-05-06'), to: at('2026-05-14') },
      { from: null, to: at('2026-05-06') },
    ]);
    expect([...reaches(at('2026-05-20'), null, at('2026-05-19'), '2020-01-01')]).toEqual([
      { from: at('2026-05-19'), to: null },
    ]);
  });
});

describe('listing', () => {
  let store: Store;
  beforeAll(async () => {
    store = await withStore();
    // 120 trajectories over 40 days, three at the same moment each day.
    await writeEntries(
      store,
      Array.from({ length: 120 }, (_, i) =>
        entry.turn({
          trajectory: `c${String(i).padStart(3, '0')}`,
          startedAt: noon - Math.floor(i / 3) * day,
          agent: i % 2 ? 'desk' : 'shop',
          user: i % 10 === 0 ? 'ann' : null,
          origin: i % 5 === 0 ? 'simulation' : 'production',
          release: i < 60 ? 'new' : 'old',
          status: i % 7 === 0 ? 'error' : 'ok',
        }),
      ),
    );
  });

  test('goes from newest to oldest, and pages neither repeat nor miss any', async () => {
    const whole = await listAll(store, {}, 1000);
    expect(whole).toHaveLength(120);
    for (const limit of [1, 7, 40]) expect(await listAll(store, {}, limit)).toEqual(whole);
    const order = whole.map(({ startedAt, agent, id }) => `${startedAt.toISOString()} ${agent} ${id}`);
    expect(order).toEqual([...order].sort().reverse());
  });

  test('pages stay put when newer trajectories arrive in between', async () => {
    const own = await withStore();
    await writeEntries(
      own,
      ['a', 'b', 'c'].map((id, i) => entry.turn({ trajectory: id, startedAt: noon - i })),
    );
    const first = await listTrajectories(own, { limit: 2, now });
    await writeEntries(own, [entry.turn({ trajectory: 'newer', startedAt: noon + 1 })]);
    const second = await listTrajectories(own, { limit: 2, cursor: first.cursor, now });
    expect([...first.trajectories, ...second.trajectories].map(({ id }) => id)).toEqual(['a', 'b', 'c']);
    expect(second.cursor).toBeNull();
  });

  test.each([
    [{ agent: 'desk' }, 60],
    [{ agent: 'desk', origin: 'simulation' }, 12],
    [{ origin: 'production' }, 96],
    [{ user: 'ann' }, 12],
    [{ release: 'old', agent: 'shop' }, 30],
    [{ status: 'error' }, 18],
    [{ since: new Date(noon - 2 * day) }, 9],
    [{ until: new Date(noon - 38 * day) }, 3],
    [{ since: new Date(noon - 3 * day), until: new Date(noon - day) }, 6],
    [{ agent: 'nobody' }, 0],
  ] as [TrajectoryFilter, number][])('filters by %j', async (filter, expected) => {
    expect(await listAll(store, filter, 1000)).toHaveLength(expected);
    expect(await listAll(store, filter, 4)).toHaveLength(expected);
  });

  test('a row whose first turn arrived late is listed where it began, not where it lies', async () => {
    const own = await withStore();
    await writeEntries(own, [entry.turn({ trajectory: 'late', startedAt: noon })]);
    await writeEntries(own, [entry.turn({ trajectory: 'late', startedAt: noon - 6 * day })]);
    await writeEntries(own, [entry.turn({ trajectory: 'middle', startedAt: noon - 3 * day })]);
    expect((await listAll(own, {}, 1)).map(({ id }) => id)).toEqual(['middle', 'late']);
    const early = { since: new Date(noon - 6 * day), until: new Date(noon - 5 * day) };
    expect((await listAll(own, early, 1)).map(({ id }) => id)).toEqual(['late']);
  });

  test('a cursor made up by someone is refused', async () => {
    for (const cursor of ['x', 'bnVsbA', Buffer.from('["a",1,2]').toString('base64url')])
      await expect(listTrajectories(store, { cursor })).rejects.toBeInstanceOf(RequestError);
  });

  test('an empty database has an empty list', async () => {
    expect(await listTrajectories(await withStore(), {})).toEqual({ trajectories: [], cursor: null });
  });
});

describe('reading one', () => {
  test('gives back the turns as they were recorded, in order, with ragged token arrays', async () => {
    const store = await withStore();
    const turns = [
      turn({
        startedAt: noon,
        keys: ['order:1'],
        promptTokenIds: [1, 2, 3],
        choices: [
          {
            index: 0,
            message: { content: 'a' },
            finishReason: 'stop',
            tokenIds: [7, 8],
            logprobs: [-0.5, Math.fround(-0.1)],
          },
          { index: 1, message: { content: 'b' }, finishReason: null },
          { index: 2, message: { content: '' }, finishReason: 'stop', tokenIds: [], logprobs: [] },
          { index: 3, message: { content: 'd' }, finishReason: 'length', tokenIds: [9] },
        ],
        redactions: { email: 2 },
      }),
      turn({ startedAt: noon + day, usage: null, promptTokens: null, error: 'upstream said 500', status: 'error' }),
    ];
    await writeEntries(store, turns.map((t) => ({ kind: 'turn' as const, turn: t })).reverse());
    const read = await readTrajectory(store, 'conversation-1', { now });
    expect(read?.turns).toEqual(turns);
    expect(read?.trajectory).toMatchObject({ turns: 2, errors: 1, startedAt: new Date(noon) });
    expect(read?.keys).toEqual(['order:1']);
    expect(read?.cut).toBe(false);
    expect(await readTurn(store, turns[0]!.id)).toEqual(turns[0]);
    expect(await readTurn(store, turns[0]!.id, 'shop')).toBeNull();
    expect(await readTurn(store, 'x')).toBeNull();
    expect((await readTrajectory(store, 'conversation-1', { now, maxTurns: 1 }))?.cut).toBe(true);
  });

  test('finds signals on it, on its turns, and on keys attached before or after, by trajectory or by turn', async () => {
    const store = await withStore();
    const recorded = turn({ keys: ['order:1'] });
    await writeEntries(store, [
      entry.signal({ identity: '1', at: noon + 1, target: { kind: 'trajectory', id: 'conversation-1' } }),
      entry.signal({ identity: '2', at: noon + 2, target: { kind: 'turn', id: recorded.id } }),
      entry.signal({ identity: '3', at: noon + 3, target: { kind: 'key', id: 'order:1' } }),
      entry.signal({
        identity: '4',
        at: noon + 4,
        target: { kind: 'key', id: 'order:2' },
        kind: 'outcome',
        value: 12.5,
      }),
      entry.signal({ identity: '5', at: noon + 5, target: { kind: 'key', id: 'order:3' } }),
      entry.signal({ identity: '6', agent: 'shop', target: { kind: 'trajectory', id: 'conversation-1' } }),
      entry.attachment({ key: 'order:2', turn: recorded.id }),
    ]);
    await writeEntries(store, [{ kind: 'turn', turn: recorded }]);
    const read = await readTrajectory(store, 'conversation-1', { agent: 'desk', now });
    expect(read?.signals.map(({ identity }) => identity)).toEqual(['1', '2', '3', '4']);
    expect(read?.signals[3]).toMatchObject({ kind: 'outcome', value: 12.5, target: { kind: 'key', id: 'order:2' } });
    expect(read?.keys).toEqual(['order:1', 'order:2']);
  });

  test('reaches far back, keeps agents apart, and says null for what is not there', async () => {
    const store = await withStore();
    await writeEntries(store, [
      entry.turn({ trajectory: 'old', startedAt: noon - 300 * day }),
      entry.turn({ trajectory: 'old', startedAt: noon - 100 * day }),
      entry.turn({ trajectory: 'old', startedAt: noon - 200 * day, agent: 'shop' }),
    ]);
    expect((await readTrajectory(store, 'old', { now }))?.trajectory.startedAt).toEqual(new Date(noon - 100 * day));
    const shop = await readTrajectory(store, 'old', { now, agent: 'shop' });
    expect(shop?.trajectory.startedAt).toEqual(new Date(noon - 200 * day));
    expect(shop?.turns).toHaveLength(1);
    expect(await readTrajectory(store, 'missing', { now })).toBeNull();
  });
});

describe('partitions', () => {
  test('are made once by many processes at the same time', async () => {
    const store = await withStore();
    const days = ['2026-05-20', '2026-05-21', '2026-05-22'];
    await Promise.all(Array.from({ length: 5 }, () => ensurePartitions({ ...store, knownDays: new Set() }, days)));
    expect(await partitionDays(store)).toEqual(days);
    await expect(ensurePartitions(store, ['2026-02-30'])).rejects.toThrow("'2026-02-30' is not a day");
  });

  test('retention drops whole days with their signals and keys, and late turns still find a place', async () => {
    const store = await withStore();
    await writeEntries(store, [
      entry.turn({ trajectory: 'old', startedAt: noon - 2 * day, keys: ['order:1'] }),
      entry.turn({ trajectory: 'new', startedAt: noon, keys: ['order:2'] }),
      entry.signal({ identity: 'old', at: noon - 2 * day }),
      entry.signal({ identity: 'new', at: noon }),
    ]);
    expect(await dropPartitions(store, { before: '2026-05-20' })).toEqual(['2026-05-18']);
    expect(await dropPartitions(store, { before: '2026-05-20' })).toEqual([]);
    expect((await listAll(store, {}, 10)).map(({ id }) => id)).toEqual(['new']);
    expect((await store.pool.query('select identity from pawl.signals')).rows).toEqual([{ identity: 'new' }]);
    expect((await store.pool.query('select key from pawl.trajectory_keys')).rows).toEqual([{ key: 'order:2' }]);
    expect(await writeEntries(store, [entry.turn({ trajectory: 'late', startedAt: noon - 2 * day })])).toMatchObject({
      inserted: 1,
    });
  });

  test('a drop that was cut off is finished by the next', async () => {
    const store = await withStore();
    await writeEntries(store, [entry.turn({ startedAt: noon - 2 * day })]);
    await store.pool.query('alter table pawl.turns detach partition pawl.turns_20260518 concurrently');
    // Detached and not dropped: a late turn of that day takes the table back in, with what it holds.
    store.knownDays.clear();
    await writeEntries(store, [entry.turn({ startedAt: noon - 2 * day })]);
    expect((await readTrajectory(store, 'conversation-1', { now }))?.turns).toHaveLength(2);
    expect(await dropPartitions(store, { before: '2026-05-20' })).toEqual(['2026-05-18']);
  });
});

describe('plans', () => {
  type Node = {
    'Node Type': string;
    'Relation Name'?: string;
    'Actual Rows'?: number;
    Plans?: Node[];
    'Rows Removed by Filter'?: number;
  };
  const nodes = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
  const plan = async (store: Store, text: string, values: readonly unknown[]): Promise<Node[]> => {
    const answer = await store.pool.query(`explain (analyze, timing off, format json) ${text}`, [...values]);
    return nodes(answer.rows[0]['QUERY PLAN'][0].Plan);
  };

  test('of lists and filters read a page by index, whatever the table holds', async () => {
    const store = await withStore();
    // Five days of 6,000 trajectories each, made by the database itself.
    const days = [0, 1, 2, 3, 4].map((back) => new Date(noon - back * day).toISOString().slice(0, 10));
    await ensurePartitions(store, days);
    await store.pool.query(
      `insert into pawl.trajectories
       select 'c' || d || '-' || n, 'agent' || n % 3, d, 'user' || n % 500, case when n % 4 = 0 then 'simulation' else 'production' end,
         'unknown', d + n * interval '10 seconds', d + n * interval '10 seconds', 1, (n % 50 = 0)::int, 1, 1, 1, 'release' || n % 2, d
       from unnest($1::date[]) d, generate_series(1, 6000) n`,
      [days],
    );
    await store.pool.query('analyze pawl.trajectories');
    const filters: TrajectoryFilter[] = [
      {},
      { agent: 'agent1' },
      { origin: 'production' },
      { agent: 'agent1', origin: 'simulation' },
      { user: 'user7' },
      { release: 'release1' },
      { release: 'release1', agent: 'agent2' },
      { status: 'error' },
    ];
    for (const filter of filters) {
      const query = firstPageQuery(store, filter, { from: new Date(noon - 2 * day), to: null }, 51);
      const found = await plan(store, query.sql, query.parameters);
      const label = JSON.stringify(filter);
      expect(
        found.filter((node) => node['Node Type'] === 'Seq Scan'),
        label,
      ).toEqual([]);
      // Pruned: the two oldest days are not touched.
      const touched = new Set(found.map((node) => node['Relation Name']?.slice(-8)).filter(Boolean));
      expect([...touched].sort(), label).toEqual(['20260518', '20260519', '20260520']);
      const read = found
        .filter((node) => node['Relation Name'])
        .map((n) => (n['Actual Rows'] ?? 0) + (n['Rows Removed by Filter'] ?? 0));
      expect(Math.max(...read), label).toBeLessThan(400);
    }
    const one = await plan(
      store,
      `select * from pawl.trajectories where id = $1 and day >= $2 order by day desc limit 1`,
      [`c${days[1]}-17`, days[2]],
    );
    expect(one.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
    expect(await partitionDays(store)).toEqual(days.toReversed());
  });

  test('of one trajectory reads its turns by index', async () => {
    const store = await withStore();
    await writeEntries(store, [entry.turn({ trajectory: 'wanted' })]);
    await store.pool.query(
      `insert into pawl.turns select gen_random_uuid(), day, agent, 'c' || n, user_id, origin, endpoint, keys, started_at, first_token_ms, latency_ms,
         upstream, release, model, status, http_status, error, attempts, stream, prompt_tokens, completion_tokens, reasoning_tokens,
         thread_key, request, choices, usage, redactions, prompt_token_ids, token_ids, logprobs, token_counts
       from pawl.turns, generate_series(1, 5000) n`,
    );
    await store.pool.query('analyze pawl.turns');
    const { sql, parameters } = store.db
      .selectFrom('turns')
      .selectAll()
      .where('trajectory', '=', 'wanted')
      .where('agent', '=', 'desk')
      .where('day', '>=', '2026-05-20')
      .where('day', '<=', '2026-05-20')
      .orderBy('started_at')
      .orderBy('id')
      .compile();
    const found = await plan(store, sql, parameters);
    expect(found.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
    expect((await readTrajectory(store, 'wanted', { now }))?.turns).toHaveLength(1);
  });
});
