/** The gateway as a door for everything below /v1, with a real process: other wire formats, whatever the upstream serves, bounds. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { timelineOf } from '../src/collect/timeline.ts';
import { timelineLines } from '../src/collect/timeline-print.ts';
import type { Store } from '../src/store/postgres.ts';
import { readTrajectory, type WholeTrajectory } from '../src/store/trajectories.ts';
import { paint } from '../src/terminal.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';

const fixture = (name: string) => readFileSync(`src/collect/fixtures/${name}.sse`);
const streams: Record<string, Buffer> = {
  '/v1/messages': fixture('messages-tools'),
  '/v1/responses': fixture('responses-tools'),
};
const text = (said: string) => [{ type: 'text', text: said }];
const wholeAnswers: Record<string, object> = {
  '/v1/messages': {
    id: 'msg_2',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: text('It is lost, sorry.'),
    stop_reason: 'end_turn',
    usage: { input_tokens: 20, output_tokens: 6 },
  },
  '/v1/responses': {
    id: 'resp_2',
    object: 'response',
    status: 'completed',
    model: 'gpt',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'It is lost, sorry.' }] }],
    usage: { input_tokens: 20, output_tokens: 6 },
  },
};
const chatAnswer = {
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
};

type Seen = { method: string; url: string; headers: IncomingMessage['headers']; bytes: number; sha256: string };
/** What the upstream got last. */
let seen: Seen;

function upstream(): Promise<Server> {
  const answer = (incoming: IncomingMessage, response: ServerResponse, first: Buffer) => {
    const url = incoming.url!.split('?')[0]!;
    response.setHeader('content-type', 'application/json');
    const isFile = incoming.headers['content-type']?.startsWith('multipart/'); // random bytes, which may begin with a brace
    const body = (!isFile && first.length > 0 ? JSON.parse(first.toString()) : {}) as Record<string, unknown>;
    if (url.endsWith('/models')) response.end(JSON.stringify({ data: [{ id: 'listed' }] }));
    else if (body.model === 'zipped' || body.model === 'zipped-error') {
      const error = { error: { message: 'Zipped trouble.', type: 'invalid_request_error' } };
      response.writeHead(body.model === 'zipped' ? 200 : 400, { 'content-encoding': 'gzip' });
      response.end(gzipSync(JSON.stringify(body.model === 'zipped' ? chatAnswer : error)));
    } else if (body.model === 'hops') {
      response.writeHead(200, { connection: 'close, x-hop', 'x-hop': '1', 'x-pawl-trajectory': 'forged' });
      response.end(JSON.stringify(chatAnswer));
    } else if (body.model === 'refused') {
      response.writeHead(400).end('No.');
    } else if (body.stream === true && streams[url]) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(body.model === 'cut' ? streams[url].subarray(0, 700) : streams[url]);
    } else if (wholeAnswers[url]) response.end(JSON.stringify(wholeAnswers[url]));
    else if (url.endsWith('/chat/completions')) response.end(JSON.stringify(chatAnswer));
    else if (url.endsWith('/content')) Readable.from(parts(64)).pipe(response);
    else response.writeHead(incoming.method === 'DELETE' ? 404 : 201, { 'x-served': 'yes' }).end('from the upstream');
  };
  const server = createServer((incoming, response) => {
    const hash = createHash('sha256');
    let bytes = 0;
    const first: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      if (bytes < 4 * 1024 * 1024) first.push(chunk);
      bytes += chunk.length;
    });
    incoming.on('end', () => {
      const { method, url, headers } = incoming as { method: string; url: string; headers: IncomingMessage['headers'] };
      seen = { method, url, headers, bytes, sha256: hash.digest('hex') };
      answer(incoming, response, Buffer.concat(first));
    });
  });
  server.listen(0, '127.0.0.1');
  return once(server, 'listening').then(() => server);
}

const piece = randomBytes(1024 * 1024);
function* parts(megabytes: number) {
  for (let i = 0; i < megabytes; i++) yield piece;
}

let server: Server;
let pawl: PawlProcess;
let store: Store;
const folder = mkdtempSync(join(tmpdir(), 'pawl-doors-'));
beforeAll(async () => {
  server = await upstream();
  const config = join(folder, 'pawl.config.mjs');
  writeFileSync(config, 'export default { gateway: { memoryMb: 64, maxInFlight: 40 } };\n');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  pawl = await startPawl({ PAWL_UPSTREAM: url, PAWL_UPSTREAM_KEY: 'up' }, undefined, undefined, ['--config', config]);
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  server?.close();
  server?.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

const recorded = async (id: string, turns: number): Promise<WholeTrajectory> =>
  (await until(
    () => readTrajectory(store, id),
    (found) => (found?.turns.length ?? 0) >= turns,
  ))!;
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(pawl.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json', ...headers },
    body: body instanceof Uint8Array ? (body as unknown as string) : JSON.stringify(body),
  });
const chat = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };
const codeOf = async (response: Response) =>
  [response.status, ((await response.json()) as { error: { code: string } }).error.code] as const;
const metricsText = async () => (await fetch(`${pawl.url}/metrics`)).text();
const metric = async (name: string) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(await metricsText())?.[1]);
const lines = ({ trajectory, turns, signals }: WholeTrajectory) =>
  timelineLines(trajectory, timelineOf(turns, signals), { columns: 100, paint: paint(false), full: false }).join('\n');

describe('Anthropic’s messages', () => {
  const anthropic = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(pawl.url + path, {
      method: 'POST',
      headers: { 'x-api-key': pawl.key, 'anthropic-version': '2023-06-01', ...headers },
      body: JSON.stringify(body),
    });
  const first = { role: 'user', content: 'Where is order A-17?' };
  const answered = {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'The order must be looked up.', signature: 'EqQBCgIYAhIM' },
      ...text('Let me look, Zoë.'),
      { type: 'tool_use', id: 'toolu_01', name: 'find_order', input: { order: 'A-17' } },
    ],
  };

  it('are forwarded as they are, recorded, and threaded into one conversation that reads well', async () => {
    const base = { model: 'claude', max_tokens: 100, metadata: { user_id: 'ann@example.com' } };
    const streamed = await anthropic('/v1/messages?beta=true', { ...base, messages: [first], stream: true });
    expect(seen.url).toBe('/v1/messages?beta=true');
    expect(Buffer.from(await streamed.arrayBuffer()).equals(streams['/v1/messages']!)).toBe(true);
    expect(seen.headers).toMatchObject({ 'x-api-key': 'up', 'anthropic-version': '2023-06-01' });
    const turn = streamed.headers.get('x-pawl-turn')!;
    const results = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_01', content: 'lost' }] };
    await (await anthropic('/v1/messages', { ...base, messages: [first, answered, results] })).text();

    const { rows } = await until(
      () => store.pool.query<{ trajectory: string }>('select trajectory from pawl.turns where id = $1', [turn]),
      (found) => found.rows.length > 0,
    );
    const whole = await recorded(rows[0]!.trajectory, 2);
    expect(whole.turns.map(({ endpoint, status, stream }) => [endpoint, status, stream])).toEqual([
      ['messages', 'ok', true],
      ['messages', 'ok', false],
    ]);
    expect(whole.turns[0]!.user).not.toBeNull();
    expect(JSON.stringify(whole)).not.toContain('ann@example.com');
    const shown = lines(whole);
    expect(shown).toMatch(/user +Where is order A-17\?/);
    expect(shown).toMatch(/thinking +The order must be looked up\./);
    expect(shown).toMatch(/assistant +Let me look, Zoë\./);
    expect(shown).toMatch(/call +find_order\(order: "A-17"\)/);
    expect(shown).toMatch(/result +find_order → lost/);
    expect(shown).toMatch(/assistant +It is lost, sorry\./);
    expect(shown.match(/Where is order/g)).toHaveLength(1);
  });

  it('get errors in Anthropic’s shape', async () => {
    const wrong = await anthropic('/v1/messages', { model: 'claude', messages: [first] }, { 'x-api-key': 'nonsense' });
    expect(wrong.status).toBe(401);
    expect(await wrong.json()).toMatchObject({ type: 'error', error: { type: 'authentication_error' } });
    const empty = await anthropic('/v1/messages', { model: 'claude' });
    expect(await empty.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    const refused = await anthropic('/v1/messages', { model: 'refused', messages: [first] });
    expect(await refused.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
  });
});

describe('OpenAI’s responses', () => {
  it('are forwarded, recorded and threaded, streamed and whole, with the openai package', async () => {
    const client = new OpenAI({ baseURL: `${pawl.url}/t/responses/v1`, apiKey: pawl.key, maxRetries: 0 });
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Where is order A-17?' }];
    let said = '';
    for await (const event of await client.responses.create({ model: 'gpt', input, stream: true }))
      if (event.type === 'response.output_text.delta') said += event.delta;
    expect(said).toBe('One moment, Zoë.');
    const more: OpenAI.Responses.ResponseInput = [
      ...input,
      { type: 'function_call', call_id: 'call_1', name: 'find_order', arguments: '{"order":"A-17"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'lost' },
    ];
    const answer = await client.responses.create({ model: 'gpt', instructions: 'Be kind.', input: more });
    expect(answer.output_text).toBe('It is lost, sorry.');
    const whole = await recorded('responses', 2);
    expect(whole.turns.map(({ endpoint, status }) => [endpoint, status])).toEqual([
      ['responses', 'ok'],
      ['responses', 'ok'],
    ]);
    expect(whole.turns[0]).toMatchObject({ promptTokens: 36, completionTokens: 87, reasoningTokens: 20 });
    const shown = lines(whole);
    for (const part of [/thinking +Look it up/, /call +find_order/, /result +find_order → lost/, /system +Be kind/])
      expect(shown).toMatch(part);
  });

  it('that broke off are recorded as far as they came', async () => {
    const response = await post('/t/responses-cut/v1/responses', { model: 'cut', input: 'x', stream: true });
    await response.text();
    expect((await recorded('responses-cut', 1)).turns[0]).toMatchObject({ status: 'truncated', endpoint: 'responses' });
  });
});

describe('what else the upstream serves', () => {
  it('passes through with its method, query and headers, and is counted but not recorded', async () => {
    const before = await store.pool.query<{ n: number }>('select count(*) as n from pawl.turns');
    const deleted = await fetch(`${pawl.url}/v1/files/f-1?after=2&x=%20`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${pawl.key}`, 'x-custom': 'kept' },
    });
    expect([deleted.status, await deleted.text()]).toEqual([404, 'from the upstream']);
    expect(seen).toMatchObject({ method: 'DELETE', url: '/v1/files/f-1?after=2&x=%20', bytes: 0 });
    expect(seen.headers).toMatchObject({ 'x-custom': 'kept', authorization: 'Bearer up' });
    const moderated = await post('/v1/moderations', { input: 'x', model: 'm' });
    expect([moderated.status, moderated.headers.get('x-served')]).toEqual([201, 'yes']);
    const text = await metricsText();
    expect(text).toMatch(/pawl_requests_total\{[^}]*endpoint="other",status="ok"\} 1/);
    expect(text).toMatch(/pawl_requests_total\{[^}]*endpoint="other",status="error"\} 1/);
    const after = await store.pool.query<{ n: number }>('select count(*) as n from pawl.turns');
    expect(after.rows).toEqual(before.rows);
    expect((await fetch(`${pawl.url}/v1/files`)).status).toBe(401);
  });

  it('streams large bodies both ways without holding them', async () => {
    const size = 200;
    const expected = createHash('sha256');
    for (const part of parts(size)) expected.update(part);
    let highest = 0;
    const body = Readable.from(
      (async function* () {
        for (const part of parts(size)) {
          yield part;
          highest = Math.max(highest, await metric('pawl_memory_bytes'));
        }
      })(),
    );
    const before = await metric('process_resident_memory_bytes');
    const uploaded = await fetch(`${pawl.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pawl.key}`, 'content-type': 'multipart/form-data; boundary=x' },
      body: Readable.toWeb(body) as unknown as string,
      duplex: 'half',
    } as RequestInit);
    expect(uploaded.status).toBe(201);
    expect(seen).toMatchObject({ bytes: size * piece.length, sha256: expected.digest('hex') });
    const down = await fetch(`${pawl.url}/v1/files/f-1/content`, { headers: { authorization: `Bearer ${pawl.key}` } });
    expect((await down.arrayBuffer()).byteLength).toBe(64 * piece.length);
    expect(highest).toBe(0);
    expect((await metric('process_resident_memory_bytes')) - before).toBeLessThan(120 * 1024 * 1024);
  });

  it('cannot be left for what lies beside /v1, nor used to change the server', async () => {
    /** As it is written: fetch would tidy the path first. */
    const raw = (path: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { authorization: `Bearer ${pawl.key}` };
        const { port } = new URL(pawl.url);
        request({ host: '127.0.0.1', port, path, headers }, (response) => {
          response.resume();
          resolve(response.statusCode!);
        })
          .on('error', reject)
          .end();
      });
    for (const path of ['/v1/../admin', '/v1/files/..%2f..%2fadmin', '/v1/%2e%2e/admin', '/v1/x/..%5cy', '/v1/./x'])
      expect(await raw(path), path).toBe(400);
    expect(await codeOf(await post('/v1/load_lora_adapter', { lora_name: 'x' }))).toEqual([403, 'not_for_clients']);
    for (const path of ['/v1/load%5Flora_adapter', '/v1//load_lora_adapter/', '/v1/%2Funload_lora_adapter'])
      expect(await raw(path), path).toBe(403);
    for (const path of ['/v1//chat/completions', '/v1/chat%2fcompletions', '/v1/message%73/'])
      expect(await raw(path), path).toBe(400); // would be answered, and not recorded
    expect(await raw('/v1/models/org%2Fname')).toBe(404); // Pawl's own list
    expect(await raw('/v1/files/org%2Fname')).toBe(201);
  });
});

describe('compressed bodies', () => {
  it('are accepted, and reach the upstream plain', async () => {
    const plain = Buffer.from(JSON.stringify(chat));
    for (const [coding, bytes] of [
      ['gzip', gzipSync(plain)],
      ['deflate', deflateSync(plain)],
      ['br', brotliCompressSync(plain)],
    ] as const) {
      const response = await post('/v1/chat/completions', bytes, { 'content-encoding': coding });
      expect([coding, response.status]).toEqual([coding, 200]);
      expect(seen).toMatchObject({ bytes: plain.length });
      expect(seen.headers['content-encoding']).toBeUndefined();
    }
  });

  it('that expand beyond the limit are refused before they do', async () => {
    const bomb = gzipSync(Buffer.alloc(300 * 1024 * 1024, 0x20)); // 300 kB
    expect(await codeOf(await post('/v1/chat/completions', bomb, { 'content-encoding': 'gzip' }))).toEqual([
      413,
      'body_too_large',
    ]);
    const broken = gzipSync(Buffer.from(JSON.stringify(chat))).subarray(0, 20);
    expect(await codeOf(await post('/v1/chat/completions', broken, { 'content-encoding': 'gzip' }))).toEqual([
      400,
      'invalid_encoding',
    ]);
  });

  it('of an upstream that nobody asked for them pass, and are recorded plain', async () => {
    expect(await (await post('/t/zipped/v1/chat/completions', { ...chat, model: 'zipped' })).json()).toEqual(
      chatAnswer,
    );
    const [turn] = (await recorded('zipped', 1)).turns;
    expect(turn).toMatchObject({ status: 'ok', choices: [{ message: { content: 'Hello.' } }] });
    const failed = await post('/t/zipped-error/v1/chat/completions', { ...chat, model: 'zipped-error' });
    expect(await failed.json()).toMatchObject({ error: { message: 'Zipped trouble.' } });
    expect((await recorded('zipped-error', 1)).turns[0]).toMatchObject({ status: 'error', httpStatus: 400 });
  });
});

it('whoever asks before sending is told to go on, or why not', async () => {
  const ask = (length: number) =>
    new Promise<string>((resolve, reject) => {
      const headers = { authorization: `Bearer ${pawl.key}`, expect: '100-continue', 'content-length': length };
      const call = request(`${pawl.url}/v1/chat/completions`, { method: 'POST', headers });
      let said = '';
      call.on('continue', () => {
        said = 'go on, ';
        call.end(JSON.stringify(chat));
      });
      call.on('response', (response) => {
        response.resume();
        resolve(`${said}${response.statusCode}`);
        call.destroy();
      });
      call.on('error', reject);
      call.flushHeaders();
    });
  expect(await ask(JSON.stringify(chat).length)).toBe('go on, 200');
  expect(await ask(50 * 1024 * 1024)).toBe('413');
});

it('headers of a connection stay on it', async () => {
  const response = await post(
    '/v1/chat/completions',
    { ...chat, model: 'hops' },
    {
      'proxy-authorization': 'Basic c2VjcmV0',
    },
  );
  expect(seen.headers['proxy-authorization']).toBeUndefined();
  expect(response.headers.get('x-hop')).toBeNull();
  expect(response.headers.get('x-pawl-trajectory')).toBeNull();
});

it('messages that two servers could read differently are refused', async () => {
  const { port } = new URL(pawl.url);
  const send = async (head: string) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${pawl.key}\r\n${head}`,
    );
    let answer = '';
    for await (const chunk of socket) answer += chunk;
    return answer.slice(9, 12);
  };
  const body = JSON.stringify(chat);
  for (const head of [
    `content-length: ${body.length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    `content-length: 4\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    `transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    `transfer-encoding : chunked\r\n\r\n0\r\n\r\n`,
    `content-length: +${body.length}\r\n\r\n${body}`,
  ])
    expect(await send(head), head).toBe('400');
  expect(await send(`content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`)).toBe('200');
});

describe('memory', () => {
  const { length } = piece;
  /** A call whose body is begun and held open. */
  const begin = (bytes: number, headers: Record<string, string> = {}) => {
    let status: number | null = null;
    const call = request(`${pawl.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pawl.key}`, ...headers },
    });
    const answered = new Promise<number>((resolve) => {
      call.on('response', (response) => {
        status = response.statusCode!;
        response.resume();
        resolve(status);
      });
    });
    call.on('error', () => {});
    call.flushHeaders();
    for (let sent = 0; sent < bytes; sent += length) call.write(Buffer.alloc(length, 0x20));
    return { call, answered, status: () => status };
  };

  it('for bodies is bounded in all, whoever sends them', async () => {
    const calls = Array.from({ length: 12 }, () => begin(10 * length));
    const used = () => metric('pawl_memory_bytes');
    await until(
      () => calls.filter((call) => call.status() !== null).length,
      (refused) => refused >= 6, // 6 × 10 MB fit into 64
    );
    expect(calls.filter((call) => call.status() !== null).every((call) => call.status() === 503)).toBe(true);
    expect(await used()).toBeLessThanOrEqual(64 * length);
    for (const { call } of calls) call.destroy();
    await until(used, (bytes) => bytes === 0);
    expect((await post('/v1/chat/completions', chat)).status).toBe(200);
  });

  it('is refused to a body that would not fit, before any of it is read', async () => {
    const calls = Array.from({ length: 4 }, () => begin(15 * length));
    await until(
      () => metric('pawl_memory_bytes'),
      (bytes) => bytes === 60 * length,
    );
    const late = begin(0, { 'content-length': String(15 * length) });
    expect(await late.answered).toBe(503);
    expect((await post('/v1/chat/completions', chat)).status).toBe(200);
    for (const { call } of [...calls, late]) call.destroy();
    await until(
      () => metric('pawl_memory_bytes'),
      (bytes) => bytes === 0,
    );
  });

  it('and places are given before a body is read', async () => {
    const calls = Array.from({ length: 40 }, () => begin(0, { 'content-length': '100' }));
    await until(
      () => metric('pawl_requests_in_flight'),
      (n) => n === 40,
    );
    const response = await post('/v1/chat/completions', chat);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    for (const { call } of calls) call.destroy();
    await until(
      () => metric('pawl_requests_in_flight'),
      (n) => n === 0,
    );
  });

  it('and time are not spent on bodies that are nothing but brackets', async () => {
    const bomb = Buffer.from(`{"model":"m","messages":[${'[],'.repeat(5_000_000)}0]}`);
    const answers = await Promise.all(Array.from({ length: 4 }, () => post('/v1/chat/completions', bomb).then(codeOf)));
    for (const answer of answers) expect(answer).toEqual([400, 'too_many_values']);
  });

  it('holds a large body as it is, and the turn has it whole', async () => {
    const large = { ...chat, messages: [{ role: 'user', content: 'é"\\'.repeat(200_000) }] };
    expect((await post('/t/large/v1/chat/completions', large)).status).toBe(200);
    expect(seen.bytes).toBe(Buffer.byteLength(JSON.stringify(large)));
    const [turn] = (await recorded('large', 1)).turns;
    expect(turn!.request.messages).toEqual(large.messages);
  });
});

describe('what Pawl says of itself', () => {
  it('is not for pages that point their own name at this machine', async () => {
    const { port } = new URL(pawl.url);
    for (const path of ['/metrics', '/healthz', '/readyz']) {
      const status = await new Promise<number>((resolve, reject) => {
        request({ host: '127.0.0.1', port, path, headers: { host: 'evil.example' } }, (response) => {
          response.resume();
          resolve(response.statusCode!);
        })
          .on('error', reject)
          .end();
      });
      expect([path, status]).toEqual([path, 403]);
    }
  });

  it('does not repeat names that callers make up', async () => {
    await post('/v1/chat/completions', { ...chat, model: 'ann@example.com' });
    expect(await metricsText()).not.toContain('ann@example.com');
    expect(await metricsText()).toContain('release="default/other",endpoint="chat"');
    await until(
      async () => {
        await post('/v1/chat/completions', { ...chat, model: 'listed' });
        return metricsText();
      },
      (text) => text.includes('release="default/listed"'),
    );
  });

  it('is shown to others than this machine only with the admin token, and the start warns', async () => {
    const open = await startPawl({ PAWL_HOST: '0.0.0.0', PAWL_UPSTREAM: 'http://127.0.0.1:9/v1' });
    const url = open.url.replace('0.0.0.0', '127.0.0.1');
    try {
      expect(open.output()).toMatch(/warning +other machines can reach 0\.0\.0\.0/);
      expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok' });
      expect((await fetch(`${url}/metrics`)).status).toBe(401);
      const headers = { authorization: `Bearer ${open.adminToken}` };
      expect((await fetch(`${url}/metrics`, { headers })).status).toBe(200);
      expect(await (await fetch(`${url}/healthz`, { headers })).json()).toMatchObject({ status: 'ok', problems: [] });

      // And an upstream that is not there is said not to be, also to someone who is still sending.
      const sent = await fetch(`${url}/v1/audio/transcriptions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${open.key}`, 'content-type': 'multipart/form-data; boundary=x' },
        body: new Uint8Array(8 * 1024 * 1024),
      });
      expect(await codeOf(sent)).toEqual([502, 'upstream_unreachable']);
    } finally {
      await open.remove();
    }
  });
});

it.runIf(process.platform === 'linux')('a full disk under the log costs lines and no answers', async () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const quiet = await startPawl(
    { PAWL_UPSTREAM: url },
    undefined,
    undefined,
    [],
    ['bash', '-c', 'exec "$@" 2>/dev/full', '--'],
  );
  try {
    const call = async () =>
      (
        await fetch(`${quiet.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${quiet.key}` },
          body: JSON.stringify(chat),
        })
      ).status;
    const pid = Number(readFileSync(join(quiet.home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
    process.kill(pid, 'SIGKILL');
    await until(
      async () => {
        expect(await call()).toBe(200);
        return (await fetch(`${quiet.url}/healthz`)).json() as Promise<{ problems: string[] }>;
      },
      ({ problems }) => problems.some((problem) => problem.includes('log lines could not be written')),
    );
    await quiet.kill('SIGTERM');
    expect(quiet.process.exitCode).toBe(0);
  } finally {
    await quiet.remove();
  }
});

it('takes what a user did with an answer at /v1/events, once, and refuses what is no such thing', async () => {
  const post = (path: string, body: object) =>
    fetch(`${pawl.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const asked = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };
  expect((await post('/t/did/u/ann/v1/chat/completions', asked)).status).toBe(200);
  for (let i = 0; i < 2; i++)
    expect((await post('/t/did/u/ann/v1/events', { event: 'edited', text: 'Better so.' })).status).toBe(202);
  expect((await post('/t/did/u/ann/v1/events', { event: 'admired' })).status).toBe(400);
  const found = await until(
    () => readTrajectory(store, 'did'),
    (whole) => (whole?.signals.length ?? 0) > 0,
  );
  expect(found!.signals).toMatchObject([{ kind: 'event', name: 'edited', value: null, correction: 'Better so.' }]);
});
