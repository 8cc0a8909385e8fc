/**
 * The door through which the user's own agent reaches the model while it practises: OpenAI's chat completions, streamed or
 * not, the list of models, and outcomes, on this machine and for as long as episodes are played. Every episode has a key of its
 * own, and the key says which episode a call belongs to. Nothing that comes through here is recorded as traffic: it cannot
 * become production's training data.
 *
 * It parses, asks the episode's guest and writes the answer; what a call means for its episode is agent-episode.ts.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { parseUntrusted } from '../collect/untrusted.ts';
import { type ChatRequest, errorBody, parseChatRequest, usageOf } from '../engine/openai.ts';
import { ConfigError, RequestError } from '../errors.ts';
import type { AssistantMessage } from './message.ts';
import type { TurnTokens } from './player.ts';

/** Where the door is; an agent on another machine or in a container needs both. */
export type DoorPlace = {
  /** What to listen on. */
  readonly host?: string; // 127.0.0.1
  readonly port?: number; // any free one
  /** The base URL as the agent reaches it, `/v1` included. */
  readonly url?: string;
};

export type Answer = {
  readonly message: AssistantMessage;
  readonly malformed: boolean;
  readonly finish: 'stop' | 'length';
  readonly tokens: TurnTokens | null;
  readonly usage: { readonly prompt: number; readonly completion: number };
};

/** An episode, as the door knows it. Both throw a RequestError that its agent gets to see. */
export type Guest = {
  /** `signal`: the caller has left. */
  readonly ask: (request: ChatRequest, signal: AbortSignal) => Promise<Answer>;
  readonly outcome: (name: string, value: number) => void;
};

export type AgentDoor = {
  readonly baseUrl: string;
  /** The key of one episode; after `leave` it opens nothing. */
  admit(guest: Guest): { readonly key: string; readonly leave: () => void };
  /** At once: whoever still waits is cut off. */
  close(): Promise<void>;
};

const bodyBytes = 16 * 2 ** 20;
export const modelName = 'pawl';

export async function openDoor({ host = '127.0.0.1', port = 0, url }: DoorPlace = {}): Promise<AgentDoor> {
  const guests = new Map<string, Guest>();
  const server = createServer((request, response) => void answer(guests, request, response));
  await new Promise<void>((done, fail) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why = cause.code === 'EADDRINUSE' ? 'the port is taken' : cause.message;
      fail(new ConfigError(`The door for practising agents cannot listen on ${host}:${port}: ${why}.`, { cause }));
    });
    server.listen(port, host, done);
  });
  const bound = (server.address() as AddressInfo).port;
  return {
    baseUrl: url ?? `http://${host.includes(':') ? `[${host}]` : host}:${bound}/v1`,
    admit(guest) {
      const key = `sk-pawl-${randomBytes(24).toString('base64url')}`;
      guests.set(key, guest);
      return { key, leave: () => guests.delete(key) };
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

async function answer(guests: ReadonlyMap<string, Guest>, request: IncomingMessage, response: ServerResponse) {
  try {
    await route(guests, request, response);
  } catch (error) {
    if (response.destroyed || response.writableEnded) return; // the agent left; nobody to tell
    const known = error instanceof RequestError;
    const status = known ? error.status : 500;
    const text = known ? error.message : `The model did not answer: ${(error as Error).message}`;
    // The same call again would end the same way, and clients that retry would only spend the episode's time.
    response.writeHead(status, { 'content-type': 'application/json', 'x-should-retry': 'false', connection: 'close' });
    response.end(JSON.stringify(errorBody(status, known ? error.code : 'internal_error', text)));
  }
}

async function route(
  guests: ReadonlyMap<string, Guest>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const guest = guests.get((request.headers.authorization ?? '').replace(/^Bearer\s+/i, ''));
  if (guest === undefined) {
    throw new RequestError(
      401,
      'invalid_api_key',
      'This key belongs to no episode that is being played; use the OPENAI_API_KEY that the agent was started with.',
    );
  }
  const asked = `${request.method} ${(request.url ?? '/').split('?')[0]!.slice(0, 200)}`;
  switch (asked) {
    case 'GET /v1/models':
      return sendJson(response, { object: 'list', data: [{ id: modelName, object: 'model', owned_by: 'pawl' }] });
    case 'POST /v1/outcomes': {
      const { name, value } = outcomeOf(await readJson(request));
      guest.outcome(name, Number(value));
      return sendJson(response, { accepted: true });
    }
    case 'POST /v1/chat/completions':
      return complete(guest, honoured(parseChatRequest(await readJson(request))), response);
    default:
      throw new RequestError(
        404,
        'not_found',
        `There is no ${asked} while an agent practises; there are POST /v1/chat/completions, POST /v1/outcomes and GET /v1/models.`,
      );
  }
}

/** What the gateway's own /outcomes takes, of which an episode needs the name and the value. */
const outcomeBody = z.object({
  name: z
    .string()
    .regex(/^[a-z][a-z0-9_.-]{0,63}$/, 'must be lower-case letters, digits and _ . - only, at most 64')
    .default('reward'),
  value: z.union([z.number(), z.boolean()], 'must be a number, true or false'),
});

function outcomeOf(body: unknown): z.infer<typeof outcomeBody> {
  const parsed = outcomeBody.safeParse(body);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'body'} ${message}`);
  throw new RequestError(400, 'invalid_body', `${problems.join('; ')}.`);
}

/**
 * How tokens are drawn (temperature, seed and so on) is the trainer's or the evaluation's to say, whatever the agent asks for;
 * what would change the shape of the answer and cannot be had is refused.
 */
function honoured(request: ChatRequest): ChatRequest {
  const refused = Object.entries({
    n: request.params.n > 1,
    stop: request.stop.length > 0,
    stop_token_ids: request.stopTokens.length > 0,
    ignore_eos: request.ignoreEos,
    logprobs: request.logprobs,
    chat_template_kwargs: Object.keys(request.variables).length > 0,
  }).flatMap(([name, given]) => (given ? [name] : []));
  if (refused.length === 0) return request;
  throw new RequestError(
    400,
    'unsupported',
    `${refused.join(', ')} cannot be honoured while an agent practises; leave ${refused.length > 1 ? 'them' : 'it'} out.`,
  );
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bodyBytes)
      throw new RequestError(413, 'request_too_large', `The request body is over ${bodyBytes} bytes.`);
    chunks.push(chunk);
  }
  const value = parseUntrusted(Buffer.concat(chunks).toString('utf8'));
  if (value === undefined) throw new RequestError(400, 'invalid_json', 'The request body is not JSON.');
  return value;
}

async function complete(guest: Guest, request: ChatRequest, response: ServerResponse): Promise<void> {
  const left = new AbortController();
  response.once('close', () => left.abort());
  const { message, malformed, finish, tokens, usage } = await guest.ask(request, left.signal);
  const head = { id: `chatcmpl-${randomBytes(12).toString('hex')}`, created: Math.floor(Date.now() / 1000) };
  const model = request.model;
  const { content, tool_calls: calls = [] } = message;
  const reason = calls.length > 0 ? 'tool_calls' : finish;
  const said = { role: 'assistant', content, ...(malformed ? { malformed_tool_calls: 1 } : {}) };
  const ids = request.returnTokenIds && tokens !== null ? { token_ids: tokens.completion } : {};
  const promptIds = request.returnTokenIds && tokens !== null ? { prompt_token_ids: tokens.prompt } : {};
  const counted = usageOf(usage.prompt, usage.completion);
  if (!request.stream) {
    const whole = { ...said, refusal: null, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
    const choice = { index: 0, message: whole, logprobs: null, finish_reason: reason, ...ids };
    return sendJson(response, {
      ...{ ...head, object: 'chat.completion', model, choices: [choice], usage: counted },
      ...promptIds,
    });
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const send = (rest: object) =>
    response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', model, ...rest })}\n\n`);
  const numbered = calls.map((call, index) => ({ index, ...call }));
  const delta = { ...said, ...(calls.length === 0 ? {} : { tool_calls: numbered }) };
  send({ choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...ids }], ...promptIds });
  send({ choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: reason }] });
  if (request.includeUsage) send({ choices: [], usage: counted });
  response.end('data: [DONE]\n\n');
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}
