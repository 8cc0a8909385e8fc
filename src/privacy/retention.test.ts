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
import { noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { installationSecret } from '../store/secret.ts';
import { withStore } from '../store/test-store.ts';
import { saveVerdict } from '../store/verdicts.ts';
import { nextRetention, runRetention, surveyRetention } from './retention.ts';
import { limitsAt, retentionSettings } from './retention-settings.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-retention-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const dayMs = 86_400_000;

it('keeps a day until its last moment is old enough, and for good where told so', () => {
  const { days, datasets } = retentionSettings.parse({});
  expect([days, datasets]).toEqual([90, 90]);
  expect(limitsAt({ days: 1, datasets: 2 }, noon)).toEqual({ day: '2026-05-19', datasets: noon - 2 * dayMs });
  expect(limitsAt({ days: null, datasets: null }, noon)).toEqual({ day: null, datasets: null });
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

  const kept = { artifacts, settings: { days: 90, datasets: 90 }, now: noon + 80 * dayMs, actor: 'test' };
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
