/** Conversations and labels through /api, and whether the reward agrees with them, as a script would ask. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-labels-'));
let api: Api;
let token = '';
beforeAll(async () => {
  const store = await withStore();
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const config = parseConfig({ agents: [{ name: 'desk' }] }, {}, folder);
  const artifacts = openArtifacts(config);
  api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => ({}) as never });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const call = async (method: string, path: string, body?: string, type = 'application/json') => {
  const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': type }) };
  const answer = await api.request(path, { method, headers, ...(body === undefined ? {} : { body }) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const line = (id: string, words: string) =>
  JSON.stringify({
    id,
    messages: [
      { role: 'user', content: words },
      { role: 'assistant', content: 'Yes.' },
    ],
    reward: 1,
  });

it('imports a file that is larger than other bodies may be, and names its bad lines', async () => {
  const file = `${line('one', 'x'.repeat(100_000))}\nnonsense\n${line('two', 'short')}\n`;
  const send = () => call('POST', '/api/trajectories/import?agent=desk', file, 'application/x-ndjson');
  expect(await send()).toMatchObject({
    status: 200,
    body: { agent: 'desk', conversations: 2, turns: 2, signals: 2, bad: 1, problems: [{ line: 2 }] },
  });
  expect(await send()).toMatchObject({ body: { turns: 0, signals: 0, known: 4 } });
  expect(await call('GET', '/api/trajectories/one')).toMatchObject({
    body: { signals: [{ name: 'reward', value: 1 }] },
  });
  expect(await call('POST', '/api/trajectories/import?agent=shop', file)).toMatchObject({ status: 404 });
  expect(await call('POST', '/api/score/runs', JSON.stringify({ agent: 'x'.repeat(70_000) }))).toMatchObject({
    status: 413,
  });
});

it('a file may be given a name, as the source that curating bounds', async () => {
  const send = (source: string) =>
    call('POST', `/api/trajectories/import?agent=desk&source=${source}`, line('named', 'Hi.'), 'application/x-ndjson');
  expect(await send('no%20name')).toMatchObject({ status: 400 });
  expect(await send('crm')).toMatchObject({ status: 200, body: { turns: 1 } });
  expect(await call('GET', '/api/trajectories/named')).toMatchObject({ body: { turns: [{ upstream: 'import:crm' }] } });
  expect(await call('GET', '/api/trajectories/one')).toMatchObject({ body: { turns: [{ upstream: 'import' }] } });
});

it('takes labels, shows them, and says what it cannot take', async () => {
  const labels = [{ trajectory: 'one', score: 0.5, parts: { tools: 1 }, reviewer: 'rita' }];
  const sent = await call('POST', '/api/labels', JSON.stringify({ labels }));
  expect(sent).toMatchObject({ status: 200, body: { agent: 'desk', labels: 1, written: 2, unknown: 0, bad: 0 } });
  expect(await call('GET', '/api/labels?reviewer=rita')).toMatchObject({
    body: { labels: [{ target: { kind: 'trajectory', id: 'one' }, score: 0.5, parts: { tools: 1 } }] },
  });
  expect(await call('GET', '/api/labels?reviewer=sam')).toMatchObject({ body: { labels: [] } });
  const odd = await call('POST', '/api/labels', JSON.stringify({ labels: [{ trajectory: 'one', score: 1.7 }] }));
  expect(odd).toMatchObject({ status: 400, body: { error: { message: expect.stringMatching(/labels\.0\.score/) } } });
});

it('says how far the reward agrees, proposes weights, and compares versions', async () => {
  const lines = Array.from({ length: 30 }, (_, k) =>
    JSON.stringify({
      ...{ id: `n-${k}`, label: k / 30, feedback: k / 30, outcomes: { resolved: k % 2 } },
      messages: [
        { role: 'user', content: `${k}?` },
        { role: 'assistant', content: 'Yes.' },
      ],
    }),
  );
  await call('POST', '/api/trajectories/import', lines.join('\n'), 'application/x-ndjson');
  expect(await call('POST', '/api/score/runs', '{}')).toMatchObject({ body: { scored: 33 } });
  const { body: status } = await call('GET', '/api/reward');
  expect(status).toMatchObject({ agent: 'desk', total: { labels: 30 }, drift: expect.any(Array) });
  expect(status.parts).toContainEqual(expect.objectContaining({ part: 'feedback', spearman: 1, state: 'ok' }));
  const { body: proposal } = await call('POST', '/api/reward/fit', '{}');
  expect(proposal).toMatchObject({ verdict: expect.any(String), parts: expect.any(Array) });
  const { body: listed } = await call('GET', '/api/reward/versions');
  const [{ version }] = listed.versions as [{ version: string }];
  expect(listed.versions).toMatchObject([{ scores: 33, current: true }]);
  expect(await call('GET', `/api/reward/compare?a=${version}&b=${version}`)).toMatchObject({
    body: { conversations: expect.any(Number), spearman: 1, swaps: [] },
  });
  expect(await call('GET', `/api/reward/compare?a=${version}&b=none`)).toMatchObject({ status: 404 });
  expect(await call('GET', '/api/reward?agent=shop')).toMatchObject({ status: 404 });
});

it('the document has all of it', async () => {
  const { body } = await call('GET', '/api/openapi.json');
  expect(Object.keys(body.paths as object)).toEqual(
    expect.arrayContaining(['/api/labels', '/api/trajectories/import', '/api/reward', '/api/reward/fit']),
  );
});
