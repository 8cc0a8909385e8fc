/**
 * OpenAI's chat and text completion requests, parsed and checked, and the JSON of their answers. Pure: no sockets, no
 * clock, no engine. Fields we cannot honour are refused when they would change the answer; an ignored setting is an
 * error. Beyond OpenAI's: vLLM's top_k, min_p, stop_token_ids, ignore_eos, chat_template_kwargs and return_token_ids.
 */
import { z } from 'zod';
import { RequestError } from '../errors.ts';
import type { ChatMessage, ChatTool } from './chat.ts';
import type { SampleParams } from './engine.ts';

const maxChoices = 128;
const maxPrompts = 256;

const text = z.string();
const token = z.int().nonnegative();

const content = z
  .union([text, z.array(z.looseObject({ type: text, text: text.optional() })).max(10_000)])
  .nullish()
  .transform((value, context) => {
    if (value == null || typeof value === 'string') return value ?? null;
    const other = value.find((part) => part.type !== 'text' || part.text === undefined);
    if (other) {
      context.addIssue({ code: 'custom', message: `a part of type "${other.type}" is not supported; only text is` });
      return z.NEVER;
    }
    return value.map((part) => part.text).join('');
  });

const toolCall = z.object({
  id: text.optional(),
  type: z.literal('function').default('function'),
  function: z.object({ name: text, arguments: text }),
});

const message = z
  .object({
    role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
    content: content.optional(),
    name: text.nullish(),
    tool_calls: z.array(toolCall).max(1000).nullish(),
    tool_call_id: text.nullish(),
    reasoning_content: text.nullish(),
    reasoning: text.nullish(),
    refusal: z.null().optional(),
    audio: z.null().optional(),
    function_call: z.null().optional(),
    annotations: z.array(z.unknown()).nullish(),
    malformed_tool_calls: z.int().optional(),
    parsed: z.unknown().optional(), // what OpenAI's clients add to an answer and send back
  })
  .strict();

const tool = z.object({
  type: z.literal('function'),
  function: z.object({
    name: text.min(1).max(200),
    description: text.optional(),
    parameters: z.record(text, z.unknown()).optional(),
    strict: z.boolean().nullish(),
  }),
});

/** Both endpoints take these. Each value that is listed but could not be honoured is refused with its own sentence. */
const shared = {
  model: text,
  stream: z.boolean().nullish(),
  stream_options: z
    .object({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  n: z.int().min(1).max(maxChoices).nullish(),
  max_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  seed: z.int().nullish(),
  stop: z.union([text.min(1), z.array(text.min(1)).max(16)]).nullish(),
  stop_token_ids: z.array(token).max(64).nullish(),
  ignore_eos: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  skip_special_tokens: z.boolean().nullish(),
  // Accepted at the value that changes nothing.
  frequency_penalty: only(0),
  presence_penalty: only(0),
  repetition_penalty: only(1),
  length_penalty: only(1),
  min_tokens: only(0),
  best_of: only(1),
  use_beam_search: only(false),
  include_stop_str_in_output: only(false),
  logit_bias: z
    .record(text, z.number())
    .nullish()
    .refine((bias) => Object.keys(bias ?? {}).length === 0, 'is not supported'),
  // These change nothing about the answer.
  user: z.unknown().optional(),
  metadata: z.unknown().optional(),
  store: z.unknown().optional(),
  service_tier: z.unknown().optional(),
  safety_identifier: z.unknown().optional(),
  prompt_cache_key: z.unknown().optional(),
  prompt_cache_retention: z.unknown().optional(),
};

function only<T extends number | boolean>(value: T) {
  return z.literal(value, `is not supported; leave it out or at ${value}`).nullish();
}

const chatSchema = z
  .object({
    ...shared,
    messages: z.array(message).min(1).max(10_000),
    tools: z.array(tool).max(1000).nullish(),
    tool_choice: z
      .enum(['auto', 'none'], 'must be "auto" or "none": the model cannot be forced to call a tool here')
      .nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    prompt_logprobs: z.null('is not supported for chat; /v1/completions gives those of tokens').optional(),
    max_completion_tokens: z.int().min(1).nullish(),
    logprobs: z.boolean().nullish(),
    top_logprobs: z
      .literal(0, 'is not supported: only the logprob of each sampled token is known; leave it out or at 0')
      .nullish(),
    response_format: z
      .object({ type: z.literal('text', 'must be "text": constrained formats are not supported') })
      .nullish(),
    modalities: z.array(z.literal('text')).nullish(),
    chat_template_kwargs: z.record(text, z.unknown()).nullish(),
    add_generation_prompt: only(true),
    continue_final_message: only(false),
    echo: only(false),
  })
  .strict();

const completionSchema = z
  .object({
    ...shared,
    prompt: z.union([
      text,
      z.array(text).min(1).max(maxPrompts),
      z.array(token).min(1),
      z.array(z.array(token).min(1)).min(1).max(maxPrompts),
    ]),
    logprobs: z
      .literal(0, 'must be 0: only the logprob of each sampled token is known, not those of alternatives')
      .nullish(),
    prompt_logprobs: z
      .literal(0, 'must be 0: only the logprob of each token of the prompt is known, not those of alternatives')
      .nullish(),
    echo: only(false),
    suffix: z.null('is not supported').optional(),
  })
  .strict()
  .refine(({ stream, prompt_logprobs: asked }) => stream !== true || asked == null, {
    path: ['prompt_logprobs'],
    message: 'are not told in a stream; leave out one of the two',
  });

type Common = {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly maxTokens: number | undefined;
  readonly stop: readonly string[];
  readonly stopTokens: readonly number[];
  readonly ignoreEos: boolean;
  readonly returnTokenIds: boolean;
  readonly skipSpecial: boolean;
  readonly logprobs: boolean;
  readonly params: Pick<SampleParams, 'temperature' | 'topP' | 'topK' | 'minP' | 'seed'> & { readonly n: number };
};

export type ChatRequest = Common & {
  readonly kind: 'chat';
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ChatTool[];
  /** Whether what looks like a tool call is taken for one. */
  readonly parseTools: boolean;
  readonly parallelToolCalls: boolean;
  readonly variables: Readonly<Record<string, unknown>>;
};

export type CompletionRequest = Common & {
  readonly kind: 'completion';
  /** [prompt]: text, or its tokens. */
  readonly prompts: readonly (string | readonly number[])[];
  /** Whether the logprob of each token of the prompt is told, too. */
  readonly promptLogprobs: boolean;
};

export function parseChatRequest(body: unknown): ChatRequest {
  const b = parse(chatSchema, body);
  const maxTokens = b.max_completion_tokens ?? b.max_tokens;
  return {
    kind: 'chat',
    ...common(b, maxTokens ?? undefined, b.logprobs === true),
    messages: b.messages.map((m) => {
      const reasoning = m.reasoning_content ?? m.reasoning;
      return {
        role: m.role === 'developer' ? 'system' : m.role,
        content: m.content ?? null,
        ...(reasoning == null ? {} : { reasoning_content: reasoning }),
        ...(m.tool_calls == null
          ? {}
          : { tool_calls: m.tool_calls.map(({ id, ...call }) => (id === undefined ? call : { id, ...call })) }),
        ...(m.tool_call_id == null ? {} : { tool_call_id: m.tool_call_id }),
        ...(m.name == null ? {} : { name: m.name }),
      };
    }),
    // "none" hides the tools from the template too: the model cannot call what it does not see.
    tools:
      b.tool_choice === 'none'
        ? []
        : (b.tools ?? []).map(({ type, function: { name, description, parameters } }) => ({
            type,
            function: {
              name,
              ...(description === undefined ? {} : { description }),
              ...(parameters === undefined ? {} : { parameters }),
            },
          })),
    parseTools: (b.tools?.length ?? 0) > 0 && b.tool_choice !== 'none',
    parallelToolCalls: b.parallel_tool_calls ?? true,
    variables: b.chat_template_kwargs ?? {},
  };
}

export function parseCompletionRequest(body: unknown): CompletionRequest {
  const b = parse(completionSchema, body);
  const { prompt } = b;
  const prompts =
    typeof prompt === 'string'
      ? [prompt]
      : typeof prompt[0] === 'number'
        ? [prompt as number[]]
        : (prompt as string[] | number[][]);
  const promptLogprobs = b.prompt_logprobs === 0;
  return { kind: 'completion', ...common(b, b.max_tokens ?? 16, b.logprobs === 0), prompts, promptLogprobs };
}

type SharedFields = z.infer<z.ZodObject<typeof shared>>;

function common(b: SharedFields, maxTokens: number | undefined, logprobs: boolean): Common {
  return {
    model: b.model,
    stream: b.stream ?? false,
    includeUsage: b.stream_options?.include_usage ?? false,
    maxTokens,
    stop: b.stop == null ? [] : typeof b.stop === 'string' ? [b.stop] : b.stop,
    stopTokens: b.stop_token_ids ?? [],
    ignoreEos: b.ignore_eos ?? false,
    returnTokenIds: b.return_token_ids ?? false,
    skipSpecial: b.skip_special_tokens ?? true,
    logprobs,
    params: {
      n: b.n ?? 1,
      ...(b.temperature == null ? {} : { temperature: b.temperature }),
      ...(b.top_p == null ? {} : { topP: b.top_p }),
      ...(b.top_k == null ? {} : { topK: Math.max(0, b.top_k) }),
      ...(b.min_p == null ? {} : { minP: b.min_p }),
      ...(b.seed == null ? {} : { seed: b.seed }),
    },
  };
}

function parse<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new RequestError(400, 'invalid_request', 'The request body must be a JSON object.');
  }
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, 5).map((issue) => {
    const where = issue.path.join('.');
    if (issue.code === 'unrecognized_keys') {
      return `${issue.keys.map((key) => `"${key.slice(0, 80)}"`).join(', ')} ${where ? `in ${where} ` : ''}is not supported`;
    }
    return where ? `"${where}" ${issue.message}` : issue.message;
  });
  throw new RequestError(400, 'invalid_request', `${problems.join('; ')}.`);
}

// ---- Answers -------------------------------------------------------------------------------------------------------

export type Usage = {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
};

export const usageOf = (prompt: number, completion: number): Usage => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});

export type TokenLogprob = {
  readonly text: string;
  /** Under the plain model, as vLLM reports by default. */
  readonly raw: number;
  /** In the distribution it was drawn from. */
  readonly sampled: number;
};

const finite = (value: number) => (Number.isFinite(value) ? value : -9999);

/** OpenAI's `logprob` is the plain model's; `sampled_logprob` is ours, after temperature and truncation. */
export function chatLogprobs(tokens: readonly TokenLogprob[]): object {
  return {
    content: tokens.map(({ text: token, raw, sampled }) => ({
      token,
      logprob: finite(raw),
      sampled_logprob: finite(sampled),
      // Part of a character has no text of its own, and we do not pretend to know its bytes.
      bytes: token.includes('\ufffd') ? null : [...Buffer.from(token)],
      top_logprobs: [],
    })),
    refusal: null,
  };
}

export function completionLogprobs(tokens: readonly TokenLogprob[], offset: number): object {
  let at = offset;
  const offsets = tokens.map(({ text }) => {
    const here = at;
    at += text.length;
    return here;
  });
  return {
    tokens: tokens.map(({ text }) => text),
    token_logprobs: tokens.map(({ raw }) => finite(raw)),
    sampled_logprobs: tokens.map(({ sampled }) => finite(sampled)),
    top_logprobs: null,
    text_offset: offsets,
  };
}

export function errorBody(status: number, code: string, message: string): object {
  const type =
    status === 404
      ? 'not_found_error'
      : status === 429
        ? 'rate_limit_error'
        : status < 500
          ? 'invalid_request_error'
          : 'server_error';
  return { error: { message, type, param: null, code } };
}
