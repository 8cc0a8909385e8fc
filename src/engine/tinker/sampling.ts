/**
 * What is asked of a server's sampler, and what it answers, as engine.ts has it. Pure. Servers have no stop strings that end a
 * generation early, or none that can go with stop tokens: text is cut here. Logprobs of servers are those of the plain model; what
 * a token's logprob was after temperature and truncation only the server knows, and does not say.
 */
import type { z } from 'zod';
import { EngineError } from '../../errors.ts';
import type { Sample, SampleParams, SampleResult } from '../engine.ts';
import { createStopWatch, type StopStrings, stopStrings } from '../stop-text.ts';
import type { TextStream } from '../tokenizer.ts';
import type { Dialect } from './dialects.ts';
import { roundUp } from './shapes.ts';
import { numbersIn, type sampled, type WireSampling } from './wire.ts';

/** What the model's folder says of ending. */
export type Ends = {
  readonly stopTokens: readonly number[];
  readonly textStream?: (() => TextStream) | undefined;
};

export function wireSampling(
  dialect: Dialect,
  params: SampleParams,
  { seed, stopTokens, room }: { readonly seed: number; readonly stopTokens: readonly number[]; readonly room: number },
): WireSampling {
  const { maxTokens, temperature = 1, topP = 1, topK = 0, minP = 0 } = params;
  if (minP > 0)
    throw new EngineError(`minP is ${minP}, which this server does not know; leave it out, or use topP or topK.`);
  return {
    // None at all is not understood; the one is cut off again.
    max_tokens: Math.max(1, dialect.compiles ? Math.min(roundUp(maxTokens), room) : maxTokens),
    seed,
    temperature,
    top_k: topK === 0 ? -1 : topK,
    top_p: topP,
    stop: stopTokens,
  };
}

/**
 * A seed for each prompt of a call: the server adds 1 for each attempt, so neighbouring prompts must lie far apart. 30 bits, since
 * servers count in 32.
 */
export function seedOf(seed: number, prompt: number): number {
  let h = (Math.imul(seed | 0, 0x9e3779b1) ^ Math.floor(seed / 2 ** 32) ^ Math.imul(prompt + 1, 0x85ebca6b)) | 0;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) & 0x3fffffff;
}

export function sampleResult(
  dialect: Dialect,
  answer: z.infer<typeof sampled>,
  asked: { readonly params: SampleParams; readonly promptSize: number; readonly version: number; readonly ends: Ends },
): SampleResult {
  const { params, promptSize, version, ends } = asked;
  const n = params.n ?? 1;
  if (answer.sequences.length !== n)
    throw new EngineError(`The server answered with ${answer.sequences.length} samples where ${n} were asked for.`);
  const stops = stopStrings(params.stop ?? []);
  return {
    samples: answer.sequences.map((one) => sampleOf(one, params, stops, ends)),
    ...(params.promptLogprobs ? { promptLogprobs: promptLogprobs(dialect, answer.prompt_logprobs, promptSize) } : {}),
    version,
  };
}

function sampleOf(
  { tokens, logprobs, stop_reason: reason }: z.infer<typeof sampled>['sequences'][number],
  { maxTokens }: SampleParams,
  stops: StopStrings,
  { textStream }: Ends,
): Sample {
  if (logprobs?.length !== tokens.length)
    throw new EngineError(`The server gave ${logprobs?.length ?? 'no'} logprobs for ${tokens.length} sampled tokens.`);
  let size = Math.min(tokens.length, maxTokens);
  let finish: Sample['finish'] = size < tokens.length ? 'length' : reason;
  const end =
    stops.length > 0 && textStream ? tokens.slice(0, size).findIndex(createStopWatch(stops, textStream())) : -1;
  if (end !== -1) {
    size = end + 1;
    finish = 'stop';
  }
  const raw = numbersIn(logprobs).subarray(0, size);
  return { tokens: Int32Array.from(tokens.slice(0, size)), logprobs: raw, rawLogprobs: raw, finish };
}

function promptLogprobs(
  { promptLogprobs: form }: Dialect,
  found: z.infer<typeof sampled>['prompt_logprobs'],
  size: number,
): Float32Array {
  const all = found ? numbersIn(found) : undefined;
  const rest = form === 'all' ? all?.subarray(1) : all;
  if (rest?.length !== size - 1)
    throw new EngineError(`The server gave ${found?.length ?? 'no'} logprobs for a prompt of ${size} tokens.`);
  const out = new Float32Array(size).fill(Number.NaN, 0, 1);
  out.set(rest, 1);
  return out;
}
