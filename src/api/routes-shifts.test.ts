/** Shifts through /api: which key's scores jumped, by how much, and that a person lets them go. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { outcome } from '../score/outcome.ts';
import { weighted } from '../score/weighted.ts';
import { entry, uuidAt } from '../store/fixtures.ts';
import { createKey } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { saveRewardSpec, saveScores } from '../store/scores.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-shifts-'));
const reward = weighted({ resolved: [1, outcome('resolved')] });
const day = 86_400_000;
const now = Date.now();
let store: Store;
let api: Api;
let token = '';
let jumping = '';

/** Twenty conversations of each key in either week: 0.25 each, but 0.75 of the second key in the second. */
beforeAll(async () => {
  store = await withStore();
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const config = parseConfig({ agents: [{ name: 'desk', reward }] }, {}, folder);
  const artifacts = openArtifacts(config);
  api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => null });
  await saveRewardSpec(store, { version: reward.version, parts: [], at: new Date(now - 20 * day) });
  for (const name of ['steady', 'jumping']) {
    const { key } = await createKey(store, { agent: 'desk', name });
    if (name === 'jumping') jumping = key.id;
    for (const week of [0, 1]) {
      const total = name === 'jumping' && week === 1 ? 0.75 : 0.25;
      const all = Array.from({ length: 20 }, (_, n) => ({
        trajectory: `${name}-${week}-${n}`,
        at: now - (week === 0 ? 10 : 3) * day + n * 1000 + (name === 'jumping' ? 500 : 0),
      }));
      await writeEntries(
        store,
        all.map(({ trajectory, at }) =>
          entry.turn({
            ...{ trajectory, id: uuidAt(at), startedAt: at, agent: 'desk', clientKey: key.id },
            request: { model: 'desk', metadata: { task_type: 'refund' }, messages: [] },
          }),
        ),
      );
      await saveScores(
        store,
        all.map(({ trajectory, at }) => ({
          ...{ agent: 'desk', trajectory, day: new Date(at).toISOString().slice(0, 10), spec: reward.version, at },
          ...{ evidence: trajectory, total, measured: 1, parts: {}, turns: [] },
        })),
      );
    }
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ask = async (method: string, path: string, json?: unknown) => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await api.request(path, { method, headers, ...(json ? { body: JSON.stringify(json) } : {}) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};

test('a key whose scores jumped is held, by its name, until somebody releases it', async () => {
  const shift = {
    ...{ key: jumping, name: 'jumping', taskType: 'refund', before: 0.25, now: 0.75, conversations: 20 },
  };
  expect(await ask('GET', '/api/shifts?agent=desk')).toEqual({
    status: 200,
    body: { agent: 'desk', countedAt: expect.any(String), shifts: [{ ...shift, releasedAt: null }] },
  });
  expect(await ask('POST', '/api/shifts/release', { agent: 'desk', key: 'nobody', taskType: 'refund' })).toMatchObject({
    status: 404,
    body: { error: { message: expect.stringMatching(/^Agent desk has no key nobody; /) } },
  });
  await ask('POST', '/api/shifts/release', { agent: 'desk', key: jumping, taskType: 'refund', reason: 'A new form.' });
  expect((await ask('GET', '/api/shifts?agent=desk')).body).toEqual({
    agent: 'desk',
    countedAt: expect.any(String),
    shifts: [{ ...shift, releasedAt: expect.any(String) }],
  });
});

test('an agent that is not in the settings has none to tell of', async () => {
  expect((await ask('GET', '/api/shifts?agent=nobody')).status).toBe(404);
});
