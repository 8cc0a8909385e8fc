/**
 * Rollouts from end to end, with real processes: a database, two gateways and the commands of an operator. A good candidate goes
 * through shadow and all steps, one that hangs costs its callers little, and the kill switch is heard by every gateway.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isAssigned } from '../src/deploy/assign.ts';
import { verifyAudit } from '../src/deploy/audit.ts';
import { createRelease, moveRollout, reconcile, serveRelease, startRollout } from '../src/deploy/reconcile.ts';
import { readAudit } from '../src/store/audit.ts';
import { listKeys } from '../src/store/keys.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { readRollout } from '../src/store/rollouts.ts';
import { countComparisons, readShadow } from '../src/store/shadows.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-rollout-'));
let store: Store;
let upstream: TestUpstream;
let gateways: PawlProcess[];
let key: string;
beforeAll(async () => {
  upstream = await startUpstream();
  store = await openStore({ home: join(folder, 'database'), volatile: true });
  writeFileSync(join(folder, 'pawl.config.ts'), 'export default { agents: [{ name: "desk" }] };\n');
  const env = { DATABASE_URL: store.url, PAWL_UPSTREAM: upstream.url };
  const begin = (name: string) =>
    startPawl(env, join(folder, name), undefined, ['--config', join(folder, 'pawl.config.ts')], [], 'gateway');
  const first = await begin('one');
  key = first.key;
  gateways = [first, await begin('two')];
  await serveRelease(store, await release('v1', 'echo'), 'ann', Date.now());
  await Promise.all([0, 1].map((n) => heard(n, 'ann', 'v1')));
}, 600_000);
afterAll(async () => {
  for (const one of gateways ?? []) await one.remove();
  await store?.close();
  await upstream?.close();
  rmSync(folder, { recursive: true, force: true });
}, 600_000);

const release = (name: string, model: string, more: object = {}) =>
  createRelease(store, { agent: 'desk', name, upstream: 'default', model, ...more }, 'ann', Date.now());
const passed = (candidate: string) => ({ id: 'report', verdict: 'pass', baseline: 'v1', candidate }) as const;

const ask = async (n: number, user: string, trajectory: string, more: object = {}) => {
  const began = performance.now();
  const response = await fetch(`${gateways[n]!.url}/t/${trajectory}/u/${user}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'desk', messages: [{ role: 'user', content: `Hi, ${user}` }], ...more }),
  });
  const text = await response.text();
  const { status, headers } = response;
  return { status, text, release: headers.get('x-pawl-release'), ms: performance.now() - began };
};
let probes = 0;
const heard = (n: number, user: string, name: string) =>
  until(
    () => ask(n, user, `probe-${++probes}`),
    (answer) => answer.release === name,
  );
const command = async (...args: string[]): Promise<string> => {
  const env = { ...process.env, DATABASE_URL: store.url, PAWL_HOME: gateways[0]!.home };
  const given = [...args, '--config', join(folder, 'pawl.config.ts')];
  return (await promisify(execFile)(process.execPath, ['bin/pawl.js', ...given], { env })).stdout;
};
const users = Array.from({ length: 40 }, (_, i) => `user-${i}`);

it('a good candidate goes through shadow and all steps; nobody sees two models in one conversation', async () => {
  const settings = {
    ...{ steps: [0.5, 1], holdSeconds: 0, minTurns: 10, minUnits: 5, latencySlackMs: 60_000, outcome: null },
    shadow: { share: 1, holdSeconds: 0, minTurns: 10 },
  };
  const v2 = await release('v2', 'reasoner', { prompt: { text: 'Be kind.', rule: 'replace' } });
  const about = { id: 'r1', agent: 'desk', candidate: v2, report: passed('v2'), settings, actor: 'ann' };
  expect(await startRollout(store, about, Date.now())).toMatchObject({ phase: 'shadow', startedAt: null });
  // Until the gateways know: then there are comparisons.
  await until(
    async () => {
      for (const n of [0, 1]) await ask(n, 'ann', `early-${++probes}`);
      return countComparisons(store, 'r1');
    },
    (n) => n >= 2,
  );
  for (const [i, user] of users.entries()) expect((await ask(i % 2, user, `first-${user}`)).release).toBe('v1');
  await until(
    () => countComparisons(store, 'r1'),
    (n) => n >= 10,
  );
  await turnedOff();
  const sent = upstream.bodies.filter(({ model }) => model === 'reasoner');
  expect(sent[0]).toMatchObject({ messages: [{ role: 'system', content: 'Be kind.' }, { role: 'user' }] });
  const { rows } = await store.pool.query<{ trajectory: string }>(
    "select trajectory from pawl.turns where origin = 'shadow' and release = 'v2' limit 1",
  );
  expect(rows[0]?.trajectory).toMatch(/^shadow-/);
  expect(await command('rollouts', 'show', 'r1')).toMatch(/shadow, 0% of the users[\s\S]*did as the baseline did/);

  expect(await reconcile(store, { now: Date.now() })).toMatchObject([{ rollout: { phase: 'canary', step: 0 } }]);
  const early = users.find((user) => isAssigned('r1', `u:${user}`, 0.5))!;
  for (const n of [0, 1]) await heard(n, early, 'v2');
  const begunWith = new Map<string, string | null>();
  for (const user of users) begunWith.set(user, (await ask(0, user, `second-${user}`)).release);
  expect(new Set(begunWith.values())).toEqual(new Set(['v1', 'v2']));
  const moved = await until(
    async () => {
      await ask(1, early, `more-${++probes}`);
      return reconcile(store, { now: Date.now() });
    },
    ([one]) => one?.decision.kind === 'advance',
  );
  expect(moved[0]!.rollout).toMatchObject({ step: 1 });
  const late = users.find((user) => !isAssigned('r1', `u:${user}`, 0.5))!;
  await heard(0, late, 'v2');
  // Everybody has it now, but not in the middle of what they began.
  for (const user of users) expect((await ask(0, user, `second-${user}`)).release).toBe(begunWith.get(user));
  // Nor at the gateway that did not see it begin: what the agent has said stands in the request.
  const messages = ['user', 'assistant', 'user'].map((role) => ({ role, content: 'Well.' }));
  for (const user of users)
    expect((await ask(1, user, `second-${user}`, { messages })).release).toBe(begunWith.get(user));
  await until(
    async () => {
      await ask(1, late, `more-${++probes}`);
      return reconcile(store, { now: Date.now() }).then(() => readRollout(store, 'r1'));
    },
    (rollout) => rollout?.phase === 'promoted',
  );
  const events = (await readAudit(store, { subject: 'r1', oldestFirst: true })).map(({ event }) => event);
  expect(events).toEqual(['rollout-started', 'rollout-advanced', 'rollout-advanced', 'rollout-promoted']);
  expect((await verifyAudit(store)).problem).toBeNull();
}, 600_000);

/** `pawl flags off shadow`: nobody's words go to the candidate, until it is turned on again. Every user is drawn for this shadow. */
async function turnedOff(): Promise<void> {
  const asked = async (name: string) =>
    Promise.all(
      [0, 1].map((n) => ask(n, 'ann', `turned-${++probes}`, { messages: [{ role: 'user', content: name }] })),
    );
  const heardBy = (name: string) =>
    upstream.bodies.filter(({ model, messages }) => model === 'reasoner' && messages?.at(-1)?.content === name).length;
  expect(await command('flags', 'off', 'shadow', '--reason', 'Too dear.')).toBe('shadow of desk is now off.\n');
  await asked('While it is off.');
  expect(await command('flags', 'on', 'shadow')).toBe('shadow of desk is now on.\n');
  await asked('And on again.');
  await until(
    () => heardBy('And on again.'),
    (n) => n === 2,
  );
  expect(heardBy('While it is off.')).toBe(0);
  expect(await command('flags', 'list')).toMatch(/shadow +on /);
}

it('the way back after a promotion, the kill switch and its end reach both gateways within 2 s', async () => {
  const within = async (name: string, user = 'ann') => {
    const since = performance.now();
    await Promise.all([0, 1].map((n) => heard(n, user, name)));
    return performance.now() - since;
  };
  const told = await command('kill', 'desk', '--by', 'eve', '--reason', 'It is rude.');
  expect(told).toMatch(/^Release v1 answers all traffic of desk now\./);
  expect(await within('v1')).toBeLessThan(2000);
  const v2 = await release('v2', 'reasoner', { prompt: { text: 'Be kind.', rule: 'replace' } });
  const again = { id: 'r2', agent: 'desk', candidate: v2, report: passed('v2'), actor: 'ann' };
  await expect(startRollout(store, again, Date.now())).rejects.toThrow(
    /kill switch of agent desk is pulled \(eve: It is rude/,
  );
  await command('kill', 'desk', '--undo', '--by', 'eve');
  await command('releases', 'serve', 'v2', '--reason', 'Better so.');
  expect(await within('v2')).toBeLessThan(2000);

  // A pin counts more than what serves, and less than the kill switch.
  await command('releases', 'pin', 'v1', '--user', 'bob');
  expect(await within('v1', 'bob')).toBeLessThan(2000);
  expect((await ask(0, 'ann', 'unpinned')).release).toBe('v2');
  const [{ name } = { name: '' }] = await listKeys(store);
  await command('releases', 'pin', 'v1', '--key', name);
  expect(await within('v1', 'ann')).toBeLessThan(2000);
  await command('releases', 'unpin', '--key', name);
  expect(await within('v2')).toBeLessThan(2000);
  await command('kill', 'desk', '--to', 'v2');
  expect(await within('v2', 'bob')).toBeLessThan(2000);
  await command('kill', 'desk', '--undo');
  await command('releases', 'unpin', '--user', 'bob');
  await command('releases', 'serve', 'v1');
  await within('v1');
  const events = (await readAudit(store, { actor: 'eve', oldestFirst: true })).map(({ event }) => event);
  expect(events).toEqual(['kill-switch-pulled', 'kill-switch-released']);
}, 600_000);

it('a candidate that hangs costs its caller the configured wait, and is rolled back', async () => {
  const settings = {
    ...{ steps: [0.5, 1], holdSeconds: 0, minTurns: 4, outcome: null, firstByteSeconds: 0.2 },
    shadow: { share: 0 },
  };
  const hangs = await release('hangs', 'hang');
  await startRollout(
    store,
    { id: 'r3', agent: 'desk', candidate: hangs, report: passed('hangs'), settings, actor: 'ann' },
    Date.now(),
  );
  const early = users.filter((user) => isAssigned('r3', `u:${user}`, 0.5));
  const assigned = async (trajectory: string) =>
    (
      await until(
        () => readTrajectory(store, trajectory),
        (found) => found !== null,
      )
    )?.turns[0]?.assigned;
  await until(
    async () => {
      await ask(0, early[0]!, `hang-${++probes}`);
      return assigned(`hang-${probes}`);
    },
    (name) => name === 'hangs',
  );
  for (const stream of [false, true])
    for (const user of early.slice(0, 4)) {
      const answer = await ask(0, user, `hangs-${stream}-${user}`, { stream });
      expect(answer).toMatchObject({ status: 200, release: 'v1' });
      expect(answer.ms).toBeGreaterThan(190);
    }
  for (const user of users) if (!early.includes(user)) await ask(0, user, `well-${user}`);
  await assigned(`well-${users.findLast((user) => !early.includes(user))}`);
  const [ended] = await reconcile(store, { now: Date.now() });
  expect(ended).toMatchObject({ rollout: { phase: 'rolled-back' }, decision: { kind: 'rollback' } });
  expect(ended!.decision.reasons[0]).toMatch(/^Errors: candidate (\d+) of \1 calls, baseline 0 of/);
}, 600_000);

it('in shadow a conversation is followed while the candidate calls what the baseline called', async () => {
  await serveRelease(store, await release('caller', 'tools'), 'ann', Date.now());
  const settings = { shadow: { share: 1, holdSeconds: 0 } };
  for (const [id, model, followed] of [
    ['same', 'tools', 2],
    ['other', 'echo', 1],
  ] as const) {
    const candidate = await release(`shadow-${id}`, model, { sampling: { top_p: 0.5 } });
    const report = { ...passed(candidate.name), baseline: 'caller' };
    await startRollout(store, { id, agent: 'desk', candidate, report, settings, actor: 'ann' }, Date.now());
    await until(
      async () => {
        await ask(0, 'ann', `probe-${++probes}`);
        return countComparisons(store, id);
      },
      (n) => n > 0,
    );
    // What the probes began is over once nothing more is counted for a while.
    let before = -1;
    await until(
      async () => {
        const last = before;
        before = await countComparisons(store, id);
        return before === last;
      },
      (settled) => settled,
      1000,
    );
    const tools = [{ type: 'function', function: { name: 'find_order', parameters: {} } }];
    const opening = { role: 'user', content: 'Where is it?' };
    const call = { role: 'assistant', content: null, tool_calls: [] };
    await ask(0, 'cy', `with-tools-${id}`, { tools, messages: [opening] });
    await until(
      () => countComparisons(store, id),
      (n) => n >= before + 1,
    );
    await until(
      () => readTrajectory(store, `with-tools-${id}`),
      (found) => found !== null,
    );
    // It goes on at the gateway that did not see it begin.
    await ask(1, 'cy', `with-tools-${id}`, { tools, messages: [opening, call, { role: 'tool', content: '{}' }] });
    await until(
      async () => {
        await ask(0, 'ann', `probe-${++probes}`);
        return countComparisons(store, id);
      },
      (n) => n > before + followed,
    );
    const { agreed, compared, failed } = await readShadow(store, id, { latencyRatio: 2, latencySlackMs: 0 });
    expect({ failed, agreed }).toEqual({ failed: 0, agreed: id === 'same' ? compared : 0 });
    await moveRollout(store, id, 'abort', 'ann', 'Seen.', Date.now());
  }
}, 600_000);

it('a gateway says how many shadow calls it made', async () => {
  const text = await (await fetch(`${gateways[0]!.url}/metrics`)).text();
  expect(text).toMatch(/pawl_shadow_calls_total\{agent="desk",ended="agreed"\} \d+/);
});
