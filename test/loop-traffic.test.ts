/**
 * Turns of the loop on nothing but traffic: no environment, golden cases over HTTP, a small model that learns within
 * seconds. Real processes: `pawl serve` runs the turn, `pawl loop run` asks for it, users call the gateway.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeModel } from '../src/engine/fixtures/write-model.ts';
import { readAudit } from '../src/store/audit.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry } from '../src/store/fixtures.ts';
import { listLoopTurns } from '../src/store/loop-turns.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { isThorough, type PawlProcess, startPawl, until } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-loop-traffic-'));
const home = join(folder, 'home');
const config = join(folder, 'pawl.config.ts');
let serving: PawlProcess;
let store: Store;

beforeAll(async () => {
  await writeModel(join(folder, 'base'), 'd16-l2-h2-kv1-v280-f24-c128');
  const cases = Array.from({ length: 24 }, (_, i) => ({
    ...{ id: `case-${i}`, type: i % 2 === 0 ? 'even' : 'odd' },
    messages: [{ role: 'user', content: `g${i}` }],
    expect: { matches: '^a' },
  }));
  writeFileSync(join(folder, 'golden.jsonl'), cases.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const agent = {
    train: { base: 'base', learningRate: 0.03, without: ['points', 'types', 'balance'] },
    evaluate: { golden: 'golden.jsonl', temperature: 0, maxTokens: 4 },
    deploy: { steps: [0.5, 1], holdSeconds: 0, minTurns: 4, minUnits: 2, outcome: null, shadow: { share: 0 } },
    loop: { every: null, after: null },
  };
  writeFileSync(
    config,
    `import { feedback, outcome, weighted } from 'pawl';
const reward = weighted({ resolved: [0.5, outcome('resolved')], feedback: [0.2, feedback()] });
const agents = ['desk', 'shop'].map((name) => ({ name, reward, ...${JSON.stringify(agent)} }));
agents.push({ name: 'look', reward, train: { base: 'base' }, evaluate: { golden: 'golden.jsonl', maxTokens: 4 } });
export default { agents, engine: { threads: 1 } };\n`,
  );
  serving = await startPawl({}, home, undefined, ['--config', config]);
  store = await serving.store();
});
afterAll(async () => {
  await store?.close();
  await serving?.remove();
  rmSync(folder, { recursive: true, force: true });
});

const pawl = async (...args: string[]) => {
  const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: home };
  const given = [resolve('bin/pawl.js'), ...args, '--config', config];
  return (await promisify(execFile)(process.execPath, given, { env })).stdout;
};

/** A conversation as a gateway records it: what the model said, what came of it, and what the user thought. */
async function talked(
  agent: string,
  id: string,
  { asked, said, good }: { asked: string; said: string; good: boolean },
) {
  const [user, at] = [`user of ${id}`, Date.now() - 1000];
  await giveConsent(store, agent, user, new Date(at - 1));
  const request = { model: agent, messages: [{ role: 'user', content: asked }] };
  const choices = [{ index: 0, message: { role: 'assistant', content: said }, finishReason: 'stop' }];
  const about = { agent, value: good ? 1 : 0, at, target: { kind: 'trajectory', id } } as const;
  await writeEntries(store, [
    entry.turn({ agent, user, trajectory: id, startedAt: at, release: `${agent}-0`, request, choices }),
    entry.signal({ ...about, user: null, kind: 'outcome', name: 'resolved', identity: `resolved ${id}` }),
    entry.signal({ ...about, user, identity: `vote ${id}` }),
  ]);
}

const ask = async (user: string): Promise<string> => {
  const answer = await fetch(`${serving.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${serving.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model: 'desk', user, max_tokens: 4, temperature: 0 },
      messages: [{ role: 'user', content: `hello ${user}` }],
    }),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { choices: [{ message: { content: string } }] }).choices[0].message.content;
};

it('goes from conversations to a model that serves, by SFT on the good ones', async () => {
  for (let i = 0; i < 100; i++)
    await talked('desk', `desk-${i}`, { asked: `w${i}`, said: i % 4 === 0 ? 'no' : 'aaa', good: i % 4 !== 0 });
  expect(await ask('before')).not.toMatch(/^a/);

  const told = await pawl('loop', 'run', '--agent', 'desk', '--seed', '3');
  expect(told).toMatch(/curate +75 examples/);
  expect(told).toMatch(/train +run desk-turn-1, sft, /);
  expect(told).toContain('SFT on 75 examples of quality 0.8 or more is what is left.');
  expect(told).toMatch(/evaluate +golden 0\.0% → 100\.0%.*: pass/);

  let n = 0;
  await until(
    async () => {
      await ask(`user-${n++}`);
      return (await listLoopTurns(store, 'desk', 1))[0]!;
    },
    ({ endedAt }) => endedAt !== null,
    200,
  );
  const { turn } = JSON.parse(await pawl('loop', 'status', '--agent', 'desk', '--json'));
  expect(turn.state.deploy).toMatchObject({ release: 'desk-1', phase: 'promoted' });
  expect(await ask('after')).toMatch(/^a/);
  // Both sides were asked through the gateway, apart from what users did; then the candidate also whether it fits.
  const played = await store.pool.query(
    `select release, count(*)::int as n from pawl.turns where origin = 'evaluation' group by release order by release`,
  );
  const [baseline, candidate] = played.rows;
  expect(played.rows).toHaveLength(2);
  expect(baseline).toEqual({ release: 'desk-0', n: 24 });
  expect(candidate.release).toBe('desk-1');
  expect(candidate.n).toBeGreaterThan(24);
});

it('cases tell how far a candidate has drifted, and a check how full the memory is, on Pawl’s own engine', async () => {
  await promisify(execFile)(process.execPath, [
    ...[resolve('bin/pawl.js'), 'model', 'new', 'd16-l2-h2-kv1-v280-f24-c128', join(folder, 'other'), '--seed', '9'],
  ]);
  await pawl('releases', 'create', 'look-b', '--agent', 'look', '--checkpoint', join(folder, 'other'));
  const { drift, gates } = JSON.parse(await pawl('evaluate', '--agent', 'look', '--candidate', 'look-b', '--json'));
  // Two models with random weights, both nearly at a loss between 280 tokens.
  expect(drift).toBeGreaterThan(0);
  expect(drift).toBeLessThan(0.5);
  const gate = (name: string) => gates.find((one: { name: string }) => one.name === name);
  expect(gate('drift')).toMatchObject({ verdict: 'pass', candidate: drift, limit: 0.5 });
  expect(gate('entropy')).toMatchObject({ verdict: 'pass' });
  expect(gate('entropy').baseline).toBeGreaterThan(4);
  const { checks, verdict } = JSON.parse(await pawl('evaluate', 'compat', 'look-b', '--agent', 'look', '--json'));
  expect(verdict).toBe('pass');
  expect(checks.map((one: { name: string; verdict: string }) => `${one.name} ${one.verdict}`)).toEqual([
    ...['template pass', 'latency pass', 'memory pass'],
  ]);
});

it('drift is counted from the first of the candidate’s line too, or from what the settings name', async () => {
  const model = ['model', 'new', 'd16-l2-h2-kv1-v280-f24-c128', join(folder, 'third'), '--seed', '10'];
  await promisify(execFile)(process.execPath, [resolve('bin/pawl.js'), ...model]);
  const given = ['--agent', 'look', '--checkpoint', join(folder, 'third'), '--parent', 'look-b'];
  await pawl('releases', 'create', 'look-c', ...given);
  const asked = ['evaluate', '--agent', 'look', '--candidate', 'look-c', '--baseline', 'look-b', '--json'];
  const { drift, base, gates } = JSON.parse(await pawl(...asked));
  expect(base).toEqual({ release: 'look-0', drift: expect.any(Number) });
  expect(base.drift).not.toBe(drift);
  expect(gates.find(({ name }: { name: string }) => name === 'drift-from-base')).toMatchObject({
    ...{ verdict: 'pass', candidate: base.drift, limit: 0.5 },
  });
  const [first] = await readAudit(store, { agent: 'look', event: 'release-served', oldestFirst: true });
  expect(JSON.parse(first!.details).reason).toMatch(/^It is the model that the agent’s file names \(train\.base\);/);
  const card = await pawl('releases', 'card', 'look-c', '--agent', 'look');
  expect(card).toMatch(/from the baseline’s, and 0\.\d\d from those of look-0, the base\./);
});

it.runIf(isThorough)('adds DPO where users told enough answers to the same question apart', async () => {
  for (let i = 0; i < 110; i++)
    for (const [side, said] of [
      ['good', 'aaa'],
      ['bad', 'zz'],
    ] as const)
      await talked('shop', `shop-${side}-${i}`, { asked: `w${i}`, said, good: side === 'good' });
  const told = await pawl('loop', 'run', '--agent', 'shop', '--seed', '3');
  expect(told).toMatch(/train +run shop-turn-1, sft-dpo, /);
  expect(told).toContain('then DPO on the pairs');
  expect(told).toMatch(/evaluate +golden 0\.0% → 100\.0%.*: pass/);
  expect(told).toContain('is with the users');
});
