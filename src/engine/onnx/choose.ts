/**
 * Which token comes next: pure maths from one row of scores and one uniform number to a token and its two logprobs. The
 * order of the filters is the usual one (Hugging Face transformers, vLLM): temperature, then top-k, then top-p of what
 * top-k left, then min-p. Equal probabilities are ranked by token id, so a choice never depends on a sort's whim.
 *
 * The uniform numbers are counter-based (the idea of Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"):
 * a hash of seed, prompt, attempt and position. A request's tokens thus cannot depend on what else is in the batch.
 */
import { EngineError } from '../../errors.ts';

/** One row of the decode graph's answer; all have the length of the vocabulary. */
export type Scores = {
  readonly logits: Float32Array;
  /** softmax(logits) */
  readonly plain: Float32Array;
  /** softmax(logits / temperature); not read when the temperature is 0 */
  readonly tempered: Float32Array;
};

export type Rules = {
  /** 0 is greedy */
  readonly temperature: number;
  readonly topP: number;
  /** 0 is off */
  readonly topK: number;
  /** 0 is off */
  readonly minP: number;
};

export type Choice = {
  readonly token: number;
  /** In the distribution the token was drawn from. */
  readonly logprob: number;
  /** Under the plain model, temperature 1. */
  readonly rawLogprob: number;
};

/** `uniform` is in [0, 1). */
export function choose(scores: Scores, rules: Rules, uniform: number): Choice {
  const { token, logprob } = rules.temperature === 0 ? greedy(scores.logits) : draw(scores.tempered, rules, uniform);
  return { token, logprob, rawLogprob: plainLogprob(scores, token) };
}

/** The whole mass is on one token, so its logprob is 0. */
function greedy(logits: Float32Array): { token: number; logprob: number } {
  const token = argmax(logits);
  if (!Number.isFinite(logits[token])) throw notFinite(logits[token]!);
  return { token, logprob: 0 };
}

function draw(p: Float32Array, rules: Rules, uniform: number): { token: number; logprob: number } {
  if (rules.topK === 0 && rules.topP === 1 && rules.minP === 0) return pick(p, undefined, uniform);
  return pick(p, kept(p, rules), uniform);
}

/** Inverse of the cumulative distribution over all tokens, or over some of them, by id. */
function pick(p: Float32Array, tokens: readonly number[] | undefined, uniform: number) {
  const count = tokens?.length ?? p.length;
  let total = 0;
  for (let i = 0; i < count; i++) total += p[tokens === undefined ? i : tokens[i]!]!;
  if (!(total > 0 && total < Number.POSITIVE_INFINITY)) throw notFinite(total);
  const target = uniform * total;
  let sum = 0;
  let token = -1;
  for (let i = 0; i < count; i++) {
    const id = tokens === undefined ? i : tokens[i]!;
    if (p[id] === 0) continue;
    token = id; // the last one that can be drawn stands in where rounding leaves the sum short of the target
    sum += p[id]!;
    if (sum > target) break;
  }
  // The whole row is normalised already, but for rounding; what filters left is not.
  return { token, logprob: Math.log(tokens === undefined ? p[token]! : p[token]! / total) };
}

/**
 * The tokens that survive the filters, by id. Only probabilities are sorted, which typed arrays do natively; the tokens are
 * then those above the smallest probability that is kept, and of those equal to it the lowest ids.
 */
export function kept(p: Float32Array, { topK, topP, minP }: Omit<Rules, 'temperature'>): number[] {
  const cut = topK > 0 && topK < p.length;
  if (!cut && topP === 1) return atLeast(p, minP * p[argmax(p)]!, p.length);
  const falling = cut ? largest(p, topK) : worthRanking(p, topP, minP);
  let count = falling.length;
  if (topP < 1) {
    // Without top-k the mass is that of the whole row, ranked or not.
    const all = cut ? falling : p;
    let mass = 0;
    for (let i = 0; i < all.length; i++) mass += all[i]!;
    let sum = 0;
    count = 0;
    while (count < falling.length && sum < topP * mass) sum += falling[count++]!;
    count = Math.max(count, 1);
  }
  while (count > 1 && falling[count - 1]! < minP * falling[0]!) count--;
  const least = falling[count - 1]!;
  let equal = 0;
  for (let i = count - 1; i >= 0 && falling[i] === least; i--) equal++;
  return atLeast(p, least, equal);
}

/** The tokens above a probability and, of those equal to it, the first few. */
function atLeast(p: Float32Array, least: number, equal: number): number[] {
  const tokens: number[] = [];
  let left = equal;
  for (let token = 0; token < p.length; token++)
    if (p[token]! > least || (p[token] === least && left-- > 0)) tokens.push(token);
  return tokens;
}

/** The probabilities that can matter, falling, so that a large vocabulary is not sorted whole. */
function worthRanking(p: Float32Array, topP: number, minP: number): Float32Array {
  // All tokens under (1 − topP)/V weigh less than 1 − topP together: the nucleus is full without them. Halved for rounding.
  const least = Math.max((1 - topP) / p.length / 2, minP * p[argmax(p)]!);
  const buffer = new Float32Array(p.length);
  let size = 0;
  for (let i = 0; i < p.length; i++) if (p[i]! >= least) buffer[size++] = p[i]!;
  return buffer.subarray(0, size).sort().reverse();
}

/** The `count` largest probabilities, falling: a buffer of twice as many, sorted and halved whenever it is full. */
function largest(p: Float32Array, count: number): Float32Array {
  const buffer = new Float32Array(2 * count);
  let size = 0;
  let least = -1;
  for (let i = 0; i < p.length; i++) {
    if (p[i]! <= least) continue;
    buffer[size++] = p[i]!;
    if (size < buffer.length) continue;
    buffer.sort().reverse();
    size = count;
    least = buffer[count - 1]!;
  }
  return buffer.subarray(0, size).sort().reverse().subarray(0, count);
}

function argmax(values: Float32Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}

/** log softmax(logits)[token], from the probability where it has digits enough and from the logits where it has not. */
export function plainLogprob({ logits, plain }: Pick<Scores, 'logits' | 'plain'>, token: number): number {
  if (plain[token]! > 1e-30) return Math.log(plain[token]!);
  const top = argmax(logits);
  return logits[token]! - logits[top]! + Math.log(plain[top]!);
}

const notFinite = (value: number) =>
  new EngineError(`The model's scores are not finite (${value}); its weights have probably diverged.`);

/** Where a request's uniform numbers come from. */
export type Stream = { readonly high: number; readonly low: number };

/** Identical prompts with one seed get one stream, whatever stands beside them in the call; attempts get their own. */
export function stream(seed: number, prompt: Int32Array, attempt: number): Stream {
  const seedLow = seed | 0;
  const seedHigh = Math.floor(seed / 2 ** 32) | 0;
  let high = absorb(absorb(0x2545f491, seedLow), seedHigh);
  let low = absorb(absorb(0x9e3779b9, seedHigh), seedLow);
  for (let i = 0; i < prompt.length; i++) {
    high = absorb(high, prompt[i]!);
    low = absorb(low, prompt[i]!);
  }
  return { high: absorb(high, attempt), low: absorb(low, attempt) };
}

/** In [0, 1), 53 bits. */
export function uniformAt({ high, low }: Stream, position: number): number {
  const a = finish(absorb(high, position)) >>> 5;
  const b = finish(absorb(low, position)) >>> 6;
  return (a * 2 ** 26 + b) / 2 ** 53;
}

// One round and the finaliser of MurmurHash3 (Austin Appleby, public domain), 32 bits.

function absorb(state: number, word: number): number {
  let k = Math.imul(word, 0xcc9e2d51);
  k = Math.imul((k << 15) | (k >>> 17), 0x1b873593);
  const h = state ^ k;
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
}

function finish(state: number): number {
  let h = state;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
