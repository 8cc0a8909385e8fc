/**
 * Asks a release, through the gateway, what compatibility.ts wants to know. Every call has a limit, all of them together have one, and
 * none is retried.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseUntrusted } from '../collect/untrusted.ts';
import { memoryUsed, tellMemory } from '../engine/memory-header.ts';
import { upTo } from '../up-to.ts';
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
/** So many requests of the load are sent at least. */
const leastRequests = 12;
const mostBytes = 1024 * 1024;
const shortest = 16;
const readEveryMs = 100;
/** Of the number that a call of the load begins with, at most. */
const numberTokens = 5;
/** Room for a model that thinks before it calls or answers. */
const roomy = 1024;
/**
 * So long the load takes at most, and so long all that is asked before it, or as long as four of the slowest answers that are allowed.
 * The load has its own time, lest what was slow before is said of it.
 */
const partSeconds = 120;

type Asking = {
  readonly door: Door;
  readonly agent: string;
  readonly release: string;
  readonly signal?: AbortSignal | undefined;
  /** Told what is asked next. */
  readonly onCheck?: ((name: CheckName) => void) | undefined;
};

const nothing = { content: '', thought: false, isCut: false, toolCalls: [], promptTokens: null, full: null };
const unasked: Probe = {
  ...nothing,
  status: 0,
  detail: 'the time for it was over before it was asked',
  milliseconds: 0,
};

async function ask({ door, agent, release, signal }: Asking, body: object, milliseconds: number): Promise<Probe> {
  const began = performance.now();
  const late = AbortSignal.timeout(Math.max(1, Math.round(milliseconds)));
  try {
    const response = await fetch(`${door.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${door.key}`,
        'content-type': 'application/json',
        'x-pawl-release': release,
        'x-pawl-origin': 'evaluation',
        [tellMemory]: '1',
      },
      body: JSON.stringify({ model: agent, ...body }),
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    const sent = await upTo(mostBytes, response.body);
    const took = performance.now() - began;
    if (sent === null)
      return { ...nothing, status: 0, detail: `it sent more than ${mostBytes} bytes`, milliseconds: took };
    const text = sent.toString('utf8');
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
      full: shareIn(response.headers.get(memoryUsed)),
      milliseconds: took,
    };
  } catch (error) {
    signal?.throwIfAborted();
    const took = performance.now() - began;
    const detail = late.aborted ? `nothing within ${(took / 1000).toFixed(1)} s` : (error as Error).message;
    return { ...nothing, status: 0, detail, milliseconds: took };
  }
}

function shareIn(text: string | null): number | null {
  const share = Number(text ?? Number.NaN);
  return share >= 0 && share <= 1 ? share : null;
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
    const page = await upTo(8 * mostBytes, response.body);
    return response.ok && page !== null ? cacheUse(page.toString('utf8')) : null;
  } catch {
    signal?.throwIfAborted();
    return null;
  }
}

/** Reads it again and again while the load is under way, for between two requests a cache is empty. */
async function fullest(url: string, load: Promise<unknown>, signal: AbortSignal | undefined): Promise<number | null> {
  let isOver = false;
  load.then(
    () => {
      isOver = true;
    },
    () => {
      isOver = true;
    },
  );
  let most: number | null = null;
  for (;;) {
    const seen = await readCache(url, signal);
    if (seen === null) return most; // nothing there, or nothing that is known
    most = Math.max(most ?? 0, seen);
    if (isOver) return most;
    await sleep(readEveryMs, undefined, { signal });
  }
}

export async function probeRelease(asking: Asking, needs: Needs): Promise<Probed> {
  const { contextTokens, seconds, metrics } = needs;
  const { signal, onCheck = () => {} } = asking;
  const each = Math.max(seconds * 2, 10) * 1000;
  const part = Math.max(partSeconds, 4 * seconds) * 1000;
  let end = performance.now() + part;
  const say = async (body: object): Promise<Probe> => {
    const left = end - performance.now();
    return left > 0 ? ask(asking, body, Math.min(each, left)) : unasked;
  };
  onCheck('template');
  const template = await say({ messages: turns(), max_tokens: shortest });
  if (template.status !== 200) return { template, context: null, tools: null, structured: null, load: [], full: null };
  if (contextTokens !== null) onCheck('context');
  const word = contextTokens === null ? null : await sizeOfWord(say);
  const context = contextTokens === null ? null : await askLong(say, contextTokens, word);
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
  const size = context?.status === 200 ? sizeOfLoad(needs, template, word) : { words: 0, answer: shortest };
  const load: Probe[] = [];
  let full: number | null = null;
  let page = metrics;
  end = performance.now() + part;
  // Not begun where there is no time left for an answer that may be as slow as that, nor once it is known to be too slow.
  const hasTime = () => end - performance.now() >= seconds * 1000;
  const isTooSlow = () => load.some(({ status, milliseconds }) => status !== 200 || milliseconds > seconds * 1000);
  while (load.length < leastRequests && hasTime() && !isTooSlow()) {
    const sent = load.length;
    const under = Promise.all(
      Array.from({ length: needs.load }, (_, i) =>
        say({ messages: turns(sent + i, size.words), max_tokens: size.answer }),
      ),
    );
    const seen = page === null ? null : await fullest(page, under, signal);
    const answers = await under;
    if (seen === null) page = null;
    for (const one of [seen, ...answers.map((answer) => answer.full)])
      if (one !== null) full = Math.max(full ?? 0, one);
    load.push(...answers);
  }
  return { template, context, tools: call === null ? null : { call, after }, structured, load, full };
}

/** A short conversation, which begins with another number and with so many words more: no server has seen it before. */
const turns = (number?: number, more = 0) => [
  {
    role: 'system',
    content: `${number === undefined ? '' : `${number}. `}You are brief.${' word'.repeat(more)}`,
  },
  { role: 'user', content: 'Hello.' },
  { role: 'assistant', content: 'Hello, how can I help?' },
  { role: 'user', content: 'Say one word.' },
];

/** What a call of the load is made of, so that it is as long as the traffic's in the mean and takes no more context than is needed. */
function sizeOfLoad(
  { contextTokens, promptTokens, answerTokens }: Needs,
  { promptTokens: around }: Probe,
  word: WordSize | null,
) {
  if (around === null || word === null || contextTokens === null) return { words: 0, answer: shortest };
  const more = Math.max(0, Math.min(promptTokens ?? 0, contextTokens - shortest) - around - numberTokens);
  const prompt = around + numberTokens + more;
  const answer = Math.max(shortest, Math.min(answerTokens ?? 0, contextTokens - prompt, roomy));
  return { words: Math.floor(more / word.tokens), answer };
}

/** Servers refuse to begin an answer that might not fit, so it may be half of the context that is needed anyway. */
const room = ({ contextTokens }: Needs): number =>
  contextTokens === null ? 256 : Math.max(64, Math.min(roomy, Math.floor(contextTokens / 2)));

const words = (n: number) => ({ messages: [{ role: 'user', content: 'word '.repeat(n) }], max_tokens: 1 });
const few = 4;
const more = 12;

type WordSize = {
  /** Of one more word. */
  readonly tokens: number;
  /** Of a prompt beside its words. */
  readonly around: number;
};

/** Two short prompts tell how long a word is to this model; null: what it counts is not what it is sent. */
async function sizeOfWord(say: (body: object) => Promise<Probe>): Promise<WordSize | null> {
  const short = await say(words(few));
  const longer = await say(words(more));
  if (short.promptTokens === null || longer.promptTokens === null || longer.promptTokens <= short.promptTokens)
    return null;
  const tokens = (longer.promptTokens - short.promptTokens) / (more - few);
  return { tokens, around: short.promptTokens - few * tokens };
}

/** A prompt that is, with the one token of its answer, nearly as long as needed. */
async function askLong(say: (body: object) => Promise<Probe>, tokens: number, word: WordSize | null): Promise<Probe> {
  if (word === null) return { ...(await say(words(tokens - 1))), promptTokens: null };
  return say(words(Math.max(1, Math.floor((tokens - 1 - word.around) / word.tokens))));
}
