/**
 * Conversations made to end whoever reads them, put into the database as an older Pawl would have stored them: every reader
 * survives, says what it left out, and goes on with the rest.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { ensureAdminToken } from '../src/api/admin.ts';
import { createApi } from '../src/api/api.ts';
import type { TrajectoryDetail } from '../src/api/schema.ts';
import { openArtifacts } from '../src/artifacts/open.ts';
import { noCounts } from '../src/collect/recorder.ts';
import { piiSettings } from '../src/collect/redact/settings.ts';
import { timelineOf } from '../src/collect/timeline.ts';
import { timelineLines } from '../src/collect/timeline-print.ts';
import { curateWindow } from '../src/curate/run.ts';
import { outcome } from '../src/score/outcome.ts';
import { scoreWindow } from '../src/score/run.ts';
import { weighted } from '../src/score/weighted.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry, noon, uuidAt } from '../src/store/fixtures.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { withStore } from '../src/store/test-store.ts';
import { readTrajectory } from '../src/store/trajectories.ts';

const now = new Date(noon + 60_000);
const bombId = uuidAt(noon + 1);
let store: Store;

const turnOf = (trajectory: string, fields = {}) =>
  entry.turn({ id: uuidAt(noon), trajectory, user: `user of ${trajectory}`, ...fields });
const resolved = (id: string) =>
  entry.signal({ identity: `resolved ${id}`, kind: 'outcome', name: 'resolved', target: { kind: 'trajectory', id } });

beforeAll(async () => {
  store = await withStore();
  const ids = ['before', 'bomb', 'zafter'];
  for (const id of ids) await giveConsent(store, 'desk', `user of ${id}`, new Date(noon - 1000));
  await writeEntries(store, [
    ...[turnOf('before'), turnOf('bomb'), turnOf('bomb', { id: bombId, startedAt: noon + 1 }), turnOf('zafter')],
    ...[turnOf('bomb', { id: uuidAt(noon + 2), startedAt: noon + 2 })],
    ...ids.map(resolved),
  ]);
  // 2.4 million numbers of 309 digits each: three quarters of a gigabyte as text, half a megabyte on disk.
  await store.pool.query(
    `update pawl.turns set request = jsonb_build_object('messages', '[]'::jsonb, 'metadata',
       (select jsonb_agg(1e308::numeric) from generate_series(1, 2400000))) where id = $1`,
    [bombId],
  );
});

const parts = () => {
  const home = mkdtempSync(join(tmpdir(), 'pawl-bomb-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
};

test('reading the trajectory gives every turn, and the bomb without its content', async () => {
  const found = (await readTrajectory(store, 'bomb', { now }))!;
  expect(found.turns).toHaveLength(3);
  expect(found.tooLarge).toEqual([bombId]);
  expect(found.turns[1]).toMatchObject({ id: bombId, request: {}, choices: [], promptTokens: 12 });
  expect(found.turns[2]?.choices).toHaveLength(1);
  const print = { columns: 100, paint: plain, full: true };
  const lines = timelineLines(found.trajectory, timelineOf(found.turns, found.signals), print, found);
  expect(lines.join('\n')).toMatch(/left out: too large to read/);
});

test('the API answers, however many ask at once', async () => {
  const home = parts();
  let token = '';
  const adminHash = await ensureAdminToken(home, async (made) => {
    token = made;
  });
  const recorder = () => ({ ...noCounts(), queueDepth: 0, queueBytes: 0, restarts: 0 });
  const api = createApi({
    store,
    artifacts: openArtifacts({ home }),
    config: {
      agents: [],
      upstreams: {},
      engine: { kind: 'embedded' },
      retention: { days: null, datasets: null, afterTraining: null },
      pii: piiSettings.parse({}),
    },
    secret: 's'.repeat(32),
    adminHash,
    recorder,
  });
  const get = (path: string) =>
    api.request(`http://localhost${path}`, { headers: { authorization: `Bearer ${token}`, host: 'localhost' } });
  const answers = await Promise.all(Array.from({ length: 8 }, () => get('/api/trajectories/bomb')));
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
  const detail = (await answers[0]!.json()) as TrajectoryDetail;
  expect(detail.turns.map(({ contentLeftOut }) => contentLeftOut)).toEqual([false, true, false]);
  expect((await get('/api/trajectories')).status).toBe(200);
});

test('scoring and curating leave it out, count it, and go on with the rest', async () => {
  const spec = weighted({ resolved: [1, outcome('resolved')] });
  const window = { agent: 'desk', spec, since: new Date(noon - 1000), until: now, now };
  expect(await scoreWindow(store, window)).toMatchObject({ trajectories: 3, scored: 2, tooLarge: 1 });
  const artifacts = openArtifacts({ home: parts() });
  const dataset = await curateWindow(store, artifacts, { ...window, settings: { maxUserShare: 1, kAnonymity: 1 } });
  expect(dataset.funnel.find(({ gate }) => gate === 'score')).toMatchObject({ left: { 'not scored': 1 } });
  // As if it had been scored before this was looked at.
  await store.pool.query(
    `insert into pawl.scores select 'bomb', agent, day, spec, evidence, total, measured, parts, turns, at
     from pawl.scores where trajectory = 'before'`,
  );
  const again = await curateWindow(store, artifacts, { ...window, settings: { maxUserShare: 1, kAnonymity: 1 } });
  expect(again.funnel.find(({ gate }) => gate === 'size')).toMatchObject({ left: { 'too large to read': 1 } });
});

test('a long conversation comes page by page, as much as fits into one answer', async () => {
  const content = 'word '.repeat(60_000);
  const turns = Array.from({ length: 30 }, (_, i) =>
    turnOf('long', { id: uuidAt(noon + i), startedAt: noon + i, request: { messages: [{ role: 'user', content }] } }),
  );
  await writeEntries(store, turns);
  const seen: string[] = [];
  let afterTurn: { startedAt: number; id: string } | undefined;
  for (let pages = 1; ; pages++) {
    const found = (await readTrajectory(store, 'long', { now, maxBytes: 4 * 1024 * 1024, afterTurn }))!;
    expect(JSON.stringify(found.turns).length).toBeLessThan(5 * 1024 * 1024);
    seen.push(...found.turns.map(({ id }) => id));
    if (!found.cut) {
      expect(pages).toBe(3);
      break;
    }
    afterTurn = found.turns.at(-1)!;
  }
  expect(new Set(seen).size).toBe(30);
});

test('endless signals are cut, the latest are shown', async () => {
  const votes = Array.from({ length: 1500 }, (_, i) =>
    entry.signal({
      identity: `vote ${i}`,
      target: { kind: 'trajectory', id: 'before' },
      at: noon + i,
      correction: 'better '.repeat(3000),
    }),
  );
  await writeEntries(store, votes);
  const found = (await readTrajectory(store, 'before', { now, maxBytes: 1024 * 1024 }))!;
  expect(found.signalsCut).toBe(true);
  expect(found.signals).toHaveLength(1000);
  expect(found.signals.at(-1)).toMatchObject({ identity: 'vote 1499', correction: expect.any(String) });
  expect(JSON.stringify(found).length).toBeLessThan(2 * 1024 * 1024);
});

const same = (text: string) => text;
const plain = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same };
