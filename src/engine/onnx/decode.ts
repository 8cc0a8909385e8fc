/**
 * Decoding with a key-value cache: a frozen copy of a model's weights, the session that runs them, and the cache as rows
 * of equal capacity. Reads prompts (`prefill`), lays what it read into rows (`place`), and advances all rows by a token at
 * a time (`step`). Which request sits in which row, and what is done with the scores, is sampler.ts's business.
 *
 * A sequence's scores are the same to the last bit whatever else is in the batch. ONNX Runtime's products treat every row
 * alike as soon as there are two, so nothing here ever runs on one: a lone row gets a companion nobody looks at.
 *
 * Calls must not overlap.
 */
import type * as ort from 'onnxruntime-node';
import { EngineError } from '../../errors.ts';
import { plainLogprob, type Scores } from './choose.ts';
import type { ModelConfig } from './config.ts';
import { arrange, cacheNames, decodeGraph, decodeWeights, headGraph } from './decode-graph.ts';
import { headName } from './decoder.ts';
import { runInPlace } from './in-place.ts';
import { tokenBytes } from './memory.ts';
import { paddedHeadDim, paddedRotaryTables } from './pad-heads.ts';
import { createSession, float32, int32, type Values } from './session.ts';
import { checkWeights, type Weights } from './weights.ts';

/** A longer prompt is read in pieces of this many tokens, which bounds the memory of its activations. */
const PIECE = 1024;
/** Most logits computed at once for prompt logprobs: 64 MiB. */
const PIECE_LOGITS = 16 * 2 ** 20;
const SMALLEST_CAPACITY = 64;

export type Prompt = {
  readonly tokens: Int32Array;
  readonly temperature: number;
  readonly wantLogprobs: boolean;
};

/** A prompt that was read: its keys and values, and the scores of the token after it. */
export type Prefix = {
  readonly length: number;
  /** [2 · layer, or + 1 for values] → [keyHeads, length, headDim] */
  readonly cache: readonly Float32Array[];
  readonly scores: Scores;
  /** [token]; the first is NaN */
  readonly logprobs?: Float32Array;
};

/** The state of one row before a step: the token it reads and how many the cache holds already. */
export type Row = { readonly token: number; readonly length: number; readonly temperature: number };

/** Capacities are powers of two from 64, the last one the context itself. */
export function capacityFor(config: ModelConfig, tokens: number): number {
  let capacity = SMALLEST_CAPACITY;
  while (capacity < tokens) capacity *= 2;
  return Math.min(capacity, Math.max(config.max_position_embeddings, 2));
}

export class Decoder {
  readonly config: ModelConfig;
  readonly #weights: Weights;
  readonly #session: ort.InferenceSession;
  readonly #threads: number;
  readonly #feeds: Values = {};
  #head: ort.InferenceSession | undefined;
  #tables: { readonly positions: number; readonly values: Values } | undefined;
  /** [2 · layer, or + 1 for values] → [rows, keyHeads, capacity, headDim] */
  #cache: Float32Array[] = [];
  #rows = 0;
  #capacity = 0;
  /** Tensors over the first `batch` rows; made again when the batch or the cache changes. */
  #bound: Bound | undefined;

  private constructor(config: ModelConfig, weights: Weights, session: ort.InferenceSession, threads: number) {
    this.config = config;
    this.#weights = weights;
    this.#session = session;
    this.#threads = threads;
    for (const { name, shape } of decodeWeights(config)) this.#feeds[name] = float32(weights.get(name)!, shape);
  }

  /** Copies the weights: what happens to them afterwards does not reach this decoder. */
  static async create(
    config: ModelConfig,
    weights: ReadonlyMap<string, Float32Array>,
    threads: number,
  ): Promise<Decoder> {
    checkWeights(config, weights);
    const session = await createSession(decodeGraph(config), 'decode', { threads, spin: false });
    return new Decoder(config, arrange(config, weights), session, threads);
  }

  /** Bytes of weights and cache. */
  get bytes(): number {
    let bytes = this.cacheBytes;
    for (const values of this.#weights.values()) bytes += values.byteLength;
    return bytes;
  }

  get cacheBytes(): number {
    return this.#rows * this.#capacity * tokenBytes(this.config);
  }

  async close(): Promise<void> {
    this.#cache = [];
    this.#bound = undefined;
    this.#rows = 0;
    this.#capacity = 0;
    await this.#session.release();
    await this.#head?.release();
  }

  /**
   * Makes room for `rows` rows of `tokens` tokens, in at most `limit` bytes. The first `used` rows keep what they hold;
   * more rows than asked for are made while they fit, so that a growing batch seldom moves.
   */
  reserve(rows: number, tokens: number, used: number, limit: number): void {
    const enough = rows <= this.#rows && tokens <= this.#capacity;
    if (enough && this.cacheBytes <= limit) return;
    const capacity = capacityFor(this.config, tokens);
    const most = Math.floor(limit / (capacity * tokenBytes(this.config)));
    const wanted = Math.max(2, rows);
    if (wanted > most)
      throw new EngineError(
        `A cache of ${wanted} rows of ${capacity} tokens takes ${wanted * capacity * tokenBytes(this.config)} bytes; the limit is ${limit}.`,
      );
    const made = Math.min(most, 2 ** Math.ceil(Math.log2(wanted)));
    const [keyHeads, headDim] = [this.config.num_key_value_heads, paddedHeadDim(this.config)];
    const kept = Math.min(capacity, this.#capacity) * headDim;
    this.#bound = undefined;
    for (let i = 0; i < 2 * this.config.num_hidden_layers; i++) {
      const grown = new Float32Array(made * keyHeads * capacity * headDim);
      const old = this.#cache[i];
      // One array after the other, so that at most one is held twice.
      for (let strip = 0; old !== undefined && strip < used * keyHeads; strip++) {
        const from = strip * this.#capacity * headDim;
        grown.set(old.subarray(from, from + kept), strip * capacity * headDim);
      }
      this.#cache[i] = grown;
    }
    this.#rows = made;
    this.#capacity = capacity;
  }

  /** Lays a prompt that was read into a row. */
  place(prefix: Prefix, row: number): void {
    const [keyHeads, headDim] = [this.config.num_key_value_heads, paddedHeadDim(this.config)];
    const size = prefix.length * headDim;
    for (const [i, values] of prefix.cache.entries())
      for (let head = 0; head < keyHeads; head++)
        this.#cache[i]!.set(
          values.subarray(head * size, (head + 1) * size),
          (row * keyHeads + head) * this.#capacity * headDim,
        );
  }

  /** Copies the first `length` tokens of a row over another row. */
  move(from: number, to: number, length: number): void {
    const [keyHeads, headDim] = [this.config.num_key_value_heads, paddedHeadDim(this.config)];
    const strip = this.#capacity * headDim;
    for (const values of this.#cache)
      for (let head = 0; head < keyHeads; head++) {
        const start = (from * keyHeads + head) * strip;
        values.copyWithin((to * keyHeads + head) * strip, start, start + length * headDim);
      }
  }

  /** Reads one token per row, the first row first, and returns the scores of the tokens after them. Valid until the next call. */
  async step(rows: readonly Row[]): Promise<readonly Scores[]> {
    const batch = Math.max(2, rows.length);
    if (batch > this.#rows) throw new Error(`A step of ${batch} rows needs a cache; it has ${this.#rows}.`);
    if (this.#bound?.batch !== batch) this.#bound = this.#bind(batch);
    const { tokens, last, total, inverseTemperature, inputs, outputs, scores } = this.#bound;
    let longest = 1;
    for (let i = 0; i < batch; i++) {
      const row = rows[i] ?? COMPANION;
      if (row.length >= this.#capacity)
        throw new Error(`Row ${i} holds ${row.length} tokens and has no room for more.`);
      tokens[i] = row.token;
      last[i] = row.length;
      inverseTemperature[i] = 1 / (row.temperature || 1);
      longest = Math.max(longest, row.length + 1);
    }
    total[0] = longest;
    await this.#run({ ...inputs, ...this.#rotary(longest) }, outputs);
    return scores;
  }

  #bind(batch: number): Bound {
    const { vocab_size: vocabulary } = this.config;
    const tokens = new Int32Array(batch);
    const last = new Int32Array(batch);
    const total = new Int32Array(1);
    const inverseTemperature = new Float32Array(batch);
    const caches = this.#caches(this.#cache, batch, this.#capacity);
    const { values, scores } = scoreTensors(batch, vocabulary);
    return {
      batch,
      tokens,
      last,
      total,
      inverseTemperature,
      scores,
      inputs: {
        ...this.#feeds,
        ...caches.inputs,
        tokens: int32(tokens, [batch, 1]),
        last: int32(last, [batch]),
        total: int32(total, [1]),
        rows: int32(Int32Array.from(tokens.keys()), [batch]),
        'inverse temperature': float32(inverseTemperature, [batch, 1]),
      },
      outputs: { ...caches.outputs, ...values },
    };
  }

  /** The first `batch` rows of a cache, as the graph's inputs and its outputs: the same memory. */
  #caches(cache: readonly Float32Array[], batch: number, capacity: number): { inputs: Values; outputs: Values } {
    const shape = [batch, this.config.num_key_value_heads, capacity, paddedHeadDim(this.config)];
    const size = shape.reduce((a, b) => a * b, 1);
    const inputs: Values = {};
    const outputs: Values = {};
    for (let layer = 0; layer < this.config.num_hidden_layers; layer++) {
      const { past, present } = cacheNames(layer);
      for (const which of [0, 1] as const) {
        const tensor = float32(cache[2 * layer + which]!.subarray(0, size), shape);
        inputs[past[which]] = tensor;
        outputs[present[which]] = tensor;
      }
    }
    return { inputs, outputs };
  }

  /** Reads prompts, each once. Those of like length are read together; see `promptBatches`. */
  async prefill(prompts: readonly Prompt[]): Promise<Prefix[]> {
    const prefixes = new Array<Prefix>(prompts.length);
    for (const batch of promptBatches(prompts.map(({ tokens }) => tokens.length))) {
      const read = await this.#readPrompts(batch.map((i) => prompts[i]!));
      for (const [k, i] of batch.entries()) prefixes[i] = read[k]!;
    }
    return prefixes;
  }

  async #readPrompts(prompts: readonly Prompt[]): Promise<Prefix[]> {
    const { vocab_size: vocabulary, hidden_size: d, num_key_value_heads: keyHeads } = this.config;
    const headDim = paddedHeadDim(this.config);
    const lengths = prompts.map(({ tokens }) => tokens.length);
    const batch = prompts.length;
    const longest = Math.max(2, ...lengths);
    const piece = batch === 1 ? Math.min(PIECE, longest) : longest;
    const size = batch * keyHeads * longest * headDim;
    const cache = Array.from({ length: 2 * this.config.num_hidden_layers }, () => new Float32Array(size));
    const caches = this.#caches(cache, batch, longest);
    const rows = Math.max(2, batch);
    const { values, scores } = scoreTensors(rows, vocabulary);
    const hidden = prompts.some((p) => p.wantLogprobs) ? new Float32Array(batch * longest * d) : undefined;
    const inverseTemperature = Float32Array.from({ length: rows }, (_, i) => 1 / (prompts[i]?.temperature || 1));
    for (let start = 0; start < longest; start += piece) {
      const length = Math.min(piece, longest - start);
      const tokens = new Int32Array(batch * length);
      for (const [i, prompt] of prompts.entries())
        tokens.set(prompt.tokens.subarray(start, start + length), i * length);
      // With one piece these are the prompts' last tokens; with several only the last piece's scores count.
      const wanted = Int32Array.from({ length: rows }, (_, i) =>
        i < batch ? i * length + Math.min(lengths[i]! - start, length) - 1 : 0,
      );
      const inputs: Values = {
        ...this.#feeds,
        ...caches.inputs,
        ...this.#rotary(longest),
        tokens: int32(tokens, [batch, length]),
        last: int32(
          Int32Array.from(lengths, (n) => Math.min(n, start + length) - 1),
          [batch],
        ),
        total: int32(Int32Array.of(start + length), [1]),
        rows: int32(wanted, [rows]),
        'inverse temperature': float32(inverseTemperature, [rows, 1]),
      };
      const outputs: Values = { ...caches.outputs, ...values };
      if (hidden !== undefined)
        outputs.hidden = float32(hidden.subarray(start * d, start * d + batch * length * d), [batch * length, d]);
      await this.#run(inputs, outputs);
    }
    const prefixes: Prefix[] = [];
    for (const [i, prompt] of prompts.entries()) {
      const length = lengths[i]!;
      const states = hidden?.subarray(i * longest * d, (i * longest + length) * d);
      prefixes.push({
        length,
        cache: cache.map((all) => {
          const own = new Float32Array(keyHeads * length * headDim);
          for (let head = 0; head < keyHeads; head++) {
            const from = (i * keyHeads + head) * longest * headDim;
            own.set(all.subarray(from, from + length * headDim), head * length * headDim);
          }
          return own;
        }),
        scores: scores[i]!,
        ...(prompt.wantLogprobs ? { logprobs: await this.#promptLogprobs(prompt.tokens, states!) } : {}),
      });
    }
    return prefixes;
  }

  /** Logprob of each token after the first, from the hidden states [token, d], a bounded piece of logits at a time. */
  async #promptLogprobs(tokens: Int32Array, hidden: Float32Array): Promise<Float32Array> {
    const { vocab_size: vocabulary, hidden_size: d } = this.config;
    this.#head ??= await createSession(headGraph(this.config), 'head', { threads: this.#threads, spin: false });
    const logprobs = new Float32Array(tokens.length).fill(Number.NaN);
    const head = headName(this.config);
    const most = Math.max(2, Math.floor(PIECE_LOGITS / vocabulary));
    for (let start = 0; start + 1 < tokens.length; start += most) {
      const rows = Math.min(most, tokens.length - start);
      const { values, scores } = scoreTensors(rows, vocabulary);
      const inputs = {
        hidden: float32(hidden.subarray(start * d, (start + rows) * d), [rows, d]),
        [head]: this.#feeds[head]!,
      };
      await runInPlace(this.#head, inputs, { logits: values.logits!, plain: values.plain! });
      for (let i = 0; i < rows && start + i + 1 < tokens.length; i++)
        logprobs[start + i + 1] = plainLogprob(scores[i]!, tokens[start + i + 1]!);
    }
    return logprobs;
  }

  async #run(inputs: Values, outputs: Values): Promise<void> {
    try {
      await runInPlace(this.#session, inputs, outputs);
    } catch (cause) {
      throw new EngineError(`Decoding failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
  }

  #rotary(length: number): Values {
    if (this.#tables === undefined || this.#tables.positions < length) {
      const positions = capacityFor(this.config, length);
      const { cos, sin } = paddedRotaryTables(this.config, positions);
      const shape = [positions, paddedHeadDim(this.config) / 2];
      this.#tables = { positions, values: { cos: float32(cos, shape), sin: float32(sin, shape) } };
    }
    return this.#tables.values;
  }
}

const COMPANION: Row = { token: 0, length: 0, temperature: 1 };

type Bound = {
  readonly batch: number;
  readonly tokens: Int32Array;
  readonly last: Int32Array;
  readonly total: Int32Array;
  readonly inverseTemperature: Float32Array;
  readonly scores: readonly Scores[];
  readonly inputs: Values;
  readonly outputs: Values;
};

/** Output tensors for `rows` rows of scores, and the rows as views of them. */
function scoreTensors(rows: number, vocabulary: number): { values: Values; scores: Scores[] } {
  const make = () => new Float32Array(rows * vocabulary);
  const [logits, plain, tempered] = [make(), make(), make()];
  const row = (values: Float32Array, i: number) => values.subarray(i * vocabulary, (i + 1) * vocabulary);
  const shape = [rows, vocabulary];
  return {
    values: { logits: float32(logits, shape), plain: float32(plain, shape), tempered: float32(tempered, shape) },
    scores: Array.from({ length: rows }, (_, i) => ({
      logits: row(logits, i),
      plain: row(plain, i),
      tempered: row(tempered, i),
    })),
  };
}

/**
 * Which prompts are read together: indices by falling length, a new batch where a prompt is shorter than two thirds of the
 * batch's longest, to which all are padded, or where the batch would exceed 4096 tokens. Long prompts are read alone.
 */
export function promptBatches(lengths: readonly number[]): number[][] {
  const order = Array.from(lengths.keys()).sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const batches: number[][] = [];
  let longest = 0;
  for (const i of order) {
    const batch = batches.at(-1);
    const fits =
      batch !== undefined &&
      longest <= PIECE &&
      3 * lengths[i]! >= 2 * longest &&
      (batch.length + 1) * longest <= 4 * PIECE;
    if (fits) batch.push(i);
    else {
      batches.push([i]);
      longest = lengths[i]!;
    }
  }
  return batches;
}
