/** A judge through every door: settings, scoring by command and route, what it cost, what it said, and what becomes of its own calls. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { mayTrain } from '../src/collect/own-traffic.ts';
import { createKey } from '../src/store/keys.ts';
import type { Store } from '../src/store/postgres.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { type JudgeServer, startJudge } from './judge-server.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-judge-'));
const config = join(folder, 'pawl.config.ts');
let server: JudgeServer;
let pawl: PawlProcess;
let store: Store;

beforeAll(async () => {
  server = await startJudge(({ task }) =>
    task.includes('say whether it is so')
      ? { statements: [{ number: 1, reason: 'It says Monday.', so: true }] }
      : task.includes('sentence by sentence')
        ? { sentences: [{ reason: 'It is there.', attributed: true }] }
        : { reasoning: 'It answers.', score: 0.75 },
  );
  writeFileSync(join(folder, 'tone.md'), '# Tone\n\n## Essential\n- Names a day.\n\n## Pitfall\n- Shouts. `/!/`\n');
  writeFileSync(
    config,
    `import { contextRecall, defineConfig, judge, rubric, weighted } from 'pawl';
     export default defineConfig({
       agents: [{ name: 'desk', curate: { confidential: { phrases: ['Project Heron'] } }, reward: weighted({ judge: [0.5, judge()], tone: [0.5, rubric('tone.md')] }) },
         { name: 'docs', reward: weighted({ recall: [1, contextRecall()] }) }],
       upstreams: { box: { baseUrl: ${JSON.stringify(server.url)}, price: { prompt: 2, completion: 10 } } },
       judge: { upstream: 'box', model: 'large', budget: { day: 5 } },
     });\n`,
  );
  pawl = await startPawl({}, undefined, undefined, ['--config', config]);
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

const run = async (...args: string[]): Promise<string> => {
  const env = { ...process.env, PAWL_HOME: pawl.home };
  return (await promisify(execFile)(process.execPath, ['bin/pawl.js', ...args, '--config', config], { env })).stdout;
};
const json = async (...args: string[]) => JSON.parse(await run(...args, '--json')) as Record<string, unknown>;
const api = async (path: string, body?: object) => {
  const response = await fetch(`${pawl.url}${path}`, {
    headers: { authorization: `Bearer ${pawl.adminToken}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  return (await response.json()) as Record<string, unknown>;
};
const say = (key: string, trajectory: string, headers: Record<string, string> = {}, content = 'When was it sent?') =>
  fetch(`${pawl.url}/t/${trajectory}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'large', messages: [{ role: 'user', content }] }),
  });
const recorded = (id: string) =>
  until(
    () => readTrajectory(store, id),
    (found) => found !== null,
  );

it('scores what was recorded, says what that took, and a second run asks nobody', async () => {
  expect((await say(pawl.key, 'case-1')).status).toBe(200);
  await recorded('case-1');
  const took = { calls: 2, promptTokens: 2000, completionTokens: 200, money: 0.006, known: 0, asked: 2 };
  expect(await json('score', 'run', '--since', '1h')).toMatchObject({ scored: 1, mean: 0.875, judge: took });
  expect(await run('score', 'run', '--since', '1h')).toContain(
    'The judge was not asked; 0 verdicts were known already.',
  );
  // Votes of a judge and of a rubric, half each: 0.75 and 1.
  expect(await json('reward', 'what-if', 'judge:0', '--since', '1h')).toMatchObject({
    ...{ agent: 'desk', sample: 1, current: { mean: 0.875 }, proposed: { mean: 1 }, kept: { current: 1, proposed: 1 } },
  });
  expect(await run('reward', 'what-if', 'judge:3,tone:1', '--since', '1h')).toMatch(/mean +0\.875 +0\.813/);
  await store.pool.query('delete from pawl.scores');
  expect(await api('/api/score/runs', {})).toMatchObject({ scored: 1, judge: { calls: 0, known: 2 } });
});

it('what it cost and what it said can be looked up', async () => {
  const spending = [{ agent: 'desk', upstream: 'box', model: 'large', calls: 2, money: 0.006 }];
  const judge = { upstream: 'box', model: 'large', embeddingModel: null };
  const status = {
    agents: [
      { agent: 'desk', judge },
      { agent: 'docs', judge },
    ],
    verdicts: 2,
    failed: 0,
    budget: { day: 5 },
    spending,
  };
  expect(await api('/api/judge')).toMatchObject(status);
  expect(await run('judge', 'status')).toContain('Today 0.0060 of 5 was spent.');
  const shown = await run('judge', 'show', 'case-1');
  for (const line of ['0.750', 'It answers.', 'essential: Names a day.', 'It says Monday.', 'pitfall: Shouts.'])
    expect(shown).toContain(line);
  expect(await api('/api/trajectories/case-1/verdicts')).toMatchObject({
    verdicts: expect.arrayContaining([expect.objectContaining({ value: 0.75, reason: 'It answers.', failures: 0 })]),
  });
  const metrics = await (await fetch(`${pawl.url}/metrics`)).text();
  expect(metrics).toContain('pawl_judge_calls_total{agent="desk",upstream="box",model="large"} 2');
  expect(metrics).toContain('pawl_judge_money_total{agent="desk",upstream="box",model="large"} 0.006');
});

it('can be tried, and says why it cannot be worked with', async () => {
  expect(await json('judge', 'test')).toMatchObject({ value: 0.75, reason: 'It answers.', judge: { calls: 1 } });
  server.obedient = true;
  await expect(run('judge', 'test')).rejects.toThrow('took an instruction from the conversation');
  server.obedient = false;
});

it('a judge behind the gateway is recorded as a judge, or refused: its calls never become training data', async () => {
  const judges = { 'x-pawl-origin': 'judge' };
  expect((await say(pawl.key, 'judging-1', judges)).status).toBe(403);
  const { token } = await createKey(store, { agent: 'desk', name: 'judge', origin: 'judge', scopes: ['call'] });
  await until(
    () => say(token, 'judging-2', judges),
    ({ status }) => status === 200,
  );
  const { trajectory } = (await recorded('judging-2'))!;
  expect(trajectory.origin).toBe('judge');
  expect(mayTrain({ ...trajectory, consent: 'given' })).toBe(false);
  expect(await readTrajectory(store, 'judging-1')).toBeNull();
  expect(await json('score', 'run', '--since', '1h')).toMatchObject({ trajectories: 1 });
});

it('is not shown what the agent calls confidential, and the run and the score say so', async () => {
  await say(pawl.key, 'case-2', {}, 'What is Project Heron?');
  await recorded('case-2');
  expect(await json('score', 'run', '--since', '1h', '--dry-run')).toMatchObject({ pending: 1, calls: 0 });
  expect(await run('score', 'run', '--since', '1h')).toContain(
    'The judge was not asked; 0 verdicts were known already. 2 were not shown to it: what is internal stays inside.',
  );
  expect(await run('score', 'show', 'case-2')).toContain(
    'it holds what is confidential, and the judge is at upstream box, which is not known as part of the deployment',
  );
});

it('holds what was retrieved against the answer that a user wrote', async () => {
  const { token } = await createKey(store, {
    agent: 'docs',
    name: 'app',
    origin: 'production',
    scopes: ['call', 'feedback'],
  });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const call = { id: 'c1', type: 'function', function: { name: 'search_docs', arguments: '{}' } };
  const messages = [
    { role: 'user', content: 'When was it sent?' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c1', content: 'It was sent on Monday.' },
  ];
  const post = (path: string, body: object) =>
    fetch(`${pawl.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  await until(
    () => post('/t/looked-up/v1/chat/completions', { model: 'large', messages }),
    ({ status }) => status === 200,
  );
  await recorded('looked-up');
  const score = () => json('score', 'run', '--agent', 'docs', '--since', '1h');
  expect(await score()).toMatchObject({ scored: 1, unmeasured: 1 });
  expect((await post('/v1/feedback', { trajectory: 'looked-up', correction: 'It was sent on Monday.' })).ok).toBe(true);
  await until(score, ({ rescored }) => rescored === 1);
  expect(await run('score', 'show', 'looked-up')).toContain(
    'Recall is as good as it can be and adds 1.000 of 1.000: 1 of 1 sentences of the right answer were in what was retrieved.',
  );
});
