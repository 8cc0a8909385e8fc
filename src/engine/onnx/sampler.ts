/**
 * Sampling with continuous batching: requests join a running batch as soon as there is room and leave it the moment they
 * end, so a short answer never waits for a long one (the idea of Orca, Yu et al. 2022). A sampler is one frozen copy of a
 * model's weights; training on goes on without touching it.
 *
 * A `sample` call is a list of prompts; a prompt is read once and its attempts each take a row of the cache. Calls take
 * turns at free rows, so one with a thousand prompts does not lock out one with a single prompt. Memory is bounded by
 * reserving, for every row, the most tokens it can come to: a row that was let in can always finish.
 *
 * Life of an attempt: waiting → (prompt read) → placed in a row, one token a step → finished. A call ends when its last
 * attempt has finished, when its signal aborts, when its own callback throws, or when the sampler fails or closes.
 */
import { randomBytes } from 'node:crypto';
import { EngineError } from '../../errors.ts';
import { checkPrompt, checkSampling } from '../check-sampling.ts';
import type { Sample, SampleParams, SampleResult, Tokens } from '../engine.ts';
import { createStopWatch, type StopStrings, stopStrings } from '../stop-text.ts';
import type { TextStream } from '../tokenizer.ts';
import { choose, type Rules, type Scores, type Stream, stream, uniformAt } from './choose.ts';
import type { ModelConfig } from './config.ts';
import { capacityFor, Decoder, type Prefix, promptBatches } from './decode.ts';
import { tokenBytes } from './memory.ts';

/** Most memory for keys and values unless told otherwise: 1 GiB. */
export const DEFAULT_CACHE_BYTES = 2 ** 30;

export type SamplerOptions = {
  /** Threads inside an operator; part of what makes a run repeatable. */
  readonly threads: number;
  /** Most attempts that run at a time. */
  readonly slots?: number; // 64
  /** Most memory for keys and values. */
  readonly cacheBytes?: number; // 1 GiB
  /** Begins to read tokens as text; without it, stop strings are refused. */
  readonly textStream?: () => TextStream;
  /** Version of the weights, for the results. */
  readonly version?: number; // 0
};

export type SampleOptions = {
  readonly onToken?: (prompt: number, attempt: number, token: number) => void;
  readonly signal?: AbortSignal;
};

export type Sampler = {
  readonly sample: (
    prompts: readonly Tokens[],
    params: SampleParams,
    options?: SampleOptions,
  ) => Promise<SampleResult[]>;
  /** Memory held now, weights and cache. */
  readonly bytes: number;
  /** What is going on, for metrics: attempts in rows, prompts not read yet, tokens decoded and prompts read so far. */
  readonly state: SamplerState;
  /** Ends every call with an error and frees the memory. */
  readonly close: () => Promise<void>;
};

export type SamplerState = {
  readonly running: number;
  readonly waiting: number;
  readonly sampledTokens: number;
  readonly promptsRead: number;
};

type Call = {
  readonly params: SampleParams;
  readonly rules: Rules;
  readonly stops: ReadonlySet<number>;
  readonly stopStrings: StopStrings;
  readonly options: SampleOptions;
  readonly groups: readonly Group[];
  /** Groups before this one were taken up. */
  next: number;
  /** Attempts that have not finished. */
  open: number;
  settled: boolean;
  readonly settle: (error?: unknown) => void;
};

/** A prompt and its attempts. */
type Group = {
  readonly call: Call;
  readonly index: number;
  readonly prompt: Int32Array;
  readonly seed: number;
  /** Most tokens an attempt can have in the cache: the last one is never read. */
  readonly need: number;
  readonly samples: Sample[];
  /** Attempts before this one were placed. */
  placed: number;
  logprobs?: Float32Array;
};

type Attempt = {
  readonly group: Group;
  readonly index: number;
  readonly stream: Stream;
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly rawLogprobs: number[];
  /** Told every token; true at a stop string. */
  readonly reachesStop: (token: number) => boolean;
};

export async function createSampler(
  config: ModelConfig,
  weights: ReadonlyMap<string, Float32Array>,
  options: SamplerOptions,
): Promise<Sampler> {
  return new ContinuousSampler(await Decoder.create(config, weights, options.threads), options);
}

class ContinuousSampler implements Sampler {
  readonly #decoder: Decoder;
  readonly #config: ModelConfig;
  readonly #options: SamplerOptions;
  readonly #slots: number;
  readonly #cacheBytes: number;
  /** Calls with prompts that nobody has taken up; the first is next in turn. */
  #queue: Call[] = [];
  /** A prompt that was read while not all of its attempts have a row. */
  #partial: { readonly group: Group; readonly prefix: Prefix } | undefined;
  /** [row] */
  #running: Attempt[] = [];
  #calls = new Set<Call>();
  #loop: Promise<void> | undefined;
  #closed = false;
  #sampledTokens = 0;
  #promptsRead = 0;

  constructor(decoder: Decoder, options: SamplerOptions) {
    this.#decoder = decoder;
    this.#config = decoder.config;
    this.#options = options;
    this.#slots = options.slots ?? 64;
    this.#cacheBytes = options.cacheBytes ?? DEFAULT_CACHE_BYTES;
  }

  get bytes(): number {
    return this.#decoder.bytes;
  }

  get state(): SamplerState {
    let waiting = 0;
    for (const call of this.#queue) waiting += call.groups.length - call.next;
    return {
      running: this.#running.length,
      waiting,
      sampledTokens: this.#sampledTokens,
      promptsRead: this.#promptsRead,
    };
  }

  sample = async (
    prompts: readonly Tokens[],
    params: SampleParams,
    options: SampleOptions = {},
  ): Promise<SampleResult[]> => {
    if (this.#closed) throw new EngineError('This sampler is closed.');
    const rules = checkSampling(params, this.#options.textStream !== undefined);
    const checked = prompts.map((prompt, i) => this.#checkPrompt(prompt, i, params));
    options.signal?.throwIfAborted();
    if (prompts.length === 0) return [];
    return new Promise((resolve, reject) => {
      const groups: Group[] = [];
      const abort = () => call.settle(options.signal?.reason);
      const call: Call = {
        params,
        rules,
        stops: new Set(params.stopTokens ?? this.#config.eos_token_ids),
        stopStrings: stopStrings(params.stop ?? []),
        options,
        groups,
        next: 0,
        open: prompts.length * (params.n ?? 1),
        settled: false,
        settle: (error) => {
          if (call.settled) return;
          call.settled = true;
          options.signal?.removeEventListener('abort', abort);
          this.#calls.delete(call);
          this.#queue = this.#queue.filter((other) => other !== call);
          if (error === undefined) resolve(groups.map((group) => this.#result(group)));
          else reject(error);
        },
      };
      for (const [index, { tokens, need }] of checked.entries()) {
        const seed = params.seed ?? randomBytes(6).readUIntBE(0, 6);
        groups.push({ call, index, prompt: tokens, seed, need, samples: [], placed: 0 });
      }
      options.signal?.addEventListener('abort', abort, { once: true });
      this.#calls.add(call);
      this.#queue.push(call);
      this.#loop ??= this.#work();
    });
  };

  close = async (): Promise<void> => {
    if (this.#closed) return;
    this.#closed = true;
    for (const call of [...this.#calls]) call.settle(new EngineError('The sampler was closed.', { retryable: true }));
    await this.#loop;
    await this.#decoder.close();
  };

  #result(group: Group): SampleResult {
    const version = this.#options.version ?? 0;
    return {
      samples: group.samples,
      ...(group.logprobs === undefined ? {} : { promptLogprobs: group.logprobs }),
      version,
    };
  }

  /** Runs while there is anything to do. Everything between two awaits happens at once as far as callers can see. */
  async #work(): Promise<void> {
    await Promise.resolve(); // calls made in the same breath start in the same batch
    try {
      for (;;) {
        this.#dropSettled();
        await this.#admit();
        this.#dropSettled();
        if (this.#running.length > 0) await this.#step();
        else if (this.#queue.length === 0 && this.#partial === undefined) break;
      }
    } catch (error) {
      // The cache's contents cannot be trusted any more; nobody who had a row gets an answer from it.
      this.#running = [];
      this.#partial = undefined;
      for (const call of [...this.#calls]) call.settle(error);
    } finally {
      this.#loop = undefined;
    }
  }

  /** Frees the rows of calls that were aborted or failed. */
  #dropSettled(): void {
    for (let row = this.#running.length - 1; row >= 0; row--)
      if (this.#running[row]!.group.call.settled) this.#vacate(row);
    if (this.#partial?.group.call.settled) this.#partial = undefined;
  }

  /** The last row takes the place of the one that goes, so that running rows are always the first ones. */
  #vacate(row: number): void {
    const last = this.#running.pop()!;
    if (row === this.#running.length) return;
    this.#running[row] = last;
    this.#decoder.move(this.#running.length, row, cached(last));
  }

  /** Whether one more attempt of the group fits beside the running ones and `others` that are about to join. */
  #fits(group: Group, others: readonly Group[]): boolean {
    const rows = this.#running.length + others.length + 1;
    if (rows > this.#slots) return false;
    let need = group.need;
    for (const { group: running } of this.#running) need = Math.max(need, running.need);
    for (const other of others) need = Math.max(need, other.need);
    return Math.max(2, rows) * capacityFor(this.#config, need) * tokenBytes(this.#config) <= this.#cacheBytes;
  }

  /** One round of reading prompts; with more of them waiting, the running rows get a step in between. */
  async #admit(): Promise<void> {
    if (!this.#fill()) return;
    const { groups, rows } = this.#take();
    if (groups.length === 0) return;
    const prefixes = await this.#decoder.prefill(
      groups.map(({ prompt, call: { params, rules } }) => ({
        tokens: prompt,
        temperature: rules.temperature,
        wantLogprobs: params.promptLogprobs ?? false,
      })),
    );
    this.#promptsRead += groups.length;
    this.#reserve(rows);
    // All but the last have room for every attempt: `take` saw to it.
    for (const [i, group] of groups.entries()) {
      const { logprobs } = prefixes[i]!;
      if (logprobs !== undefined) group.logprobs = logprobs;
      this.#partial = { group, prefix: prefixes[i]! };
      if (!this.#fill()) return;
    }
  }

  /** Places attempts of the prompt in hand while they fit; true when none of them is left over. */
  #fill(): boolean {
    while (this.#partial !== undefined) {
      const { group, prefix } = this.#partial;
      if (!group.call.settled) {
        if (group.need > 0 && !this.#fits(group, [])) return false;
        this.#start(group, prefix);
      }
      if (group.call.settled || group.placed === attempts(group)) this.#partial = undefined;
    }
    return true;
  }

  /** The next prompts to read, calls in turn: as many as have room, the last one perhaps for some attempts only. */
  #take(): { groups: Group[]; rows: Group[] } {
    const groups: Group[] = [];
    const rows: Group[] = [];
    while (this.#queue.length > 0) {
      const call = this.#queue[0]!;
      const group = call.groups[call.next]!;
      if (!this.#fits(group, rows)) break;
      const lengths = [...groups, group].map(({ prompt }) => prompt.length);
      if (groups.length > 0 && promptBatches(lengths).length > 4) break;
      groups.push(group);
      call.next++;
      this.#queue.shift();
      if (call.next < call.groups.length) this.#queue.push(call);
      for (let i = 0; i < attempts(group); i++) {
        if (!this.#fits(group, rows)) return { groups, rows };
        rows.push(group);
      }
    }
    return { groups, rows };
  }

  /** Draws an attempt's first token from the scores after the prompt and, unless that ends it, gives it a row. */
  #start(group: Group, prefix: Prefix): void {
    const index = group.placed++;
    const place = stream(group.seed, group.prompt, index);
    const { stopStrings: ends } = group.call;
    const reachesStop = ends.length === 0 ? () => false : createStopWatch(ends, this.#options.textStream!());
    const attempt = { group, index, stream: place, tokens: [], logprobs: [], rawLogprobs: [], reachesStop };
    if (group.call.params.maxTokens === 0) this.#finish(attempt, 'length');
    else if (!this.#extend(attempt, prefix.scores)) {
      this.#reserve([group]);
      this.#decoder.place(prefix, this.#running.length);
      this.#running.push(attempt);
    }
  }

  /** Room for what runs and what is about to join, each at its longest. Memory nobody writes to costs nothing yet. */
  #reserve(joining: readonly Group[]): void {
    let need = 0;
    for (const group of joining) need = Math.max(need, group.need);
    for (const { group } of this.#running) need = Math.max(need, group.need);
    const used = this.#running.length;
    this.#decoder.reserve(used + joining.length, need, used, this.#cacheBytes);
  }

  async #step(): Promise<void> {
    const scores = await this.#decoder.step(
      this.#running.map((attempt) => ({
        token: attempt.tokens.at(-1)!,
        length: cached(attempt),
        temperature: attempt.group.call.rules.temperature,
      })),
    );
    // From the last row to the first: a row that goes is replaced by one that was served already.
    for (let row = this.#running.length - 1; row >= 0; row--) {
      const attempt = this.#running[row]!;
      if (attempt.group.call.settled || this.#extend(attempt, scores[row]!)) this.#vacate(row);
    }
  }

  /** Draws the attempt's next token; true when the attempt is over. Its own errors end its call and no other. */
  #extend(attempt: Attempt, scores: Scores): boolean {
    const { group, tokens } = attempt;
    const { call } = group;
    try {
      const choice = choose(scores, call.rules, uniformAt(attempt.stream, tokens.length));
      tokens.push(choice.token);
      attempt.logprobs.push(choice.logprob);
      attempt.rawLogprobs.push(choice.rawLogprob);
      this.#sampledTokens++;
      call.options.onToken?.(group.index, attempt.index, choice.token);
      if (call.settled) return true; // the callback may have aborted
      const stopped = call.stops.has(choice.token) || attempt.reachesStop(choice.token);
      if (!stopped && tokens.length < call.params.maxTokens) return false;
      this.#finish(attempt, stopped ? 'stop' : 'length');
    } catch (error) {
      call.settle(error);
    }
    return true;
  }

  #finish({ group, index, tokens, logprobs, rawLogprobs }: Attempt, finish: Sample['finish']): void {
    group.samples[index] = {
      tokens: Int32Array.from(tokens),
      logprobs: Float32Array.from(logprobs),
      rawLogprobs: Float32Array.from(rawLogprobs),
      finish,
    };
    if (--group.call.open === 0) group.call.settle();
  }

  #checkPrompt(prompt: Tokens, index: number, params: SampleParams): { tokens: Int32Array; need: number } {
    const { maxTokens } = params;
    checkPrompt(this.#config, prompt, index, maxTokens);
    const tokens = Int32Array.from(prompt);
    const need = maxTokens === 0 ? 0 : tokens.length + maxTokens - 1;
    const bytes = 2 * capacityFor(this.#config, need) * tokenBytes(this.#config);
    if (need > 0 && bytes > this.#cacheBytes)
      throw new EngineError(
        `Prompt ${index} with maxTokens ${maxTokens} needs up to ${bytes} bytes of cache; this sampler may use ${this.#cacheBytes}. Ask for fewer tokens or give it more memory.`,
      );
    return { tokens, need };
  }
}

const attempts = (group: Group) => group.call.params.n ?? 1;

/** Tokens of an attempt that are in the cache: all but the newest, which the next step reads. */
const cached = ({ group, tokens }: Attempt) => group.prompt.length + tokens.length - 1;
