/** Doors of /api that people seldom use and must be able to rely on: the kill switch, alerts, legal holds, the proof of an erasure, suites of one's own. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { hashedId } from '../collect/person.ts';
import { parseConfig } from '../config.ts';
import { createRelease, serveRelease, startRollout } from '../deploy/reconcile.ts';
import { findAsked } from '../evaluate/ask.ts';
import type { Job } from '../evaluate/jobs.ts';
import { carryOutErasures } from '../privacy/erase.ts';
import { readAudit } from '../store/audit.ts';
import { entry, noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { readRoutes } from '../store/rollouts.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-doors-'));
const secret = 's'.repeat(32);
const alertToken = 'alert-token-of-this-test-only';
const config = parseConfig(
  { agents: [{ name: 'desk' }], alerts: { token: alertToken, actions: ['kill', 'abort'] } },
  {},
  folder,
);
const artifacts = openArtifacts(config);
let store: Store;
let api: Api;
let admin = '';
const asked: unknown[] = [];
const job: Job = {
  ...{ id: 'evaluation-1', agent: 'desk', status: 'running', played: 0, total: 0, report: null, error: null },
  ...{ startedAt: noon, endedAt: null },
};
beforeAll(async () => {
  store = await withStore();
  const adminHash = await ensureAdminToken(folder, async (made) => {
    admin = made;
  });
  const evaluations = {
    start: async (agent: string, given: object) => {
      asked.push(await findAsked(store, artifacts, config.agents[0]!, given as never));
      return { ...job, agent };
    },
    get: () => job,
  };
  api = createApi({ store, artifacts, config, secret, adminHash, recorder: () => ({}) as never, evaluations });
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', Date.now());
  const [v1, v2] = [await release('v1'), await release('v2')];
  await serveRelease(store, v1, 'ann', Date.now());
  await startRollout(
    store,
    { id: 'r1', agent: 'desk', candidate: v2, report: null, forced: 'A test.', actor: 'ann' },
    Date.now(),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const call = async (method: string, path: string, given?: unknown, token = admin) => {
  const headers = { authorization: `Bearer ${token}`, ...(given ? { 'content-type': 'application/json' } : {}) };
  const answer = await api.request(path, { method, headers, ...(given ? { body: JSON.stringify(given) } : {}) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};

const alert = (labels: object, status = 'firing') => ({
  ...{ version: '4', status, receiver: 'pawl', groupKey: '{}:{}', truncatedAlerts: 0 },
  alerts: [{ status, labels: { alertname: 'Errors', ...labels }, annotations: { summary: 'Too many.' } }],
});

it('/api/alerts does what the settings allow, once, for its own token and no other door', async () => {
  const fire = { pawl_action: 'abort', agent: 'desk' };
  expect((await call('POST', '/api/alerts', alert(fire), 'wrong')).status).toBe(401);
  expect((await call('GET', '/api/rollouts', undefined, alertToken)).status).toBe(401);
  const hold = alert({ pawl_action: 'hold', agent: 'desk' }); // not among the actions
  expect((await call('POST', '/api/alerts', hold, alertToken)).body).toEqual({ done: 0, ignored: 1 });
  expect((await call('POST', '/api/alerts', alert(fire, 'resolved'), alertToken)).body).toEqual({
    done: 0,
    ignored: 1,
  });
  expect((await call('POST', '/api/alerts', alert(fire), alertToken)).body).toEqual({ done: 1, ignored: 0 });
  expect((await call('POST', '/api/alerts', alert(fire), alertToken)).body).toEqual({ done: 0, ignored: 1 });
  expect((await call('GET', '/api/rollouts/r1')).body).toMatchObject({ rollout: { phase: 'rolled-back' } });
  expect(await readAudit(store, { event: 'rollout-aborted' })).toMatchObject([{ actor: 'alert Errors' }]);
});

it('/api/kill lets one release answer everybody until it is undone', async () => {
  const pull = { to: 'v2', by: 'ann', reason: 'It quotes prices.' };
  expect(await call('POST', '/api/kill', pull)).toMatchObject({ status: 409 }); // it has never served anybody
  expect(await call('POST', '/api/kill', { ...pull, unfit: 'It is known.' })).toMatchObject({
    ...{ status: 200, body: { agent: 'desk', release: 'v2', before: 'v1', aborted: null } },
  });
  expect(await readRoutes(store)).toMatchObject([{ release: { name: 'v2' }, pins: [] }]);
  const start = { candidate: 'v1', forced: 'Again.', unfit: 'No gateway runs here.' };
  expect(await call('POST', '/api/rollouts', start)).toMatchObject({ status: 409 });
  expect((await call('POST', '/api/kill/undo', { by: 'bob' })).status).toBe(200);
  expect((await call('POST', '/api/kill/undo', { by: 'bob' })).status).toBe(404);
  expect((await call('POST', '/api/rollouts', start)).status).toBe(201);
  expect((await readAudit(store, { event: 'kill-switch-' })).map(({ actor }) => actor)).toEqual(['bob', 'ann']);
});

it('/api/serving says what answers, who pulled the kill switch, and who is pinned to what', async () => {
  const serving = async () => (await call('GET', '/api/serving?agent=desk')).body;
  expect(await serving()).toMatchObject({ agent: 'desk', killed: null, pins: [] });
  await call('POST', '/api/releases/v1/pin', { user: 'ann', by: 'bob' });
  const value = hashedId('ann', secret);
  expect(await serving()).toMatchObject({ pins: [{ kind: 'user', value, release: 'v1', by: 'bob' }] });
  expect(await call('POST', '/api/releases/v1/unpin', { user: value })).toMatchObject({ status: 404 }); // a name like any other
  expect(await call('POST', '/api/releases/v1/unpin', { user: 'ann', hashed: true })).toMatchObject({ status: 400 });
  expect(await call('POST', '/api/releases/v1/unpin', { user: value, hashed: true })).toMatchObject({ status: 200 });
  await call('POST', '/api/kill', { to: 'v1', by: 'ann', reason: 'It quotes prices.' });
  expect(await serving()).toMatchObject({
    ...{ release: 'v1', pins: [], killed: { by: 'ann', reason: 'It quotes prices.', at: expect.any(String) } },
  });
  await call('POST', '/api/kill/undo', { by: 'bob' });
  expect(await serving()).toMatchObject({ killed: null });
});

it('/api/holds keep a user from being erased until they are released; /api/erasures/verify proves what became of it', async () => {
  const user = hashedId('ann', secret);
  await writeEntries(store, [entry.turn({ agent: 'desk', trajectory: 't-ann', user })]);
  const held = await call('POST', '/api/holds', { user: 'ann', reason: 'Case 17', by: 'counsel' });
  expect(held).toMatchObject({ status: 201, body: { user, actor: 'counsel', releasedAt: null } });
  expect((await call('GET', '/api/holds')).body).toMatchObject({ holds: [{ reason: 'Case 17' }] });
  const erasing = await call('POST', '/api/erasures', { user: 'ann', by: 'officer' });
  expect(erasing.status).toBe(202);
  await carryOutErasures(store, { artifacts });
  const proof = async () => (await call('POST', '/api/erasures/verify', { user: 'ann' })).body;
  expect(await proof()).toMatchObject({ verified: false });
  expect(await call('DELETE', `/api/holds/${held.body.id}?by=counsel`)).toMatchObject({ status: 200 });
  await carryOutErasures(store, { artifacts });
  expect(await proof()).toMatchObject({ verified: true, datasets: [], chain: { problem: null } });
  expect((await readAudit(store, { event: 'hold-' })).map(({ event }) => event)).toEqual([
    'hold-released',
    'hold-placed',
  ]);
});

it('/api/evaluations takes a suite by its artifact, or cases as they are, and not both', async () => {
  const one = {
    id: 'hi',
    type: 'greeting',
    messages: [{ role: 'user', content: 'Hi' }],
    expect: { contains: 'Hello' },
  };
  const given = { agent: 'desk', candidate: 'v1', baseline: 'v2' };
  expect((await call('POST', '/api/evaluations', given)).body).toMatchObject({
    error: { message: expect.stringMatching(/nothing to judge by/) },
  });
  expect((await call('POST', '/api/evaluations', { ...given, cases: [one], by: 'ann' })).status).toBe(202);
  expect(asked.pop()).toMatchObject({ by: 'ann', suite: { kind: 'cases', cases: [{ id: 'hi' }] } });
  const path = join(folder, 'hard.jsonl');
  writeFileSync(path, `${JSON.stringify(one)}\n`);
  const suite = await artifacts.add({ kind: 'suite' }, path);
  expect((await call('POST', '/api/evaluations', { ...given, suite })).status).toBe(202);
  expect(asked.pop()).toMatchObject({ suite: { artifact: suite, cases: [{ id: 'hi' }] } });
  for (const wrong of [{ suite, cases: [one] }, { suite: path }, { cases: [] }, { cases: [{ ...one, expect: 7 }] }])
    expect((await call('POST', '/api/evaluations', { ...given, ...wrong })).status).toBe(400);
});
