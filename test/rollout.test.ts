/** A rollout through a real gateway: who gets which model, what callers see when one fails, what is recorded of it. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAssigned } from '../src/deploy/assign.ts';
import { createRelease, reconcile, serveRelease, startRollout } from '../src/deploy/reconcile.ts';
import type { Store } from '../src/store/postgres.ts';
import { readRollout } from '../src/store/rollouts.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

const passed = (candidate: string) => ({ id: 'report-1', verdict: 'pass', baseline: 'v1', candidate }) as const;
let upstream: TestUpstream;
let pawl: PawlProcess;
let store: Store;
beforeAll(async () => {
  upstream = await startUpstream();
  pawl = await startPawl({ PAWL_UPSTREAM: upstream.url });
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  await upstream?.close();
});

const release = (name: string, model: string, more: { upstream?: string; sampling?: Record<string, number> } = {}) =>
  createRelease(store, { agent: 'support-desk', name, upstream: 'default', model, ...more }, 'ann', Date.now());

const ask = async (user: string, { model = 'support-desk', trajectory = `t-${user}`, more = '' } = {}) => {
  const response = await fetch(`${pawl.url}/t/${trajectory}/u/${user}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json' },
    body: `{"model":"${model}",${more}"messages":[{"role":"user","content":"Hi ${user}"}]}`,
  });
  const text = await response.text();
  return { status: response.status, release: response.headers.get('x-pawl-release'), text };
};
const served = (user: string, name: string | null) =>
  until(
    () => ask(user, { trajectory: `probe-${Math.random().toString(36).slice(2)}` }),
    (answer) => answer.release === name,
    20,
  );
/** A command, on the Pawl that is serving. */
const command = async (...args: string[]): Promise<string> => {
  const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: pawl.home };
  return (await promisify(execFile)(process.execPath, ['bin/pawl.js', ...args], { env })).stdout;
};
const users = Array.from({ length: 40 }, (_, i) => `user-${i}`);

describe('a rollout through the gateway', () => {
  it('gives each user the release they are assigned, changes only the model’s name, and comes back on abort', async () => {
    expect((await ask('ann', { model: 'echo' })).release).toBeNull();
    await serveRelease(store, await release('v1', 'echo', { sampling: { top_p: 0.5 } }), 'ann', Date.now());
    await served('ann', 'v1');
    await startRollout(
      store,
      {
        ...{ id: 'r1', agent: 'support-desk', candidate: await release('v2', 'reasoner'), actor: 'ann' },
        report: passed('v2'),
        settings: { steps: [0.5, 1], holdSeconds: 3600, promotion: { rule: 'checks' }, shadow: { share: 0 } },
      },
      Date.now(),
    );
    const early = users.find((user) => isAssigned('r1', `u:${user}`, 0.5))!;
    await served(early, 'v2');
    for (const user of users) {
      const name = isAssigned('r1', `u:${user}`, 0.5) ? 'v2' : 'v1';
      expect(await ask(user, { trajectory: `first-${user}` })).toMatchObject({ status: 200, release: name });
    }
    // A call for another model is none of the rollout's business.
    expect(await ask(early, { model: 'echo' })).toMatchObject({ status: 200, release: null });

    await ask('ann', { trajectory: 'whole', more: '"seed":7,' });
    const whole = await until(
      () => readTrajectory(store, 'whole'),
      (found) => (found?.turns.length ?? 0) > 0,
    );
    const name = isAssigned('r1', 'u:ann', 0.5) ? 'v2' : 'v1';
    expect(whole?.turns[0]).toMatchObject({ release: name, status: 'ok', request: { model: 'support-desk', seed: 7 } });
    expect(upstream.bodies.at(-1)).toMatchObject({ model: name === 'v2' ? 'reasoner' : 'echo', seed: 7 });

    // The kill switch, as an operator uses it.
    const stdout = await command('rollouts', 'abort', 'r1', '--by', 'eve', '--reason', 'complaints');
    expect(stdout).toBe('Rollout r1: rolled-back, 0% of the users get the candidate (step 1 of 2).\n');
    await served(early, 'v1');
    for (const user of users) expect((await ask(user, { trajectory: `first-${user}` })).release).toBe('v1');
    expect(await readRollout(store, 'r1')).toMatchObject({ phase: 'rolled-back', reasons: ['complaints'] });
  });

  it('answers with the baseline when the candidate fails, and rolls back because it did', async () => {
    const settings = {
      ...{ steps: [0.5, 1], minTurns: 10, minUnits: 5, holdSeconds: 0 },
      promotion: { rule: 'checks' as const },
      shadow: { share: 0 },
    };
    for (const [id, model, more] of [
      ['r2', 'html-500', {}],
      ['r3', 'refuse', {}], // 400 to everything
      ['r4', 'echo', { upstream: 'nowhere' }],
    ] as const) {
      const candidate = await release(`bad-${id}`, model, more);
      const begun = Date.now();
      await startRollout(
        store,
        { id, agent: 'support-desk', candidate, report: passed(candidate.name), settings, actor: 'ann' },
        begun,
      );
      // Until the gateway knows: its turns say for whom they were meant.
      const assigned = users.filter((user) => isAssigned(id, `u:${user}`, 0.5));
      const found = async (trajectory: string) => (await readTrajectory(store, trajectory))?.turns[0]?.assigned;
      let round = 0;
      await until(
        async () => {
          const trajectory = `${id}-${++round}`;
          await ask(assigned[0]!, { trajectory });
          await until(
            () => readTrajectory(store, trajectory),
            (turns) => turns !== null,
          );
          return found(trajectory);
        },
        (name) => name === candidate.name,
      );
      for (const user of users)
        expect(await ask(user, { trajectory: `${id}-${user}` })).toMatchObject({
          status: 200,
          release: 'v1',
          text: expect.stringContaining(`You said: Hi ${user}`),
        });
      await until(
        () => readTrajectory(store, `${id}-${users.at(-1)}`),
        (turns) => turns !== null,
      );
      // The Pawl that serves looks every few seconds; looking here as well only saves the wait.
      await reconcile(store, { now: Date.now() + 1 });
      const ended = await readRollout(store, id);
      expect(ended?.phase).toBe('rolled-back');
      expect(ended?.reasons[0]).toMatch(/^Errors: candidate (\d+) of \1 calls, baseline 0 of \d+;/);
    }
  });

  it('can be read afterwards: what serves, what was tried, who did it', async () => {
    const releases = await command('releases', 'list');
    expect(releases).toMatch(/^\* +v1 +support-desk +echo +default/m);
    expect(releases).toMatch(/^ +v2 +support-desk +reasoner/m);
    const rollouts = (await command('rollouts', 'list', '--json')).trim().split('\n');
    expect(rollouts.map((line) => JSON.parse(line).id)).toEqual(['r4', 'r3', 'r2', 'r1']);
    expect(await command('rollouts', 'show', 'r1')).toBe(
      'Rollout r1 of agent support-desk: rolled-back, 0% of the users get the candidate (step 1 of 2).\n  complaints\n',
    );
    expect(await command('releases', 'card', 'v2')).toMatch(/^# v2\n[\s\S]*rollout-aborted by eve/);
    expect(await command('audit', 'list', '--type', 'rollout-aborted')).toMatch(/eve +rollout-aborted +r1/);
    const byEve = ['audit', 'list', '--who', 'eve', '--json', '--since'];
    const events = (await command(...byEve, '1h'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { actor: string });
    expect(events.length).toBeGreaterThan(0);
    expect(events.every(({ actor }) => actor === 'eve')).toBe(true);
    expect(await command(...byEve.slice(0, 4), '--until', '1h')).toBe('Nothing matches.\n');
    const verified = /^(\d+) rows, unbroken\. Head: ([0-9a-f]{64})\n$/.exec(await command('audit', 'verify'));
    expect(Number(verified?.[1])).toBe(1 + 5 + 1 + 2 * 4); // the first key made, releases made, one served, rollouts begun and ended
    await expect(command('audit', 'verify', '--head', 'f'.repeat(64))).rejects.toThrow('may have been cut off');
    await expect(command('rollouts', 'show', 'r9')).rejects.toThrow('There is no rollout r9');
    expect(await command('reports', 'list')).toBe('Nothing has been evaluated yet.\n');
  });
});
