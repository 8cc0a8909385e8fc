/** As src/deploy/killed.test.ts, with real processes: whoever moves a rollout is killed with SIGKILL at every statement that changes the database. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { verifyAudit } from '../src/deploy/audit.ts';
import { traffic } from '../src/deploy/fixtures.ts';
import { createRelease, serveRelease, startRollout } from '../src/deploy/reconcile.ts';
import { readAudit } from '../src/store/audit.ts';
import { noon } from '../src/store/fixtures.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { servingRelease } from '../src/store/releases.ts';
import { readRollout } from '../src/store/rollouts.ts';

const second = 1000;
const folder = mkdtempSync(join(tmpdir(), 'pawl-killed-'));
let store: Store;
beforeAll(async () => {
  store = await openStore({ home: folder, volatile: true });
}, 600_000);
afterAll(async () => {
  await store?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Until one look goes through alive. Says how many were killed. */
async function moved(id: string, now: number): Promise<number> {
  const before = (await readRollout(store, id))!.version;
  for (let at = 1; ; at++) {
    const when = at % 2 === 0 ? 'before' : 'after';
    const given = ['--import', 'tsx', 'src/deploy/fixtures-mover.ts', store.url, String(now), String(at), when];
    const child = spawn(process.execPath, given, { stdio: ['ignore', 'ignore', 'inherit'] });
    const [code, signal] = await once(child, 'exit');
    const { version } = (await readRollout(store, id))!;
    expect(version - before).toBeLessThanOrEqual(1);
    expect(await readAudit(store, { subject: id, event: 'rollout-' })).toHaveLength(version);
    if (signal === 'SIGKILL' && version === before) continue;
    if (signal !== 'SIGKILL') expect(code).toBe(0);
    expect(version).toBe(before + 1);
    return signal === 'SIGKILL' ? at : at - 1;
  }
}

it('a rollout ends right with one audit trail, wherever its mover was killed', async () => {
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', noon);
  const [v1, v2, v3] = [await release('v1'), await release('v2'), await release('v3')];
  await serveRelease(store, v1, 'ann', noon);
  const start = {
    ...{ agent: 'desk', report: null, forced: 'A test.', actor: 'ann' },
    settings: {
      ...{ steps: [0.5, 1], holdSeconds: 10, minTurns: 10, minUnits: 5, shadow: { share: 0 } },
      promotion: { rule: 'checks' as const },
    },
  };
  await startRollout(store, { ...start, id: 'r1', candidate: v2 }, noon);
  await writeEntries(store, [
    ...traffic({ release: 'v1', users: 30, resolved: 10, from: noon }),
    ...traffic({ release: 'v2', users: 30, resolved: 28, from: noon }),
  ]);
  let killed = await moved('r1', noon + 11 * second);
  await writeEntries(store, traffic({ release: 'v2', users: 30, resolved: 28, from: noon + 12 * second }));
  killed += await moved('r1', noon + 22 * second);
  expect((await servingRelease(store, 'desk'))?.id).toBe(v2.id);
  await startRollout(store, { ...start, id: 'r2', candidate: v3 }, noon + 30 * second);
  await writeEntries(store, [
    ...traffic({ release: 'v2', users: 30, resolved: 28, from: noon + 31 * second }),
    ...traffic({ release: 'v3', users: 30, resolved: 0, from: noon + 31 * second }),
  ]);
  killed += await moved('r2', noon + 33 * second);
  expect((await readRollout(store, 'r2'))!.phase).toBe('rolled-back');
  const events = (await readAudit(store, { event: 'rollout-', oldestFirst: true })).map(({ event }) => event.slice(8));
  expect(events).toEqual(['started', 'advanced', 'promoted', 'started', 'rolled-back']);
  expect((await verifyAudit(store)).problem).toBeNull();
  expect(killed).toBeGreaterThan(10);
}, 1_800_000);
