/** `pawl serve` in parts: a gateway, two workers and an API, each a process with a home of its own, on one database server. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createRelease, serveRelease, startRollout } from '../src/deploy/reconcile.ts';
import type { Role } from '../src/roles/ground.ts';
import { readAudit } from '../src/store/audit.ts';
import { processStart } from '../src/store/lock.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-roles-'));
const adminToken = 'pawl_admin_for_all_parts_of_this_installation';
let database: Store;
let upstream: TestUpstream;
let gateway: PawlProcess;
let api: PawlProcess;
let workers: PawlProcess[];

const begin = (role: Role, name: string, ...args: string[]): Promise<PawlProcess> => {
  const env = { DATABASE_URL: database.url, PAWL_UPSTREAM: upstream.url, PAWL_ADMIN_TOKEN: adminToken };
  const known = { key: '', adminToken };
  return startPawl(env, join(folder, name), known, [...args, '--config', join(folder, 'pawl.config.ts')], [], role);
};

beforeAll(async () => {
  const agent = {
    ...{ name: 'desk', train: { base: '/nowhere' }, evaluate: { golden: '/nowhere.jsonl' } },
    loop: { every: null, after: null },
  };
  writeFileSync(join(folder, 'pawl.config.ts'), `export default ${JSON.stringify({ agents: [agent] })};\n`);
  upstream = await startUpstream();
  database = await openStore({ home: join(folder, 'database'), volatile: true });
  gateway = await begin('gateway', 'gateway');
  api = await begin('api', 'api');
  workers = [await begin('worker', 'worker-1'), await begin('worker', 'worker-2')];
}, 600_000);
afterAll(async () => {
  for (const one of [gateway, api, ...(workers ?? [])]) await one?.remove();
  await database?.close();
  await upstream?.close();
  rmSync(folder, { recursive: true, force: true });
}, 600_000);

const ask = async (method: string, path: string, body?: object) => {
  const response = await fetch(`${api.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: each caller looks at its own answer.
  const answer: any = response.status === 204 ? null : await response.json();
  return { status: response.status, body: answer };
};
const say = (trajectory: string, user: string, key = gateway.key, { url } = gateway) =>
  fetch(`${url}/t/${trajectory}/u/${user}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: `Where is ${trajectory}?` }] }),
  });
const seen = (trajectory: string) =>
  until(
    () => ask('GET', `/api/trajectories/${trajectory}`),
    ({ status }) => status === 200,
  );

it('what a gateway answered is read through the API, which knows all parts; each has its own doors and no others', async () => {
  expect((await say('case-1', 'ann')).status).toBe(200);
  expect((await seen('case-1')).body).toMatchObject({ turns: [{ status: 'ok' }] });
  const { body } = await until(
    () => ask('GET', '/api/status'),
    ({ body }) => body.detail.processes.length === 4,
  );
  const parts = body.detail.processes.map(({ roles, pid, alive }: { roles: string[]; pid: number; alive: boolean }) => [
    ...roles,
    pid,
    alive,
  ]);
  expect(parts.toSorted()).toEqual(
    [
      ['api', api.process.pid, true],
      ['gateway', gateway.process.pid, true],
      ...workers.map((worker) => ['worker', worker.process.pid, true]),
    ].toSorted(),
  );
  expect(body).toMatchObject({ status: 'ok', detail: { recording: null } });
  expect((await fetch(`${gateway.url}/api/status`)).status).toBe(404);
  expect((await fetch(`${api.url}/v1/models`)).status).toBe(404);
  for (const one of [gateway, api, ...workers])
    expect(await (await fetch(`${one.url}/readyz`)).json()).toEqual({ ready: true, reason: null });
}, 600_000);

it('a consent withdrawn and a key revoked through the API hold at the gateway as soon as the API has answered', async () => {
  expect((await ask('PUT', '/api/consent/bob?agent=desk')).body).toMatchObject({ consent: 'given' });
  await say('case-before', 'bob');
  expect((await ask('DELETE', '/api/consent/bob?agent=desk')).body).toMatchObject({ consent: 'withdrawn' });
  await say('case-after', 'bob');
  expect((await seen('case-before')).body.trajectory).toMatchObject({ consent: 'given' });
  expect((await seen('case-after')).body.trajectory).toMatchObject({ consent: 'withdrawn' });

  const { body } = await ask('POST', '/api/keys', { agent: 'desk', name: 'brief' });
  await until(
    () => say('case-key', 'cy', body.token),
    ({ status }) => status === 200,
  );
  expect((await ask('DELETE', `/api/keys/${body.key.id}`)).status).toBe(204);
  expect((await say('case-key', 'cy', body.token)).status).toBe(401);
}, 600_000);

it('a turn asked for through the API is turned once, by a worker, over all that the gateway had answered', async () => {
  const now = Date.now();
  const base = { agent: 'desk', name: 'desk-0', upstream: 'default', model: 'echo' };
  await serveRelease(database, await createRelease(database, base, 'ann', now), 'ann', now);
  for (let i = 0; i < 5; i++) await say(`late-${i}`, 'ann');
  expect((await ask('POST', '/api/loop/run', { agent: 'desk' })).status).toBeLessThan(300);
  const { body } = await until(
    () => ask('GET', '/api/loop/turns?agent=desk'),
    ({ body }) => body.turns[0]?.endedAt != null,
  );
  expect(body.turns).toHaveLength(1);
  const { rows } = await database.pool.query<{ done: string[]; conversations: number }>(
    `select done, (state->'collect'->>'conversations')::int as conversations from pawl.loop_turns`,
  );
  expect(rows).toEqual([{ done: ['collect', 'score', 'curate'], conversations: 9 }]);
}, 600_000);

it('rollouts are moved by one leader, by another within seconds of its death, and the audit log names them', async () => {
  const now = Date.now();
  const next = { agent: 'desk', name: 'desk-1', upstream: 'default', model: 'echo' };
  const candidate = await createRelease(database, next, 'ann', now);
  // Without traffic there is no answer, and without patience that is asked of a person at every step.
  const settings = {
    steps: [0.1, 0.2, 0.3, 1],
    holdSeconds: 0,
    patienceSeconds: 0,
    promotion: { rule: 'checks' as const },
    shadow: { share: 0 },
  };
  const about = { id: 'r1', agent: 'desk', candidate, report: null, forced: 'a test', settings, actor: 'ann' };
  await startRollout(database, about, now);
  const moves = (n: number) =>
    until(
      () => readAudit(database, { subject: 'r1', actor: 'pawl', oldestFirst: true }),
      (rows) => rows.length >= n,
    );
  const leaderOf = ({ details }: { details: string }): { process: string; term: number } => JSON.parse(details).leader;
  const pidOf = (row: { details: string }) => Number(leaderOf(row).process.split(':')[1]);

  const first = pidOf((await moves(1))[0]!);
  const leader = workers.find((worker) => worker.process.pid === first)!;
  const other = workers.find((worker) => worker !== leader)!;
  await leader.kill('SIGKILL');
  const killed = Date.now();
  expect((await ask('POST', '/api/rollouts/r1/approve', { by: 'ann', reason: 'go on' })).status).toBe(200);
  const rows = await moves(2);
  console.log(JSON.stringify({ leader_replaced_ms: Date.now() - killed }));
  expect(rows.map(pidOf)).toEqual([first, other.process.pid]);
  const [before, after] = rows.map((row) => leaderOf(row).term);
  expect(after).toBeGreaterThan(before!);
}, 600_000);

it('a run asked of an API is begun by a worker, or refused as the worker refuses it', async () => {
  const asked = await ask('POST', '/api/runs', { dataset: 'desk-v9', agent: 'desk' });
  // Only a process that trains has looked for the dataset; one that does not says that it does not.
  expect(asked).toMatchObject({ status: 404, body: { error: { message: expect.stringContaining('desk-v9') } } });
  const [worker] = workers.filter(({ process }) => process.exitCode === null && process.signalCode === null);
  const headers = { authorization: `Bearer ${adminToken}` };
  expect((await fetch(`${worker!.url}/api/status`, { headers })).status).toBe(404);
}, 600_000);

it('several processes share a port: each answers and records, one that is killed comes back, and they end together', async () => {
  const several = await begin('gateway', 'several', '--processes', '2');
  onTestFinished(() => several.remove());
  const health = async () =>
    (await (await fetch(`${several.url}/healthz`)).json()) as {
      problems: string[];
      recording: { journalled: number };
      processes: { number: number; pid: number }[];
    };
  const send = async (prefix: string) => {
    for (let i = 0; i < 8; i++) expect((await say(`${prefix}-${i}`, 'dee', gateway.key, several)).status).toBe(200);
    for (let i = 0; i < 8; i++) await seen(`${prefix}-${i}`);
  };
  await send('one-port');
  const { processes, problems } = await health();
  expect(problems).toEqual([]);
  expect(processes.map(({ number }) => number)).toEqual([1, 2]);
  const journals = [1, 2].map((n) => readdirSync(join(folder, 'several', `gateway-${n}`, 'journal')).length);
  expect(Math.min(...journals)).toBeGreaterThan(0);
  const figures = await (await fetch(`${several.url}/metrics`)).text();
  const counted = [...figures.matchAll(/^pawl_requests_total\{.*\} (\d+)$/gm)].map(([, n]) => Number(n));
  expect(counted.reduce((sum, n) => sum + n, 0)).toBe(8);

  process.kill(processes[1]!.pid, 'SIGKILL');
  const again = await until(
    health,
    (now) => now.processes[1] !== undefined && now.processes[1].pid !== processes[1]!.pid,
  );
  expect(again.processes[0]).toEqual(processes[0]);
  await send('one-port-again');
  const pids = again.processes.map(({ pid }) => pid);
  await several.kill('SIGINT');
  expect(several.process.exitCode).toBe(0);
  expect(pids.map(processStart)).toEqual([null, null]);
}, 600_000);

it('needs a database that can be shared', async () => {
  const alone = startPawl({ PAWL_UPSTREAM: upstream.url }, join(folder, 'alone'), undefined, [], [], 'worker');
  await expect(alone).rejects.toThrow(/set DATABASE_URL.*one process, `pawl serve`/s);
}, 600_000);
