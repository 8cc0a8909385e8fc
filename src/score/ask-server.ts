/**
 * The judge's server, or another that gives embeddings: OpenAI chat completions and embeddings, one call at a time. 429, 5xx, a broken connection and silence are
 * tried again with growing pauses, `retry-after` is kept to. A server that refuses a field it need not know (`response_format`,
 * `temperature`, `max_tokens`) is asked without it from then on. Every call says that it is a judge's (`x-pawl-origin`), so that
 * one that goes through a Pawl gateway is recorded as that or refused, and never as what users did.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { parseUntrusted } from '../collect/untrusted.ts';
import { upTo } from '../up-to.ts';
import type { ChatMessage } from './ask-prompt.ts';

export type Usage = { readonly promptTokens: number; readonly completionTokens: number };

export type JudgeServerOptions = {
  readonly baseUrl: string;
  readonly key?: string | undefined;
  /** Who it is, in what is said of it. */
  readonly who?: string; // the judge
  readonly model: string;
  readonly timeoutSeconds: number;
  readonly attempts: number;
  readonly maxTokens: number;
  /** First pause before another attempt. */
  readonly pauseMs?: number; // 500
};

/** `usage`: null where the server does not count. */
export type Answer = { readonly text: string; readonly isCut: boolean; readonly usage: Usage | null };

export type JudgeServer = {
  chat(
    messages: readonly ChatMessage[],
    how: { readonly schema: object; readonly temperature: number; readonly signal: AbortSignal },
  ): Promise<Answer>;
  embed(
    model: string,
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<{ readonly vectors: number[][]; readonly usage: Usage | null }>;
};

/** The server does not answer, or not so that it could be used. `lasting`: nor will it for the next conversation. */
export class JudgeAway extends Error {
  readonly lasting: boolean;

  constructor(message: string, lasting: boolean) {
    super(message);
    this.name = 'JudgeAway';
    this.lasting = lasting;
  }
}

const count = z.number().int().min(0).max(1e9);
const usageShape = z.object({ prompt_tokens: count, completion_tokens: count.nullish() }).nullish();
const chatShape = z.object({
  choices: z
    .array(z.object({ message: z.object({ content: z.string().nullish() }), finish_reason: z.string().nullish() }))
    .min(1),
  usage: usageShape,
});
const embeddingShape = z.object({
  data: z.array(z.object({ index: z.int().optional(), embedding: z.array(z.number()).min(1).max(100_000) })),
  usage: usageShape,
});

const answerBytes = 4 * 1024 * 1024;
const longestPauseMs = 60_000;

/** Fields that a server may refuse, and what is sent instead. */
type Dropped = { schema: boolean; temperature: boolean; maxTokens: boolean };

export function openJudgeServer(options: JudgeServerOptions): JudgeServer {
  const { baseUrl, who = 'the judge', model, attempts, maxTokens, pauseMs = 500 } = options;
  const dropped: Dropped = { schema: false, temperature: false, maxTokens: false };

  /** Sends until there is an answer, or none to be expected. `body` is asked for each attempt. */
  async function post(path: string, body: () => object, signal: AbortSignal): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      const reply = await send(`${baseUrl}/${path}`, options, body(), signal);
      if (reply.status >= 200 && reply.status < 300) {
        const value = parseUntrusted(reply.text);
        if (value !== undefined) return value;
        reply.problem = 'answered with what is no JSON';
      } else if (reply.status === 400 || reply.status === 422) {
        if (refuses(reply.text, dropped)) {
          attempt--;
          continue;
        }
        // About this conversation alone, such as one that is too long: the judge itself is well.
        throw new Error(`${who} ${reply.problem}`);
      } else if (reply.status !== 0 && reply.status !== 408 && reply.status !== 429 && reply.status < 500)
        throw new JudgeAway(`${who} ${reply.problem}`, true);
      if (attempt >= attempts) throw new JudgeAway(`${who} ${reply.problem} (${attempt} attempts)`, false);
      const pause = Math.min(longestPauseMs, reply.retryAfterMs ?? pauseMs * 2 ** Math.min(attempt - 1, 8));
      await sleep(pause * (1 + Math.random() / 4), undefined, { signal });
    }
  }

  return {
    async chat(messages, { schema, temperature, signal }) {
      const value = await post(
        'chat/completions',
        () => ({
          model,
          messages,
          ...(dropped.temperature ? {} : { temperature }),
          [dropped.maxTokens ? 'max_completion_tokens' : 'max_tokens']: maxTokens,
          ...(dropped.schema
            ? {}
            : { response_format: { type: 'json_schema', json_schema: { name: 'verdict', strict: true, schema } } }),
        }),
        signal,
      );
      const parsed = chatShape.safeParse(value);
      if (!parsed.success) throw new JudgeAway(`${who} answered with what is no chat completion`, false);
      const { choices, usage } = parsed.data;
      const { message, finish_reason } = choices[0]!;
      return { text: message.content ?? '', isCut: finish_reason === 'length', usage: usageOf(usage) };
    },

    async embed(embeddingModel, texts, signal) {
      const value = await post('embeddings', () => ({ model: embeddingModel, input: texts }), signal);
      const parsed = embeddingShape.safeParse(value);
      const data = parsed.success ? parsed.data.data : [];
      const vectors = data
        .map(({ index, embedding }, i) => ({ at: index ?? i, embedding }))
        .sort((a, b) => a.at - b.at)
        .map(({ embedding }) => embedding);
      if (vectors.length !== texts.length || vectors.some(({ length }) => length !== vectors[0]!.length))
        throw new JudgeAway(`${who} answered with what are no embeddings`, false);
      return { vectors, usage: usageOf(parsed.data?.usage) };
    },
  };
}

const usageOf = (usage: z.infer<typeof usageShape>): Usage | null =>
  usage ? { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens ?? 0 } : null;

/** Whether the refusal names a field that was sent and can be left out; it is from then on. */
function refuses(text: string, dropped: Dropped): boolean {
  const names: readonly (readonly [keyof Dropped, RegExp])[] = [
    ['schema', /response_format|schema|structured|guided|grammar/i],
    ['maxTokens', /max_tokens/i],
    ['temperature', /temperature/i],
  ];
  for (const [field, pattern] of names)
    if (!dropped[field] && pattern.test(text)) {
      dropped[field] = true;
      return true;
    }
  return false;
}

type Reply = {
  /** 0: there was no answer. */
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs: number | null;
  problem: string;
};

async function send(url: string, options: JudgeServerOptions, body: object, signal: AbortSignal): Promise<Reply> {
  const { key, timeoutSeconds } = options;
  const late = AbortSignal.timeout(timeoutSeconds * 1000);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-pawl-origin': 'judge',
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, late]),
      redirect: 'error',
    });
    const sent = await upTo(answerBytes, response.body);
    if (sent === null) throw new Error(`it sent more than ${answerBytes} bytes`);
    const text = sent.toString('utf8');
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    return {
      status: response.status,
      text,
      retryAfterMs: seconds >= 0 ? seconds * 1000 : null,
      problem: `answered ${response.status}: ${text.slice(0, 200)}`,
    };
  } catch (error) {
    signal.throwIfAborted();
    const { cause, message } = error as Error;
    const why = late.aborted
      ? `did not answer within ${timeoutSeconds} s`
      : `cannot be reached: ${cause instanceof Error ? cause.message : message}`;
    return { status: 0, text: '', retryAfterMs: null, problem: why };
  }
}
