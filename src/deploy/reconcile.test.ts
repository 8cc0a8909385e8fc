/** Rollouts on a real database, from turns and signals to the route that gateways read. */
import { describe, expect, it } from 'vitest';
import { readAudit } from '../store/audit.ts';
import { noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { servingRelease } from '../store/releases.ts';
import { saveReport } from '../store/reports.ts';
import { readRollout, readRoutes } from '../store/rollouts.ts';
import { withStore } from '../store/test-store.ts';
import { verifyAudit } from './audit.ts';
import { traffic } from './fixtures.ts';
import { createRelease, moveRollout, reconcile, serveRelease, startRollout } from './reconcile.ts';
import { weightOf } from './rollout.ts';

const second = 1000;
const settings = {
  ...{ holdSeconds: 60, patienceSeconds: 600, minTurns: 20, minUnits: 10 },
  promotion: { rule: 'checks' },
  shadow: { share: 0 },
} as const;
/** As many users of the baseline as there should be beside 20 of the candidate. */
const beside = (share: number) => Math.round((20 * (1 - share)) / share);
const passing = { id: 'report-1', verdict: 'pass', baseline: 'v1', candidate: 'v2' } as const;

async function begin(store: Store, verdict: 'pass' | 'fail' | 'inconclusive' = 'pass', forced?: string) {
  const v1 = await createRelease(store, { agent: 'desk', name: 'v1', upstream: 'local', model: 'm1' }, 'ann', noon);
  await serveRelease(store, v1, 'ann', noon);
  const v2 = await createRelease(store, { agent: 'desk', name: 'v2', upstream: 'local', model: 'm2' }, 'ann', noon);
  const start = {
    id: 'r1',
    agent: 'desk',
    candidate: v2,
    report: { ...passing, verdict },
    settings,
    actor: 'ann',
    ...(forced === undefined ? {} : { forced }),
  };
  return { v1, v2, start, rollout: await startRollout(store, start, noon) };
}

describe('a rollout', () => {
  it('walks a good candidate to promotion, and the route follows', async () => {
    const store = await withStore();
    const { v1, v2 } = await begin(store);
    const weights: number[] = [];
    let from = noon;
    for (let step = 0; step < 4; step++) {
      weights.push(weightOf((await readRollout(store, 'r1'))!));
      expect((await servingRelease(store, 'desk'))?.id).toBe(v1.id);
      await writeEntries(store, [
        ...traffic({ release: 'v1', users: beside(weights[step]!), resolved: beside(weights[step]!) / 2, from }),
        ...traffic({ release: 'v2', users: 20, resolved: 18, from }),
      ]);
      expect((await reconcile(store, { now: from + 30 * second }))[0]?.decision.kind).toBe('hold');
      from += 61 * second;
      expect((await reconcile(store, { now: from }))[0]?.decision.kind).toBe(step < 3 ? 'advance' : 'promote');
    }
    expect(weights).toEqual([0.05, 0.25, 0.5, 1]);
    expect((await servingRelease(store, 'desk'))?.id).toBe(v2.id);
    expect(await readRoutes(store)).toMatchObject([{ agent: 'desk', release: { name: 'v2' }, open: null }]);
    expect(await reconcile(store, { now: from })).toEqual([]);
    const events = (await readAudit(store, { subject: 'r1', oldestFirst: true })).map((row) => row.event);
    expect(events).toEqual(['rollout-started', ...Array(3).fill('rollout-advanced'), 'rollout-promoted']);
    expect((await verifyAudit(store)).problem).toBeNull();
  });

  it.each(['shadow', 'canary'])(
    'takes a candidate in %s back that an evaluation made meanwhile finds drifted',
    async (phase) => {
      const store = await withStore();
      const { start } = await begin(store, 'fail', 'To see what happens.');
      await moveRollout(store, 'r1', 'abort', 'ann', 'Another way.', noon);
      const shadow = { share: phase === 'shadow' ? 1 : 0 };
      const again = { ...start, id: 'r2', settings: { ...settings, shadow } };
      expect((await startRollout(store, again, noon + second)).phase).toBe(phase);
      const report = (id: string, drift: 'pass' | 'fail', createdAt: number) =>
        saveReport(store, {
          ...{
            id,
            agent: 'desk',
            baseline: 'v1',
            candidate: 'v2',
            verdict: drift,
            createdAt,
            suite: { name: 'golden' },
          },
          gates: [
            { name: 'length', verdict: 'fail', reason: 'Long.' },
            { name: 'drift-from-base', verdict: drift, reason: 'Its answers drifted.' },
          ],
        } as never);
      const next = async (now: number) => (await reconcile(store, { now }))[0];
      await report('known', 'fail', noon); // whoever forced it knew
      expect((await next(noon + 2 * second))?.decision.kind).toBe('hold');
      await report('well', 'pass', noon + 3 * second);
      expect((await next(noon + 4 * second))?.decision.kind).toBe('hold');
      await report('drifted', 'fail', noon + 5 * second);
      expect(await next(noon + 6 * second)).toMatchObject({
        decision: { kind: 'rollback', reasons: ['Its answers drifted. Report drifted says so.'] },
        rollout: { phase: 'rolled-back' },
      });
    },
  );

  it('rolls a bad candidate back while the baseline goes on serving', async () => {
    const store = await withStore();
    const { v1 } = await begin(store, 'fail', 'To see what happens.');
    await writeEntries(store, [
      ...traffic({ release: 'v1', users: 100, resolved: 70, from: noon }),
      ...traffic({ release: 'v2', users: 15, resolved: 0, from: noon }),
    ]);
    const [first] = await reconcile(store, { now: noon + second });
    expect(first).toMatchObject({ decision: { kind: 'rollback' }, rollout: { phase: 'rolled-back' } });
    expect(await readRoutes(store)).toMatchObject([{ release: { id: v1.id }, open: null }]);
    const [row] = await readAudit(store, { subject: 'r1' });
    expect(row).toMatchObject({ actor: 'pawl', event: 'rollout-rolled-back' });
    expect(row?.details).toMatch(/candidate 0\.000 of 15 users, baseline 0\.700 of 100; worse/);
  });

  it('rolls back a candidate that is better for most and worse for those with personal data', async () => {
    const store = await withStore();
    const { v1 } = await begin(store);
    const words = {
      redactions: { card: 1 },
      request: { messages: [{ role: 'user', content: 'I paid with [card].' }] },
    };
    await writeEntries(store, [
      ...traffic({ release: 'v1', users: 60, resolved: 20, from: noon }),
      ...traffic({ release: 'v1', users: 40, resolved: 34, from: noon + second, words }),
      ...traffic({ release: 'v2', users: 60, resolved: 60, from: noon }),
      ...traffic({ release: 'v2', users: 30, resolved: 0, from: noon + second, words }),
    ]);
    const [first] = await reconcile(store, { now: noon + 30 * second });
    expect(first).toMatchObject({ decision: { kind: 'rollback' }, rollout: { phase: 'rolled-back' } });
    expect(first!.decision.reasons).toEqual([
      'resolved, with personal data: candidate 0.000 of 30 users, baseline 0.850 of 40; worse, and chance does not explain it.',
    ]);
    expect(await readRoutes(store)).toMatchObject([{ release: { id: v1.id }, open: null }]);
  });

  it('does nothing in a quiet night', async () => {
    const store = await withStore();
    await begin(store);
    for (const after of [61, 300, 599]) {
      const [held] = await reconcile(store, { now: noon + after * second });
      expect(held).toMatchObject({ decision: { kind: 'hold' }, rollout: { phase: 'canary', version: 1 } });
    }
    expect(await reconcile(store, { now: noon + 600 * second })).toMatchObject([{ rollout: { phase: 'paused' } }]);
  });

  it('is moved once when two look at it at the same time', async () => {
    const store = await withStore();
    await begin(store);
    await writeEntries(store, [
      ...traffic({ release: 'v1', users: 380, resolved: 190, from: noon }),
      ...traffic({ release: 'v2', users: 20, resolved: 18, from: noon }),
    ]);
    const now = noon + 61 * second;
    await Promise.all([reconcile(store, { now }), reconcile(store, { now }), reconcile(store, { now })]);
    expect(await readRollout(store, 'r1')).toMatchObject({ step: 1, version: 2 });
    expect(await readAudit(store, { event: 'rollout-advanced' })).toHaveLength(1);
  });

  it('is refused after a failed evaluation, waits after an inconclusive one, and says so', async () => {
    const store = await withStore();
    await expect(begin(store, 'fail')).rejects.toThrow('Release v2 is not rolled out: its evaluation ended with fail');
    const { rollout } = await begin(store, 'inconclusive');
    expect(rollout).toMatchObject({ phase: 'waiting', startedAt: null });
    expect(weightOf(rollout)).toBe(0);
    const approved = await moveRollout(store, 'r1', 'approve', 'bob', 'Worth a try.', noon + 5);
    expect(approved).toMatchObject({ phase: 'canary', stepSince: noon + 5, reasons: ['Worth a try.'] });
    expect((await readAudit(store, { event: 'rollout-approved' }))[0]).toMatchObject({ actor: 'bob', at: noon + 5 });
  });

  it('can be made again without effect, but not beside another', async () => {
    const store = await withStore();
    const { start, rollout } = await begin(store);
    expect(await startRollout(store, start, noon + 99)).toEqual(rollout);
    await expect(startRollout(store, { ...start, id: 'r2' }, noon)).rejects.toThrow('has a rollout that has not ended');
    expect(await readAudit(store)).toHaveLength(4); // two releases, one served, one rollout
  });

  it('is stopped by a person at once, and only once', async () => {
    const store = await withStore();
    await begin(store);
    await moveRollout(store, 'r1', 'abort', 'eve', 'Bad feeling.', noon + 1);
    expect((await readRoutes(store))[0]?.open).toBeNull();
    await expect(moveRollout(store, 'r1', 'abort', 'eve', 'Again.', noon + 2)).rejects.toThrow(
      'Rollout r1 is rolled-back and cannot abort; it has ended',
    );
  });

  it('is held by a person without losing sight of it, and begins its step anew when it goes on', async () => {
    const store = await withStore();
    await begin(store);
    await moveRollout(store, 'r1', 'hold', 'eve', 'Let me look.', noon + second);
    await writeEntries(store, [
      ...traffic({ release: 'v1', users: 40, resolved: 20, from: noon }),
      ...traffic({ release: 'v2', users: 20, resolved: 18, from: noon }),
    ]);
    const [held] = await reconcile(store, { now: noon + 61 * second });
    expect(held).toMatchObject({ decision: { kind: 'hold' }, rollout: { phase: 'paused', step: 0 } });
    expect(held?.measurements).toMatchObject({ errors: { candidate: { calls: 40 } } });
    const next = await moveRollout(store, 'r1', 'approve', 'eve', 'Fine.', noon + 70 * second);
    expect(next).toMatchObject({ phase: 'canary', step: 0, stepSince: noon + 70 * second });
    await moveRollout(store, 'r1', 'hold', 'eve', 'Once more.', noon + 80 * second);
    await writeEntries(store, traffic({ release: 'v2', users: 100, resolved: 0, from: noon + 80 * second }));
    expect(await reconcile(store, { now: noon + 90 * second })).toMatchObject([{ rollout: { phase: 'rolled-back' } }]);
    expect(
      (await readAudit(store, { subject: 'r1', oldestFirst: true })).map(({ actor, event }) => [actor, event]),
    ).toEqual([
      ['ann', 'rollout-started'],
      ['eve', 'rollout-held'],
      ['eve', 'rollout-approved'],
      ['eve', 'rollout-held'],
      ['pawl', 'rollout-rolled-back'],
    ]);
  });

  it('is promoted by a person at any step, and what served before is a command away', async () => {
    const store = await withStore();
    const { v1, v2 } = await begin(store);
    await expect(serveRelease(store, v2, 'eve', noon + 1)).rejects.toThrow('pawl rollouts abort r1');
    await moveRollout(store, 'r1', 'promote', 'eve', 'The old one is on fire.', noon + 1);
    expect((await servingRelease(store, 'desk'))?.id).toBe(v2.id);
    expect(await serveRelease(store, v2, 'eve', noon + 2)).toBe(false);
    expect(await serveRelease(store, v1, 'eve', noon + 3, { reason: 'It was not.' })).toBe(true);
    expect(await readRoutes(store)).toMatchObject([{ release: { id: v1.id }, open: null }]);
    const [row] = await readAudit(store, { event: 'release-served' });
    expect(row).toMatchObject({ actor: 'eve', subject: v1.id });
    expect(JSON.parse(row!.details)).toEqual({ name: 'v1', before: 'v2', reason: 'It was not.' });
  });

  it('keeps the names that clients ask for through a promotion and back, until others are given', async () => {
    const store = await withStore();
    const { v1 } = await begin(store);
    expect(await serveRelease(store, v1, 'eve', noon + 1, { aliases: ['gpt-4o'] })).toBe(true); // what serves stays
    expect(await serveRelease(store, v1, 'eve', noon + 1, { aliases: ['gpt-4o'] })).toBe(false);
    await moveRollout(store, 'r1', 'promote', 'eve', 'Good.', noon + 2);
    expect(await readRoutes(store)).toMatchObject([{ release: { name: 'v2' }, aliases: ['gpt-4o'] }]);
    await serveRelease(store, v1, 'eve', noon + 3);
    expect(await readRoutes(store)).toMatchObject([{ release: { name: 'v1' }, aliases: ['gpt-4o'] }]);
    await serveRelease(store, v1, 'eve', noon + 4, { aliases: [] });
    expect(await readRoutes(store)).toMatchObject([{ release: { name: 'v1' }, aliases: [] }]);
  });

  it('is judged by the traffic its agent learns from, and by no other', async () => {
    const store = await withStore();
    const { v1, v2 } = await begin(store);
    await moveRollout(store, 'r1', 'abort', 'ann', 'Another way.', noon);
    const start = { id: 'r2', agent: 'desk', candidate: v2, report: passing, settings, actor: 'ann' };
    await startRollout(store, { ...start, origin: 'simulation' }, noon);
    const bad = [
      ...traffic({ release: v1.name, users: 100, resolved: 70, from: noon }),
      ...traffic({ release: v2.name, users: 15, resolved: 0, from: noon }),
    ];
    await writeEntries(store, bad);
    expect(await reconcile(store, { now: noon + second })).toMatchObject([{ decision: { kind: 'hold' } }]);
    const words = { origin: 'simulation' } as const;
    await writeEntries(store, [
      ...traffic({ release: v1.name, users: 100, resolved: 70, from: noon + second, words }),
      ...traffic({ release: v2.name, users: 15, resolved: 0, from: noon + second, words }),
    ]);
    expect(await reconcile(store, { now: noon + 2 * second })).toMatchObject([{ rollout: { phase: 'rolled-back' } }]);
  });

  it('and a change of what serves do not pass each other', async () => {
    const store = await withStore();
    const { v1, v2, start } = await begin(store);
    await moveRollout(store, 'r1', 'abort', 'ann', 'Another way.', noon);
    for (let i = 0; i < 8; i++) {
      const id = `race-${i}`;
      await Promise.allSettled([
        startRollout(store, { ...start, id }, noon + i),
        serveRelease(store, v2, 'eve', noon + i),
      ]);
      const [route] = await readRoutes(store);
      if (route!.open !== null) {
        expect(route!.release.id).toBe(v1.id);
        await moveRollout(store, id, 'abort', 'ann', 'Again.', noon + i);
      }
      await serveRelease(store, v1, 'ann', noon + i);
    }
    expect((await verifyAudit(store)).problem).toBeNull();
  });
});

describe('a release', () => {
  it('keeps its name: other content needs another', async () => {
    const store = await withStore();
    const given = { agent: 'desk', name: 'v1', upstream: 'local', model: 'm1' };
    const release = await createRelease(store, given, 'ann', noon);
    expect(await createRelease(store, given, 'ann', noon + 5)).toEqual(release);
    await expect(createRelease(store, { ...given, model: 'm9' }, 'ann', noon)).rejects.toThrow(
      'Agent desk has another release named v1; names are used once, choose a new one.',
    );
    expect(await readAudit(store)).toHaveLength(1);
  });
});
