/** Asks a release, through the gateway, what compatibility.ts wants to know. Every call has a limit; none is retried. */
import { parseUntrusted } from '../collect/untrusted.ts';
import type { CompatibilitySettings, Probe, Probed } from './compatibility.ts';
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

type Asking = {
  readonly door: Door;
  readonly agent: string;
  readonly release: string;
  readonly signal?: AbortSignal | undefined;
};

async function ask({ door, agent, release, signal }: Asking, body: object, seconds: number): Promise<Probe> {
  const began = performance.now();
  const nothing = { content: '', toolCalls: [], promptTokens: null };
  const late = AbortSignal.timeout(seconds * 1000);
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
    const milliseconds = performance.now() - began;
    if (response.status !== 200)
      return { ...nothing, status: response.status, detail: text.replace(/\s+/g, ' ').slice(0, 200), milliseconds };
    const { choices, usage } = (parseUntrusted(text) ?? {}) as {
      choices?: {
        message?: { content?: unknown; tool_calls?: { function?: { name?: unknown; arguments?: unknown } }[] };
      }[];
      usage?: { prompt_tokens?: unknown };
    };
    const message = choices?.[0]?.message;
    return {
      status: 200,
      detail: '',
      content: typeof message?.content === 'string' ? message.content : '',
      toolCalls: (Array.isArray(message?.tool_calls) ? message.tool_calls : []).map((call) => ({
        name: String(call?.function?.name ?? ''),
        arguments: String(call?.function?.arguments ?? ''),
      })),
      promptTokens: typeof usage?.prompt_tokens === 'number' ? usage.prompt_tokens : null,
      milliseconds,
    };
  } catch (error) {
    signal?.throwIfAborted();
    return { ...nothing, status: 0, detail: (error as Error).message, milliseconds: performance.now() - began };
  }
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

export async function probeRelease(asking: Asking, settings: CompatibilitySettings): Promise<Probed> {
  const { contextTokens, seconds, metrics, signal } = { ...settings, signal: asking.signal };
  const limit = Math.max(seconds * 2, 10);
  const say = (body: object) => ask(asking, body, limit);
  const turns = [
    { role: 'system', content: 'You are brief.' },
    { role: 'user', content: 'Hello.' },
    { role: 'assistant', content: 'Hello, how can I help?' },
    { role: 'user', content: 'Say one word.' },
  ];
  const template = await say({ messages: turns, max_tokens: shortest });
  const context =
    contextTokens === undefined
      ? null
      : await say({ messages: [{ role: 'user', content: 'word '.repeat(contextTokens) }], max_tokens: 1 });
  const wanted = [{ role: 'user', content: 'What is the weather in Bern? Use the tool.' }];
  const call = settings.tools ? await say({ messages: wanted, tools: [tool], max_tokens: 256 }) : null;
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
  const structured = settings.structured
    ? await say({
        messages: [{ role: 'user', content: 'Which town does this go to? "Send it to Bern." Answer as JSON.' }],
        response_format: { type: 'json_schema', json_schema: { name: 'where', schema, strict: true } },
        max_tokens: 64,
      })
    : null;
  const load: Probe[] = [];
  let cache: number | null = null;
  for (let round = 0; round < rounds; round++) {
    const under = Promise.all(
      Array.from({ length: settings.load }, () => say({ messages: turns, max_tokens: shortest })),
    );
    const seen = metrics === undefined ? null : await readCache(metrics, signal);
    if (seen !== null) cache = Math.max(cache ?? 0, seen);
    load.push(...(await under));
  }
  return { template, context, tools: call === null ? null : { call, after }, structured, load, cache };
}
