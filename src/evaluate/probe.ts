/**
 * Asks a release, through the gateway, what compatibility.ts wants to know. Every call has a limit, all of them together have one, and
 * none is retried.
 */
import { parseUntrusted } from '../collect/untrusted.ts';
import type { CheckName, Needs, Probe, Probed } from './compatibility.ts';
import type { Door } from './door.ts';

const tool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a town.',
    parameters: { type: 'object', properties: { town: { type: 'string' } }, required: ['town'] },
  },
};
const schema = {
  type: 'object',
  properties: { town: { type: 'string' } },
  required: ['town'],
  additionalProperties: false,
};
const rounds = 3;
const mostBytes = 1024 * 1024;
const shortest = 16;
/** Room for a model that thinks before it calls or answers. */
const roomy = 1024;
/** So long all of it takes at most, or as long as four of the slowest answers that are allowed. */
const wholeSeconds = 120;

type Asking = {
  readonly door: Door;
  readonly agent: string;
  readonly release: string;
  readonly signal?: AbortSignal | undefined;
  /** Told what is asked next. */
  readonly onCheck?: ((name: CheckName) => void) | undefined;
};

async function ask({ door, agent, release, signal }: Asking, body: object, milliseconds: number): Promise<Probe> {
  const began = performance.now();
  const nothing = { content: '', thought: false, isCut: false, toolCalls: [], promptTokens: null };
  const late = AbortSignal.timeout(Math.max(1, Math.round(milliseconds)));
  try {
    const response = await fetch(`${door.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${door.key}`,
        'content-type': 'application/json',
        'x-pawl-release': release,
        'x-pawl-origin': 'evaluation',
      },
      body: JSON.stringify({ model: agent, ...body }),
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    const text = (await response.text()).slice(0, mostBytes);
    const took = performance.now() - began;
    if (response.status !== 200)
      return { ...nothing, status: response.status, detail: saidIn(text), milliseconds: took };
    const { choices, usage } = (parseUntrusted(text) ?? {}) as {
      choices?: {
        finish_reason?: unknown;
        message?: {
          content?: unknown;
          reasoning_content?: unknown;
          reasoning?: unknown;
          tool_calls?: { function?: { name?: unknown; arguments?: unknown } }[];
        };
      }[];
      usage?: { prompt_tokens?: unknown };
    };
    const message = choices?.[0]?.message;
    return {
      status: 200,
      detail: '',
      content: typeof message?.content === 'string' ? message.content : '',
      thought: [message?.reasoning_content, message?.reasoning].some((one) => typeof one === 'string' && one !== ''),
      isCut: choices?.[0]?.finish_reason === 'length',
      toolCalls: (Array.isArray(message?.tool_calls) ? message.tool_calls : []).map((call) => ({
        name: String(call?.function?.name ?? ''),
        arguments: String(call?.function?.arguments ?? ''),
      })),
      promptTokens: typeof usage?.prompt_tokens === 'number' ? usage.prompt_tokens : null,
      milliseconds: took,
    };
  } catch (error) {
    signal?.throwIfAborted();
    const took = performance.now() - began;
    const detail = late.aborted ? `nothing within ${(took / 1000).toFixed(1)} s` : (error as Error).message;
    return { ...nothing, status: 0, detail, milliseconds: took };
  }
}

/** The sentence of an error, where the body has one as OpenAI's do. */
function saidIn(text: string): string {
  const { error } = (parseUntrusted(text) ?? {}) as { error?: { message?: unknown } };
  const said = typeof error?.message === 'string' ? error.message : text;
  return said.replace(/\s+/g, ' ').slice(0, 200);
}

const gauges =
  /^(?:vllm:(?:gpu|kv)_cache_usage_perc|sglang:token_usage|llamacpp:kv_cache_usage_ratio)(?:\{[^}]*\})? (\S+)$/gm;

/** The fullest of what a Prometheus page says; null: it says nothing of it. */
export function cacheUse(page: string): number | null {
  const values = [...page.matchAll(gauges)].map(([, value]) => Number(value)).filter(Number.isFinite);
  return values.length === 0 ? null : Math.max(...values);
}

async function readCache(url: string, signal: AbortSignal | undefined): Promise<number | null> {
  const late = AbortSignal.timeout(5_000);
  try {
    const response = await fetch(url, { signal: signal === undefined ? late : AbortSignal.any([signal, late]) });
    return response.ok ? cacheUse((await response.text()).slice(0, 8 * mostBytes)) : null;
  } catch {
    signal?.throwIfAborted();
    return null;
  }
}

export async function probeRelease(asking: Asking, needs: Needs): Promise<Probed> {
  const { contextTokens, seconds, metrics } = needs;
  const { signal, onCheck = () => {} } = asking;
  const each = Math.max(seconds * 2, 10) * 1000;
  const end = performance.now() + Math.max(wholeSeconds, 4 * seconds) * 1000;
  const say = (body: object) => ask(asking, body, Math.min(each, end - performance.now()));
  const turns = [
    { role: 'system', content: 'You are brief.' },
    { role: 'user', content: 'Hello.' },
    { role: 'assistant', content: 'Hello, how can I help?' },
    { role: 'user', content: 'Say one word.' },
  ];
  onCheck('template');
  const template = await say({ messages: turns, max_tokens: shortest });
  if (template.status !== 200) return { template, context: null, tools: null, structured: null, load: [], cache: null };
  if (contextTokens !== null) onCheck('context');
  const context = contextTokens === null ? null : await askLong(say, contextTokens);
  if (needs.tools) onCheck('tools');
  const wanted = [{ role: 'user', content: 'What is the weather in Bern? Use the tool.' }];
  const call = needs.tools ? await say({ messages: wanted, tools: [tool], max_tokens: room(needs) }) : null;
  const made = call?.toolCalls[0];
  const after =
    made === undefined
      ? null
      : await say({
          messages: [
            ...wanted,
            { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: made }] },
            { role: 'tool', tool_call_id: 'c1', content: '{"weather":"rain"}' },
          ],
          tools: [tool],
          max_tokens: 64,
        });
  if (needs.structured) onCheck('structured');
  const structured = needs.structured
    ? await say({
        messages: [{ role: 'user', content: 'Which town does this go to? "Send it to Bern." Answer as JSON.' }],
        response_format: { type: 'json_schema', json_schema: { name: 'where', schema, strict: true } },
        max_tokens: room(needs),
      })
    : null;
  onCheck('latency');
  const load: Probe[] = [];
  let cache: number | null = null;
  for (let round = 0; round < rounds; round++) {
    const under = Promise.all(Array.from({ length: needs.load }, () => say({ messages: turns, max_tokens: shortest })));
    const seen = metrics === null ? null : await readCache(metrics, signal);
    if (seen !== null) cache = Math.max(cache ?? 0, seen);
    load.push(...(await under));
  }
  return { template, context, tools: call === null ? null : { call, after }, structured, load, cache };
}

/** Servers refuse to begin an answer that might not fit, so it may be half of the context that is needed anyway. */
const room = ({ contextTokens }: Needs): number =>
  contextTokens === null ? 256 : Math.max(64, Math.min(roomy, Math.floor(contextTokens / 2)));

const words = (n: number) => ({ messages: [{ role: 'user', content: 'word '.repeat(n) }], max_tokens: 1 });
const few = 4;
const more = 12;

/** A prompt that is, with the one token of its answer, nearly as long as needed: two short ones tell how long a word is to this model. */
async function askLong(say: (body: object) => Promise<Probe>, tokens: number): Promise<Probe> {
  const short = await say(words(few));
  const longer = await say(words(more));
  if (short.promptTokens === null || longer.promptTokens === null || longer.promptTokens <= short.promptTokens)
    return { ...(await say(words(tokens - 1))), promptTokens: null }; // what it counts is not what it is sent
  const perWord = (longer.promptTokens - short.promptTokens) / (more - few);
  const around = short.promptTokens - few * perWord;
  return say(words(Math.max(1, Math.floor((tokens - 1 - around) / perWord))));
}
