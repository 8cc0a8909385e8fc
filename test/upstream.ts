/**
 * A model server for tests and benchmarks: a real HTTP server that speaks OpenAI's and vLLM's wire formats and, on
 * demand, misbehaves in the ways real ones do. The model's name says what it does:
 *
 *   echo            answers `You said: <last user message>`
 *   tools           calls two tools in parallel, then answers once tool results are there
 *   reasoner        sends reasoning_content before content, as vLLM does for thinking models
 *   hang            never answers
 *   hang-midway     sends half a stream, then nothing
 *   cut             closes the connection in the middle of a stream, between events
 *   cut-event       closes it in the middle of an event
 *   malformed       sends SSE that is not JSON
 *   html-500        answers 500 with an HTML page
 *   busy-N          answers 429 with Retry-After 0 to the first N calls of a key, then as echo
 *   down-N          answers 503 to the first N calls of a key, then as echo
 *   refuse          answers 400 in OpenAI's error shape
 *   refuse-echo     the same, and says in the error what the user said
 *   flood           streams 200 MB as fast as the reader takes them
 *   slow-N, lie-…   answers after N milliseconds, or says one thing and sends another: see lying-upstream.ts
 *
 * `return_token_ids` gives prompt_token_ids and token_ids as vLLM does: bytes stand in for tokens.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delayOf, lie } from './lying-upstream.ts';

type ChatRequest = {
  model: string;
  messages?: { role: string; content?: unknown; tool_call_id?: string }[];
  prompt?: string;
  input?: unknown;
  stream?: boolean;
  n?: number;
  logprobs?: boolean;
  return_token_ids?: boolean;
  stream_options?: { include_usage?: boolean };
  user?: string;
};

export type TestUpstream = {
  readonly url: string;
  readonly port: number;
  /** Requests received, by model. */
  readonly calls: Map<string, number>;
  /** Bodies received, newest last; only the last hundred. */
  readonly bodies: ChatRequest[];
  readonly headers: IncomingMessage['headers'][];
  /** Connections on which the caller left before the answer was complete. */
  aborted: number;
  close(): Promise<void>;
};

const created = 1_760_000_000;
const idsOf = (text: string) => [...Buffer.from(text)];

export async function startUpstream(port = 0): Promise<TestUpstream> {
  const calls = new Map<string, number>();
  const bodies: ChatRequest[] = [];
  const headers: IncomingMessage['headers'][] = [];
  const attempts = new Map<string, number>();
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      const data = ['echo', 'tools', 'reasoner'].map((id) => ({ id, object: 'model', created, owned_by: 'test' }));
      json(response, 200, { object: 'list', data });
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as ChatRequest;
      calls.set(body.model, (calls.get(body.model) ?? 0) + 1);
      bodies.push(body);
      headers.push(request.headers);
      if (bodies.length > 100) {
        bodies.shift();
        headers.shift();
      }
      response.on('close', () => {
        if (!response.writableFinished) upstream.aborted++;
      });
      const key = `${body.model} ${body.user ?? ''} ${JSON.stringify(body.messages?.at(-1) ?? '')}`;
      const attempt = (attempts.get(key) ?? 0) + 1;
      if (/^(busy|down)-/.test(body.model)) attempts.set(key, attempt);
      const wait = delayOf(body.model);
      if (lie(body.model, response)) return;
      if (wait === 0) answer(request.url ?? '/', body, attempt, response);
      else setTimeout(() => answer(request.url ?? '/', body, attempt, response), wait);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  const upstream: TestUpstream = {
    url: `http://127.0.0.1:${address.port}/v1`,
    port: address.port,
    calls,
    bodies,
    headers,
    aborted: 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return upstream;
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

const openaiError = (message: string, type: string, code: string | null) => ({
  error: { message, type, param: null, code },
});

function answer(url: string, body: ChatRequest, attempt: number, response: ServerResponse): void {
  const { model } = body;
  const failures = Number(/^(?:busy|down)-(\d+)$/.exec(model)?.[1] ?? 0);
  if (model === 'hang') return;
  if (model === 'html-500') {
    response.writeHead(500, { 'content-type': 'text/html' });
    response.end('<html><body>Internal Server Error</body></html>');
    return;
  }
  if (model === 'refuse') {
    json(response, 400, openaiError('This model refuses everything.', 'invalid_request_error', 'refused'));
    return;
  }
  if (model === 'refuse-echo') {
    json(response, 400, openaiError(`This model refuses: ${lastUser(body)}`, 'invalid_request_error', 'refused'));
    return;
  }
  if (attempt <= failures) {
    if (model.startsWith('busy'))
      json(response, 429, openaiError('Too many requests.', 'rate_limit_error', 'rate_limit'), { 'retry-after': '0' });
    else json(response, 503, openaiError('Loading.', 'server_error', null));
    return;
  }
  if (url.endsWith('/embeddings')) {
    const count = Array.isArray(body.input) ? body.input.length : 1;
    const data = Array.from({ length: count }, (_, index) => ({ object: 'embedding', index, embedding: [0.25, -0.5] }));
    json(response, 200, { object: 'list', model, data, usage: { prompt_tokens: 3, total_tokens: 3 } });
    return;
  }
  const text = url.endsWith('/chat/completions') ? chatText(body) : `Completed: ${body.prompt ?? ''}`;
  if (body.stream) streamAnswer(url, body, text, response);
  else json(response, 200, wholeAnswer(url, body, text));
}

const lastUser = (body: ChatRequest) => {
  const content = body.messages?.findLast((m) => m.role === 'user')?.content;
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
};
const chatText = (body: ChatRequest) => `You said: ${lastUser(body)}`;

const toolCalls = [
  { id: 'call_1', type: 'function', function: { name: 'find_order', arguments: '{"order":"1234"}' } },
  { id: 'call_2', type: 'function', function: { name: 'weather', arguments: '{"city":"Zürich"}' } },
];
const wantsTools = (body: ChatRequest) => body.model === 'tools' && !body.messages?.some((m) => m.role === 'tool');
const usage = (body: ChatRequest, text: string) => {
  const prompt = JSON.stringify(body.messages ?? body.prompt ?? '').length >> 2;
  const completion = Math.max(1, text.length >> 2);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
};
const promptIds = (body: ChatRequest) => idsOf(JSON.stringify(body.messages ?? body.prompt ?? ''));

function wholeAnswer(url: string, body: ChatRequest, text: string): unknown {
  const ids = body.return_token_ids ? { token_ids: idsOf(text) } : {};
  const choices = Array.from({ length: body.n ?? 1 }, (_, index) => {
    if (!url.endsWith('/chat/completions')) return { index, text, finish_reason: 'stop', logprobs: null, ...ids };
    const logprobs = body.logprobs
      ? {
          content: [...text].map((token) => ({
            token,
            logprob: -0.5,
            bytes: [...Buffer.from(token)],
            top_logprobs: [],
          })),
        }
      : null;
    if (wantsTools(body))
      return {
        index,
        message: { role: 'assistant', content: null, tool_calls: toolCalls },
        finish_reason: 'tool_calls',
        logprobs,
      };
    const reasoning = body.model === 'reasoner' ? { reasoning_content: 'Let me think.' } : {};
    return {
      index,
      message: { role: 'assistant', content: text, refusal: null, ...reasoning },
      finish_reason: 'stop',
      logprobs,
      ...ids,
    };
  });
  return {
    id: 'chatcmpl-test',
    object: url.endsWith('/chat/completions') ? 'chat.completion' : 'text_completion',
    created,
    model: body.model,
    choices,
    usage: usage(body, text),
    system_fingerprint: 'fp_test',
    ...(body.return_token_ids ? { prompt_token_ids: promptIds(body) } : {}),
  };
}

function streamAnswer(url: string, body: ChatRequest, text: string, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  const { model } = body;
  const base = { id: 'chatcmpl-test', object: 'chat.completion.chunk', created, model, system_fingerprint: 'fp_test' };
  const send = (value: unknown) => response.write(`data: ${JSON.stringify(value)}\n\n`);
  const delta = (index: number, part: unknown, finish: string | null = null, extra: object = {}) =>
    send({ ...base, choices: [{ index, delta: part, logprobs: null, finish_reason: finish, ...extra }] });

  if (model === 'flood') {
    const piece = 'x'.repeat(64 * 1024);
    let left = (200 * 1024 * 1024) / piece.length;
    const pour = () => {
      while (left-- > 0) if (!send({ ...base, choices: [{ index: 0, delta: { content: piece } }] })) break;
      if (left > 0) response.once('drain', pour);
      else response.end('data: [DONE]\n\n');
    };
    pour();
    return;
  }
  if (!url.endsWith('/chat/completions')) {
    for (const piece of pieces(text))
      send({ ...base, object: 'text_completion', choices: [{ index: 0, text: piece }] });
    send({ ...base, object: 'text_completion', choices: [{ index: 0, text: '', finish_reason: 'stop' }] });
    response.end('data: [DONE]\n\n');
    return;
  }

  const first = body.return_token_ids ? { ...base, prompt_token_ids: promptIds(body) } : base;
  for (let index = 0; index < (body.n ?? 1); index++) {
    send({
      ...first,
      choices: [{ index, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }],
    });
    if (model === 'reasoner') for (const piece of ['Let me ', 'think.']) delta(index, { reasoning_content: piece });
    if (wantsTools(body)) {
      toolCalls.forEach((call, position) => {
        delta(index, {
          tool_calls: [{ ...call, index: position, function: { name: call.function.name, arguments: '' } }],
        });
        for (const piece of pieces(call.function.arguments))
          delta(index, { tool_calls: [{ index: position, function: { arguments: piece } }] });
      });
      delta(index, {}, 'tool_calls');
      continue;
    }
    const parts = pieces(text);
    for (const [i, piece] of parts.entries()) {
      if (i === Math.ceil(parts.length / 2)) {
        if (model === 'hang-midway') return;
        if (model === 'cut' || model === 'cut-event') {
          if (model === 'cut-event') response.write('data: {"id":"chatcmpl-te');
          setTimeout(() => response.destroy(), 20);
          return;
        }
        if (model === 'malformed') response.write('data: {not json\n\nnonsense without a colon\n\n');
      }
      const ids = body.return_token_ids ? { token_ids: idsOf(piece) } : {};
      const logprobs = body.logprobs ? { logprobs: { content: [{ token: piece, logprob: -0.5 }] } } : {};
      delta(index, { content: piece }, null, { ...ids, ...logprobs });
    }
    delta(index, {}, 'stop');
  }
  if (body.stream_options?.include_usage) send({ ...base, choices: [], usage: usage(body, text) });
  response.end('data: [DONE]\n\n');
}

/** Short pieces, cut without regard to words, as tokens are. */
const pieces = (text: string) => text.match(/[\s\S]{1,5}/gu) ?? [];
