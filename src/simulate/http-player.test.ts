import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { httpPlayer } from './http-player.ts';
import type { Conversation } from './player.ts';

type Seen = { url: string; headers: IncomingMessage['headers']; body: Record<string, unknown> };
let server: Server | undefined;

afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  server = undefined;
});

/** A server that answers each request by a function of its body; null: never. */
async function serve(answer: (body: Record<string, unknown>) => { status?: number; json: unknown } | null) {
  const seen: Seen[] = [];
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
    seen.push({ url: request.url!, headers: request.headers, body });
    const reply = answer(body);
    if (reply === null) return;
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' });
    response.end(typeof reply.json === 'string' ? reply.json : JSON.stringify(reply.json));
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  return { seen, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const completion = (message: unknown, more: Record<string, unknown> = {}, top: Record<string, unknown> = {}) => ({
  json: { choices: [{ index: 0, message, finish_reason: 'stop', ...more }], ...top },
});
const conversation = (id = 'desk:t1:0:0'): Conversation => ({
  id,
  task: 't1',
  attempt: 0,
  turn: 0,
  seed: 42,
  groupSeed: 1,
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ type: 'function', function: { name: 'look', description: '', parameters: {} } }],
  previous: null,
  maxTokens: 30,
  context: 200,
});

test('a turn is a chat completion under the trajectory, with the user in a header', async () => {
  const { seen, origin } = await serve(() => completion({ role: 'assistant', content: 'hello' }));
  const play = httpPlayer({
    baseUrl: `${origin}/t/{trajectory}/v1`,
    model: 'support-desk',
    key: 'secret',
    headers: () => ({ 'x-user': 'u7' }),
    temperature: 0.9,
  });
  expect(await play([conversation()])).toEqual([
    { kind: 'said', message: { role: 'assistant', content: 'hello' }, finish: 'stop' },
  ]);
  expect(seen[0]!.url).toBe('/t/desk%3At1%3A0%3A0/v1/chat/completions');
  expect(seen[0]!.headers).toMatchObject({ authorization: 'Bearer secret', 'x-user': 'u7' });
  expect(seen[0]!.body).toEqual({
    model: 'support-desk',
    messages: [{ role: 'user', content: 'hi' }],
    tools: conversation().tools,
    max_tokens: 30,
    seed: 42,
    temperature: 0.9,
  });
});

test('tool calls, usage, exact tokens and a cut answer are read', async () => {
  const calls = [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }];
  const { origin, seen } = await serve(() =>
    completion(
      { role: 'assistant', content: null, tool_calls: calls },
      { finish_reason: 'length', token_ids: [5, 6], logprobs: { content: [{ logprob: -1 }, { logprob: -2 }] } },
      { prompt_token_ids: [1, 2, 3], usage: { prompt_tokens: 3, completion_tokens: 2 } },
    ),
  );
  const [answer] = await httpPlayer({ baseUrl: `${origin}/v1`, model: 'm', tokens: true })([conversation()]);
  expect(seen[0]!.body).toMatchObject({ logprobs: true, return_token_ids: true });
  expect(answer).toEqual({
    kind: 'said',
    message: { role: 'assistant', content: null, tool_calls: calls },
    finish: 'length',
    tokens: { prompt: [1, 2, 3], completion: [5, 6], logprobs: [-1, -2], rawLogprobs: null, version: null },
    usage: { prompt: 3, completion: 2 },
  });
});

test('a tool call the server left in the text is malformed', async () => {
  const { origin } = await serve(() => completion({ role: 'assistant', content: '<tool_call>{"name":' }));
  const [answer] = await httpPlayer({ baseUrl: origin, model: 'm' })([conversation()]);
  expect(answer).toMatchObject({ kind: 'said', malformed: 'a tool call the server could not read' });
});

test.each([
  ['an error status', { status: 503, json: { error: { message: 'busy' } } }, 'answered 503'],
  ['something else than JSON', { json: '<html>' }, 'JSON'],
  ['JSON of another shape', { json: { choices: [] } }, 'not a chat completion'],
])('%s fails that conversation and no other', async (_, reply, detail) => {
  let first = true;
  const { origin } = await serve(() => {
    const bad = first;
    first = false;
    return bad ? reply : completion({ role: 'assistant', content: 'fine' });
  });
  const answers = await httpPlayer({ baseUrl: origin, model: 'm', concurrency: 1 })([conversation(), conversation()]);
  expect(answers[0]).toMatchObject({ kind: 'failed', detail: expect.stringContaining(detail) });
  expect(answers[1]).toMatchObject({ kind: 'said' });
});

test('a server that is busy is asked again, when it says so, and not without end', async () => {
  let left = 2;
  const { seen, origin } = await serve(() =>
    left-- > 0 ? { status: left > 0 ? 429 : 503, json: {} } : completion({ role: 'assistant', content: 'at last' }),
  );
  const [answer] = await httpPlayer({ baseUrl: origin, model: 'm', retries: 2 })([conversation()]);
  expect(answer).toMatchObject({ kind: 'said', message: { content: 'at last' } });
  left = 9;
  const [given] = await httpPlayer({ baseUrl: origin, model: 'm', retries: 1 })([conversation()]);
  expect(given).toMatchObject({ kind: 'failed', detail: expect.stringContaining('answered 429') });
  expect(seen).toHaveLength(5);
});

test('the time for an answer is for all its retries', async () => {
  const { origin } = await serve(() => ({ status: 503, json: { error: 'busy' } }));
  const options = { baseUrl: origin, model: 'm', retries: 1000, timeoutSeconds: 0.2 };
  const [answer] = await httpPlayer(options)([conversation()]);
  expect(answer).toMatchObject({
    kind: 'failed',
    detail: expect.stringMatching(/no answer in 0.2 s; it last answered 503/),
  });
});

test('a server that takes no seeds is asked without, by all who ask at once', async () => {
  const { seen, origin } = await serve(({ seed }) =>
    seed === undefined
      ? completion({ role: 'assistant', content: 'fine' })
      : { status: 400, json: { error: { message: 'Unknown argument: seed' } } },
  );
  const play = httpPlayer({ baseUrl: origin, model: 'm', concurrency: 4 });
  for (const answer of await play(Array.from({ length: 8 }, () => conversation())))
    expect(answer).toMatchObject({ kind: 'said' });
  await play([conversation()]);
  expect(seen.filter(({ body }) => body.seed !== undefined).length).toBeLessThanOrEqual(4);
});

test('a connection that is refused fails the turn', async () => {
  const { origin } = await serve(() => null);
  server!.closeAllConnections();
  await new Promise((resolve) => server!.close(resolve));
  const [answer] = await httpPlayer({ baseUrl: origin, model: 'm' })([conversation()]);
  expect(answer).toMatchObject({ kind: 'failed', detail: expect.stringContaining('ECONNREFUSED') });
});

test('a server that never answers fails the turn after the timeout', async () => {
  const { origin } = await serve(() => null);
  const [answer] = await httpPlayer({ baseUrl: origin, model: 'm', timeoutSeconds: 0.1 })([conversation()]);
  expect(answer).toMatchObject({ kind: 'failed', detail: expect.stringContaining('no answer in 0.1 s') });
});

test('what servers leave out of an answer, or write in parts, is read all the same', async () => {
  const message = {
    role: 'assistant',
    content: [{ type: 'text', text: 'Let me ' }, 'look.'],
    tool_calls: [{ function: { name: 'look', arguments: { id: 7 } } }],
  };
  const { origin } = await serve(() => completion(message));
  const [answer] = await httpPlayer({ baseUrl: origin, model: 'm' })([conversation()]);
  expect(answer).toMatchObject({
    kind: 'said',
    message: {
      role: 'assistant',
      content: 'Let me look.',
      tool_calls: [{ id: 'call_0', type: 'function', function: { name: 'look', arguments: '{"id":7}' } }],
    },
  });
});

test('an id that does not fit a path is made to', async () => {
  const { seen, origin } = await serve(() => completion({ role: 'assistant', content: 'x' }));
  await httpPlayer({ baseUrl: `${origin}/t/{trajectory}/v1`, model: 'm' })([conversation('/a b@c')]);
  expect(seen[0]!.url).toBe('/t/ea-b-c/v1/chat/completions');
});

test('answers keep the order of the conversations', async () => {
  const { origin } = await serve(({ seed }) => completion({ role: 'assistant', content: String(seed) }));
  const many = Array.from({ length: 20 }, (_, i) => ({ ...conversation(), seed: i }));
  const answers = await httpPlayer({ baseUrl: origin, model: 'm', concurrency: 4 })(many);
  expect(answers.map((a) => a.kind === 'said' && a.message.content)).toEqual(many.map(({ seed }) => String(seed)));
});
