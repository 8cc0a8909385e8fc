/** The audit log through /api: what people do over HTTP stands there with their names, and the log can be proved whole. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { converse, deskReward } from '../score/fixtures.ts';
import { giveConsent } from '../store/consents.ts';
import { entry, noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { auditedRuns } from '../train/audited-runs.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-audit-'));
let store: Store;
let api: Api;
let token = '';
beforeAll(async () => {
  store = await withStore();
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const curate = { minMeasured: 0, maxUserShare: 1, kAnonymity: 1 };
  const config = parseConfig({ agents: [{ name: 'desk', reward: deskReward, curate }] }, {}, folder);
  const artifacts = openArtifacts(config);
  api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => ({}) as never });
  await giveConsent(store, 'desk', 'ann', new Date(noon - 1000));
  await writeEntries(store, [
    ...converse('Where is it?', [{ say: 'Here.' }], { trajectory: 'up', user: 'ann' }).map((turn) => ({
      ...{ kind: 'turn' as const, turn },
    })),
    entry.signal({ identity: 'vote', user: 'ann', value: 1, target: { kind: 'trajectory', id: 'up' } }),
  ]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Row = { n: number; event: string; actor: string; subject: string; details: Record<string, unknown> };
const call = async (method: string, path: string, given?: unknown) => {
  const headers = { authorization: `Bearer ${token}`, ...(given ? { 'content-type': 'application/json' } : {}) };
  const answer = await api.request(path, { method, headers, ...(given ? { body: JSON.stringify(given) } : {}) });
  const body = answer.status === 204 ? null : await answer.json();
  return { status: answer.status, body: body as Record<string, unknown> };
};
const rows = async (query: string) => (await call('GET', `/api/audit?${query}`)).body.rows as Row[];

it('has keys: who made them and who ended them, once, and never their tokens', async () => {
  const made = await call('POST', '/api/keys', { name: 'web shop', agent: 'desk', by: 'ann' });
  const { key, token: secret } = made.body as { key: { id: string }; token: string };
  expect(await call('DELETE', `/api/keys/${key.id}?by=bob`)).toMatchObject({ status: 204 });
  expect(await call('DELETE', `/api/keys/${key.id}?by=eve`)).toMatchObject({ status: 204 });
  const found = await rows(`type=key-&subject=${key.id}`);
  expect(found.map(({ event, actor }) => `${actor} ${event}`)).toEqual(['bob key-revoked', 'ann key-created']);
  expect(found[1]!.details).toMatchObject({ name: 'web shop', scopes: ['call', 'feedback'] });
  expect(JSON.stringify(found)).not.toContain(secret);
});

it('has datasets, each once, with what was chosen by which rules', async () => {
  const asked = { since: '2026-05-20', until: '2026-05-21', by: 'ann' };
  await call('POST', '/api/score/runs', { since: asked.since, until: asked.until });
  expect(await call('POST', '/api/datasets', asked)).toMatchObject({ status: 201 });
  expect(await call('POST', '/api/datasets', { ...asked, by: 'bob' })).toMatchObject({ status: 200 });
  expect(await rows('type=dataset-created')).toMatchObject([
    { actor: 'ann', subject: 'desk-v1', details: { rows: 1, on: 'production', kAnonymity: 1 } },
  ]);
});

it('has runs: begun, asked to stop, stopped', async () => {
  const runs = auditedRuns(store, 'ann');
  await runs.create({
    ...{ id: 'sft-1', agent: 'desk', recipe: 'sft', settings: { dataset: 'desk-v1' }, base: 'b', folder: 'f', seed: 1 },
    ...{ steps: 9, step: 2, status: 'paused', reason: null, budget: {}, spent: { seconds: 1, tokens: 1, money: 0 } },
    ...{ request: null, owner: null, heartbeatAt: noon, createdAt: noon, internal: false },
  });
  expect(await call('POST', '/api/runs/sft-1/stop')).toMatchObject({ status: 200, body: { kind: 'done' } });
  expect((await rows('subject=sft-1')).map(({ event, actor }) => `${actor} ${event}`)).toEqual([
    'api run-stopped',
    'api run-asked',
    'ann run-begun',
  ]);
});

it('is read by who, type and time, page by page, and proved whole', async () => {
  expect((await rows('who=ann')).every(({ actor }) => actor === 'ann')).toBe(true);
  expect(await rows('since=2100-01-01')).toEqual([]);
  const first = await call('GET', '/api/audit?limit=2');
  const second = await call('GET', `/api/audit?limit=2&cursor=${first.body.next}`);
  expect((second.body.rows as Row[])[0]!.n).toBe((first.body.rows as Row[])[1]!.n - 1);
  const { body } = await call('GET', '/api/audit/verify');
  expect(body).toMatchObject({ rows: (first.body.rows as Row[])[0]!.n, problem: null });
  expect(await call('GET', `/api/audit/verify?head=${'0'.repeat(64)}`)).toMatchObject({ body: { problem: {} } });
  expect((await call('GET', '/api/audit?limit=2&nobody=x')).status).toBe(400);
});
