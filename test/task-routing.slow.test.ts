/**
 * Routing by measured success, through the doors: a Pawl that serves, commands in processes of their own, and users of whom each has
 * two types of task. The candidate is better at one and worse at the other, so the rollout is taken back, and what it was better at
 * goes to it all the same, with the evidence.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Rollout } from '../src/deploy/rollout.ts';
import type { TaskRouting } from '../src/deploy/task-routing.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-routing-'));
const settings = join(folder, 'pawl.config.ts');
let upstream: Server;
let pawl: PawlProcess;
/** How a model of the stand-in is: it can do what is said of it, or is down. */
const models: Record<string, string> = { old: 'refund', new: 'billing' };

beforeAll(async () => {
  upstream = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as {
      model: string;
      metadata?: { task_type: string };
    };
    const knows = models[body.model];
    if (knows === 'hangs') return;
    const content = knows === body.metadata?.task_type ? 'It is done.' : 'I do not know.';
    const answer = {
      id: 'x',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content } }],
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const deploy = {
    ...{ steps: [0.5, 1], holdSeconds: 3600, minTurns: 10, minUnits: 10, latencySlackMs: 60_000, firstByteSeconds: 1 },
    ...{ taskRouting: 'measured', promotion: { rule: 'checks' }, shadow: { share: 0 } },
  };
  const local = { baseUrl: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1` };
  writeFileSync(
    settings,
    `export default ${JSON.stringify({ agents: [{ name: 'desk', deploy }], upstreams: { local } })};`,
  );
  pawl = await startPawl({}, join(folder, 'home'), undefined, ['--config', settings]);
});
afterAll(async () => {
  await pawl?.remove();
  upstream?.closeAllConnections();
  upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});

const command = async (...args: string[]): Promise<string> => {
  const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: pawl.home };
  return (await promisify(execFile)(process.execPath, ['bin/pawl.js', ...args, '--config', settings], { env })).stdout;
};
const send = async (path: string, body: unknown) => {
  const headers = { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json' };
  const answer = await fetch(`${pawl.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(answer.status).toBeLessThan(300);
  return { release: answer.headers.get('x-pawl-release'), text: await answer.text() };
};
let visits = 0;
/** One conversation, and what became of it. */
async function visit(user: string, type: string): Promise<string | null> {
  const trajectory = `visit-${visits++}`;
  const messages = [{ role: 'user', content: `Please, my ${type}.` }];
  const { release, text } = await send(`/t/${trajectory}/u/${user}/v1/chat/completions`, {
    ...{ model: 'desk', messages, metadata: { task_type: type } },
  });
  await send('/v1/outcomes', { trajectory, name: 'resolved', value: text.includes('done') });
  return release;
}
const users = Array.from({ length: 60 }, (_, i) => `user-${i}`);
/** Who answers a type of task: the names, each once. */
const answering = async (type: string) => {
  const names = new Set<string | null>();
  for (const user of users.slice(0, 20)) names.add(await visit(user, type));
  return [...names].sort();
};
const routing = async () => JSON.parse(await command('releases', 'routing', '--json')) as TaskRouting | null;
const within2s = async (what: () => Promise<unknown>, type: string, release: string) => {
  await what();
  const since = performance.now();
  await until(
    () => visit('ann', type),
    (name) => name === release,
  );
  expect(performance.now() - since).toBeLessThan(2000);
};

it('what the candidate was better at goes to it after the rollout, with the evidence, and comes back when told', async () => {
  await command('releases', 'create', 'v1', '--upstream', 'local', '--model', 'old');
  await command('releases', 'create', 'v2', '--upstream', 'local', '--model', 'new');
  await command('releases', 'serve', 'v1');
  await until(
    () => visit('ann', 'refund'),
    (name) => name === 'v1',
  );
  expect(await command('releases', 'routing')).toBe(
    'Every type of task of desk is answered by the release that serves.\n',
  );
  await command(
    'rollouts',
    'start',
    '--candidate',
    'v2',
    '--id',
    'r1',
    '--force',
    '--reason',
    'To see what it is good at.',
  );
  await until(
    () => answering('billing'),
    (names) => names.length === 2,
  );
  for (const user of users) for (const type of ['refund', 'billing']) await visit(user, type);
  const rollout = await until(
    async () => (JSON.parse(await command('rollouts', 'show', 'r1', '--json')) as { rollout: Rollout }).rollout,
    ({ endedAt }) => endedAt !== null,
  );
  expect(rollout).toMatchObject({ phase: 'rolled-back', reasons: [expect.stringContaining('task type refund')] });

  const found = await until(routing, (one) => one !== null);
  expect(found).toMatchObject({ rollout: 'r1', types: [{ type: 'billing', difference: 1 }] });
  const { users: compared, z, bound } = found!.types[0]!;
  // What is enough for `minUnits`; how many more had come when it was taken back, the machine decides.
  expect(Math.min(compared.baseline, compared.candidate)).toBeGreaterThanOrEqual(10);
  expect(z).toBeGreaterThan(bound);
  expect(await command('releases', 'routing')).toMatch(
    /^By rollout r1, while v1 serves, v2 answers:\n {2}billing: \+1\.000 \(z \d+\.\d\d, 2\.24 needed; users: baseline \d+, candidate \d+\)\n$/,
  );
  await until(
    () => visit('ann', 'billing'),
    (name) => name === 'v2',
  );
  expect(await answering('billing')).toEqual(['v2']);
  expect(await answering('refund')).toEqual(['v1']);
  expect(await answering('other')).toEqual(['v1']);
  expect(await command('audit', 'list', '--type', 'tasks-routed')).toContain('r1');

  // It hangs: its users wait as long as a candidate's would, and what serves answers.
  models.new = 'hangs';
  const since = performance.now();
  expect(await visit('bob', 'billing')).toBe('v1');
  expect(performance.now() - since).toBeLessThan(10_000);
  models.new = 'billing';

  await within2s(() => command('flags', 'off', 'routing', '--reason', 'Let us see.', '--by', 'ann'), 'billing', 'v1');
  expect(await command('releases', 'routing')).toMatch(/^Not in force: the flag routing is off[^\n]*\nBy rollout r1/);
  await within2s(() => command('flags', 'on', 'routing'), 'billing', 'v2');
  await within2s(() => command('kill', 'desk', '--reason', 'All of it.'), 'billing', 'v1');
  expect(await command('releases', 'routing')).toMatch(/^Not in force: the kill switch is pulled/);
  await within2s(() => command('kill', 'desk', '--undo'), 'billing', 'v2');
  await within2s(() => command('releases', 'serve', 'v2', '--reason', 'All of it to v2.'), 'refund', 'v2');
  expect(await command('releases', 'routing')).toMatch(/^Not in force: v2 serves now/);
}, 600_000);
