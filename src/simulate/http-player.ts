/**
 * Plays against any OpenAI-compatible server: a hosted model, the engine's own, or the user's agent behind Pawl's gateway,
 * which records every turn (`/t/<trajectory>/v1`). Tokens and logprobs are kept where the server gives them (vLLM's
 * `return_token_ids`). A refused, broken or late answer is a `failed` turn of that conversation alone. A server that refuses
 * `seed` is asked without from then on.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { argumentsText, readMessage } from '../collect/message.ts';
import { upTo } from '../up-to.ts';
import type { AssistantMessage, ToolCall } from './message.ts';
import type { Conversation, PlayedTurn, Player, TurnTokens } from './player.ts';

export type HttpPlayerOptions = {
  /** Up to but not including `/chat/completions`, e.g. `http://127.0.0.1:4700/t/{trajectory}/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  readonly key?: string;
  /** What `{trajectory}` in the base URL becomes. Default: the episode's id, made fit for a path. */
  readonly trajectory?: (conversation: Conversation) => string;
  /** Extra headers, such as the user's id. */
  readonly headers?: (conversation: Conversation) => Readonly<Record<string, string>>;
  /** Extra fields of the request's body, such as metadata. */
  readonly fields?: (conversation: Conversation) => Readonly<Record<string, unknown>>;
  readonly temperature?: number;
  readonly topP?: number;
  /** Ask for exact token ids and logprobs; servers that do not know the fields may refuse. */
  readonly tokens?: boolean; // false
  /** Requests in flight at once. */
  readonly concurrency?: number; // 16
  /** Of one answer, retries included. */
  readonly timeoutSeconds?: number; // 60
  /** How often an answer is asked for again after 429, 5xx or a connection that broke; `retry-after` is kept to. */
  readonly retries?: number; // 0
  readonly fetch?: typeof fetch;
};

const answerSchema = z.object({
  choices: z
    .array(
      z.object({
        message: z.record(z.string(), z.unknown()),
        finish_reason: z.string().nullish(),
        token_ids: z.array(z.number().int()).nullish(),
        logprobs: z.object({ content: z.array(z.object({ logprob: z.number() })).nullish() }).nullish(),
      }),
    )
    .min(1),
  prompt_token_ids: z.array(z.number().int()).nullish(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullish(),
});

const answerBytes = 4 * 1024 * 1024;

export function httpPlayer(options: HttpPlayerOptions): Player {
  const { concurrency = 16 } = options;
  const server = { takesSeeds: true };
  return async (conversations, signal) => {
    const answers: PlayedTurn[] = new Array(conversations.length);
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let i = next++; i < conversations.length; i = next++) {
        answers[i] = await ask(options, server, conversations[i]!, signal);
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, conversations.length) }, worker));
    return answers;
  };
}

async function ask(
  options: HttpPlayerOptions,
  server: { takesSeeds: boolean },
  one: Conversation,
  signal?: AbortSignal,
): Promise<PlayedTurn> {
  const { baseUrl, timeoutSeconds = 60, retries = 0 } = options;
  const trajectory = (options.trajectory ?? trajectoryOf)(one);
  const url = `${baseUrl.replaceAll('{trajectory}', encodeURIComponent(trajectory)).replace(/\/$/, '')}/chat/completions`;
  const { origin } = new URL(url); // what fails one trajectory mostly fails all: said in the same words
  const late = AbortSignal.timeout(timeoutSeconds * 1000);
  const stop = signal === undefined ? late : AbortSignal.any([signal, late]);
  let lastly = 'no answer';
  try {
    for (let tries = 0; ; tries++) {
      const seed = server.takesSeeds ? { seed: one.seed } : {};
      const { status, retryAfter, text } = await send(url, options, one, seed, stop);
      if (status >= 200 && status < 300) return readAnswer(JSON.parse(text), one);
      lastly = `answered ${status}: ${text.slice(0, 200)}`;
      if (status === 400 && 'seed' in seed && /\bseed\b/.test(text)) {
        server.takesSeeds = false;
        tries--;
        continue;
      }
      const isPassing = status === 429 || status >= 500;
      if (!isPassing || tries >= retries) return { kind: 'failed', detail: `${origin} ${lastly}` };
      await sleep(retryAfter ?? firstWaitMs * 2 ** Math.min(tries, 6), undefined, { signal: stop });
    }
  } catch (error) {
    signal?.throwIfAborted();
    const why = late.aborted
      ? `no answer in ${timeoutSeconds} s${lastly === 'no answer' ? '' : `; it last ${lastly}`}`
      : error instanceof Error
        ? error.message
        : String(error);
    return { kind: 'failed', detail: `${origin}: ${why}` };
  }
}

const firstWaitMs = 250;

type Reply = { readonly status: number; readonly retryAfter: number | null; readonly text: string };

/** A connection that is refused or breaks off is an answer like a 503. */
async function send(
  url: string,
  options: HttpPlayerOptions,
  one: Conversation,
  seed: object,
  signal: AbortSignal,
): Promise<Reply> {
  try {
    const response = await (options.fetch ?? fetch)(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }),
        ...options.headers?.(one),
      },
      body: JSON.stringify({ ...requestBody(options, one), ...seed, ...options.fields?.(one) }),
      signal,
    });
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    const sent = await upTo(answerBytes, response.body);
    if (sent === null) throw new Error(`The answer has more than ${answerBytes} bytes.`);
    return {
      status: response.status,
      retryAfter: seconds >= 0 ? seconds * 1000 : null,
      text: sent.toString('utf8'),
    };
  } catch (error) {
    if (signal.aborted) throw error;
    const { cause, message } = error as Error;
    return { status: 503, retryAfter: null, text: cause instanceof Error ? cause.message : message };
  }
}

function requestBody(options: HttpPlayerOptions, one: Conversation): Record<string, unknown> {
  return {
    model: options.model,
    messages: one.messages,
    ...(one.tools.length === 0 ? {} : { tools: one.tools }),
    max_tokens: one.maxTokens,
    ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
    ...(options.topP === undefined ? {} : { top_p: options.topP }),
    ...(options.tokens === true ? { logprobs: true, return_token_ids: true } : {}),
  };
}

/** A server's answer as a turn. Tool calls it could not parse itself are left in the text; see `leftover`. */
export function readAnswer(body: unknown, one: Conversation): PlayedTurn {
  const parsed = answerSchema.safeParse(body);
  if (!parsed.success) {
    return { kind: 'failed', detail: `not a chat completion: ${parsed.error.issues[0]!.message}` };
  }
  const choice = parsed.data.choices[0]!;
  const message = assistantMessage(choice.message);
  const calls = message.tool_calls ?? [];
  const malformed = calls.length === 0 && one.tools.length > 0 ? leftover(message.content ?? '') : null;
  const tokens = exactTokens(parsed.data);
  return {
    kind: 'said',
    message,
    ...(malformed === null ? {} : { malformed }),
    finish: choice.finish_reason === 'length' ? 'length' : 'stop',
    ...(tokens === null ? {} : { tokens }),
    ...(parsed.data.usage == null
      ? {}
      : { usage: { prompt: parsed.data.usage.prompt_tokens, completion: parsed.data.usage.completion_tokens } }),
  };
}

/** Words and calls alone. Servers that give calls no ids or names are taken as they are: the call is then a mistaken one. */
function assistantMessage(value: unknown): AssistantMessage {
  const { parts, toolCalls } = readMessage(value);
  const calls = toolCalls.map((call, i): ToolCall => {
    const made = { name: call.name ?? '', arguments: argumentsText(call) };
    return { id: call.id ?? `call_${i}`, type: 'function', function: made };
  });
  return {
    role: 'assistant',
    content: parts.length === 0 ? null : parts.map(({ text }) => text ?? '').join(''),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

/** Hermes-style servers pass a tool call they cannot parse through as text. The tag gives it away. */
function leftover(content: string): string | null {
  return content.includes('<tool_call>') ? 'a tool call the server could not read' : null;
}

function exactTokens(answer: z.infer<typeof answerSchema>): TurnTokens | null {
  const choice = answer.choices[0]!;
  const prompt = answer.prompt_token_ids;
  const completion = choice.token_ids;
  const logprobs = choice.logprobs?.content?.map(({ logprob }) => logprob);
  if (prompt == null || completion == null || logprobs === undefined) return null;
  if (logprobs.length !== completion.length) return null;
  return { prompt, completion, logprobs, rawLogprobs: null, version: null };
}

/** Trajectory ids take letters, digits and `_ . : -`, 128 at most. */
const trajectoryOf = (one: Conversation): string =>
  one.id
    .replace(/[^A-Za-z0-9_.:-]/g, '-')
    .replace(/^[^A-Za-z0-9]/, 'e')
    .slice(0, 128);
