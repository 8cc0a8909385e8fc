import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { datasetId } from '../curate/dataset.ts';
import { settings, settingsKept } from '../curate/settings.ts';
import { saveCompatibility } from '../store/compatibility.ts';
import { saveDataset } from '../store/datasets.ts';
import { noon } from '../store/fixtures.ts';
import { saveReport } from '../store/reports.ts';
import { withStore } from '../store/test-store.ts';
import { audit } from './audit.ts';
import { readCard, readCardYaml } from './read-card.ts';
import { createRelease, moveRollout, serveRelease, startRollout } from './reconcile.ts';

it('a card names the dataset the release came from, with what was left out of it', async () => {
  const store = await withStore();
  await store.pool.query(`insert into pawl.reward_specs values ('spec-1', '[]', now())`);
  const draft = {
    ...{ agent: 'desk', createdAt: noon, since: noon, until: noon, spec: 'spec-1', seed: 1, rows: 80, taskTypes: {} },
    ...{ hash: 'a'.repeat(64), key: 'k', artifact: null, internal: false },
    settings: settingsKept(settings.parse({})),
    funnel: [
      { gate: 'consent', entered: 100, passed: 85, left: { 'no consent': 15 } },
      { gate: 'copies', entered: 85, passed: 80, left: { duplicate: 5 } },
    ],
    pairs: { rows: 0, sources: {}, funnel: [] },
  };
  const dataset = await saveDataset(store, draft, [], datasetId);
  const given = { agent: 'desk', name: 'v2', upstream: 'local', model: 'm2' };
  const release = await createRelease(store, { ...given, dataset: dataset.id }, 'ann', noon);
  expect(await readCard(store, release)).toContain(
    'Dataset desk-v1: 80 trajectories. Left out: 15 no consent, 5 duplicate.',
  );
  expect(await readCard(store, release)).toContain('| consent | 100 | 85 |');
  const child = await createRelease(store, { ...given, name: 'v2b', parent: release.id }, 'ann', noon);
  expect(await readCard(store, child)).toContain('Made from v2.');
  const read = parse(await readCardYaml(store, release));
  expect(read).toMatchObject({ release: { name: 'v2' }, data: { trajectories: 80, gates: [{ gate: 'consent' }, {}] } });
  expect(read.approvals).toMatchObject([{ by: 'ann', event: 'release-created' }]);
  const other = await createRelease(store, { ...given, name: 'v3', dataset: 'desk-v9' }, 'ann', noon);
  expect(await readCard(store, other)).toContain('Dataset desk-v9; its record is not here any more.');
});

it('a card has the newest evaluation of a release that nobody rolled out, and who asked for it', async () => {
  const store = await withStore();
  const release = await createRelease(
    store,
    { agent: 'desk', name: 'v2', upstream: 'local', model: 'm2' },
    'ann',
    noon,
  );
  expect(await readCard(store, release)).toContain('It has not been evaluated.');
  const report = {
    ...{ id: 'report-1', agent: 'desk', baseline: 'v1', candidate: 'v2', attempts: 1, temperature: 1, seed: 7 },
    ...{ suite: { name: 'golden', hash: 'abc', tasks: 0 }, overall: null, types: {}, tasks: [], drift: null },
    ...{ verdict: 'fail', reasons: ['It refuses.'], seconds: 0, createdAt: noon },
  } as const;
  await saveReport(store, report as never);
  await audit(store.db, {
    agent: 'desk',
    actor: 'bob',
    event: 'evaluation-ended',
    subject: 'report-1',
    details: {},
    at: noon,
  });
  const checks = [{ name: 'tools', verdict: 'fail', reason: 'No call came back.' }] as const;
  await saveCompatibility(store, { agent: 'desk', release: 'v2', verdict: 'fail', checks: [...checks], at: noon });
  const card = await readCard(store, release);
  expect(card).toContain('checked 2026-05-20 12:00: **fail**. tools fail: No call came back.');
  expect(parse(await readCardYaml(store, release))).toMatchObject({ compatibility: { verdict: 'fail', checks } });
  expect(card).toContain('Verdict: **fail**. It refuses.');
  expect(card).toContain('evaluation-ended by bob');
});

it('a card has everybody who agreed, also to an earlier rollout of it, and why', async () => {
  const store = await withStore();
  const make = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', noon);
  await serveRelease(store, await make('v1'), 'ann', noon);
  const candidate = await make('v2');
  for (const [id, why] of [
    ['first', 'It was too early.'],
    ['second', 'Now it is good.'],
  ] as const) {
    const about = { id, agent: 'desk', candidate, report: null, actor: 'ann', forced: `A ${id} try.` };
    await startRollout(store, about, noon);
    await moveRollout(store, id, id === 'first' ? 'abort' : 'promote', 'bob', why, noon);
  }
  const card = await readCard(store, candidate);
  for (const line of [
    'rollout-started by ann, forced: A first try.',
    'rollout-aborted by bob: It was too early.',
    'rollout-started by ann, forced: A second try.',
    'rollout-promoted by bob: Now it is good.',
  ])
    expect(card).toContain(line);
});
