/** Scores, datasets and runs through /api, as a script would use it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { converse, deskReward } from '../score/fixtures.ts';
import { readAudit } from '../store/audit.ts';
import { giveConsent } from '../store/consents.ts';
import { readDataset } from '../store/datasets.ts';
import { entry, noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { postgresRunStore } from '../store/runs.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-data-'));
let store: Store;
let api: Api;
let artifacts: Artifacts;
let token = '';
beforeAll(async () => {
  store = await withStore();
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const config = parseConfig(
    { agents: [{ name: 'desk', reward: deskReward, curate: { minMeasured: 0, maxUserShare: 1, kAnonymity: 1 } }] },
    {},
    folder,
  );
  artifacts = openArtifacts(config);
  api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => ({}) as never });
  await giveConsent(store, 'desk', 'ann', new Date(noon - 1000));
  const turns = [
    ...converse('Where is it?', [{ say: 'Here.' }], { trajectory: 'up', user: 'ann' }),
    ...converse('Where is it?', [{ say: 'No.' }], { trajectory: 'down', user: 'ann', startedAt: noon + 1000 }),
  ];
  const vote = (id: string, value: number) =>
    entry.signal({ identity: `vote ${id}`, user: 'ann', value, target: { kind: 'trajectory', id } });
  await writeEntries(store, [
    ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
    vote('up', 1),
    vote('down', 0),
  ]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ask = (method: string, path: string, given?: unknown) => {
  const headers = { authorization: `Bearer ${token}`, ...(given ? { 'content-type': 'application/json' } : {}) };
  return api.request(path, { method, headers, ...(given ? { body: JSON.stringify(given) } : {}) });
};
const call = async (method: string, path: string, given?: unknown) => {
  const answer = await ask(method, path, given);
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const refused = (status: number, message: RegExp) => ({
  status,
  body: { error: { message: expect.stringMatching(message) } },
});
const day = { since: '2026-05-20', until: '2026-05-21' };

describe('/api/score', () => {
  it('scores a window and shows the scores of a conversation', async () => {
    const made = await call('POST', '/api/score/runs', day);
    expect(made).toMatchObject({ status: 200, body: { agent: 'desk', trajectories: 2, scored: 2, broken: 0 } });
    const { body } = await call('GET', '/api/trajectories/up/scores');
    expect(body.scores).toMatchObject([{ trajectory: 'up', total: 1, parts: { feedback: { value: 1 } } }]);
    expect(await call('GET', '/api/trajectories/none/scores')).toMatchObject(refused(404, /has no score/));
    expect(await call('POST', '/api/score/runs', { agent: 'shop' })).toMatchObject(refused(404, /no agent shop/));
    expect(await call('POST', '/api/score/runs', { since: '2026-05-21', until: '2026-05-20' })).toMatchObject(
      refused(400, /is not before until/),
    );
  });
});

describe('/api/datasets', () => {
  it('makes, shows, compares and exports datasets', async () => {
    expect(await call('POST', '/api/datasets', { ...day, dryRun: true })).toMatchObject({
      status: 200,
      body: { rows: 1, pairs: { rows: 1 } },
    });
    expect(await call('GET', '/api/datasets')).toMatchObject({ body: { datasets: [] } });
    const made = await call('POST', '/api/datasets', day);
    expect(made).toMatchObject({ status: 201, body: { id: 'desk-v1', rows: 1, since: '2026-05-20T00:00:00.000Z' } });
    expect((await call('POST', '/api/datasets', day)).status).toBe(200);
    expect((await call('POST', '/api/datasets', { ...day, seed: 2 })).status).toBe(201);
    expect(await call('GET', '/api/datasets?agent=desk')).toMatchObject({
      body: { datasets: [{ id: 'desk-v2' }, { id: 'desk-v1' }] },
    });
    expect(await call('GET', '/api/datasets/desk-v1')).toMatchObject({
      status: 200,
      body: { funnel: expect.any(Array) },
    });
    expect(await call('GET', '/api/datasets/desk-v1/diff?with=desk-v2')).toMatchObject({
      body: { rows: { same: 1 }, settings: { seed: [0, 2] } },
    });
    const file = await ask('GET', '/api/datasets/desk-v1/export?format=trl-preference');
    expect(await readAudit(store, { event: 'dataset-exported' })).toMatchObject([{ actor: 'api', subject: 'desk-v1' }]);
    expect(file.headers.get('content-type')).toBe('application/jsonl');
    expect(JSON.parse(await file.text())).toMatchObject({
      chosen: [{ content: 'Here.' }],
      rejected: [{ content: 'No.' }],
    });
    expect(await call('GET', '/api/datasets/desk-v1/export?format=csv')).toMatchObject(refused(400, /format/));
    expect(await call('GET', '/api/datasets/none')).toMatchObject(refused(404, /no dataset none/));
    expect(await call('POST', '/api/datasets', { since: '2026-01-01', until: '2026-01-02' })).toMatchObject(
      refused(409, /No conversation was recorded in this window/),
    );
  });
});

describe('/api/runs', () => {
  it('shows runs and asks them to pause and stop', async () => {
    const runs = postgresRunStore(store);
    const spent = { seconds: 1, tokens: 2, money: 0 };
    await runs.create({
      ...{ id: 'one', agent: 'desk', recipe: 'sft', settings: {}, base: 'b', folder: 'f', seed: 1, steps: 3, step: 0 },
      ...{ status: 'paused', reason: 'Not begun.', budget: {}, spent, request: null, owner: null },
      ...{ heartbeatAt: noon, createdAt: noon, internal: false },
    });
    await runs.saveStep('one', { step: 0, stage: 'sft', stageStep: 0, values: { loss: 2 } }, spent, noon);
    expect(await call('GET', '/api/runs')).toMatchObject({ body: { runs: [{ id: 'one', status: 'paused' }] } });
    expect(await call('GET', '/api/runs/one')).toMatchObject({
      body: { run: { step: 1 }, checkpoints: [], metrics: [{ values: { loss: 2 } }] },
    });
    expect(await call('POST', '/api/runs/one/pause')).toMatchObject({ status: 200, body: { kind: 'done' } });
    expect(await call('POST', '/api/runs/one/stop')).toMatchObject({ body: { kind: 'done' } });
    expect(await call('POST', '/api/runs/one/stop')).toMatchObject({ body: { kind: 'already' } });
    expect(await call('GET', '/api/runs/two')).toMatchObject(refused(404, /no run two/));
    expect(await call('GET', '/api/train/advice')).toMatchObject({
      body: {
        stored: { trajectories: 2 },
        dataset: { id: 'desk-v2' },
        recipe: 'sft',
        next: expect.stringMatching(/^pawl train/),
      },
    });
  });
});

it('a dataset whose file is gone or was changed is a conflict that says the way out, wherever it is read', async () => {
  const { artifact } = (await readDataset(store, { id: 'desk-v2' }))!;
  const file = await artifacts.file(artifact!);
  const whole = readFileSync(file);
  const said = /Put (it|the original) back from a backup/;
  for (const damage of [() => rmSync(file), () => writeFileSync(file, 'something else\n')]) {
    damage();
    expect(await call('GET', '/api/train/advice')).toMatchObject(refused(409, said));
    expect(await call('GET', '/api/datasets/desk-v2/check')).toMatchObject(refused(409, said));
    writeFileSync(file, whole);
  }
  expect((await call('GET', '/api/train/advice')).status).toBe(200);
});

it('every route is in the document and needs the admin token', async () => {
  const document = (await (await api.request('/api/openapi.json')).json()) as { paths: object };
  const paths = [
    '/api/score/runs',
    '/api/datasets',
    '/api/datasets/{id}/export',
    '/api/runs/{id}/stop',
    '/api/train/advice',
  ];
  expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(paths));
  expect((await api.request('/api/datasets')).status).toBe(401);
  expect((await api.request('/api/score/runs', { method: 'POST', body: '{}' })).status).toBe(401);
});
