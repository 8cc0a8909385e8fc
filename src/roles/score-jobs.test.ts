import { pino } from 'pino';
import { expect, test } from 'vitest';
import { agentSchema } from '../agent.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { parseConfig } from '../config.ts';
import { feedback } from '../score/feedback.ts';
import { planScoring, scoreWindow } from '../score/run.ts';
import type { Scorer } from '../score/scorer.ts';
import { weighted } from '../score/weighted.ts';
import { entry, sibling, turn, uuidAt } from '../store/fixtures.ts';
import { saveJob } from '../store/jobs.ts';
import { latePages } from '../store/late-evidence.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { listScores } from '../store/scores.ts';
import { withStore } from '../store/test-store.ts';
import { scoreJobs } from './score-jobs.ts';

const day = 86_400_000;
const partsOf = (store: Store) => ({
  ...{ store, artifacts: {} as Artifacts, config: parseConfig({}, {}, '/'), log: pino({ level: 'silent' }) },
  signal: new AbortController().signal,
});

const agent = (score: object) =>
  agentSchema.parse({ name: 'desk', reward: weighted({ votes: [1, feedback()] }), score });

test('there is a job for each agent that is scored by itself, as often as its file says', () => {
  expect(scoreJobs([agent({}), agent({ everyMinutes: 5 }), agent({ everyMinutes: null })])).toMatchObject([
    { name: 'score desk', everyMs: 3_600_000 },
    { name: 'score desk', everyMs: 300_000 },
  ]);
});

test('the job scores what is new, and a plan says so before and asks nobody', async () => {
  const store = await withStore();
  const at = Date.now() - 60_000;
  await writeEntries(store, [
    entry.turn({ trajectory: 'new', startedAt: at }),
    entry.signal({ target: { kind: 'trajectory', id: 'new' }, value: 1, at }),
    entry.turn({ trajectory: 'old', startedAt: at - 3 * 86_400_000 }),
  ]);
  const desk = agent({ lookBackDays: 1 });
  const now = new Date();
  const window = { agent: 'desk', spec: desk.reward, since: new Date(+now - 86_400_000), until: now, now };
  expect(await planScoring(store, window)).toEqual({
    trajectories: 1,
    pending: 1,
    answers: 0,
    calls: 0,
    money: 0,
    unpriced: 0,
  });
  expect(await listScores(store, 'new')).toEqual([]);
  await scoreJobs([desk])[0]!.run(partsOf(store));
  expect((await listScores(store, 'new'))[0]).toMatchObject({ total: 1 });
  expect(await listScores(store, 'old')).toEqual([]);
  expect(await planScoring(store, window)).toMatchObject({ pending: 0 });
});

test('what is said a month later scores its conversation again, whatever it points at', async () => {
  const store = await withStore();
  const now = Date.now();
  const began = now - 30 * day;
  const about = ['a', 'b', 'c', 'd', 'e'];
  const ids = about.map((_, k) => uuidAt(began + k));
  const turns = about.map((trajectory, k) => entry.turn({ trajectory, startedAt: began + k, id: ids[k]! }));
  await writeEntries(store, [...turns, entry.turn({ trajectory: 'played', startedAt: began, origin: 'simulation' })]);
  const desk = agent({ lookBackDays: 7 });
  const job = scoreJobs([desk])[0]!;
  await job.run(partsOf(store));
  await saveJob(store, job.name, 'here', null);
  const vote = (target: { kind: 'trajectory' | 'turn' | 'key'; id: string }, at = now) =>
    entry.signal({ target, identity: JSON.stringify([target, at]), value: 1, at, receivedAt: at });
  await writeEntries(store, [
    vote({ kind: 'trajectory', id: 'a' }),
    vote({ kind: 'turn', id: ids[1]! }),
    vote({ kind: 'key', id: 'order:7' }),
    entry.attachment({ key: 'order:7', trajectory: 'c', at: began }),
    // Heard long ago, of a key that was attached only now.
    vote({ kind: 'key', id: 'order:8' }, began),
    entry.attachment({ key: 'order:8', trajectory: 'd', at: now }),
    vote({ kind: 'trajectory', id: 'played' }),
    vote({ kind: 'turn', id: 'no-turn' }),
  ]);
  await job.run(partsOf(store));
  const totals = await Promise.all([...about, 'played'].map(async (id) => (await listScores(store, id))[0]?.total));
  expect(totals).toEqual([1, 1, 1, 1, undefined, undefined]);
});

test('what a scorer failed for is asked again when the look back has long passed it, and single answers too', async () => {
  const store = await withStore();
  const began = Date.now() - 30 * day;
  let isAway = true;
  const judge: Scorer = {
    ...{ name: 'judge', version: '1', inProcess: true },
    score() {
      if (isAway) throw new Error('the judge is away');
      return { value: 1, reason: 'fine', turns: new Map() };
    },
  };
  const desk = agentSchema.parse({ name: 'desk', reward: weighted({ judge: [1, judge] }) });
  const [job] = scoreJobs([desk]);
  const explored = turn({ id: uuidAt(began), trajectory: 'explored', startedAt: began });
  const other = sibling(explored);
  await writeEntries(store, [
    { kind: 'turn', turn: explored },
    { kind: 'sibling', sibling: other },
    entry.turn({ trajectory: 'a', startedAt: began + 1 }),
  ]);
  const totalOf = async (name: string) => (await listScores(store, name))[0]?.total;
  const window = { agent: 'desk', spec: desk.reward, since: new Date(began), until: new Date(began + 1000) };
  expect(await scoreWindow(store, { ...window, now: new Date(began + day) })).toMatchObject({ broken: 2, answers: 2 });
  await job!.run(partsOf(store));
  expect(await totalOf('a')).toBeNull();
  isAway = false;
  // Of the second conversation only an answer is owed: its own score was made meanwhile.
  expect(await scoreWindow(store, { ...window, until: new Date(began + 1), now: new Date() })).toMatchObject({
    rescored: 1,
  });
  await store.pool.query(
    `update pawl.scores set total = null, evidence = evidence || ' broken' where trajectory = $1`,
    [`answer/${other.id}`],
  );
  await job!.run(partsOf(store));
  expect(await Promise.all(['a', 'explored', `answer/${explored.id}`, `answer/${other.id}`].map(totalOf))).toEqual([
    ...[1, 1, 1, 1],
  ]);
});

test('of more that is owed than a run looks at, those that waited longest come first', async () => {
  const store = await withStore();
  const began = Date.now() - 30 * day;
  const ids = ['a', 'b', 'c'];
  await writeEntries(
    store,
    ids.map((trajectory, k) => entry.turn({ trajectory, startedAt: began + k })),
  );
  const failing: Scorer = {
    ...{ name: 'judge', version: '1', inProcess: true },
    score() {
      throw new Error('the judge is away');
    },
  };
  const spec = weighted({ judge: [1, failing] });
  const score = (from: number, until: number, at: number) =>
    scoreWindow(store, {
      ...{ agent: 'desk', spec, now: new Date(at) },
      ...{ since: new Date(began + from), until: new Date(began + until) },
    });
  await score(0, 3, began + day);
  await score(0, 1, began + 2 * day); // 'a' was tried again since
  const before = new Date(began + 3);
  const late = { agent: 'desk', origin: 'production' as const, before, heardSince: new Date(), labels: false };
  const found = async (fields: { before?: Date; mostOwed?: number }) => {
    const ids: string[] = [];
    for await (const page of latePages(store, { ...late, spec: spec.version, ...fields }))
      for (const { trajectory } of page) ids.push(trajectory.id);
    return ids;
  };
  expect(await found({ mostOwed: 2 })).toEqual(['b', 'c']);
  expect(await found({})).toEqual(['a', 'b', 'c']);
  // Nobody waits for ever.
  expect(await found({ before: new Date(began + 100 * day) })).toEqual([]);
});
