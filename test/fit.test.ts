/**
 * Nothing begins to serve before it was asked, on the server it will serve from, whether it can do what the agent's users need: a Pawl
 * that runs, its commands and its API, and a server of models that lack one thing each.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Report } from '../src/evaluate/report.ts';
import { readAudit } from '../src/store/audit.ts';
import { readCompatibility, saveCompatibility } from '../src/store/compatibility.ts';
import type { Store } from '../src/store/postgres.ts';
import { servingRelease } from '../src/store/releases.ts';
import { saveReport } from '../src/store/reports.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';

type Asked = {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string | null }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly response_format?: object;
};

/** A token is four characters; the long prompt below is 900 of them. */
const tokensOf = ({ messages }: Asked) =>
  messages.reduce((sum, { content }) => sum + 3 + Math.ceil((content ?? '').length / 4), 0);
const long = 'tell me more '.repeat(277);

/** How full the server is, as vLLM's page says it: what is being answered just now. Of `tight` little fits in. */
const underWay = new Set<Asked>();
const page = () => {
  const tokens = [...underWay].reduce((sum, asked) => sum + tokensOf(asked) * (asked.model === 'tight' ? 10 : 1), 0);
  return `vllm:kv_cache_usage_perc{model_name="a"} ${Math.min(1, tokens / 20_000)}\n`;
};

let isDown = false;
function answer(asked: Asked): { readonly status: number; readonly body: object } {
  const { model, tools, messages, response_format: format } = asked;
  const refuse = (status: number, message: string) => ({ status, body: { error: { message } } });
  if (isDown) return refuse(503, 'The server is loading.');
  if (model === 'short' && tokensOf(asked) > 500) return refuse(400, 'This model’s context is 500 tokens.');
  if (model === 'toolless' && tools !== undefined) return refuse(400, 'Tools are not enabled.');
  const name = tools?.[0]?.function.name;
  const isCalled = name !== undefined && messages.at(-1)?.role !== 'tool';
  const content = format !== undefined && model !== 'wordy' ? '{"town":"Bern"}' : 'Bern, I think.';
  const message = isCalled
    ? {
        ...{ role: 'assistant', content: null },
        tool_calls: [{ id: 'c1', type: 'function', function: { name, arguments: '{"town":"Bern"}' } }],
      }
    : { role: 'assistant', content };
  const usage = { prompt_tokens: tokensOf(asked), completion_tokens: 4 };
  return {
    status: 200,
    body: { id: 'x', object: 'chat.completion', usage, choices: [{ index: 0, message, finish_reason: 'stop' }] },
  };
}

const folder = mkdtempSync(join(tmpdir(), 'pawl-fit-'));
const settings = join(folder, 'pawl.config.mjs');
const seen: Asked[] = [];
let server: Server;
let pawl: PawlProcess;
let store: Store;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.url === '/metrics') return response.end(page());
    const asked = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Asked;
    if (asked.messages !== undefined) seen.push(asked);
    underWay.add(asked);
    await sleep(asked.model === 'tight' ? 200 : 0);
    underWay.delete(asked);
    const { status, body } = asked.messages === undefined ? { status: 200, body: { data: [] } } : answer(asked);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const deploy = { steps: [0.5, 1], promotion: { rule: 'checks' }, shadow: { share: 0 } };
  const shop = { name: 'shop', evaluate: { compatibility: { tools: true } } };
  const config = {
    agents: [{ name: 'desk', deploy }, shop],
    upstreams: { gpu: { baseUrl } },
    gateway: { attempts: 1 },
  };
  writeFileSync(settings, `export default ${JSON.stringify(config)};`);
  pawl = await startPawl({}, join(folder, 'home'), undefined, ['--config', settings]);
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  server?.closeAllConnections();
  server?.close();
  rmSync(folder, { recursive: true, force: true });
});

const command = async (...args: string[]) => {
  const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: pawl.home };
  const given = ['bin/pawl.js', ...args, '--config', settings];
  return promisify(execFile)(process.execPath, given, { env }).then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      out: stdout,
      err: stderr,
    }),
  );
};
const post = async (path: string, given: object) => {
  const headers = { authorization: `Bearer ${pawl.adminToken}`, 'content-type': 'application/json' };
  const response = await fetch(`${pawl.url}/api${path}`, { method: 'POST', headers, body: JSON.stringify(given) });
  return { status: response.status, body: (await response.json()) as { error?: { message: string } } };
};
const get = async (path: string) => {
  const response = await fetch(`${pawl.url}/api${path}`, { headers: { authorization: `Bearer ${pawl.adminToken}` } });
  return (await response.json()) as { card: string; waiting: readonly object[] };
};
const make = (name: string, agent = 'desk') => post('/releases', { agent, name, upstream: 'gpu', model: name });
const serves = async () => (await servingRelease(store, 'desk'))?.name;
const askedOf = (model: string) => seen.filter((one) => one.model === model).length;
const audited = (event: string) => readAudit(store, { agent: 'desk', event });

it('the first release of an agent waits for nothing', async () => {
  for (const name of ['fine', 'short', 'toolless', 'wordy', 'tight', 'fine-2', 'fine-3'])
    expect((await make(name)).status).toBe(201);
  expect(await post('/releases/fine/serve', {})).toMatchObject({ status: 200 });
  expect(seen).toEqual([]);
  // Users come, with a long history, a tool, and an answer by a schema.
  for (const more of [
    {},
    { tools: [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object', properties: {} } } }] },
    { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } } },
  ]) {
    const headers = { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'desk', messages: [{ role: 'user', content: long }], ...more });
    const send = () => fetch(`${pawl.url}/v1/chat/completions`, { method: 'POST', headers, body });
    await until(send, ({ headers: told }) => told.get('x-pawl-release') === 'fine');
  }
  await until(
    async () => (await store.pool.query("select from pawl.turns where origin = 'production'")).rowCount,
    (rows) => (rows ?? 0) >= 3,
  );
});

it('the first of an agent whose settings say what it needs is asked like any other', async () => {
  await make('toolless', 'shop');
  await make('fine', 'shop');
  const refused = await post('/releases/toolless/serve', { agent: 'shop' });
  expect(refused).toMatchObject({ status: 409 });
  expect(refused.body.error!.message).toMatch(/tools: The server refuses it \(400\): Tools are not enabled\./);
  expect(await servingRelease(store, 'shop')).toBeNull();
  expect(await post('/releases/fine/serve', { agent: 'shop' })).toMatchObject({ status: 200 });
});

it('whichever door it comes through, what does not fit is told what it lacks, and serves nobody', async () => {
  const lacks =
    /Release short gets no user: it does not fit gpu http:\/\/127[^ ]+\/v1\. context: A context of 90\d tokens is needed, and the server refuses such a prompt \(400\): This model’s context is 500 tokens\. .*--unfit "why"/;
  const { code, out, err } = await command('releases', 'serve', 'short', '--by', 'ann');
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(
    /Checking whether release short fits gpu .*: several turns, a context of 90\d tokens, tools, structured output, 4 requests of 90\d tokens at a time\.\n {2}template …\n {2}context …/,
  );
  expect(err).toMatch(lacks);
  // Two short prompts told how long a word is, so that the long one is as long as needed and no longer.
  const longest = Math.max(...seen.filter(({ model }) => model === 'short').map(tokensOf));
  expect(longest).toBeGreaterThan(850);
  expect(longest).toBeLessThanOrEqual(908);

  const refused = { status: 409, body: { error: { message: expect.stringMatching(lacks) } } };
  expect(await post('/releases/short/serve', { reason: 'Now.' })).toEqual(expect.objectContaining({ status: 409 }));
  expect(await post('/releases/short/pin', { user: 'ann' })).toMatchObject(refused);
  expect(await post('/rollouts', { candidate: 'short', forced: 'A dare.' })).toMatchObject(refused);
  for (const [name, lacking] of [
    ['toolless', /tools: The server refuses it \(400\): Tools are not enabled\./],
    ['wordy', /structured: An answer asked for by a JSON Schema is none: Bern, I think\./],
    // Seen only under a load of prompts as long as the users', and only while it is under way.
    ['tight', /memory: The server was 100% full under the load; 95% is allowed\./],
  ] as const)
    expect((await post('/rollouts', { candidate: name, forced: 'A dare.' })).body.error!.message).toMatch(lacking);
  expect(await serves()).toBe('fine');
  expect((await store.pool.query('select from pawl.rollouts')).rowCount).toBe(0);
  const [row] = (await audited('compatibility-checked')).filter(({ actor }) => actor === 'ann');
  expect(JSON.parse(row!.details)).toMatchObject({ verdict: 'fail', asked: expect.stringContaining('tools') });
  expect((await get('/releases/short?agent=desk')).card).toMatch(/Where it is to serve, .*\*\*fail\*\*.*context fail/);
});

it('what fits is asked once a day, and goes in by every door', async () => {
  expect(await post('/releases/fine-2/pin', { user: 'ann' })).toMatchObject({ status: 200 });
  const asked = askedOf('fine-2');
  expect(asked).toBeGreaterThanOrEqual(4 * 3 + 6);
  expect(await post('/rollouts', { candidate: 'fine-2', forced: 'A dare.' })).toMatchObject({ status: 201 });
  expect(await post('/rollouts/fine-2-r1/abort', {})).toMatchObject({ status: 200 });
  expect(askedOf('fine-2')).toBe(asked);
  const found = (await readCompatibility(store, { agent: 'desk', release: 'fine-2' }))!;
  await store.pool.query("delete from pawl.compatibility where release = 'fine-2'");
  await saveCompatibility(store, { ...found, at: Date.now() - 25 * 3_600_000 });
  expect(await post('/releases/fine-2/serve', {})).toMatchObject({ status: 200 });
  expect(askedOf('fine-2')).toBeGreaterThan(asked);
  expect(await serves()).toBe('fine-2');
});

it('the way back and the kill switch wait for nothing, also while the server is away', async () => {
  isDown = true;
  try {
    const before = seen.length;
    expect(await post('/releases/fine/serve', {})).toMatchObject({ status: 200 });
    expect(await post('/kill', { to: 'fine-2', reason: 'Now.' })).toMatchObject({ status: 200 });
    expect(await serves()).toBe('fine-2');
    expect(await post('/kill/undo', {})).toMatchObject({ status: 200 });
    expect(await post('/releases/fine/serve', {})).toMatchObject({ status: 200 });
    expect(seen.length).toBe(before);
    // What never served is not let in on nobody's word, by the kill switch neither.
    expect(await post('/kill', { to: 'fine-3', reason: 'Now.' })).toMatchObject({
      status: 409,
      body: {
        error: { message: expect.stringMatching(/^Release fine-3 has never served desk and was never checked;/) },
      },
    });
    expect(await command('kill', 'desk', '--to', 'wordy')).toMatchObject({
      ...{ code: 1, err: expect.stringMatching(/and was found not to fit its server; the kill switch does not wait/) },
    });
    expect(await serves()).toBe('fine');
    expect(await post('/releases/wordy/serve', {})).toMatchObject({
      status: 409,
      body: {
        error: {
          message: expect.stringMatching(
            /whether it fits gpu .* could not be told\. template: No answer: The server is loading/,
          ),
        },
      },
    });
  } finally {
    isDown = false;
  }
});

it('what served once is asked again before a rollout, for that is no way back', async () => {
  await store.pool.query("delete from pawl.compatibility where release = 'fine-2'");
  const asked = askedOf('fine-2');
  expect(await post('/rollouts', { candidate: 'fine-2', forced: 'Once more.', id: 'again' })).toMatchObject({
    status: 201,
  });
  expect(askedOf('fine-2')).toBeGreaterThan(asked);
  expect(await post('/rollouts/again/abort', {})).toMatchObject({ status: 200 });
});

it('a person lets it through all the same, by name and with a reason', async () => {
  const before = askedOf('toolless');
  const pinned = await command(
    'releases',
    'pin',
    'toolless',
    '--user',
    'bob',
    '--unfit',
    'Bob wants it.',
    '--by',
    'eve',
  );
  expect(pinned.out).toMatch(/gets release toolless/);
  expect(askedOf('toolless')).toBe(before);
  const [row] = await audited('compatibility-overridden');
  expect(row).toMatchObject({ actor: 'eve' });
  expect(JSON.parse(row!.details)).toMatchObject({
    name: 'toolless',
    way: 'pin',
    reason: 'Bob wants it.',
    lastFound: 'fail',
  });
  expect((await get('/releases/toolless?agent=desk')).card).toContain('compatibility-overridden');
  expect(await post('/kill', { to: 'fine-3', reason: 'Now.', unfit: 'It is all there is.' })).toMatchObject({
    status: 200,
  });
  expect(await serves()).toBe('fine-3');
  expect((await audited('compatibility-overridden')).map(({ details }) => JSON.parse(details).way)).toContain('kill');
  await post('/kill/undo', {});
  await post('/releases/fine/serve', {});
});

it('a report that waits for a person is approved in one step', async () => {
  await make('fine-4');
  const report: Report = {
    ...{ id: 'report-00000000000000aa', agent: 'desk', baseline: 'fine', candidate: 'fine-4', attempts: 1, seed: 7 },
    ...{
      suite: { name: 'golden', hash: 'abc', tasks: 0 },
      overall: null,
      types: {},
      tasks: [],
      drift: null,
      temperature: 1,
    },
    ...{ verdict: 'inconclusive', reasons: ['It may be chance.'], seconds: 0, createdAt: Date.now() },
  };
  await saveReport(store, report);
  expect((await get('/review?agent=desk')).waiting).toMatchObject([
    { kind: 'report', id: report.id, reasons: report.reasons, command: `pawl rollouts approve ${report.id}` },
  ]);
  const approved = await command('rollouts', 'approve', report.id, '--reason', 'Looks right.', '--by', 'ann');
  expect(approved.out).toMatch(/^Rollout fine-4-r1: canary, 50%/);
  expect((await get('/review?agent=desk')).waiting).toEqual([]);
  const rows = await readAudit(store, { subject: 'fine-4-r1', oldestFirst: true });
  expect(rows.map(({ event, actor }) => `${event} ${actor}`)).toEqual(['rollout-started ann', 'rollout-approved ann']);
  expect(rows[0]!.details).toContain(report.id);
  expect(rows[1]!.details).toContain('Looks right.');
  expect(await post('/rollouts/fine-4-r1/abort', {})).toMatchObject({ status: 200 });
  const twice = await post(`/rollouts/${report.id}/approve`, {});
  expect(twice).toMatchObject({ status: 409 });
  expect(twice.body.error!.message).toMatch(/was decided on already: rollout fine-4-r1 ended rolled-back/);
  expect(await post('/rollouts/report-0/approve', {})).toMatchObject({ status: 404 });
});

it('where no Pawl runs, a command starts one for the check', async () => {
  await make('fine-5');
  await store.close();
  await pawl.kill();
  const { code, out, err } = await command('releases', 'serve', 'fine-5');
  expect(err).toContain('Checking whether release fine-5 fits gpu');
  expect([code, out]).toEqual([0, expect.stringMatching(/^Release fine-5 serves all traffic of desk now/)]);
});
