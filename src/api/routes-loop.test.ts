/** The loop through /api, as a script would use it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import type { LoopTurn } from '../loop/turn.ts';
import { leading } from '../store/lead.ts';
import { saveLoopTurn } from '../store/loop-turns.ts';
import type { Store } from '../store/postgres.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-loop-'));
let store: Store;
let api: Api;
let token = '';
beforeAll(async () => {
  store = await withStore();
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const config = parseConfig({ agents: [{ name: 'desk' }] }, {}, folder);
  const artifacts = openArtifacts(config);
  api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => ({}) as never });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const call = async (method: string, path: string, given?: unknown) => {
  const headers = { authorization: `Bearer ${token}`, ...(given ? { 'content-type': 'application/json' } : {}) };
  const answer = await api.request(path, { method, headers, ...(given ? { body: JSON.stringify(given) } : {}) });
  return { status: answer.status, body: await answer.json() };
};

it('says what comes next and why, also before anything has', async () => {
  expect(await call('GET', '/api/loop?agent=desk')).toMatchObject({
    status: 200,
    body: {
      agent: 'desk',
      next: { kind: 'wait', until: null, reason: expect.stringMatching(/has no release that serves/) },
      paused: null,
      turn: null,
    },
  });
});

it('takes what people say, refuses what cannot be, and knows only agents of the settings', async () => {
  const asked = await call('POST', '/api/loop/run', { agent: 'desk', by: 'kim', seed: 7 });
  expect(asked).toEqual({ status: 200, body: { agent: 'desk', paused: null, wanted: true } });
  const paused = await call('POST', '/api/loop/pause', { agent: 'desk', by: 'kim' });
  expect(paused.body).toMatchObject({ paused: { by: 'kim', at: expect.stringMatching(/Z$/) } });
  expect(await call('POST', '/api/loop/run', { agent: 'desk' })).toMatchObject({
    status: 409,
    body: { error: { message: expect.stringMatching(/was paused by kim/) } },
  });
  expect((await call('POST', '/api/loop/resume', { agent: 'desk' })).body).toMatchObject({ paused: null });
  expect(await call('POST', '/api/loop/pause', { agent: 'nobody' })).toMatchObject({ status: 404 });
  expect(await call('POST', '/api/loop/run', { agent: 'desk', seed: -1 })).toMatchObject({ status: 400 });
  expect(await call('POST', '/api/loop/run', { agent: 'desk', sed: 1 })).toMatchObject({ status: 400 });
});

it('lists turns with what each cost and gained', async () => {
  const turn: LoopTurn = {
    ...{ agent: 'desk', number: 1, seed: 7, done: ['collect'], startedAt: 1000, endedAt: 2000 },
    state: {
      begun: { trigger: 'schedule', reason: 'It is due.' },
      collect: { since: 0, until: 1000, conversations: 40 },
      evaluate: { report: 'r', verdict: 'pass', before: 0.5, after: 0.75, interval: [0.1, 0.4], p: 0.01, reasons: [] },
      deploy: { rollout: 'x', phase: 'promoted', release: 'desk-1', reasons: [] },
      spent: { seconds: 60, tokens: 1000, money: 0.5 },
    },
  };
  await leading(store, 'loop', 'test', (lead) => saveLoopTurn(store, turn, lead));
  expect(await call('GET', '/api/loop/turns?agent=desk&limit=5')).toMatchObject({
    status: 200,
    body: {
      turns: [
        {
          ...{ number: 1, seed: 7, trigger: 'schedule', ended: 'promoted', startedAt: '1970-01-01T00:00:01.000Z' },
          spent: { seconds: 60, tokens: 1000, money: 0.5 },
          gain: { before: 0.5, after: 0.75, interval: [0.1, 0.4], verdict: 'pass' },
        },
      ],
    },
  });
});
