import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { StoredRoute } from '../store/rollouts.ts';
import { withStore } from '../store/test-store.ts';
import { isAssigned } from './assign.ts';
import { createRelease, moveRollout, serveRelease, startRollout } from './reconcile.ts';
import { makeRelease } from './release.ts';
import { type Rollout, rolloutSettings } from './rollout.ts';
import { createRoutes, watchRoutes } from './routes.ts';

const v1 = makeRelease({ agent: 'desk', name: 'v1', upstream: 'local', model: 'm1' }, 0);
const v2 = makeRelease({ agent: 'desk', name: 'v2', upstream: 'local', model: 'm2' }, 0);
const rollout = (step: number, phase: Rollout['phase'] = 'canary'): Rollout => ({
  ...{
    id: 'r1',
    agent: 'desk',
    baseline: v1.id,
    candidate: v2.id,
    report: null,
    phase,
    step,
    reasons: [],
    stepsAt: [],
    looks: [],
    version: 1,
  },
  ...{ settings: rolloutSettings.parse({}), createdAt: 0, startedAt: 0, stepSince: 0, endedAt: null },
});
const at = (step: number | null, phase?: Rollout['phase']): StoredRoute[] => [
  {
    agent: 'desk',
    aliases: ['gpt-4o'],
    release: v1,
    pins: [],
    tasks: [],
    open: step === null ? null : { rollout: rollout(step, phase), candidate: v2 },
  },
];
const users = Array.from({ length: 400 }, (_, i) => `user-${i}`);
const caller = (user: string | null, trajectory: string | null = null) => ({ agent: 'desk', user, trajectory });

describe('picking a release', () => {
  it('leaves other models and other agents alone', () => {
    const routes = createRoutes();
    expect(routes.pick('desk', caller('ann'))).toBeNull();
    routes.replace(at(null));
    expect(routes.pick('qwen3', caller('ann'))).toBeNull();
    expect(routes.pick('desk', { ...caller('ann'), agent: 'other' })).toBeNull();
    for (const name of ['desk', 'gpt-4o'])
      expect(routes.pick(name, caller('ann'))).toMatchObject({ release: v1, fallback: null });
  });

  it('gives the assigned users the candidate, with the baseline to fall back on', () => {
    const routes = createRoutes();
    routes.replace(at(1));
    for (const user of users) {
      const isIn = isAssigned('r1', `u:${user}`, 0.25);
      expect(routes.pick('desk', caller(user))).toMatchObject(
        isIn ? { release: v2, fallback: v1 } : { release: v1, fallback: null },
      );
    }
  });

  it('does not change horses in the middle of a trajectory, but does for the user’s next', () => {
    const routes = createRoutes();
    const user = users.find((one) => !isAssigned('r1', `u:${one}`, 0.05) && isAssigned('r1', `u:${one}`, 0.25))!;
    routes.replace(at(0));
    expect(routes.pick('desk', caller(user, 't1'))?.release).toBe(v1);
    routes.replace(at(1));
    expect(routes.pick('desk', caller(user, 't1'))?.release).toBe(v1);
    expect(routes.pick('desk', caller(user, 't2'))?.release).toBe(v2);
  });

  it('brings everybody back at once when a rollout ends or waits', () => {
    const routes = createRoutes();
    routes.replace(at(3));
    for (const user of users) expect(routes.pick('desk', caller(user, `t-${user}`))?.release).toBe(v2);
    routes.replace(at(null));
    for (const user of users) expect(routes.pick('desk', caller(user, `t-${user}`))?.release).toBe(v1);
    routes.replace(at(0, 'waiting'));
    for (const user of users) expect(routes.pick('desk', caller(user))?.release).toBe(v1);
  });

  it('passes a candidate over that may not be chosen now, and does not come back to it within the trajectory', () => {
    const routes = createRoutes();
    routes.replace(at(3));
    const release = (mayChoose: boolean, trajectory: string) =>
      routes.pick('desk', caller('ann', trajectory), () => mayChoose);
    expect(release(true, 't1')?.release).toBe(v2);
    expect(release(false, 't1')).toMatchObject({ release: v1, fallback: null });
    expect(release(true, 't1')?.release).toBe(v1);
    expect(release(true, 't2')?.release).toBe(v2);
  });

  it('goes by trajectory without a user, and draws without either', () => {
    let drawn = 0.04;
    const routes = createRoutes(() => drawn);
    routes.replace(at(0));
    const trajectory = users.find((one) => isAssigned('r1', `t:${one}`, 0.05))!;
    expect(routes.pick('desk', caller(null, trajectory))?.release).toBe(v2);
    expect(routes.pick('desk', caller(null))?.release).toBe(v2);
    drawn = 0.06;
    expect(routes.pick('desk', caller(null))?.release).toBe(v1);
  });

  it('is unsure of a conversation that began elsewhere and would get the candidate, until it is told', () => {
    const routes = createRoutes();
    routes.replace(at(2));
    const [user] = users.filter((one) => isAssigned('r1', `u:${one}`, 0.5)) as [string];
    const [other] = users.filter((one) => !isAssigned('r1', `u:${one}`, 0.5)) as [string];
    const going = (name: string, trajectory: string) => ({ ...caller(name, trajectory), continues: () => true });
    expect(routes.pick('desk', going(user, 't1'))).toMatchObject({ unsure: true });
    routes.began(caller(user, 't1'), 'v1');
    expect(routes.pick('desk', going(user, 't1'))).toMatchObject({ release: v1, fallback: null });
    routes.began(caller(user, 't2'), 'v2');
    expect(routes.pick('desk', going(user, 't2'))).toMatchObject({ release: v2, fallback: v1 });
    // What is not in play any more says nothing.
    routes.began(caller(user, 't3'), 'v0');
    expect(routes.pick('desk', going(user, 't3'))).toMatchObject({ unsure: true });
    // One that begins here, and one of a user who has what everybody had, are nobody's question.
    for (const [name, picked] of [
      [routes.pick('desk', caller(user, 't4')), v2],
      [routes.pick('desk', going(other, 't5')), v1],
    ] as const) {
      expect(name).toMatchObject({ release: picked });
      expect(name).not.toHaveProperty('unsure');
    }
  });
});

describe('routes in memory', () => {
  it('follow the database by its announcements, and stand when it goes away', async () => {
    const store = await withStore();
    const routes = createRoutes();
    const watch = await watchRoutes(store, routes, pino({ level: 'silent' }));
    const released = () => routes.pick('desk', caller('ann'))?.release.name;
    const until = async (name: string | undefined) => {
      while (released() !== name) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    const make = (name: string) =>
      createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', 1);
    await serveRelease(store, await make('a'), 'ann', 1);
    await until('a');
    await startRollout(
      store,
      {
        ...{
          id: 'r',
          agent: 'desk',
          candidate: await make('b'),
          actor: 'ann',
          settings: { steps: [1], promotion: { rule: 'checks' }, shadow: { share: 0 } },
        },
        report: { id: 'x', verdict: 'pass', baseline: 'a', candidate: 'b' },
      },
      2,
    );
    await until('b');
    await moveRollout(store, 'r', 'abort', 'ann', 'Stop.', 3);
    await until('a');
    await store.pool.query('alter table pawl.routes rename to gone');
    await store.pool.query(`select pg_notify('pawl_routes', '')`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(released()).toBe('a');
    await watch.close();
  });
});
