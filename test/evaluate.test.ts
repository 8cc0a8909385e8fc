/**
 * Golden cases through the door, as people play them: a real Pawl, `pawl evaluate` in a process of its own, and a stand-in for
 * a model server with two models, of which one can add and the other only adds even numbers.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mayTrain } from '../src/collect/own-traffic.ts';
import { createRelease, serveRelease } from '../src/deploy/reconcile.ts';
import { type Report, reportSchema } from '../src/evaluate/report.ts';
import { readCompatibility } from '../src/store/compatibility.ts';
import { activeKeys } from '../src/store/keys.ts';
import { readCalls } from '../src/store/measures.ts';
import type { Store } from '../src/store/postgres.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-evaluate-'));
const configFile = join(folder, 'pawl.config.mjs');
let upstream: Server;
let pawl: PawlProcess;
let store: Store;

type Asked = { model: string; seed?: number; tools?: unknown[]; messages: { role: string; content: string }[] };
const asked: Asked[] = [];
let busy = 0;
type Embedded = { model: string; input: string[]; origin: unknown };
const embedded: Embedded[] = [];

/** A direction for each sum, and one for all that is said by habit. `wide` is busy at first, `away` always is. */
function embed({ model, input }: Embedded): { status: number; json: unknown } {
  if (model === 'away' || embedded.length === 1)
    return { status: 503, json: { error: { message: 'Loading.', type: 'server_error' } } };
  const directionOf = (text: string) => (text.startsWith('Always') ? 0 : 1 + (Number(/\d+/.exec(text)?.[0]) % 63));
  const data = input.map((text, index) => ({
    ...{ object: 'embedding', index },
    embedding: Array.from({ length: 64 }, (_, i) => (i === directionOf(text) ? 1 : 0)),
  }));
  return { status: 200, json: { object: 'list', model, data, usage: { prompt_tokens: 3, total_tokens: 3 } } };
}

/** Adds, or says how it would with the tool. `fussy` takes no seed; `hang` never answers. */
function answer(body: Asked): { status: number; json: unknown; headers?: Record<string, string> } | null {
  if (body.model === 'hang') return null;
  if (body.model === 'fussy' && body.seed !== undefined)
    return { status: 400, json: { error: { message: "Unrecognized request argument supplied: 'seed'" } } };
  if (busy-- > 0) return { status: 429, json: { error: { message: 'Too many.' } }, headers: { 'retry-after': '0' } };
  const [a = 0, b = 0] = (body.messages.at(-1)!.content.match(/\d+/g) ?? []).map(Number);
  const knows = body.model !== 'poor' || (a % 2 === 0 && b % 2 === 0);
  const call = {
    id: 'c',
    type: 'function',
    function: { name: 'add', arguments: JSON.stringify({ a, b: knows ? b : 0 }) },
  };
  const message = body.tools
    ? { role: 'assistant', content: null, tool_calls: [call] }
    : {
        role: 'assistant',
        content: `${body.model === 'chorus' ? 'Always' : 'The sum is'} ${knows ? a + b : 'large'}.`,
      };
  return {
    status: 200,
    json: { id: 'x', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] },
  };
}

const parameters = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
};
const cases = Array.from({ length: 32 }, (_, i) => {
  const [a, b] = [i, i * 3];
  const messages = [{ role: 'user', content: `What is ${a} + ${b}?` }];
  return i % 4 < 2
    ? { id: `sum-${i}`, type: 'text', messages, expect: { contains: String(a + b), matches: '^The sum is \\d+\\.$' } }
    : {
        id: `sum-${i}`,
        type: 'tool',
        messages,
        tools: [{ type: 'function', function: { name: 'add', parameters } }],
        expect: { tool: { name: 'add', arguments: { a, b } }, score: { part: 'tools', min: 1 } },
      };
});

beforeAll(async () => {
  upstream = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Asked;
    if (request.url === '/v1/chat/completions') asked.push(body);
    const embedding = { ...(body as unknown as Embedded), origin: request.headers['x-pawl-origin'] };
    if (request.url === '/v1/embeddings') embedded.push(embedding);
    if (request.url === '/metrics') return response.writeHead(404).end();
    const reply: ReturnType<typeof answer> = request.url === '/v1/embeddings' ? embed(embedding) : answer(body);
    if (reply === null) return;
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers });
    response.end(JSON.stringify(reply.json));
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  writeFileSync(join(folder, 'golden.jsonl'), cases.map((one) => JSON.stringify(one)).join('\n'));
  const settings = {
    upstreams: { server: { baseUrl } },
    gateway: { attempts: 1 },
    agents: [{ name: 'adder', evaluate: { golden: './golden.jsonl', concurrency: 4 } }],
  };
  const texts = cases
    .slice(0, 24)
    .map(({ id, messages }, i) => ({ id, type: 'text', messages, expect: { contains: String(i * 4) } }));
  writeFileSync(join(folder, 'texts.jsonl'), texts.map((one) => JSON.stringify(one)).join('\n'));
  const write = (file: string, evaluate: object) =>
    writeFileSync(
      file,
      `import { outcome, toolUse, weighted } from 'pawl';
const settings = ${JSON.stringify(settings)};
settings.agents[0].reward = weighted({ resolved: [0.5, outcome('resolved')], tools: [0.3, toolUse()] });
Object.assign(settings.agents[0].evaluate, ${JSON.stringify(evaluate)});
export default settings;\n`,
    );
  write(configFile, {});
  for (const model of ['wide', 'away'])
    write(join(folder, `${model}.config.mjs`), { embeddings: { upstream: 'server', model, attempts: 2 } });
  write(join(folder, 'nowhere.config.mjs'), { embeddings: { upstream: 'nowhere', model: 'wide' } });
  pawl = await startPawl({}, undefined, undefined, ['--config', configFile]);
  store = await pawl.store();
  for (const model of ['poor', 'good', 'fussy', 'hang', 'chorus'])
    await createRelease(store, { agent: 'adder', name: model, upstream: 'server', model }, 'ann', Date.now());
  const poor = await createRelease(
    store,
    { agent: 'adder', name: 'poor', upstream: 'server', model: 'poor' },
    'ann',
    Date.now(),
  );
  await serveRelease(store, poor, 'ann', Date.now());
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  upstream?.closeAllConnections();
  upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});

function begin(...args: string[]) {
  return beginWith(configFile, ...args);
}

function beginWith(
  file: string,
  ...args: string[]
): {
  process: ChildProcess;
  ended: Promise<{ code: number | null; out: string; err: string }>;
} {
  const child = spawn(process.execPath, ['bin/pawl.js', 'evaluate', '--config', file, ...args], {
    env: { ...process.env, DATABASE_URL: '', PAWL_HOME: pawl.home, PAWL_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  child.stdout!.setEncoding('utf8').on('data', (text) => (out += text));
  child.stderr!.setEncoding('utf8').on('data', (text) => (err += text));
  return { process: child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, out, err })) };
}
const evaluate = (...args: string[]) => begin(...args).ended;
const reportOf = (out: string): Report => reportSchema.parse(JSON.parse(out));
const keysInUse = async () => (await activeKeys(store)).filter(({ scopes }) => scopes.includes('evaluate'));

const call = (headers: Record<string, string>, model = 'adder') =>
  fetch(`${pawl.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pawl.key}`, ...headers },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'What is 1 + 1?' }] }),
  });
const api = (path: string, init: RequestInit = {}) =>
  fetch(`${pawl.url}/api${path}`, {
    ...init,
    headers: { authorization: `Bearer ${pawl.adminToken}`, 'content-type': 'application/json' },
  });

describe('pawl evaluate, beside a Pawl that serves', () => {
  it('passes the better model, case by case, and leaves no key behind', async () => {
    busy = 3; // answers that come after being asked to wait are answers like others
    const { code, out } = await evaluate('--candidate', 'good', '--json', '--require-pass');
    expect(code).toBe(0);
    const report = reportOf(out);
    expect(report).toMatchObject({
      agent: 'adder',
      baseline: 'poor',
      candidate: 'good',
      verdict: 'pass',
      suite: { name: 'golden', tasks: 32 },
      drift: null,
      overall: { n: 32, baseline: 0.5, candidate: 1, worse: 0 },
    });
    expect(Object.keys(report.types).sort()).toEqual(['text', 'tool']);
    expect(report.tasks[1]!.reasons).toEqual({
      baseline: [
        'contains: The answer does not contain "4".',
        'matches: The answer "The sum is large." does not match /^The sum is \\d+\\.$/.',
      ],
      candidate: [],
    });
    expect(await keysInUse()).toEqual([]);
    // The same seed for both at the same case, another for each case.
    const seeds = (model: string) => asked.filter((one) => one.model === model).map(({ seed }) => seed);
    expect(new Set(seeds('good'))).toEqual(new Set(seeds('poor')));
    expect(new Set(seeds('good')).size).toBe(32);
  });

  it('fails the worse one, says why, and with --require-pass so does the command', async () => {
    const { code, out } = await evaluate('--candidate', 'poor', '--baseline', 'good', '--require-pass');
    expect(code).toBe(1);
    expect(out).toContain('poor against good, agent adder');
    expect(out).toContain('Verdict: fail. The candidate stops here.');
    expect(out).toMatch(/sum-1 +0\.0% +contains: The answer does not contain "4"\./);
  });

  it('answers what was asked before without playing it again', async () => {
    const before = asked.length;
    const { code, out, err } = await evaluate('--candidate', 'good', '--json');
    expect(code).toBe(0);
    expect(reportOf(out).verdict).toBe('pass');
    expect(err).toContain('This was asked before');
    expect(asked.length).toBe(before);
  });

  it('does without seeds where the server refuses them, and plays several attempts', async () => {
    const { out } = await evaluate('--candidate', 'fussy', '--baseline', 'good', '--attempts', '2', '--json');
    expect(reportOf(out)).toMatchObject({ attempts: 2, verdict: 'inconclusive', overall: { n: 32, candidate: 1 } });
    expect(asked.filter(({ model, seed }) => model === 'fussy' && seed === undefined)).toHaveLength(64);
  });

  it('records what was played as an evaluation, which nothing learns from and no rollout counts', async () => {
    type Row = { origin: 'evaluation'; release: string; count: string };
    const { rows } = await until(
      async () =>
        store.pool.query<Row>(
          `select origin, release, count(*) from pawl.turns where agent = 'adder' and status = 'ok' group by 1, 2 order by 2`,
        ),
      ({ rows: found }) => Number(found.find(({ release }) => release === 'fussy')?.count) === 64,
    );
    expect(rows.map(({ origin, release }) => [origin, release])).toEqual([
      ['evaluation', 'fussy'],
      ['evaluation', 'good'],
      ['evaluation', 'poor'],
    ]);
    expect(mayTrain({ origin: rows[0]!.origin, consent: 'given' })).toBe(false);
    const window = { agent: 'adder', since: 0, until: Date.now() + 1000, origin: 'production' as const };
    expect(await readCalls(store, { ...window, release: 'good' })).toMatchObject({ calls: 0, errors: 0 });
  });

  it('revokes its key when it is interrupted', async () => {
    const before = asked.length;
    const { process: child, ended } = begin('--candidate', 'hang');
    await until(
      async () => asked.slice(before).some(({ model }) => model === 'hang'),
      (seen) => seen,
    );
    expect(await keysInUse()).toHaveLength(1);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, err: expect.stringContaining('there is no report') });
    expect(await keysInUse()).toEqual([]);
  });

  it.each([
    [['--candidate', 'v9'], 'Agent adder has no release v9'],
    [['--candidate', 'poor'], 'would be compared with itself'],
    [['--candidate', 'good', '--suite', '/nowhere.jsonl'], 'There is no suite /nowhere.jsonl: no such file'],
    [['--candidate', 'good', '--agent', 'other'], 'There is no agent other'],
  ])('refuses %j with the way out', async (args, why) => {
    const { code, out, err } = await evaluate(...args);
    expect(code).toBe(1);
    expect(out).toBe('');
    expect(err).toContain(why);
  });
});

describe('pawl evaluate, where an embedding model says how alike answers are', () => {
  const suite = ['--suite', join(folder, 'texts.jsonl'), '--baseline', 'good'];
  const with_ = (model: string, ...args: string[]) =>
    beginWith(join(folder, `${model}.config.mjs`), ...suite, ...args).ended;
  const diversityOf = ({ gates }: Report) => gates!.find(({ name }) => name === 'diversity')!;

  it('fails a candidate whose right answers all mean the same, after a server that was busy at first', async () => {
    const words = reportOf((await evaluate('--candidate', 'chorus', ...suite, '--json')).out);
    expect(words).toMatchObject({ verdict: 'inconclusive', overall: { baseline: 1, candidate: 1 } });
    expect(diversityOf(words)).toMatchObject({ verdict: 'pass', reason: expect.stringContaining('(1 − mean cosine)') });
    expect(embedded).toEqual([]); // nobody is asked unless the settings say so
    const report = reportOf((await with_('wide', '--candidate', 'chorus', '--json')).out);
    expect(diversityOf(report)).toMatchObject({
      ...{ verdict: 'fail', baseline: 1, candidate: 0, limit: 0.3 },
      reason: expect.stringContaining('1 − mean cosine by wide'),
    });
    expect(report.verdict).toBe('fail');
    expect(embedded.map(({ input }) => input.length)).toEqual([16, 16, 8, 16, 8]); // the first one again
    expect(embedded.every(({ origin }) => origin === 'judge')).toBe(true);
  });

  it('measures nothing where the server is away, and neither passes nor fails by counting words instead', async () => {
    const report = reportOf((await with_('away', '--candidate', 'chorus', '--json')).out);
    expect(diversityOf(report)).toMatchObject({
      ...{ verdict: 'unmeasured', baseline: null, candidate: null },
      reason: expect.stringMatching(/^There are no embeddings: upstream server answered 503: .*\(2 attempts\)\.$/),
    });
    expect(report.verdict).toBe('inconclusive');
  });

  it('says so where the settings name no upstream', async () => {
    const { code, err } = await with_('nowhere', '--candidate', 'chorus');
    expect(code).toBe(1);
    expect(err).toContain('agents.0.evaluate.embeddings.upstream: names no upstream: nowhere; there are server');
  });
});

describe('the gateway', () => {
  it.each([{ 'x-pawl-release': 'good' }, { 'x-pawl-origin': 'evaluation' }])(
    'lets only an evaluation’s key say %j',
    async (headers) => {
      const response = await call(headers);
      expect(response.status).toBe(403);
      expect(((await response.json()) as { error: { message: string } }).error.message).toContain('the scope evaluate');
    },
  );

  it('takes a call to the release it names, or says that there is none', async () => {
    const made = await api('/keys', {
      method: 'POST',
      body: JSON.stringify({ name: 'by hand', agent: 'adder', scopes: ['call', 'evaluate'] }),
    });
    const { token, key } = (await made.json()) as { token: string; key: { id: string } };
    const authorization = `Bearer ${token}`;
    const named = await until(
      () => call({ authorization, 'x-pawl-release': 'good' }),
      ({ status }) => status !== 401,
    );
    expect([named.status, named.headers.get('x-pawl-release')]).toEqual([200, 'good']);
    expect((await call({ authorization, 'x-pawl-release': 'v9' })).status).toBe(404);
    expect((await call({ authorization, 'x-pawl-origin': 'production' })).status).toBe(400);
    const routed = await call({ authorization, 'x-pawl-origin': 'evaluation' });
    expect(routed.headers.get('x-pawl-release')).toBe('poor');
    await api(`/keys/${key.id}`, { method: 'DELETE' });
  });
});

describe('pawl evaluate compat', () => {
  it('asks the server through the gateway, says what does not fit, and keeps it', async () => {
    const { code, out } = await evaluate('compat', 'good', '--json', '--require-pass');
    const found = JSON.parse(out) as { verdict: string; checks: { name: string; verdict: string }[] };
    expect(found).toMatchObject({ release: 'good', verdict: 'pass' });
    expect(found.checks.map(({ name }) => name)).toEqual(['template', 'latency', 'memory']);
    expect(code).toBe(0);
    expect(await readCompatibility(store, { agent: 'adder', release: 'good' })).toMatchObject({ verdict: 'pass' });
  });
});

describe('the API', () => {
  const start = (body: object) => api('/evaluations', { method: 'POST', body: JSON.stringify(body) });

  it('evaluates in the server, one at a time, and gives the report', async () => {
    const begun = await start({ agent: 'adder', candidate: 'good', seed: 5 });
    expect(begun.status).toBe(202);
    const { id } = (await begun.json()) as { id: string };
    expect((await start({ agent: 'adder', candidate: 'fussy' })).status).toBe(409);
    const done = await until(
      async () =>
        (await (await api(`/evaluations/${id}`)).json()) as { status: string; played: number; report: string },
      ({ status }) => status !== 'running',
    );
    expect(done).toMatchObject({ status: 'done', played: 64, total: 64, error: null });
    const report = reportSchema.parse(await (await api(`/reports/${done.report}`)).json());
    expect(report).toMatchObject({ candidate: 'good', seed: 5, verdict: 'pass' });
    const { reports } = (await (await api('/reports?agent=adder')).json()) as { reports: { id: string }[] };
    expect(reports[0]!.id).toBe(done.report);
    expect(await keysInUse()).toEqual([]);
  });

  it('refuses what cannot be evaluated', async () => {
    for (const [body, status] of [
      [{ agent: 'adder', candidate: 'v9' }, 404],
      [{ agent: 'other', candidate: 'good' }, 400],
      [{ agent: 'adder', candidate: 'good', suite: '/etc/passwd' }, 400],
      [{ agent: 'adder', candidate: '../x' }, 400],
    ] as const)
      expect((await start(body)).status).toBe(status);
    expect((await api('/evaluations/none')).status).toBe(404);
    expect((await api('/reports/none')).status).toBe(404);
  });
});

describe('pawl evaluate, alone', () => {
  it('starts what it needs and stops it again', async () => {
    await store.close();
    await pawl.kill();
    const { code, out } = await evaluate('--candidate', 'good', '--seed', '9', '--json');
    expect(code).toBe(0);
    expect(reportOf(out)).toMatchObject({ verdict: 'pass', seed: 9 });
    pawl = await pawl.restart();
    store = await pawl.store();
    expect(await keysInUse()).toEqual([]);
  });
});
