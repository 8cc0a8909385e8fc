/**
 * The OpenAI-compatible HTTP door of an engine: /v1/chat/completions, /v1/completions (JSON and SSE), /v1/models and
 * /health. It parses, tokenizes, samples and writes the answer; which model a name means is served.ts, what a request
 * may say is openai.ts. Loading and training are not here but on the local socket (socket.ts).
 * `return_token_ids` has vLLM's shape, so whoever records the traffic need never tokenize it again.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EngineError, RequestError } from '../errors.ts';
import { checkCharacters } from './chat.ts';
import type { Engine, Sample, SampleParams, SampleResult } from './engine.ts';
import { memoryUsed, tellMemory } from './memory-header.ts';
import { machineMemory } from './onnx/memory.ts';
import {
  type ChatRequest,
  type CompletionRequest,
  chatLogprobs,
  completionLogprobs,
  errorBody,
  parseChatRequest,
  parseCompletionRequest,
  type TokenLogprob,
  usageOf,
} from './openai.ts';
import type { Served, ServedModels } from './served.ts';
import { createStopText, type StopStrings, stopStrings } from './stop-text.ts';
import type { Tokenizer } from './tokenizer.ts';
import { createOutputParser, type OutputOptions, type OutputPart } from './tool-calls.ts';

export type ServeOptions = {
  readonly engine: Engine;
  readonly models: ServedModels;
  readonly host?: string; // 127.0.0.1
  readonly port?: number; // 0: any free one
  readonly maxBodyBytes?: number; // 16 MiB
  /** Beyond this many requests at once the answer is 429. */
  readonly maxRequests?: number; // 1024
  /** What an unexpected error is reported to; the caller only learns that there was one. */
  readonly onError?: (error: unknown) => void;
};

export type ServeHandle = {
  readonly url: string;
  readonly port: number;
  /** Takes no new requests, lets the running ones finish, then resolves. */
  close(): Promise<void>;
};

export async function serve(options: ServeOptions): Promise<ServeHandle> {
  const { host = '127.0.0.1', port = 0 } = options;
  const startedAt = Date.now();
  const server = createServer((request, response) => {
    void answer(options, startedAt, request, response);
  });
  server.requestTimeout = 60_000; // for the request to arrive, not for the answer
  server.keepAliveTimeout = 65_000;
  await new Promise<void>((done, fail) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why = cause.code === 'EADDRINUSE' ? `port ${port} is taken; give another` : cause.message;
      fail(new EngineError(`The engine cannot listen on ${host}:${port}: ${why}.`, { cause }));
    });
    server.listen(port, host, done);
  });
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    close: () => closeServer(server),
  };
}

function closeServer(server: Server): Promise<void> {
  return new Promise((done) => {
    // A connection is kept alive after its last answer; once we are closing, idle means finished.
    const sweep = setInterval(() => server.closeIdleConnections(), 50);
    server.close(() => {
      clearInterval(sweep);
      done();
    });
    server.closeIdleConnections();
  });
}

async function answer(
  options: ServeOptions,
  startedAt: number,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    await route(options, startedAt, request, response);
  } catch (error) {
    if (response.destroyed || response.writableEnded) return; // the caller left; nobody to tell
    const { status, code, message } = describe(error);
    if (status >= 500) options.onError?.(error);
    const body = JSON.stringify(errorBody(status, code, message));
    if (response.headersSent) {
      response.end(`data: ${body}\n\n`);
      return;
    }
    // What is left of an oversized body is not read, so the connection cannot be used again.
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(status === 413 ? { connection: 'close' } : {}),
      ...(status === 429 || status === 503 ? { 'retry-after': '1' } : {}),
    });
    response.end(body);
  }
}

function describe(error: unknown): { status: number; code: string; message: string } {
  if (error instanceof RequestError) return error;
  if (error instanceof EngineError) {
    return { status: error.retryable ? 503 : 500, code: 'engine_error', message: error.message };
  }
  return { status: 500, code: 'internal_error', message: 'The engine failed to answer; its log says why.' };
}

async function route(
  options: ServeOptions,
  startedAt: number,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (isLoopback(options.host ?? '127.0.0.1') && !isLoopback(hostOf(request))) {
    // A web page can point its own name at this machine; no local program calls us by another name than this one.
    throw new RequestError(
      403,
      'wrong_host',
      `This engine answers on this machine only, not as ${hostOf(request).slice(0, 200)}.`,
    );
  }
  const path = (request.url ?? '/').split('?')[0]!;
  const post = path === '/v1/chat/completions' || path === '/v1/completions';
  const get = path === '/health' || path === '/v1/models' || path.startsWith('/v1/models/');
  if (!post && !get) throw new RequestError(404, 'not_found', `There is nothing at ${path.slice(0, 200)}.`);
  if (request.method !== (post ? 'POST' : 'GET')) {
    response.setHeader('allow', post ? 'POST' : 'GET');
    throw new RequestError(405, 'method_not_allowed', `${path.slice(0, 200)} answers ${post ? 'POST' : 'GET'} only.`);
  }
  if (path === '/health') return sendJson(response, await health(options, startedAt));
  if (path === '/v1/models') {
    return sendJson(response, { object: 'list', data: options.models.list().map((m) => modelCard(m, startedAt)) });
  }
  if (get) {
    const name = decodeName(path.slice('/v1/models/'.length));
    return options.models.use(name, async (served) => sendJson(response, modelCard(served, startedAt)));
  }

  if (options.models.requests() >= (options.maxRequests ?? 1024)) {
    throw new RequestError(
      429,
      'too_many_requests',
      `${options.models.requests()} requests are running; try again soon.`,
    );
  }
  const body = await readJson(request, options.maxBodyBytes ?? 16 * 2 ** 20);
  const parsed = path === '/v1/chat/completions' ? parseChatRequest(body) : parseCompletionRequest(body);
  const leave = new AbortController();
  response.once('close', () => leave.abort());
  await options.models.use(parsed.model, (served) => complete(options.engine, served, parsed, response, leave.signal));
}

const hostOf = (request: IncomingMessage) => (request.headers.host ?? 'localhost').replace(/:\d+$/, '');

export const isLoopback = (host: string) => /^(localhost|127(\.\d+){3}|\[?::1\]?)$/i.test(host);

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RequestError(400, 'invalid_request', 'The model name in the path is not properly encoded.');
  }
}

async function readJson(request: IncomingMessage, cap: number): Promise<unknown> {
  // Requiring JSON also keeps web pages of other origins out: they cannot send it without asking first.
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    throw new RequestError(415, 'unsupported_media_type', 'Send the request as content-type application/json.');
  }
  const tooLarge = () => new RequestError(413, 'request_too_large', `The request body is over ${cap} bytes.`);
  if (Number(request.headers['content-length'] ?? 0) > cap) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > cap) throw tooLarge();
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (cause) {
    throw new RequestError(400, 'invalid_json', `The request body is not JSON: ${(cause as Error).message}.`);
  }
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

function modelCard({ name, info }: Served, startedAt: number): object {
  return {
    id: name,
    object: 'model',
    created: Math.floor(startedAt / 1000),
    owned_by: 'pawl',
    max_model_len: info.context,
  };
}

/** Of the machine's memory, or of what a container may use, the share that is taken by whomever. */
const memoryFull = (): number => Math.min(1, Math.max(0, 1 - process.availableMemory() / machineMemory()));

async function health({ engine, models }: ServeOptions, startedAt: number): Promise<object> {
  const memory = process.memoryUsage();
  const names = new Map(models.list().map((served) => [served.model, served.name]));
  return {
    status: 'ok',
    pid: process.pid,
    uptime_s: Math.round((Date.now() - startedAt) / 1000),
    requests: models.requests(),
    memory: {
      rss: memory.rss,
      heap: memory.heapUsed,
      buffers: memory.arrayBuffers,
      available: process.availableMemory(),
    },
    models: (await engine.models()).map(({ name, kind, parameters, bytes, context, version }) => ({
      name: names.get(name) ?? null, // a model without a name is finishing its last requests
      kind,
      parameters,
      bytes,
      context,
      version,
    })),
  };
}

/** More than tokens have in any text that somebody wrote; a single one, for a run of blanks, may have more. */
const charactersPerToken = 32;

// ---- Completions ---------------------------------------------------------------------------------------------------

async function complete(
  engine: Engine,
  served: Served,
  request: ChatRequest | CompletionRequest,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { tokenizer, chat, info } = served;
  if (!tokenizer) {
    throw new RequestError(
      400,
      'no_tokenizer',
      `The model ${served.name} has no tokenizer.json; it can only be used on the engine socket.`,
    );
  }
  const mostCharacters = info.context * charactersPerToken;
  let prompts: readonly (readonly number[])[];
  let inReasoning = false;
  if (request.kind === 'chat') {
    if (!chat) {
      throw new RequestError(
        400,
        'no_chat_template',
        `The model ${served.name} has no chat template; put its chat_template.jinja into its folder, or use /v1/completions.`,
      );
    }
    const { messages, tools, variables } = request;
    const encoded = chat.encode(messages, { tools, variables, mostCharacters });
    prompts = [encoded.tokens];
    inReasoning = encoded.inReasoning;
  } else {
    prompts = request.prompts.map((prompt) => {
      if (typeof prompt !== 'string') return prompt;
      checkCharacters(prompt.length, mostCharacters);
      return tokenizer.encode(prompt);
    });
  }
  const longest = checkPrompts(prompts, info.vocabulary);
  const maxTokens = checkLength(longest, request.maxTokens, info.context);
  const stopTokens = [...(request.ignoreEos ? [] : served.stopTokens), ...request.stopTokens];
  const params: SampleParams = {
    ...request.params,
    maxTokens,
    ...(stopTokens.length === 0 ? {} : { stopTokens }),
    ...(request.stop.length === 0 ? {} : { stop: request.stop }),
    ...(request.kind === 'completion' && request.promptLogprobs ? { promptLogprobs: true } : {}),
  };

  const stops = stopStrings(request.stop);
  // [prompt × attempt], in OpenAI's order
  const choices = prompts.flatMap((prompt) =>
    Array.from({ length: request.params.n }, () => ({
      prompt,
      text: createChoiceText(tokenizer, request, new Set(stopTokens), stops, {
        inReasoning,
        bareCalls: chat?.bareCalls ?? false,
      }),
    })),
  );
  const promptTokens = prompts.reduce((sum, prompt) => sum + prompt.length, 0);
  const head = {
    id: `${request.kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: request.model,
  };
  const writer = request.stream ? createStream(response, request, head) : undefined;
  const results = await engine.sample(served.model, prompts, params, {
    signal,
    ...(writer
      ? {
          onToken(prompt, attempt, token) {
            const index = prompt * request.params.n + attempt;
            const choice = choices[index]!;
            writer.start(choices.map((c) => c.prompt));
            writer.delta(index, choice.text.push(token), [token]);
          },
        }
      : {}),
  });
  const samples = results.flatMap((result) => result.samples);
  const version = results[0]!.version;
  const usage = usageOf(
    promptTokens,
    samples.reduce((sum, { tokens }) => sum + tokens.length, 0),
  );

  if (writer) {
    writer.start(choices.map((c) => c.prompt));
    for (const [index, sample] of samples.entries()) {
      const { text } = choices[index]!;
      for (const token of sample.tokens.subarray(text.seen)) writer.delta(index, text.push(token), [token]);
      const parts = text.end();
      writer.finish(index, parts, finishReason(sample, text), text, logprobsOf(tokenizer, request, sample), version);
    }
    writer.end(usage);
    return;
  }
  if (response.req.headers[tellMemory] !== undefined) response.setHeader(memoryUsed, memoryFull().toFixed(4));
  sendJson(response, {
    ...head,
    object: request.kind === 'chat' ? 'chat.completion' : 'text_completion',
    choices: samples.map((sample, index) => {
      const { text, prompt } = choices[index]!;
      const parts: OutputPart[] = [];
      for (const token of sample.tokens) parts.push(...text.push(token));
      parts.push(...text.end());
      const logprobs = logprobsOf(tokenizer, request, sample);
      const ids = request.returnTokenIds ? { token_ids: [...sample.tokens] } : {};
      if (request.kind === 'completion') {
        const ofPrompt = results[Math.floor(index / request.params.n)]!.promptLogprobs;
        return {
          index,
          text: contentOf(parts),
          logprobs: logprobs ? completionLogprobs(logprobs, 0) : null,
          finish_reason: finishReason(sample, text),
          stop_reason: null,
          ...(request.returnTokenIds ? { prompt_token_ids: prompt } : {}),
          ...(ofPrompt === undefined ? {} : { prompt_logprobs: byToken(prompt, ofPrompt) }),
          ...ids,
        };
      }
      return {
        index,
        message: messageOf(parts, text),
        logprobs: logprobs ? chatLogprobs(logprobs) : null,
        finish_reason: finishReason(sample, text),
        ...ids,
      };
    }),
    usage,
    weights_version: version,
    ...(request.kind === 'chat' && request.returnTokenIds ? { prompt_token_ids: prompts[0] } : {}),
  });
}

/** In vLLM's shape: the first has none, for nothing came before it. */
const byToken = (prompt: readonly number[], logprobs: Float32Array) =>
  prompt.map((id, at) => (at === 0 ? null : { [id]: { logprob: logprobs[at]! } }));

function checkPrompts(prompts: readonly (readonly number[])[], vocabulary: number): number {
  let longest = 0;
  for (const prompt of prompts) {
    if (prompt.length === 0)
      throw new RequestError(400, 'empty_prompt', 'The prompt is empty; give at least one token.');
    const bad = prompt.find((token) => token >= vocabulary);
    if (bad !== undefined) {
      throw new RequestError(
        400,
        'token_out_of_range',
        `Token ${bad} is out of range: the model has ${vocabulary} tokens.`,
      );
    }
    longest = Math.max(longest, prompt.length);
  }
  return longest;
}

function checkLength(prompt: number, asked: number | undefined, context: number): number {
  if (prompt >= context || prompt + (asked ?? 1) > context) {
    const wanted = asked === undefined ? '' : ` and ${asked} are asked for`;
    throw new RequestError(
      400,
      'context_length_exceeded',
      `The prompt has ${prompt} tokens${wanted}, but the model's context is ${context} tokens in all.`,
    );
  }
  return asked ?? context - prompt;
}

/** One choice's text as its tokens come: decoded, cut at stop strings, and for chat taken apart into its parts. */
type ChoiceText = {
  push(token: number): OutputPart[];
  end(): OutputPart[];
  readonly seen: number;
  readonly calls: number;
  readonly malformed: number;
};

function createChoiceText(
  tokenizer: Tokenizer,
  request: ChatRequest | CompletionRequest,
  stopTokens: ReadonlySet<number>,
  stops: StopStrings,
  writes: Omit<OutputOptions, 'tools'>,
): ChoiceText {
  const decoded = tokenizer.stream({ skipSpecial: request.skipSpecial });
  const stop = createStopText(stops);
  const parser = request.kind === 'chat' ? createOutputParser({ tools: request.parseTools, ...writes }) : undefined;
  let seen = 0;
  let calls = 0;
  const partsOf = (text: string): OutputPart[] => {
    if (!parser) return text === '' ? [] : [{ kind: 'content', text }];
    return take(text === '' ? [] : parser.push(text));
  };
  const take = (parts: OutputPart[]): OutputPart[] =>
    parts.filter((part) => {
      if (part.kind !== 'tool_call') return true;
      const keep = calls === 0 || request.kind !== 'chat' || request.parallelToolCalls;
      if (keep) calls++;
      return keep;
    });
  return {
    push(token) {
      seen++;
      return stopTokens.has(token) ? [] : partsOf(stop.push(decoded.push(token)));
    },
    end() {
      const parts = partsOf(stop.push(decoded.end()) + stop.end());
      return parser ? [...parts, ...take(parser.end())] : parts;
    },
    get seen() {
      return seen;
    },
    get calls() {
      return calls;
    },
    get malformed() {
      return parser?.malformed ?? 0;
    },
  };
}

const finishReason = (sample: Sample, text: ChoiceText) => (text.calls > 0 ? 'tool_calls' : sample.finish);

const joinText = (parts: readonly OutputPart[], kind: 'content' | 'reasoning') =>
  parts.map((part) => (part.kind === kind ? part.text : '')).join('');
const contentOf = (parts: readonly OutputPart[]) => joinText(parts, 'content');

const newCallId = () => `call_${randomUUID().replaceAll('-', '')}`;

function messageOf(parts: readonly OutputPart[], text: ChoiceText): object {
  const reasoning = joinText(parts, 'reasoning');
  const content = contentOf(parts);
  const calls = parts.filter((part) => part.kind === 'tool_call');
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ name, arguments: args }) => ({
            id: newCallId(),
            type: 'function',
            function: { name, arguments: args },
          })),
        }),
    ...(text.malformed === 0 ? {} : { malformed_tool_calls: text.malformed }),
  };
}

function logprobsOf(
  tokenizer: Tokenizer,
  request: ChatRequest | CompletionRequest,
  sample: SampleResult['samples'][number],
): TokenLogprob[] | undefined {
  if (!request.logprobs) return undefined;
  return Array.from(sample.tokens, (token, i) => ({
    text: tokenizer.decode([token], { skipSpecial: false }),
    raw: sample.rawLogprobs[i]!,
    sampled: sample.logprobs[i]!,
  }));
}

// ---- Streaming -----------------------------------------------------------------------------------------------------

type StreamWriter = {
  start(prompts: readonly (readonly number[])[]): void;
  delta(index: number, parts: readonly OutputPart[], tokens: readonly number[]): void;
  finish(
    index: number,
    parts: readonly OutputPart[],
    reason: string,
    text: ChoiceText,
    logprobs: TokenLogprob[] | undefined,
    version: number,
  ): void;
  end(usage: object): void;
};

function createStream(
  response: ServerResponse,
  request: ChatRequest | CompletionRequest,
  head: { readonly id: string; readonly created: number; readonly model: string },
): StreamWriter {
  const object = request.kind === 'chat' ? 'chat.completion.chunk' : 'text_completion';
  const nextCall = new Map<number, number>();
  let started = false;
  const send = (chunk: object) => {
    if (!response.destroyed) response.write(`data: ${JSON.stringify({ ...head, object, ...chunk })}\n\n`);
  };
  const ids = (tokens: readonly number[]) => (request.returnTokenIds ? { token_ids: tokens } : {});
  const chatDelta = (index: number, parts: readonly OutputPart[]): Record<string, unknown> => {
    const content = contentOf(parts);
    const reasoning = joinText(parts, 'reasoning');
    const calls = parts.filter((part) => part.kind === 'tool_call');
    return {
      ...(content === '' ? {} : { content }),
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map(({ name, arguments: args }) => {
              const call = nextCall.get(index) ?? 0;
              nextCall.set(index, call + 1);
              return { index: call, id: newCallId(), type: 'function', function: { name, arguments: args } };
            }),
          }),
    };
  };
  return {
    start(prompts) {
      if (started) return;
      started = true;
      // Only now: until the first token a failure can still be an honest HTTP status.
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
      for (const [index, prompt] of prompts.entries()) {
        if (request.kind === 'chat') {
          send({
            choices: [{ index, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }],
            ...(request.returnTokenIds && index === 0 ? { prompt_token_ids: prompt } : {}),
          });
        } else if (request.returnTokenIds) {
          send({
            choices: [
              { index, text: '', logprobs: null, finish_reason: null, prompt_token_ids: prompt, token_ids: [] },
            ],
          });
        }
      }
    },
    delta(index, parts, tokens) {
      if (parts.length === 0 && !request.returnTokenIds) return;
      const body = request.kind === 'chat' ? { delta: chatDelta(index, parts) } : { text: contentOf(parts) };
      send({ choices: [{ index, ...body, logprobs: null, finish_reason: null, ...ids(tokens) }] });
    },
    finish(index, parts, reason, text, logprobs, version) {
      // The engine tells logprobs when an attempt is done, so all of them come with the last chunk of the choice.
      const body =
        request.kind === 'chat'
          ? {
              delta: {
                ...chatDelta(index, parts),
                ...(text.malformed === 0 ? {} : { malformed_tool_calls: text.malformed }),
              },
              logprobs: logprobs ? chatLogprobs(logprobs) : null,
            }
          : { text: contentOf(parts), logprobs: logprobs ? completionLogprobs(logprobs, 0) : null };
      send({ choices: [{ index, ...body, finish_reason: reason, ...ids([]) }], weights_version: version });
    },
    end(usage) {
      if (request.includeUsage) send({ choices: [], usage });
      response.end('data: [DONE]\n\n');
    },
  };
}
