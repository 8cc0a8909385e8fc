/**
 * A request as a release is asked it: its model's name, its sampling settings where the caller sets none, its prompt, its thinking
 * budget. Where only names and missing fields change, every other byte stays as the caller wrote it (rewrite.ts); a prompt
 * or a budget has the body written anew. Pure.
 *
 * A prompt goes where each wire format has its instructions: chat's leading system messages, `instructions` of responses, `system` of
 * Anthropic's messages. Plain completions and embeddings have no such place and stay as they are.
 */

import type { Endpoint } from '../collect/turn.ts';
import { isObject } from '../collect/untrusted.ts';
import type { Release, ThinkingDialect } from '../deploy/release.ts';
import { parseBody } from './door.ts';
import { withFields, withModel } from './rewrite.ts';

type Body = Readonly<Record<string, unknown>>;
/** What of an upstream matters here. */
type Server = { readonly defaults: Body; readonly thinking: ThinkingDialect | null };

/** The bytes to send. `body` is what `bytes` parse to, or its top level, and then `spans` says where its model stands. */
export function releasedBytes(
  bytes: Buffer,
  body: Body,
  spans: [number, number][] | null,
  release: Release,
  server: Server,
  endpoint: Endpoint,
): Buffer {
  if (release.prompt === null && release.thinking === null)
    return withFields(withModel(bytes, body, release.model, spans), body, { ...server.defaults, ...release.sampling });
  // Of a body that was only scanned, what is long is known by its length alone.
  const whole = spans === null ? body : parseBody(bytes);
  return Buffer.from(JSON.stringify(releasedBody(whole, release, server, endpoint)));
}

export function releasedBody(body: Body, release: Release, server: Server, endpoint: Endpoint): Body {
  const { model, sampling, prompt, thinking } = release;
  const filled = { ...server.defaults, ...sampling, ...body, model };
  const prompted = prompt === null ? filled : withPrompt(filled, prompt, endpoint);
  return thinking === null || server.thinking === null ? prompted : withThinking(prompted, thinking, server.thinking);
}

type Prompt = NonNullable<Release['prompt']>;

function withPrompt(body: Body, { text, rule }: Prompt, endpoint: Endpoint): Body {
  const joined = (own: unknown): string =>
    rule === 'replace' || typeof own !== 'string' || own === '' ? text : `${text}\n\n${own}`;
  switch (endpoint) {
    case 'responses':
      return { ...body, instructions: joined(body.instructions) };
    case 'messages': {
      const own = body.system;
      return {
        ...body,
        system: rule === 'before' && Array.isArray(own) ? [{ type: 'text', text }, ...own] : joined(own),
      };
    }
    case 'chat':
      return Array.isArray(body.messages) ? { ...body, messages: withSystem(body.messages, text, rule) } : body;
    case 'completions':
    case 'embeddings':
      return body;
    default:
      return endpoint satisfies never;
  }
}

function withSystem(messages: readonly unknown[], text: string, rule: Prompt['rule']): unknown[] {
  const first = messages.findIndex((message) => !isInstruction(message));
  const count = first < 0 ? messages.length : first;
  const [own, rest] = [messages.slice(0, count), messages.slice(count)];
  if (rule === 'replace' || own.length === 0) return [{ role: 'system', content: text }, ...rest];
  const [head, ...more] = own as Record<string, unknown>[];
  // One system message, where that can be: many chat templates take no second.
  if (typeof head!.content !== 'string') return [{ role: 'system', content: text }, ...own, ...rest];
  return [{ ...head, content: `${text}\n\n${head!.content}` }, ...more, ...rest];
}

const isInstruction = (message: unknown): boolean =>
  isObject(message) && (message.role === 'system' || message.role === 'developer');

/** `tokens` of thinking at most; 0: none at all. */
function withThinking(body: Body, tokens: number, dialect: ThinkingDialect): Body {
  const template = { ...(isObject(body.chat_template_kwargs) ? body.chat_template_kwargs : {}) };
  switch (dialect) {
    case 'vllm':
      return {
        ...body,
        chat_template_kwargs: { ...template, enable_thinking: tokens > 0 },
        ...(tokens > 0 ? { thinking_token_budget: tokens } : {}),
      };
    case 'template':
      return {
        ...body,
        chat_template_kwargs: {
          ...{ ...template, enable_thinking: tokens > 0 },
          ...(tokens > 0 ? { thinking_budget: tokens } : {}),
        },
      };
    case 'openrouter':
      return { ...body, reasoning: tokens > 0 ? { max_tokens: tokens } : { enabled: false } };
    case 'anthropic':
      return {
        ...body,
        thinking: tokens > 0 ? { type: 'enabled', budget_tokens: tokens } : { type: 'disabled' },
      };
    case 'nim':
      return { ...body, nvext: { ...(isObject(body.nvext) ? body.nvext : {}), max_thinking_tokens: tokens } };
    default:
      return dialect satisfies never;
  }
}
