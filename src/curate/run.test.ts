import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { openArtifacts } from '../artifacts/open.ts';
import type { JournalEntry } from '../collect/signal.ts';
import type { Turn } from '../collect/turn.ts';
import { converse, deskReward } from '../score/fixtures.ts';
import { scoreWindow } from '../score/run.ts';
import { giveConsent, withdrawConsent } from '../store/consents.ts';
import { listDatasets, readDataset } from '../store/datasets.ts';
import { entry, noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { paint } from '../terminal.ts';
import { datasetLines } from './command.ts';
import { consentedLines } from './consented.ts';
import { type Dataset, dataset as schema } from './dataset.ts';
import { readLines } from './files.ts';
import { NothingKept } from './nothing-kept.ts';
import { datasetOfFile } from './read.ts';
import type { Row } from './row.ts';
import { curateWindow } from './run.ts';

const allRows = async (home: Artifacts, of: Dataset): Promise<Row[]> => {
  const rows: Row[] = [];
  for await (const line of readLines(home, of)) if (line.kind === 'row') rows.push(line.row);
  return rows;
};
const newHome = () => {
  const at = mkdtempSync(join(tmpdir(), 'pawl-curate-'));
  onTestFinished(() => rmSync(at, { recursive: true, force: true }));
  return openArtifacts({ home: at });
};
const window = {
  agent: 'desk',
  spec: deskReward,
  since: new Date(noon - 3_600_000),
  until: new Date(noon + 3_600_000),
  now: new Date(noon + 7_200_000),
};

/** Made once, so that two stores can be given the very same turns in another order. */
const talk = (id: string, user: string | null, question = `Where is ${id}?`, fields: Partial<Turn> = {}) =>
  converse(question, [{ say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] }, { say: 'It was sent.' }], {
    trajectory: id,
    user,
    ...fields,
  }).map((turn): JournalEntry => ({ kind: 'turn', turn }));
const resolved = (id: string, value = 1) =>
  entry.signal({
    kind: 'outcome',
    name: 'resolved',
    identity: `resolved ${id}`,
    user: null,
    value,
    target: { kind: 'trajectory', id },
  });

const users = ['ann', 'bob', 'cleo', 'dan', 'eve', 'finn'];
/** 13 conversations, 5 of which are fit to learn from. */
const traffic = [
  ...users.flatMap((user) => talk(`of-${user}`, user)), // finn withdraws afterwards: 5 stay
  ...talk('copy-1', 'ann', 'where is  of-ANN?'), // says what of-ann says
  ...talk('unasked', 'gus'), // never gave consent
  ...talk('nobody', null),
  ...talk('poor', 'bob'), // not resolved
  ...talk('slow', 'cleo', 'How long?', { latencyMs: 31_000 }),
  ...talk('leak', 'dan', 'I am dan@example.com, card 4111 1111 1111 1111'), // as if redaction had not known these yet
  ...talk('played', 'eve', 'Hm?', { origin: 'simulation' }),
  ...[...users.map((user) => `of-${user}`), 'copy-1', 'unasked', 'nobody', 'slow', 'leak', 'played'].map((id) =>
    resolved(id),
  ),
  resolved('poor', 0),
];

async function fill(store: Store, entries: readonly JournalEntry[], size = entries.length): Promise<void> {
  for (const user of users) await giveConsent(store, 'desk', user, new Date(noon - 1000));
  for (let i = 0; i < entries.length; i += size) await writeEntries(store, entries.slice(i, i + size));
  await withdrawConsent(store, 'desk', 'finn', new Date(noon + 60_000));
  await scoreWindow(store, window);
}
const settings = { maxUserShare: 0.4, kAnonymity: 1 };

test('a dataset holds what passed every gate, and the funnel says why the rest is not there', async () => {
  const store = await withStore();
  const home = newHome();
  await fill(store, traffic);
  const dataset = await curateWindow(store, home, { ...window, settings });
  expect(schema.parse(dataset)).toEqual(dataset);
  expect(dataset).toMatchObject({ id: 'desk-v1', version: 1, rows: 5, taskTypes: { unknown: 5 } });
  expect(dataset.funnel).toEqual([
    { gate: 'origin', entered: 13, passed: 12, left: { 'origin simulation': 1 } },
    { gate: 'consent', entered: 12, passed: 9, left: { 'not given': 2, 'withdrawn since': 1 } },
    { gate: 'region', entered: 9, passed: 9, left: {} },
    { gate: 'tenant', entered: 9, passed: 9, left: {} },
    { gate: 'shifts', entered: 9, passed: 9, left: {} },
    { gate: 'score', entered: 9, passed: 8, left: { 'below 0.7': 1 } },
    { gate: 'size', entered: 8, passed: 8, left: {} },
    { gate: 'errors', entered: 8, passed: 8, left: {} },
    { gate: 'latency', entered: 8, passed: 7, left: { 'an answer over 30 s': 1 } },
    { gate: 'complete', entered: 7, passed: 7, left: {} },
    { gate: 'redaction', entered: 7, passed: 6, left: { 'still holds card and email': 1 } },
    { gate: 'confidentiality', entered: 6, passed: 6, left: {} },
    { gate: 'held out', entered: 6, passed: 6, left: {} },
    { gate: 'k-anonymity', entered: 6, passed: 6, left: {} },
    { gate: 'duplicates', entered: 6, passed: 5, left: { 'same question and answer': 1 } },
    { gate: 'near-duplicates', entered: 5, passed: 5, left: {} },
    { gate: 'user share', entered: 5, passed: 5, left: {} },
    { gate: 'key share', entered: 5, passed: 5, left: {} },
    { gate: 'source share', entered: 5, passed: 5, left: {} },
    { gate: 'tenant share', entered: 5, passed: 5, left: {} },
    { gate: 'balance', entered: 5, passed: 5, left: {} },
  ]);
  const rows = await allRows(home, dataset);
  const chosen = rows.map(({ trajectory }) => trajectory);
  expect(chosen.filter((id) => id !== 'of-ann' && id !== 'copy-1')).toEqual(['of-bob', 'of-cleo', 'of-dan', 'of-eve']);
  expect(rows.every(({ score, threads }) => score === 1 && threads[0]!.answers.length === 2)).toBe(true);

  const text = readFileSync(await home.file(dataset.artifact!), 'utf8');
  expect(text).not.toMatch(/example\.com|4111|@/);
  expect(text).not.toMatch(/"(ann|bob|user_id)"/);
  expect(createHash('sha256').update(text).digest('hex')).toBe(dataset.hash);
  expect(statSync(await home.file(dataset.artifact!)).mode & 0o077).toBe(0);
  expect(readdirSync(join(home.home, 'datasets'))).toEqual([]);
  const lineage = await store.pool.query(
    `select trajectory, dataset from pawl.dataset_rows where agent = 'desk' and trajectory in ('of-bob', 'leak')`,
  );
  expect(lineage.rows).toEqual([{ trajectory: 'of-bob', dataset: 'desk-v1' }]);

  const lines = datasetLines(dataset, { columns: 100, paint: paint(false) });
  expect(lines.slice(0, 4)).toEqual([
    expect.stringMatching(/^desk-v1 {2}5 conversations, 0 pairs, made 2026-05-20/),
    'GATE             CAME  LEFT OUT  PASSED  WHY',
    'origin             13         1      12  origin simulation',
    'consent            12         3       9  2 not given, 1 withdrawn since',
  ]);
});

test('the same traffic and settings give the same dataset, in whatever order it arrived', async () => {
  const [one, other] = [await withStore(), await withStore()];
  const [home, otherHome] = [newHome(), newHome()];
  await fill(one, traffic);
  // Backwards, a few at a time, everything twice.
  const backwards = [...traffic, ...traffic].reverse();
  await fill(other, backwards, 5);
  const first = await curateWindow(one, home, { ...window, settings, seed: 7 });
  const second = await curateWindow(other, otherHome, { ...window, settings, seed: 7 });
  expect(second).toEqual(first);
  expect(second.artifact).toBe(first.artifact);

  const again = await curateWindow(one, home, { ...window, settings, seed: 7, now: new Date(noon + 9_000_000) });
  expect(again).toEqual(first);
  expect(await listDatasets(one)).toHaveLength(1);
});

test('new evidence, other settings and a withdrawal make a new version; the old one stays as it was', async () => {
  const store = await withStore();
  const home = newHome();
  await fill(store, traffic);
  const first = await curateWindow(store, home, { ...window, settings });
  const before = readFileSync(await home.file(first.artifact!), 'utf8');
  await writeEntries(store, [
    entry.signal({ ...(resolved('poor') as { signal: object }).signal, at: noon + 5000, receivedAt: noon + 5000 }),
  ]);
  await scoreWindow(store, window);
  expect(await curateWindow(store, home, { ...window, settings })).toMatchObject({ version: 2, rows: 6 });
  await withdrawConsent(store, 'desk', 'eve', new Date(noon + 90_000));
  expect(await curateWindow(store, home, { ...window, settings })).toMatchObject({ version: 3, rows: 5 });
  expect(await curateWindow(store, home, { ...window, settings: { ...settings, minScore: 1 } })).toMatchObject({
    version: 4,
  });
  expect(await readDataset(store, { agent: 'desk' })).toMatchObject({ version: 4 });
  expect(await readDataset(store, { agent: 'desk', version: 1 })).toEqual(first);
  expect(readFileSync(await home.file(first.artifact!), 'utf8')).toBe(before);
});

/** ann's two turns with somebody else's turn between them. */
const joinedBy = (id: string, user: string | null): JournalEntry[] =>
  talk(id, 'ann').map((one, i) => (one.kind === 'turn' && i === 1 ? { ...one, turn: { ...one.turn, user } } : one));

test('a conversation of several people is learned from only if each of them agreed and none withdrew', async () => {
  const store = await withStore();
  const home = newHome();
  await withdrawConsent(store, 'desk', 'hal', new Date(noon - 1000));
  const mixed = { 'with-bob': 'bob', 'with-hal': 'hal', 'with-gus': 'gus', 'with-nobody': null, 'with-finn': 'finn' };
  await fill(store, [
    ...Object.entries(mixed).flatMap(([id, user]) => joinedBy(id, user)),
    ...Object.keys(mixed).map((id) => resolved(id)),
  ]);
  const rowsOf = async (dataset: Dataset) => (await allRows(home, dataset)).map(({ trajectory }) => trajectory);
  const all = { ...window, settings: { maxUserShare: 1, kAnonymity: 1 } };
  const first = await curateWindow(store, home, all);
  expect(await rowsOf(first)).toEqual(['with-bob']);
  expect(first.funnel[1]).toMatchObject({ left: { 'not given': 2, 'withdrawn before': 1, 'withdrawn since': 1 } });

  const trained = async () => {
    const rows: string[] = [];
    for await (const line of consentedLines(store, home, first))
      if (line.kind === 'row') rows.push(line.row.trajectory);
    return rows;
  };
  expect(await trained()).toEqual(['with-bob']);
  await withdrawConsent(store, 'desk', 'bob', new Date(noon + 60_000));
  expect(await rowsOf(await curateWindow(store, home, all))).toEqual([]);
  expect(await trained()).toEqual([]); // a dataset that was made before is not learned from either
  await giveConsent(store, 'desk', 'bob', new Date(noon + 70_000));
  expect(await trained()).toEqual([]); // given anew is for what comes
});

test('a turn that arrives late takes the conversation out', async () => {
  const store = await withStore();
  const home = newHome();
  const all = { ...window, settings: { maxUserShare: 1, kAnonymity: 1 } };
  const [first, second] = joinedBy('late', 'hal') as [JournalEntry, JournalEntry];
  await fill(store, [...talk('of-ann', 'ann'), second, first, resolved('of-ann'), resolved('late')]);
  const stamps = await store.pool.query('select id, consent from pawl.trajectories order by id');
  expect(stamps.rows).toEqual([
    { id: 'late', consent: 'unknown' },
    { id: 'of-ann', consent: 'given' },
  ]);
  expect((await allRows(home, await curateWindow(store, home, all))).map(({ trajectory }) => trajectory)).toEqual([
    'of-ann',
  ]);
  const more = talk('of-ann', 'hal', 'And the other one?', { startedAt: noon + 5000 });
  await writeEntries(store, more);
  await scoreWindow(store, window);
  expect(await curateWindow(store, home, all)).toMatchObject({ rows: 0 });
});

test('nobody fills a dataset alone', async () => {
  const store = await withStore();
  const loud = Array.from({ length: 12 }, (_, i) => talk(`loud-${i}`, 'ann')).flat();
  const quiet = users.slice(1, 5).flatMap((user) => talk(`of-${user}`, user));
  const ids = [...loud, ...quiet].flatMap((one) => (one.kind === 'turn' ? [one.turn.trajectory] : []));
  await fill(store, [...loud, ...quiet, ...[...new Set(ids)].map((id) => resolved(id))]);
  const dataset = await curateWindow(store, newHome(), { ...window, settings: { maxUserShare: 0.34, kAnonymity: 1 } });
  // 2 of ann’s and 4 others: 2 of 6 is a third. 3 of 7 would be 43%.
  expect(dataset.rows).toBe(6);
  expect(dataset.funnel.find(({ gate }) => gate === 'user share')).toEqual({
    gate: 'user share',
    entered: 16,
    passed: 6,
    left: { 'over 34% from one user': 10 },
  });
});

test('an empty window is a dataset without rows, and says so', async () => {
  const store = await withStore();
  const home = newHome();
  await scoreWindow(store, window);
  const dataset = await curateWindow(store, home, window);
  expect(dataset).toMatchObject({ rows: 0, version: 1, taskTypes: {} });
  expect(dataset.funnel.every(({ entered }) => entered === 0)).toBe(true);
  expect(await allRows(home, dataset)).toEqual([]);
});

test('a file that was touched is refused, one that was lost comes back with the next run', async () => {
  const store = await withStore();
  const home = newHome();
  await fill(store, traffic);
  const dataset = await curateWindow(store, home, { ...window, settings });
  const path = await home.file(dataset.artifact!);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace('It was sent.', 'It was lost.'));
  await expect(allRows(home, dataset)).rejects.toThrow(
    `dataset.jsonl of ${dataset.artifact} in ${path.slice(0, -'/dataset.jsonl'.length)} is not what was kept`,
  );
  rmSync(path);
  await expect(allRows(home, dataset)).rejects.toThrow(/is gone/);
  expect(await curateWindow(store, home, { ...window, settings })).toEqual(dataset);
  expect(readFileSync(path, 'utf8')).toBe(text);
});

test('a dataset from before there were artifacts is read from the home, and is an artifact once it is made again', async () => {
  const store = await withStore();
  const home = newHome();
  await fill(store, traffic);
  const made = await curateWindow(store, home, { ...window, settings });
  const older = join(home.home, 'datasets', 'desk-v1.jsonl');
  renameSync(await home.file(made.artifact!), older);
  await home.remove(made.artifact!);
  await store.pool.query('update pawl.datasets set artifact = null');
  const dataset = (await readDataset(store, { id: made.id }))!;
  expect(dataset.artifact).toBeNull();
  expect(await allRows(home, dataset)).toHaveLength(5);
  writeFileSync(older, readFileSync(older, 'utf8').replace('It was sent.', 'It was lost.'));
  await expect(allRows(home, dataset)).rejects.toThrow(/is not what dataset desk-v1 was made of/);
  await expect(allRows(newHome(), dataset)).rejects.toThrow(/is not at .*from the home it was made in/);
  expect(await curateWindow(store, home, { ...window, settings })).toEqual(made);
  expect(existsSync(older)).toBe(false);
  expect(await allRows(home, made)).toHaveLength(5);
});

test('what a killed run left behind is cleared away, and its number is used again', async () => {
  const store = await withStore();
  const home = newHome();
  await fill(store, traffic);
  await curateWindow(store, home, { ...window, settings });
  writeFileSync(join(home.home, 'datasets', '.draft-999999999-abc'), 'half a row'); // no process has this number
  const second = await curateWindow(store, home, { ...window, settings, seed: 1 });
  expect(second.id).toBe('desk-v2');
  expect(await allRows(home, second)).toHaveLength(5);
  expect(existsSync(join(home.home, 'datasets', '.draft-999999999-abc'))).toBe(false);
});

test('a run that breaks off leaves neither a dataset nor a file', async () => {
  const store = await withStore();
  const home = newHome();
  await fill(store, traffic);
  const files: string[][] = [];
  const broken = curateWindow(store, home, {
    ...window,
    settings: { ...settings, kAnonymity: 2 },
    onProgress: () => {
      files.push(readdirSync(join(home.home, 'datasets')));
      throw new Error('enough');
    },
  });
  await expect(broken).rejects.toThrow('enough');
  expect(files).toEqual([Array(5).fill(expect.stringMatching(/^\.draft-/))]);
  expect(readdirSync(join(home.home, 'datasets'))).toEqual([]);
  expect(await listDatasets(store)).toEqual([]);
});

test('an agent whose name is no file name is refused', async () => {
  const store = await withStore();
  await expect(curateWindow(store, newHome(), { ...window, agent: '../desk' })).rejects.toThrow(/letters, digits/);
});

test('a window of an hour costs the same however much was recorded before and after', async () => {
  const store = await withStore({ poolSize: 1 });
  const home = newHome();
  const day = 86_400_000;
  // 30 days of 100 conversations, a signal each; the window holds 10 of them.
  const entries = Array.from({ length: 3000 }, (_, i) => {
    const id = `c${i}`;
    const startedAt = noon - 15 * day + Math.floor(i / 100) * day + Math.floor((i % 100) / 10) * 3_600_000;
    return [entry.turn({ trajectory: id, user: 'ann', startedAt }), resolved(id)];
  });
  await giveConsent(store, 'desk', 'ann', new Date(noon - 20 * day));
  await writeEntries(store, entries.flat());
  const hour = { ...window, since: new Date(noon), until: new Date(noon + 3_600_000) };
  const month = { ...window, since: new Date(noon - 20 * day), until: new Date(noon + 20 * day) };
  expect(await scoreWindow(store, month)).toMatchObject({ trajectories: 3000, scored: 3000 });
  await store.pool.query('analyze');

  const readsOf = async () => {
    // Counts are reported once a second; since PostgreSQL 15 one can ask for it.
    await store.pool.query('select pg_stat_force_next_flush()').catch(() => sleep(1500));
    const found = await store.pool.query<{ name: string; reads: number; scanned: number }>(
      `select relname as name, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as reads, coalesce(seq_tup_read, 0) as scanned
       from pg_stat_user_tables where schemaname = 'pawl' and relname ~ '^(trajectories|turns)_2|^signals$|^scores$'`,
    );
    return new Map(found.rows.map((row) => [row.name, row]));
  };
  const before = await readsOf();
  expect(await scoreWindow(store, hour)).toMatchObject({ trajectories: 10, unchanged: 10 });
  expect(await curateWindow(store, home, { ...hour, settings: { maxUserShare: 1, kAnonymity: 1 } })).toMatchObject({
    rows: 1,
  }); // all ask the same
  const after = await readsOf();
  for (const [name, { reads, scanned }] of after) {
    const more = reads - (before.get(name)?.reads ?? 0);
    if (/^(signals|scores)$/.test(name)) {
      expect(scanned, `${name} was scanned`).toBe(before.get(name)?.scanned);
      expect(more, `rows of ${name} read`).toBeLessThanOrEqual(2 * 10 * 3);
    } else if (!/_202605(2[0-7])$/.test(name)) expect(more, `rows of ${name} read`).toBe(0);
  }
});

test('a selection that keeps nothing is told in words and makes no dataset', async () => {
  const store = await withStore();
  const home = newHome();
  await fill(store, traffic);
  const none = curateWindow(store, home, {
    ...window,
    settings: { ...settings, maxLatencySeconds: 0.001 },
    refuseEmpty: true,
  });
  await expect(none).rejects.toThrow(NothingKept);
  await expect(none).rejects.toThrow(
    /None of 13 conversations passed every gate:\n {2}8 at latency: an answer over 0.001 s/,
  );
  await expect(none).rejects.toThrow(/2 at consent: not given. .*`pawl consent give USER`[\s\S]*No dataset was made/);
  const empty = curateWindow(store, home, { ...window, agent: 'nobody', refuseEmpty: true });
  await expect(empty).rejects.toThrow('No conversation was recorded in this window');
  expect(await listDatasets(store)).toEqual([]);
});

test('consent that came after the conversation is a reason of its own', async () => {
  const store = await withStore();
  await fill(store, traffic);
  const before = await curateWindow(store, newHome(), { ...window, settings });
  expect(before.funnel[1]!.left).toMatchObject({ 'not given': 2 });
  await store.pool.query(
    `insert into pawl.consent (agent, user_id, given_at)
     select distinct t.agent, t.user_id, now() from pawl.trajectories t
     where t.consent = 'unknown' and t.user_id is not null on conflict do nothing`,
  );
  const after = await curateWindow(store, newHome(), { ...window, settings });
  expect(after.funnel[1]!.left['given afterwards']).toBeGreaterThan(0);
});

test('a dataset is known by its file, wherever it lies; one of another database is refused', async () => {
  const store = await withStore();
  const home = newHome();
  await fill(store, traffic);
  const { id, artifact } = await curateWindow(store, home, { ...window, settings });
  const copy = join(newHome().home, 'copy.jsonl');
  writeFileSync(copy, readFileSync(await home.file(artifact!)));
  expect(await datasetOfFile(store, copy)).toBe(id);
  expect(await datasetOfFile(store, await home.file(artifact!))).toBe(id);
  await expect(datasetOfFile(await withStore(), copy)).rejects.toThrow('is a dataset that this database does not know');
  writeFileSync(copy, '{"messages":[]}\nnonsense');
  expect(await datasetOfFile(store, copy)).toBeNull();
});
