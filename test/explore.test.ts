/** Exploration through a real gateway: what users get, what is asked besides, what is kept of it, and what it may cost. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TrajectoryDetail } from '../src/api/schema.ts';
import { hashedId } from '../src/collect/person.ts';
import { giveConsent, withdrawConsent } from '../src/store/consents.ts';
import { readExploration } from '../src/store/exploration.ts';
import { createKey } from '../src/store/keys.ts';
import type { Store } from '../src/store/postgres.ts';
import { installationSecret } from '../src/store/secret.ts';
import { readSiblings } from '../src/store/siblings.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';

type Asked = { model: string; temperature?: number; stream?: boolean; messages: { content: string }[] } & Record<
  string,
  unknown
>;

/** A model that says at which temperature it was asked; what has one waits while the test holds it. */
const asked: Asked[] = [];
let held: Promise<void> = Promise.resolve();
let failing = false;
const call = { id: 'call_1', type: 'function', function: { name: 'cancel_order', arguments: '{}' } };

async function startModel(): Promise<Server> {
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') return void response.end('{"data":[]}'); // what models there are
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Asked;
    asked.push(body);
    const { temperature, model } = body;
    if (temperature !== undefined) await held;
    if (temperature !== undefined && failing) return void response.writeHead(400).end('{}');
    const content = `At ${temperature ?? 'rest'} I write to jo@example.org.`;
    const said = body.tools === undefined ? { content } : { content: null, tool_calls: [call] };
    if (body.stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = {
        object: 'chat.completion.chunk',
        model,
        choices: [{ index: 0, delta: said, finish_reason: 'stop' }],
      };
      return void response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    const choices = [{ index: 0, message: { role: 'assistant', ...said }, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 100, completion_tokens: 50 };
    response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model, choices, usage }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const folder = mkdtempSync(join(tmpdir(), 'pawl-explore-'));
const config = join(folder, 'pawl.config.mjs');
let server: Server;
let pawl: PawlProcess;
let store: Store;
const keys: Record<string, string> = {};

beforeAll(async () => {
  server = await startModel();
  // 100 + 50 tokens cost 0.15; set aside for one call is about 0.27: its bytes as tokens, and the longest answer.
  const price = { prompt: 1000, completion: 1000 };
  const agents = [
    { name: 'desk', explore: { share: 1, topP: [0.95], whileBelow: 2 } },
    { name: 'hourly', explore: { share: 1, perHour: 4 } },
    { name: 'dear', explore: { share: 1, temperatures: [0.9], maxTokens: 200, price, moneyPerDay: 0.6 } },
    { name: 'failing', explore: { share: 1 } },
    { name: 'off' },
  ];
  writeFileSync(config, `export default ${JSON.stringify({ agents })};\n`);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  pawl = await startPawl({ PAWL_UPSTREAM: url }, undefined, undefined, ['--config', config]);
  store = await pawl.store();
  for (const { name } of agents) {
    keys[name] = (await createKey(store, { agent: name, name })).token;
    await giveConsent(store, name, await stored('ann'), new Date(Date.now() - 60_000));
  }
  for (const key of Object.values(keys)) await known(key);
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  server?.close();
  server?.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

const stored = async (user: string) => hashedId(user, await installationSecret(store, pawl.home));
const client = (agent: string, user: string | null = 'ann', trajectory?: string) =>
  new OpenAI({
    baseURL: `${pawl.url}${trajectory === undefined ? '' : `/t/${trajectory}`}${user === null ? '' : `/u/${user}`}/v1`,
    apiKey: keys[agent]!,
    maxRetries: 0,
  });
/** Until the gateway has learned a key that was made in its database. */
const known = (key: string) =>
  until(
    async () => (await fetch(`${pawl.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status,
    (status) => status === 200,
  );
const say = (agent: string, content: string, user: string | null = 'ann', more: object = {}) =>
  client(agent, user).chat.completions.create({ model: 'm', messages: [{ role: 'user', content }], ...more });
const run = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['bin/pawl.js', ...args, '--config', config], {
    env: { ...process.env, DATABASE_URL: '', PAWL_HOME: pawl.home, NO_COLOR: '1' },
  });
const callsAbout = (content: string) => asked.filter((body) => body.messages.at(-1)?.content === content);
const metric = async (name: string, agent: string, reason?: string): Promise<number> => {
  const labels = `agent="${agent}"${reason === undefined ? '' : `,reason="${reason}"`}`;
  const text = await (await fetch(`${pawl.url}/metrics`)).text();
  return Number(new RegExp(`^pawl_exploration_${name}_total\\{${labels}\\} (\\S+)`, 'm').exec(text)?.[1] ?? 0);
};
const reaches = (name: string, agent: string, n: number, reason?: string) =>
  until(
    () => metric(name, agent, reason),
    (count) => count >= n,
  );
const whole = (id: string, turns: number) =>
  until(
    () => readTrajectory(store, id),
    (found) => (found?.turns.length ?? 0) >= turns,
  );

it('the user has the answer while further ones are still asked for; then they are kept beside the turn', async () => {
  let release = () => {};
  held = new Promise((resolve) => {
    release = resolve;
  });
  const desk = client('desk', 'ann', 'order-1').chat.completions;
  const first = { role: 'user' as const, content: 'Where is it?' };
  const { data, response } = await desk.create({ model: 'm', messages: [first], n: 1 }).withResponse();
  expect(data.choices[0]?.message.content).toBe('At rest I write to jo@example.org.');
  // The next turn is answered too, while the first one's further answers wait.
  const history = [first, { role: 'assistant' as const, content: 'At rest I write to jo@example.org.' }];
  const stream = await desk.create({
    model: 'm',
    messages: [...history, { role: 'user', content: 'Ok.' }],
    stream: true,
  });
  for await (const _ of stream);
  release();
  await reaches('answered', 'desk', 6);

  const turn = response.headers.get('x-pawl-turn')!;
  const [users, ...further] = callsAbout('Where is it?');
  expect(users).not.toHaveProperty('temperature');
  expect(further.map(({ temperature }) => temperature)).toEqual([0.7, 0.9, 1.1]);
  for (const body of further) expect(body).toMatchObject({ messages: [first], top_p: 0.95, max_tokens: 2048 });
  for (const body of callsAbout('Ok.').slice(1)) expect(body).not.toHaveProperty('stream');

  const { siblings } = await until(
    () => readSiblings(store, { agent: 'desk', turns: [turn] }),
    (found) => (found.siblings.get(turn)?.length ?? 0) >= 3,
  );
  expect(siblings.get(turn)).toMatchObject(
    [0.7, 0.9, 1.1].map((temperature) => ({
      ...{ origin: 'exploration', temperature, topP: 0.95, release: 'default/m', promptTokens: 100 },
      choices: [{ message: { content: `At ${temperature} I write to [EMAIL_1].` }, finishReason: 'stop' }],
    })),
  );

  const { trajectory, turns } = (await whole('order-1', 2))!;
  expect(trajectory).toMatchObject({ turns: 2, origin: 'production', consent: 'given' });
  expect(turns.map(({ origin }) => origin)).toEqual(['production', 'production']);
  const rows = await store.pool.query('select count(*) as n from pawl.trajectories');
  expect(rows.rows[0]).toEqual({ n: 1 });
});

it('a request of the same user that goes on from a further answer is another conversation', async () => {
  const messages = [
    { role: 'user' as const, content: 'Where is it?' },
    { role: 'assistant' as const, content: 'At 0.7 I write to jo@example.org.' },
    { role: 'user' as const, content: 'Really?' },
  ];
  const { response } = await client('desk').chat.completions.create({ model: 'm', messages }).withResponse();
  const turn = response.headers.get('x-pawl-turn')!;
  const { rows } = await until(
    () => store.pool.query<{ trajectory: string }>('select trajectory from pawl.turns where id = $1', [turn]),
    (found) => found.rows.length > 0,
  );
  expect(rows[0]?.trajectory).not.toBe('order-1');
  await reaches('answered', 'desk', 9);
  expect(await readTrajectory(store, 'order-1')).toMatchObject({ trajectory: { turns: 2 } });
});

it('the API and the command show them under their turn', async () => {
  const headers = { authorization: `Bearer ${pawl.adminToken}` };
  const detail = (await (await fetch(`${pawl.url}/api/trajectories/order-1`, { headers })).json()) as TrajectoryDetail;
  expect(detail.turns).toHaveLength(2);
  expect(detail.siblings.filter(({ parent }) => parent === detail.turns[0]!.id).map((one) => one.temperature)).toEqual([
    0.7, 0.9, 1.1,
  ]);
  const { stdout } = await run('trajectories', 'show', 'order-1');
  expect(stdout.match(/sibling/g)).toHaveLength(6);
  expect(stdout).toMatch(/temperature 0\.9, top_p 0\.95 .*\n.*At 0\.9 I write to \[EMAIL_1\]\./);
});

it('a further answer that calls a tool is recorded, and nobody acts on it', async () => {
  const tools = [{ type: 'function' as const, function: { name: 'cancel_order', parameters: {} } }];
  const answered = await metric('answered', 'desk');
  const { response } = await client('desk')
    .chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'Cancel.' }], tools })
    .withResponse();
  await reaches('answered', 'desk', answered + 3);
  const turn = response.headers.get('x-pawl-turn')!;
  const { siblings } = await until(
    () => readSiblings(store, { agent: 'desk', turns: [turn] }),
    (found) => (found.siblings.get(turn)?.length ?? 0) >= 3,
  );
  expect(siblings.get(turn)![0]!.choices[0]!.message).toMatchObject({ tool_calls: [call] });
  expect(callsAbout('Cancel.')).toHaveLength(4);
});

it('nothing is asked for users who did not agree, for nobody known, for evaluations, where the share is 0, or while busy', async () => {
  await giveConsent(store, 'desk', await stored('bob'), new Date(Date.now() - 60_000));
  await withdrawConsent(store, 'desk', await stored('bob'), new Date());
  const before = asked.length;
  const refused = await metric('refused', 'desk', 'consent');
  await say('desk', 'withdrawn', 'bob');
  await say('desk', 'never said', 'carol');
  await reaches('refused', 'desk', refused + 2, 'consent');
  await say('desk', 'nobody', null);
  await say('off', 'share 0');
  keys.desk_evaluation = (await createKey(store, { agent: 'desk', name: 'judge', origin: 'evaluation' })).token;
  await known(keys.desk_evaluation);
  await say('desk_evaluation', 'evaluation');
  // Two of the three at once find two or more in flight when they end.
  const busy = await metric('refused', 'desk', 'busy');
  let release = () => {};
  held = new Promise((resolve) => {
    release = resolve;
  });
  const waiting = [1, 2].map(() => say('off', 'waits', 'ann', { temperature: 0.5 }));
  await until(
    () => callsAbout('waits').length,
    (n) => n === 2,
  );
  await say('desk', 'busy');
  release();
  await Promise.all(waiting);
  expect(await metric('refused', 'desk', 'busy')).toBe(busy + 1);
  expect(asked.slice(before).filter(({ temperature }) => temperature !== undefined && temperature !== 0.5)).toEqual([]);
});

it('an hour’s limit holds', async () => {
  await say('hourly', 'one');
  await reaches('answered', 'hourly', 3);
  await say('hourly', 'two');
  await reaches('refused', 'hourly', 1, 'per-hour');
  expect(callsAbout('two')).toHaveLength(1);
  const { stdout } = await run('explore', '--agent', 'hourly', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ agent: 'hourly', askedThisHour: 3, perHour: 4, moneyPerDay: null });
  const headers = { authorization: `Bearer ${pawl.adminToken}` };
  const { agents } = (await (await fetch(`${pawl.url}/api/explore`, { headers })).json()) as { agents: unknown[] };
  expect(agents).toContainEqual(JSON.parse(stdout));
});

it('a person turns it off by command, and from then on nothing is asked beyond what users ask', async () => {
  const before = await metric('refused', 'desk', 'off');
  await run('flags', 'off', 'exploration', '--agent', 'desk', '--by', 'ann', '--reason', 'too dear');
  expect((await run('flags', 'list', '--agent', 'desk')).stdout).toMatch(/exploration +off +ann/);
  await say('desk', 'nothing beyond this');
  await reaches('refused', 'desk', before + 1, 'off');
  expect(callsAbout('nothing beyond this')).toHaveLength(1);
  await run('flags', 'on', 'exploration', '--agent', 'desk');
  await say('desk', 'again beyond this');
  await until(
    async () => callsAbout('again beyond this').length,
    (calls) => calls > 1,
  );
});

it('a failing model is left alone, and its users do not notice', async () => {
  failing = true;
  await say('failing', 'once');
  await reaches('failed', 'failing', 1);
  const again = await say('failing', 'twice');
  expect(again.choices[0]?.message.content).toContain('At rest');
  await reaches('refused', 'failing', 1, 'paused');
  failing = false;
  expect(callsAbout('once')).toHaveLength(2);
  expect(callsAbout('twice')).toHaveLength(1);
});

it('the day’s money is remembered by the database, also what a killed gateway was about to spend', async () => {
  await say('dear', 'paid');
  await until(
    () => readExploration(store, 'dear'),
    ({ money }) => money > 0.14 && money < 0.16,
  );
  held = new Promise(() => {});
  await say('dear', 'killed');
  await until(
    () => callsAbout('killed').length,
    (n) => n === 2,
  );
  await store.close();
  await pawl.kill('SIGKILL');
  pawl = await pawl.restart();
  store = await pawl.store();
  held = Promise.resolve();
  const { money } = await readExploration(store, 'dear');
  expect(money).toBeGreaterThan(0.4);
  await say('dear', 'too dear');
  await reaches('refused', 'dear', 1, 'money');
  expect(callsAbout('too dear')).toHaveLength(1);
  expect(await readExploration(store, 'dear')).toMatchObject({ asked: 2, money });
});

it('a gateway that stops gives up what it asked for, at once', async () => {
  held = new Promise(() => {});
  await say('desk', 'stopping');
  await until(
    () => callsAbout('stopping').length,
    (n) => n === 2,
  );
  await store.close();
  await pawl.kill('SIGTERM');
  expect(pawl.process.exitCode).toBe(0);
});
