import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { createRelease } from '../deploy/reconcile.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { createApi } from './api.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-artifacts-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let api: ReturnType<typeof createApi>;
let token = '';
let reference = '';
const artifacts = openArtifacts({ home: folder });
beforeAll(async () => {
  const store = await withStore();
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const config = parseConfig({ agents: [{ name: 'desk' }] }, {}, folder);
  api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => ({}) as never });
  writeFileSync(join(folder, 'weights'), 'abc');
  reference = await artifacts.add({ kind: 'model' }, join(folder, 'weights'));
  const release = { agent: 'desk', name: 'v1', upstream: 'engine', model: 'v1', checkpoint: reference };
  await createRelease(store, release, 'ann', 1);
});

const call = async (method: string, path: string, given?: unknown) => {
  const headers = { authorization: `Bearer ${token}`, ...(given ? { 'content-type': 'application/json' } : {}) };
  const answer = await api.request(path, { method, headers, ...(given ? { body: JSON.stringify(given) } : {}) });
  return { status: answer.status, body: (await answer.json()) as unknown };
};

it('lists what is kept, shows one with its files and what uses it, and refuses what is none', async () => {
  const listed = { reference, kind: 'model', of: '', bytes: 3, referredBy: ['release v1 of desk'] };
  expect(await call('GET', '/api/artifacts')).toMatchObject({
    status: 200,
    body: { where: artifacts.where, artifacts: [{ ...listed, files: 1 }] },
  });
  expect(await call('GET', `/api/artifacts/${reference}`)).toMatchObject({
    status: 200,
    body: { ...listed, needs: [], files: [{ path: 'weights', size: 3 }] },
  });
  expect((await call('GET', `/api/artifacts/artifact:${'0'.repeat(64)}`)).status).toBe(404);
  expect((await call('GET', '/api/artifacts/..%2f..%2fetc')).status).toBe(400);
  expect((await api.request('/api/artifacts')).status).toBe(401);
});

it('prunes only when it is told to, and says what is spoilt', async () => {
  expect(await call('POST', '/api/artifacts/prune', {})).toMatchObject({
    status: 200,
    body: { dryRun: true, kept: 1, young: 0, removed: [], files: 0 },
  });
  const verify = () => call('POST', `/api/artifacts/${reference}/verify`);
  expect(await verify()).toEqual({ status: 200, body: { ok: true, problem: null } });
  writeFileSync(join(await artifacts.folder(reference), 'weights'), 'abd');
  expect(await verify()).toMatchObject({
    ...{ status: 200, body: { ok: false, problem: expect.stringContaining(`weights of ${reference}`) } },
  });
});
