import { expect, test } from 'vitest';
import { entry, noon, uuidAt } from '../store/fixtures.ts';
import { ensurePartitions } from '../store/partitions.ts';
import { writeEntries } from '../store/record.ts';
import { compiledScoresQuery, listScores, saveRewardSpec, saveScores } from '../store/scores.ts';
import { withStore } from '../store/test-store.ts';
import { type Placed, windowQuery } from '../store/window.ts';
import { converse, deskReward } from './fixtures.ts';
import { scoreWindow } from './run.ts';
import type { Scorer } from './scorer.ts';
import { thinking } from './thinking.ts';
import { weighted } from './weighted.ts';

const now = new Date(noon + 3_600_000);
const window = {
  agent: 'desk',
  spec: deskReward,
  since: new Date(noon - 3_600_000),
  until: new Date(noon + 3_600_000),
  now,
};
const conversation = (id: string, at = noon) =>
  converse(
    `Where is order 7, asks ${id}`,
    [{ say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] }, { say: 'Sent.' }],
    { trajectory: id, startedAt: at },
  );
const turnsOf = (id: string, at?: number) => conversation(id, at).map((turn) => ({ kind: 'turn' as const, turn }));
const outcome = (fields: Parameters<typeof entry.signal>[0]) =>
  entry.signal({ kind: 'outcome', name: 'resolved', user: null, value: 1, ...fields });

test('scores a window once, and again only what got new evidence', async () => {
  const store = await withStore();
  await writeEntries(store, [...turnsOf('a'), ...turnsOf('b', noon + 5000), ...turnsOf('c', noon + 9000)]);
  await writeEntries(store, [entry.turn({ trajectory: 'silent', startedAt: noon + 1 })]);
  await writeEntries(store, [entry.turn({ trajectory: 'other', agent: 'shop' })]);
  await writeEntries(store, [entry.turn({ trajectory: 'played', origin: 'simulation' })]);
  const none = { scored: 0, rescored: 0, unchanged: 0, tooLong: 0, tooLarge: 0, unmeasured: 0, broken: 0, answers: 0 };
  expect(await scoreWindow(store, window)).toEqual({ ...none, trajectories: 4, scored: 4, unmeasured: 1 });
  expect(await scoreWindow(store, window)).toEqual({ ...none, trajectories: 4, unchanged: 4, unmeasured: 1 });
  expect((await listScores(store, 'a'))[0]).toMatchObject({
    total: 1,
    measured: 0.3,
    agent: 'desk',
    day: '2026-05-20',
  });
  expect((await listScores(store, 'silent'))[0]).toMatchObject({ total: null, measured: 0 });

  // A late outcome on the trajectory, one on a turn, one on a business key that is attached afterwards.
  const turnOfB = uuidAt(noon + 20_000);
  await writeEntries(store, [
    outcome({ identity: 'a', target: { kind: 'trajectory', id: 'a' }, value: 0 }),
    entry.turn({ id: turnOfB, trajectory: 'b', startedAt: noon + 20_000 }),
    outcome({ identity: 'b', target: { kind: 'turn', id: turnOfB } }),
    outcome({ identity: 'c', target: { kind: 'key', id: 'order:7' }, value: 0.5 }),
  ]);
  expect(await scoreWindow(store, window)).toMatchObject({ rescored: 2, unchanged: 2 });
  await writeEntries(store, [entry.attachment({ key: 'order:7', trajectory: 'c' })]);
  expect(await scoreWindow(store, window)).toMatchObject({ rescored: 1, unchanged: 3 });
  const totals = await Promise.all(
    ['a', 'b', 'c'].map(async (id) => (await listScores(store, id)).map((s) => s.total)),
  );
  // (0.5 × 0 + 0.3 × 1) / 0.8, then 1, then (0.5 × 0.5 + 0.3) / 0.8: one score each, the latest
  expect(totals).toEqual([[0.375], [1], [0.6875]]);

  // The outcome is corrected: same identity, new value.
  await writeEntries(store, [outcome({ identity: 'a', target: { kind: 'trajectory', id: 'a' }, at: noon + 1 })]);
  expect(await scoreWindow(store, window)).toMatchObject({ rescored: 1, unchanged: 3 });
  expect((await listScores(store, 'a'))[0]!.total).toBe(1);
});

test('no scorer brings what is no number into the store', async () => {
  const store = await withStore();
  await writeEntries(store, turnsOf('a'));
  const saying = (value: number, ofTurn = 1): Scorer => ({
    ...{ name: 'odd', version: '1' },
    score: ({ turns }) => ({ value, reason: '', turns: new Map(turns.map(({ id }) => [id, ofTurn])) }),
  });
  const odd = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0.1, 1.7];
  const parts = odd.flatMap((one, i) => [
    [`value${i}`, [1, saying(one)] as const] as const,
    [`turn${i}`, [1, saying(1, one)] as const] as const,
  ]);
  const spec = weighted({ ...Object.fromEntries(parts), sound: [1, saying(1)] });
  expect(await scoreWindow(store, { ...window, spec })).toMatchObject({ scored: 1, broken: 1 });
  const { rows } = await store.pool.query<{ total: number | null; measured: number; parts: object; turns: object }>(
    'select total, measured, parts, turns from pawl.scores where spec = $1',
    [spec.version],
  );
  expect(rows).toMatchObject([{ total: null, measured: expect.closeTo(1 / 11, 6) }]);
  // JSON writes what is no number as null, so each value is looked at by its part.
  const [score] = await listScores(store, 'a');
  for (const [name, { value, failed }] of Object.entries(score!.parts))
    expect([name, value, failed ?? false]).toEqual(name === 'sound' ? [name, 1, false] : [name, null, true]);
  for (const turn of score!.turns) expect(turn.parts).toEqual({ sound: 1 });
});

test('asks a judge about a few conversations at a time, and again where it broke', async () => {
  const store = await withStore();
  await writeEntries(
    store,
    ['a', 'b', 'c', 'd', 'e'].flatMap((id, i) => turnsOf(id, noon + i * 10_000)),
  );
  let asking = 0;
  let most = 0;
  let away = true;
  const judge: Scorer = {
    name: 'judge',
    version: '1',
    async score({ trajectory }) {
      most = Math.max(most, ++asking);
      await new Promise(setImmediate);
      asking--;
      if (away && trajectory.id === 'c') throw new Error('the judge is away');
      return { value: 1, reason: 'fine', turns: new Map() };
    },
  };
  const judged = { ...window, spec: weighted({ judge: [1, judge] }), atOnce: 2 };
  expect(await scoreWindow(store, judged)).toMatchObject({ scored: 5, unmeasured: 1, broken: 1 });
  expect(most).toBe(2);
  expect((await listScores(store, 'c'))[0]!.parts.judge!.reason).toBe('scorer judge failed: the judge is away');
  away = false;
  expect(await scoreWindow(store, judged)).toMatchObject({ rescored: 1, unchanged: 4, unmeasured: 0, broken: 0 });
});

test('compares a week’s thinking with its own median, once there is one, and keeps that', async () => {
  const store = await withStore();
  const spec = weighted({ thinking: [1, thinking()] });
  const thought = (i: number, tokens: number) =>
    entry.turn({ trajectory: `t${i}`, startedAt: noon + i * 1000, reasoningTokens: tokens });
  await writeEntries(
    store,
    Array.from({ length: 19 }, (_, i) => thought(i, 100)),
  );
  expect(await scoreWindow(store, { ...window, spec })).toMatchObject({ scored: 19, unmeasured: 19 });
  await writeEntries(store, [thought(19, 400)]);
  expect(await scoreWindow(store, { ...window, spec })).toMatchObject({ scored: 1, rescored: 19, unmeasured: 0 });
  expect((await listScores(store, 't19'))[0]).toMatchObject({ total: 0.25 });
  await writeEntries(
    store,
    Array.from({ length: 30 }, (_, i) => thought(20 + i, 900)),
  );
  expect(await scoreWindow(store, { ...window, spec })).toMatchObject({ scored: 30, rescored: 0, unchanged: 20 });
  expect((await listScores(store, 't20'))[0]!.parts.thinking!.reason).toBe('900 tokens of thinking, usually 100');
});

test('tells two conversations apart that used the same id weeks apart', async () => {
  const store = await withStore();
  const later = noon + 20 * 86_400_000;
  await writeEntries(store, [...turnsOf('same'), ...turnsOf('same', later)]);
  const all = { ...window, until: new Date(later + 60_000) };
  expect(await scoreWindow(store, all)).toMatchObject({ trajectories: 2, scored: 2 });
  expect(await scoreWindow(store, all)).toMatchObject({ unchanged: 2 });
  const scores = await listScores(store, 'same');
  expect(scores.map(({ day }) => day).sort()).toEqual(['2026-05-20', '2026-06-09']);
  // Each over its own two turns: a third and fourth would make the call a repeat.
  expect(scores.map(({ total, turns }) => [total, turns.length])).toEqual([
    [1, 2],
    [1, 2],
  ]);
});

test('pages through more than a page, and every trajectory exactly once', async () => {
  const store = await withStore();
  const entries = Array.from({ length: 450 }, (_, i) => entry.turn({ trajectory: `c${i}`, startedAt: noon + (i % 7) }));
  await writeEntries(store, entries);
  expect(await scoreWindow(store, window)).toMatchObject({ trajectories: 450, scored: 450 });
});

test('a window of an hour reads only its own days by index, whatever the table holds', async () => {
  const store = await withStore();
  const days = Array.from({ length: 20 }, (_, back) =>
    new Date(noon - (back - 2) * 86_400_000).toISOString().slice(0, 10),
  );
  await ensurePartitions(store, days);
  await store.pool.query(
    `insert into pawl.trajectories
     select 'c' || d || '-' || n, 'agent' || n % 3, d, null, 'production', 'unknown', d + n * interval '40 seconds',
       d + n * interval '40 seconds', 1, 0, 1, 1, 1, 'base', d
     from unnest($1::date[]) d, generate_series(1, 2000) n`,
    [days],
  );
  await store.pool.query('analyze pawl.trajectories');
  const { sql, parameters } = windowQuery(store, { ...window, agent: 'agent1', origin: 'production' }, 200);
  const plan = await store.pool.query(`explain (analyze, timing off, format json) ${sql}`, [...parameters]);
  type Node = { 'Node Type': string; 'Relation Name'?: string; 'Actual Rows': number; Plans?: Node[] };
  const nodes = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
  const scans = nodes(plan.rows[0]['QUERY PLAN'][0].Plan).filter((node) => node['Relation Name'] !== undefined);
  // One day begins the window; rows may lie up to a week later, and two of those days exist.
  expect(scans.map((node) => node['Relation Name']).sort()).toEqual([
    'trajectories_20260520',
    'trajectories_20260521',
    'trajectories_20260522',
  ]);
  for (const scan of scans) {
    expect(scan['Node Type']).toMatch(/Index|Bitmap/);
    expect(scan['Actual Rows']).toBeLessThanOrEqual(200);
  }
});

test('a page asks for its own scores, however many there are of a reward that the server has not looked at', async () => {
  const store = await withStore();
  const day = '2026-05-20';
  const write = async (spec: string, agent: string) => {
    await saveRewardSpec(store, { version: spec, parts: [], at: now });
    const one = { agent, day, spec, evidence: '', total: 1, measured: 1, parts: {}, turns: [], at: +now };
    await saveScores(
      store,
      Array.from({ length: 3000 }, (_, i) => ({ ...one, trajectory: `c${i}` })),
    );
  };
  await write('known', 'other');
  await store.pool.query('analyze pawl.scores');
  await write('new', 'desk');
  const page = Array.from({ length: 20 }, (_, i) => ({ day, trajectory: { id: `c${i}`, agent: 'desk' } }) as Placed);
  const { sql, parameters } = compiledScoresQuery(store, page, 'new');
  const plan = await store.pool.query(`explain (analyze, timing off, format json) ${sql}`, [...parameters]);
  const scan = plan.rows[0]['QUERY PLAN'][0].Plan;
  const read = (scan.Plans?.[0] ?? scan)['Index Name'];
  expect([read, scan['Actual Rows'], scan['Rows Removed by Filter'] ?? 0]).toEqual(['scores_pkey', 20, 20]);
});
