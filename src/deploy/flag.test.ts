/** Flags and task routing through the API, and what their readers do, on a real database. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../test/pawl.ts';
import { ensureAdminToken } from '../api/admin.ts';
import { createApi } from '../api/api.ts';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { readAudit } from '../store/audit.ts';
import { saveCompatibility } from '../store/compatibility.ts';
import { noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { readRoutes } from '../store/rollouts.ts';
import { withStore } from '../store/test-store.ts';
import { traffic } from './fixtures.ts';
import { createRelease, moveRollout, reconcile, serveRelease, startRollout } from './reconcile.ts';
import type { RolloutSettings } from './rollout.ts';
import { createRoutes, watchRoutes } from './routes.ts';
import { routeTasks } from './task-routing.ts';

const second = 1000;

async function openApi(store: Store) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-flags-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  let token = '';
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const config = parseConfig({ agents: [{ name: 'desk' }] }, {}, folder);
  const parts = { store, artifacts: openArtifacts(config), config, secret: 's'.repeat(32), adminHash };
  const api = createApi({ ...parts, recorder: () => ({}) as never });
  return async (method: string, path: string, given?: unknown) => {
    const headers = { authorization: `Bearer ${token}`, ...(given ? { 'content-type': 'application/json' } : {}) };
    const answer = await api.request(path, { method, headers, ...(given ? { body: JSON.stringify(given) } : {}) });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
}

async function begin(store: Store, settings: Partial<RolloutSettings> = {}) {
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', noon);
  const [v1, v2] = [await release('v1'), await release('v2')];
  await serveRelease(store, v1, 'ann', noon);
  const set = {
    holdSeconds: 60,
    minTurns: 20,
    minUnits: 10,
    steps: [0.5, 1],
    shadow: { share: 0 },
    ...settings,
  } as const;
  const start = { id: 'r1', agent: 'desk', candidate: v2, report: null, forced: 'A test.', actor: 'ann' };
  await startRollout(store, { ...start, settings: { promotion: { rule: 'checks' }, ...set } as never }, noon);
  return { v1, v2 };
}

it('all are on until a person turns one; turning it is audited, and turning it again is nothing new', async () => {
  const store = await withStore();
  const call = await openApi(store);
  const on = async () =>
    ((await call('GET', '/api/flags')).body.flags as { name: string; on: boolean }[])
      .filter((flag) => flag.on)
      .map(({ name }) => name);
  expect(await on()).toEqual(['exploration', 'shadow', 'rollouts', 'routing']);
  const off = { on: false, by: 'ann', reason: 'holidays' };
  expect((await call('POST', '/api/flags/rollouts', off)).body).toMatchObject({ agent: 'desk', changed: true });
  expect((await call('POST', '/api/flags/rollouts', off)).body).toMatchObject({ changed: false });
  expect(await on()).toEqual(['exploration', 'shadow', 'routing']);
  expect(await readAudit(store, { event: 'flag-off' })).toMatchObject([
    { actor: 'ann', subject: 'rollouts', details: '{"reason":"holidays"}' },
  ]);
  expect((await call('POST', '/api/flags/everything', off)).status).toBe(400);
  expect((await call('POST', '/api/flags/rollouts', { ...off, agent: 'shop' })).status).toBe(404);
});

it('rollouts off: nothing goes forward, and a failing check still takes back', async () => {
  const store = await withStore();
  const call = await openApi(store);
  await begin(store);
  await writeEntries(store, [
    ...traffic({ release: 'v1', users: 20, resolved: 15, from: noon }),
    ...traffic({ release: 'v2', users: 20, resolved: 15, from: noon }),
  ]);
  await call('POST', '/api/flags/rollouts', { on: false });
  const held = (await reconcile(store, { now: noon + 61 * second }))[0]!;
  expect(held.decision).toMatchObject({
    kind: 'hold',
    reasons: [expect.stringMatching(/^It could advance; the flag/)],
  });
  await call('POST', '/api/flags/rollouts', { on: true });
  expect((await reconcile(store, { now: noon + 62 * second }))[0]!.decision.kind).toBe('advance');
  await call('POST', '/api/flags/rollouts', { on: false });
  await writeEntries(store, traffic({ release: 'v2', users: 60, resolved: 0, from: noon + 63 * second }));
  expect((await reconcile(store, { now: noon + 70 * second }))[0]!.decision.kind).toBe('rollback');
});

/** Users with one type of task, of whom so many are helped. */
const typed = (release: string, type: string, users: number, resolved: number, from: number) =>
  traffic({
    release,
    users,
    resolved,
    from,
    words: { request: { model: 'desk', messages: [], metadata: { task_type: type } } },
  });

it('types of task at which the old release was better stay with it, with the evidence, until something else serves', async () => {
  const store = await withStore();
  const call = await openApi(store);
  const { v1, v2 } = await begin(store, { taskRouting: 'measured' });
  await writeEntries(store, [
    ...typed('v1', 'refund', 40, 36, noon),
    ...typed('v2', 'refund', 40, 18, noon + 1 * second),
    ...typed('v1', 'billing', 60, 30, noon + 2 * second),
    ...typed('v2', 'billing', 60, 55, noon + 3 * second),
  ]);
  expect(await routeTasks(store, noon + 10 * second)).toEqual([]); // it has not ended
  await moveRollout(store, 'r1', 'promote', 'ann', 'Better at billing.', noon + 20 * second);
  const [routing] = await routeTasks(store, noon + 21 * second);
  // 0.90 − 0.45; two types share 2.5%: z must reach 2.24.
  expect(routing).toMatchObject({ serving: v2.id, other: v1.id, types: [{ type: 'refund', users: { baseline: 40 } }] });
  expect(routing!.types[0]!.difference).toBeCloseTo(0.45);
  expect(routing!.types[0]!.bound).toBeCloseTo(2.24, 2);
  expect(await routeTasks(store, noon + 22 * second)).toEqual([]); // once
  expect(await readAudit(store, { event: 'tasks-routed' })).toMatchObject([{ actor: 'pawl', subject: 'r1' }]);
  expect((await call('GET', '/api/routing')).body).toMatchObject({ inForce: true, release: 'v1', rollout: 'r1' });

  const routes = createRoutes();
  const watch = await watchRoutes(store, routes, pino({ level: 'silent' }));
  onTestFinished(() => watch.close());
  const picked = (taskType: string | null, trajectory: string | null = null) =>
    routes.pick('desk', { agent: 'desk', user: 'u', trajectory, taskType })!;
  // One that hangs costs as little as a candidate that does.
  const answered = { release: { name: 'v1' }, fallback: { name: 'v2' }, firstByteMs: 5000 };
  expect(picked('refund')).toMatchObject(answered);
  expect([picked('billing'), picked(null)]).toMatchObject([{ release: { name: 'v2' } }, { release: { name: 'v2' } }]);
  // A conversation stays where it began, whatever its later calls say they are about.
  expect([picked('refund', 't1'), picked('billing', 't1')].map(({ release }) => release.name)).toEqual(['v1', 'v1']);
  expect([picked('billing', 't2'), picked('refund', 't2')].map(({ release }) => release.name)).toEqual(['v2', 'v2']);

  const began = performance.now();
  await call('POST', '/api/flags/routing', { on: false });
  await until(
    async () => picked('refund').release.name,
    (name) => name === 'v2',
  );
  expect(performance.now() - began).toBeLessThan(2000);
  expect((await call('GET', '/api/routing')).body).toMatchObject({
    inForce: false,
    why: expect.stringMatching(/flag/),
  });
  await call('POST', '/api/flags/routing', { on: true });
  expect((await readRoutes(store))[0]!.tasks).toHaveLength(1);
  await serveRelease(store, v1, 'ann', noon + 30 * second);
  expect((await readRoutes(store))[0]!.tasks).toEqual([]);
});

it('nothing goes to a release that was found not to fit its server since', async () => {
  const store = await withStore();
  await begin(store, { taskRouting: 'measured' });
  await writeEntries(store, [
    ...typed('v1', 'refund', 40, 36, noon),
    ...typed('v2', 'refund', 40, 18, noon + 1 * second),
  ]);
  await moveRollout(store, 'r1', 'promote', 'ann', 'Better elsewhere.', noon + 20 * second);
  const checks = [{ name: 'tools', verdict: 'fail', reason: 'Tools are not enabled.' }] as const;
  await saveCompatibility(store, { agent: 'desk', release: 'v1', verdict: 'fail', checks: [...checks], at: noon });
  expect(await routeTasks(store, noon + 21 * second)).toMatchObject([{ types: [] }]);
});

it('nothing goes to a candidate that a person aborted, or whose calls fail', async () => {
  for (const failed of [0, 60]) {
    const store = await withStore();
    await begin(store, { taskRouting: 'measured' });
    await writeEntries(store, [
      ...typed('v1', 'refund', 40, 10, noon),
      ...traffic({
        release: 'v2',
        users: 60,
        resolved: 58,
        from: noon + second,
        failed,
        words: { request: { model: 'desk', messages: [], metadata: { task_type: 'refund' } } },
      }),
      ...typed('v1', 'billing', 60, 30, noon + 2 * second),
    ]);
    if (failed === 0) await moveRollout(store, 'r1', 'abort', 'ann', 'No.', noon + 20 * second);
    else expect((await reconcile(store, { now: noon + 20 * second }))[0]!.decision.kind).toBe('rollback');
    expect(await routeTasks(store, noon + 21 * second)).toMatchObject([{ types: [] }]);
  }
});
