/**
 * A rollout whose mover dies between every two statements that change the database, as it is started, let out of
 * shadow, advanced and promoted, and as another one is rolled back. Whatever the moment, the next look finds either nothing done or
 * everything, and in the end there is one row in the audit log for each move. test/killed-rollout.slow.test.ts does it with processes.
 */
import type pg from 'pg';
import { expect, it } from 'vitest';
import { StoreError } from '../errors.ts';
import { readAudit } from '../store/audit.ts';
import { noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { servingRelease } from '../store/releases.ts';
import { readRollout, readRoutes } from '../store/rollouts.ts';
import { insertComparison } from '../store/shadows.ts';
import { withStore } from '../store/test-store.ts';
import { verifyAudit } from './audit.ts';
import { traffic } from './fixtures.ts';
import { dieAtStatement } from './fixtures-die.ts';
import { createRelease, moveRollout, reconcile, serveRelease, startRollout } from './reconcile.ts';

const second = 1000;
/** What was written still goes out; no answer is read. */
const cut = (client: pg.Client) =>
  (client as unknown as { connection: { stream: { destroySoon(): void } } }).connection.stream.destroySoon();

/** Tries until nobody dies in it, one statement further each time. Says how often it died. */
async function dying(store: Store, move: () => Promise<unknown>, isDone: () => Promise<boolean>): Promise<number> {
  let died = 0;
  for (let at = 1; !(await steady(isDone)); at++) {
    const live = dieAtStatement({ at, when: at % 2 === 0 ? 'before' : 'after', how: cut });
    const error = await move().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (live() < at) {
      if (error !== null) throw error;
      break;
    }
    died++;
    await steady(() => consistent(store));
  }
  expect(await steady(isDone)).toBe(true);
  return died;
}

/** A connection that died may be handed out once more before the pool notices. */
const steady = async <T>(read: () => Promise<T>): Promise<T> => {
  for (let tries = 0; ; tries++)
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof StoreError) || tries === 20) throw error;
    }
};

/** The rollout has as many versions as the log tells of moves, and nobody gets a candidate that the log does not know of. */
async function consistent(store: Store): Promise<void> {
  for (const id of ['r1', 'r2']) {
    let rollout = await readRollout(store, id);
    for (;;) {
      const rows = rollout === null ? [] : await readAudit(store, { subject: id, event: 'rollout-' });
      // A commit whose sender died may be done between two readings.
      const again = await readRollout(store, id);
      if (again?.version === rollout?.version) {
        expect(rows).toHaveLength(rollout?.version ?? 0);
        break;
      }
      rollout = again;
    }
  }
  expect((await verifyAudit(store)).problem).toBeNull();
}

it('ends right with one audit trail, wherever its mover died', async () => {
  const store = await withStore();
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', noon);
  const [v1, v2, v3] = [await release('v1'), await release('v2'), await release('v3')];
  await serveRelease(store, v1, 'ann', noon);
  const settings = {
    steps: [0.5, 1],
    holdSeconds: 10,
    minTurns: 10,
    minUnits: 5,
    approval: 'human',
    shadow: { share: 1, holdSeconds: 0, minTurns: 1 },
    promotion: { rule: 'superiority', users: 10, looks: 1 },
  } as const;
  const report = { id: 'report', verdict: 'pass', baseline: 'v1', candidate: 'v2' } as const;
  const start = {
    id: 'r1',
    agent: 'desk',
    candidate: v2,
    report,
    settings: { ...settings, steps: [0.5, 1] },
    actor: 'ann',
  };
  const is =
    (phase: string, step: number, looks = 0) =>
    async () => {
      const found = await readRollout(store, 'r1');
      return found?.phase === phase && found.step === step && found.looks.length === looks;
    };
  const look = (now: number) => () => reconcile(store, { now });

  let died = await dying(store, () => startRollout(store, start, noon), is('waiting', 0));
  await moveRollout(store, 'r1', 'approve', 'bob', 'Go.', noon);
  await insertComparison(store, {
    ...{ id: '0190a6c2-7a1e-7c3d-9f41-2b7d5e6f8a90', parent: '0190a6c2-7a1e-7c3d-9f41-2b7d5e6f8a91', rollout: 'r1' },
    ...{ agent: 'desk', at: noon, failed: false, agreed: true, similarity: 1, baselineMs: 1, candidateMs: 1 },
    ...{ baselineTokens: 1, candidateTokens: 1 },
  });
  died += await dying(store, look(noon + second), is('canary', 0));
  await writeEntries(store, [
    ...traffic({ release: 'v1', users: 30, resolved: 3, from: noon + 2 * second }),
    ...traffic({ release: 'v2', users: 30, resolved: 28, from: noon + 2 * second }),
  ]);
  await look(noon + 12 * second)();
  expect(await is('canary', 0, 1)()).toBe(true);
  died += await dying(store, look(noon + 13 * second), is('canary', 1, 1));
  await writeEntries(store, traffic({ release: 'v2', users: 30, resolved: 28, from: noon + 14 * second }));
  died += await dying(store, look(noon + 24 * second), is('promoted', 1, 1));
  expect((await servingRelease(store, 'desk'))?.id).toBe(v2.id);
  const events = (await readAudit(store, { subject: 'r1', oldestFirst: true })).map(({ event }) => event.slice(8));
  expect(events).toEqual(['started', 'approved', 'advanced', 'looked', 'advanced', 'promoted']);

  const again = {
    ...start,
    id: 'r2',
    candidate: v3,
    report: null,
    forced: 'A bad one.',
    settings: { ...start.settings, approval: 'automatic', shadow: { share: 0 } },
  } as const;
  await startRollout(store, again, noon + 30 * second);
  await writeEntries(store, [
    ...traffic({ release: 'v2', users: 30, resolved: 28, from: noon + 31 * second }),
    ...traffic({ release: 'v3', users: 30, resolved: 0, from: noon + 31 * second }),
  ]);
  died += await dying(
    store,
    look(noon + 33 * second),
    async () => (await readRollout(store, 'r2'))?.phase === 'rolled-back',
  );
  expect(await readRoutes(store)).toMatchObject([{ release: { id: v2.id }, open: null }]);
  expect(await readAudit(store, { event: 'rollout-rolled-back' })).toHaveLength(1);
  expect(died).toBeGreaterThan(12);
});
