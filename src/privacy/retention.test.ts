import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { curateWindow } from '../curate/run.ts';
import { converse, deskReward } from '../score/fixtures.ts';
import { scoreWindow } from '../score/run.ts';
import { giveConsent } from '../store/consents.ts';
import { readDataset } from '../store/datasets.ts';
import { entry, noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { postgresRunStore } from '../store/runs.ts';
import { installationSecret } from '../store/secret.ts';
import { withStore } from '../store/test-store.ts';
import { saveVerdict } from '../store/verdicts.ts';
import { createRun } from '../train/run.ts';
import { hold, releaseHold } from './legal-hold.ts';
import { nextRetention, runRetention, surveyRetention } from './retention.ts';
import { resultLines } from './retention-command.ts';
import { limitsAt, retentionSettings } from './retention-settings.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-retention-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const dayMs = 86_400_000;

it('keeps a day until its last moment is old enough, and for good where told so', () => {
  const { days, datasets, afterTraining } = retentionSettings.parse({});
  expect([days, datasets, afterTraining]).toEqual([90, 90, 90]);
  expect(limitsAt({ days: 1, datasets: 2, afterTraining: 3 }, noon)).toEqual({
    ...{ day: '2026-05-19', datasets: noon - 2 * dayMs, trained: noon - 3 * dayMs },
  });
  const never = { days: null, datasets: null, afterTraining: null };
  expect(limitsAt(never, noon)).toEqual({ day: null, datasets: null, trained: null });
  expect(() => retentionSettings.parse({ days: 0 })).toThrow();
});

it('forgets conversations with their scores, and datasets with their files; a second run finds nothing', async () => {
  const store = await withStore();
  const artifacts = openArtifacts({ home });
  await giveConsent(store, 'desk', 'ann', new Date(noon - 1000));
  const turns = converse('Where is it?', [{ say: 'Here.' }], { trajectory: 'a', user: 'ann' });
  await writeEntries(
    store,
    turns.map((turn) => ({ kind: 'turn' as const, turn })),
  );
  const window = { since: new Date(noon - 1000), until: new Date(noon + 60_000), now: new Date(noon + 60_000) };
  const of = { agent: 'desk', spec: deskReward, ...window };
  await scoreWindow(store, of);
  const verdict = { key: 'k', agent: 'desk', trajectory: 'a', day: '2026-05-20', prompt: 'judge 1', model: 'm' };
  await saveVerdict(store, verdict, { value: 1, reason: 'Fine.' });
  const settings = { minMeasured: 0, minScore: 0, maxUserShare: 1, kAnonymity: 1 };
  const { id, artifact } = await curateWindow(store, artifacts, { ...of, settings });
  const file = await artifacts.file(artifact!);

  const kept = {
    artifacts,
    settings: { days: 90, datasets: 90, afterTraining: 90 },
    now: noon + 80 * dayMs,
    actor: 'test',
  };
  expect((await runRetention(store, kept))?.result).toMatchObject({ days: [], conversations: 0, datasets: [] });
  const later = { ...kept, now: noon + 92 * dayMs };
  const would = await surveyRetention(store, later.settings, later.now);
  expect(would).toMatchObject({ days: ['2026-05-20'], conversations: 1, scores: 1, datasets: [id] });
  expect((await runRetention(store, later))?.result).toEqual(would);
  expect(await readDataset(store, { id })).toMatchObject({ gone: { because: expect.stringContaining('90 days') } });
  expect(existsSync(file)).toBe(false);
  for (const table of ['scores', 'verdicts'])
    expect((await store.pool.query(`select 1 from pawl.${table}`)).rowCount).toBe(0);
  expect((await runRetention(store, later))?.result).toMatchObject({ days: [], scores: 0, datasets: [] });
});

it('on its own it begins a week after an installation did', async () => {
  const store = await withStore();
  expect(await nextRetention(store)).toBeNull();
  await installationSecret(store, home);
  expect((await nextRetention(store))! - Date.now()).toBeGreaterThan(6 * dayMs);
});

it('what was trained on goes 90 days after the first run on it, however long the rest is kept; a hold keeps it', async () => {
  const store = await withStore();
  const artifacts = openArtifacts({ home });
  const talks = ['2026-05-20', '2026-05-21', '2026-05-22'].map((day) => ({ day, at: Date.parse(`${day}T12:00:00Z`) }));
  await giveConsent(store, 'desk', 'ann', new Date(noon - 1000));
  await giveConsent(store, 'desk', 'bob', new Date(noon - 1000));
  for (const { day, at } of talks) {
    const user = day === '2026-05-22' ? 'bob' : 'ann';
    const turns = converse(`Where is ${day}?`, [{ say: 'Here.' }], { trajectory: day, user, startedAt: at });
    const target = { kind: 'trajectory', id: day } as const;
    await writeEntries(store, [
      ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
      entry.signal({ identity: `vote ${day}`, user, value: 1, target, at: at + 1000, receivedAt: at + 1000 }),
    ]);
  }
  const curated = async (from: number, to: number) => {
    const window = { since: new Date(from), until: new Date(to), now: new Date(talks[2]!.at + dayMs) };
    const of = { agent: 'desk', spec: deskReward, ...window };
    await scoreWindow(store, of);
    const settings = { minMeasured: 0, minScore: 0, maxUserShare: 1, kAnonymity: 1 };
    return (await curateWindow(store, artifacts, { ...of, settings })).id;
  };
  const used = await curated(noon - 1000, noon + dayMs + 1000);
  const unused = await curated(talks[2]!.at - 1000, talks[2]!.at + 1000);
  const trainedAt = noon + 10 * dayMs;
  const runs = postgresRunStore(store);
  const run = {
    id: 'r',
    agent: 'desk',
    recipe: 'sft',
    settings: { dataset: used },
    base: 'b',
    folder: 'f',
    seed: 1,
    budget: {},
  };
  await createRun(runs, run, [], trainedAt);
  // Trained on again, it counts from the first time.
  await createRun(runs, { ...run, id: 'again' }, [], trainedAt + 80 * dayMs);

  const kept = { artifacts, settings: { days: null, datasets: null, afterTraining: 90 }, actor: 'test' };
  const at = (days: number) => ({ ...kept, now: trainedAt + days * dayMs });
  expect((await runRetention(store, at(89)))?.result).toMatchObject({ days: [], conversations: 0, datasets: [] });

  const placed = await hold(store, { user: 'ann', agent: null, reason: 'case 1', actor: 'kim', at: new Date() });
  expect((await runRetention(store, at(91)))?.result).toMatchObject({ days: [], conversations: 0, datasets: [] });
  await releaseHold(store, placed.id, 'kim', new Date());
  const gone = ['2026-05-20', '2026-05-21'];
  const would = await surveyRetention(store, kept.settings, at(91).now);
  expect(would).toMatchObject({ days: gone, conversations: 2, turns: 2, signals: 2, scores: 2, datasets: [used] });
  expect((await runRetention(store, at(91)))?.result).toEqual(would);
  expect(resultLines(would, 'Removed')[0]).toContain('what was trained on (2026-05-20, 2026-05-21): 2 conversations');
  const { rows } = await store.pool.query('select id from pawl.trajectories');
  expect(rows).toEqual([{ id: '2026-05-22' }]);
  expect((await store.pool.query('select identity from pawl.signals')).rows).toEqual([{ identity: 'vote 2026-05-22' }]);
  expect(await readDataset(store, { id: used })).toMatchObject({
    gone: { because: expect.stringContaining('retention.afterTraining') },
  });
  expect(await readDataset(store, { id: unused })).toMatchObject({ gone: null });
});
