import { describe, expect, it } from 'vitest';
import { choose, kept, plainLogprob, type Rules, type Scores, stream, uniformAt } from './choose.ts';

const PLAIN: Rules = { temperature: 1, topP: 1, topK: 0, minP: 0 };

function softmax(logits: ArrayLike<number>, temperature = 1): Float32Array {
  const scaled = Array.from(logits, (x) => x / temperature);
  const max = Math.max(...scaled);
  const weights = scaled.map((x) => Math.exp(x - max));
  const sum = weights.reduce((a, b) => a + b);
  return Float32Array.from(weights, (w) => w / sum);
}

/** Scores whose plain probabilities are those given. */
function scores(probabilities: readonly number[], temperature = 1): Scores {
  const logits = Float32Array.from(probabilities, Math.log);
  return { logits, plain: softmax(logits), tempered: softmax(logits, temperature || 1) };
}

const EIGHTHS = [1 / 8, 1 / 2, 1 / 8, 1 / 4];

describe('choose', () => {
  it('inverts the cumulative distribution: 1/8, 1/2, 1/8, 1/4 cut [0, 1) at 0.125, 0.625 and 0.75', () => {
    const at = (u: number) => choose(scores(EIGHTHS), PLAIN, u).token;
    expect([0, 0.12, 0.13, 0.62, 0.63, 0.74, 0.76, 0.999].map(at)).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
  });

  it('gives both logprobs of the plain model as ln p', () => {
    const choice = choose(scores(EIGHTHS), PLAIN, 0.3);
    expect(choice.token).toBe(1);
    expect(choice.logprob).toBeCloseTo(Math.log(0.5), 6);
    expect(choice.rawLogprob).toBeCloseTo(Math.log(0.5), 6);
  });

  it('draws from p² normalised at temperature 1/2 and still reports the plain logprob beside it', () => {
    // squares 1/64, 16/64, 1/64, 4/64 sum to 22/64
    const choice = choose(scores(EIGHTHS, 0.5), { ...PLAIN, temperature: 0.5 }, 21 / 22);
    expect(choice.token).toBe(3);
    expect(choice.logprob).toBeCloseTo(Math.log(4 / 22), 5);
    expect(choice.rawLogprob).toBeCloseTo(Math.log(1 / 4), 5);
  });

  it('is greedy at temperature 0: the argmax, the lower id of two equal ones, logprob 0, raw logprob ln p', () => {
    const choice = choose(scores([0.2, 0.4, 0.4], 0), { ...PLAIN, temperature: 0 }, 0.99);
    expect(choice).toMatchObject({ token: 1, logprob: 0 });
    expect(choice.rawLogprob).toBeCloseTo(Math.log(0.4), 6);
  });

  it('renormalises what top-k leaves: of 1/2 and 1/4 the first has 2/3', () => {
    const choice = choose(scores(EIGHTHS), { ...PLAIN, topK: 2 }, 0.66);
    expect(choice.token).toBe(1);
    expect(choice.logprob).toBeCloseTo(Math.log(2 / 3), 6);
    expect(choice.rawLogprob).toBeCloseTo(Math.log(1 / 2), 6);
    expect(choose(scores(EIGHTHS), { ...PLAIN, topK: 2 }, 0.67).token).toBe(3);
  });

  it('never draws a token of probability 0', () => {
    const sure = scores([0, 1, 0]);
    expect([0, 0.5, 1 - 2 ** -53].map((u) => choose(sure, PLAIN, u).token)).toEqual([1, 1, 1]);
  });

  it('has a finite plain logprob where the probability itself underflows', () => {
    const logits = Float32Array.of(0, 300);
    expect(plainLogprob({ logits, plain: softmax(logits) }, 0)).toBeCloseTo(-300, 3);
  });

  it('says so when the scores are not numbers', () => {
    const bad = { logits: Float32Array.of(Number.NaN, 1), plain: new Float32Array(2), tempered: new Float32Array(2) };
    bad.tempered.fill(Number.NaN);
    expect(() => choose(bad, PLAIN, 0.5)).toThrow('not finite');
    expect(() => choose(bad, { ...PLAIN, temperature: 0 }, 0.5)).toThrow('not finite');
  });
});

describe('kept', () => {
  const p = Float32Array.from([0.1, 0.4, 0.1, 0.25, 0.15]);
  const off = { topK: 0, topP: 1, minP: 0 };

  it('keeps the k most probable, ties by id', () => {
    expect(kept(p, { ...off, topK: 4 })).toEqual([0, 1, 3, 4]);
    expect(kept(p, { ...off, topK: 9 })).toEqual([0, 1, 2, 3, 4]);
  });

  it('keeps the fewest tokens that reach topP', () => {
    expect(kept(p, { ...off, topP: 0.39 })).toEqual([1]);
    expect(kept(p, { ...off, topP: 0.6 })).toEqual([1, 3]);
    expect(kept(p, { ...off, topP: 0.7 })).toEqual([1, 3, 4]);
    expect(kept(p, { ...off, topP: 1e-9 })).toEqual([1]);
  });

  it('takes topP of what topK left: of 0.4 and 0.25 the first is 0.615', () => {
    expect(kept(p, { topK: 2, topP: 0.61, minP: 0 })).toEqual([1]);
    expect(kept(p, { topK: 2, topP: 0.62, minP: 0 })).toEqual([1, 3]);
  });

  it('drops what is below minP of the best: under 0.4 · 0.5', () => {
    expect(kept(p, { ...off, minP: 0.5 })).toEqual([1, 3]);
    expect(kept(p, { ...off, minP: 1 })).toEqual([1]);
  });

  it('agrees with a full sort on a thousand random rows', () => {
    const place = stream(5, Int32Array.of(), 0);
    for (let row = 0; row < 1000; row++) {
      const u = (i: number) => uniformAt(place, row * 100 + i);
      const random = softmax(Array.from({ length: 40 }, (_, i) => Math.round(8 * u(i))));
      const rules = { topK: Math.floor(45 * u(50)), topP: u(51) < 0.3 ? 1 : u(52), minP: u(53) < 0.5 ? 0 : u(54) };
      expect(kept(random, rules)).toEqual(bySorting(random, rules));
    }
  });
});

/** The definition, word by word. */
function bySorting(p: Float32Array, { topK, topP, minP }: { topK: number; topP: number; minP: number }): number[] {
  let tokens = Array.from(p.keys()).sort((a, b) => p[b]! - p[a]! || a - b);
  if (topK > 0) tokens = tokens.slice(0, topK);
  const mass = tokens.reduce((sum, token) => sum + p[token]!, 0);
  let before = 0;
  if (topP < 1) {
    tokens = tokens.filter((token, i) => {
      const keep = i === 0 || before < topP * mass;
      before += p[token]!;
      return keep;
    });
  }
  return tokens.filter((token, i) => i === 0 || p[token]! >= minP * p[tokens[0]!]!).sort((a, b) => a - b);
}

describe('the uniform numbers', () => {
  it('are those of seed, prompt, attempt and position and of nothing else', () => {
    const at = (seed: number, prompt: number[], attempt: number, position: number) =>
      uniformAt(stream(seed, Int32Array.from(prompt), attempt), position);
    expect(at(7, [1, 2], 0, 3)).toBe(at(7, [1, 2], 0, 3));
    const different = [at(7, [1, 2], 0, 3), at(8, [1, 2], 0, 3), at(7, [2, 1], 0, 3), at(7, [1, 2], 1, 3)];
    different.push(at(7, [1, 2], 0, 4), at(7 + 2 ** 32, [1, 2], 0, 3), at(7, [1, 2, 0], 0, 3));
    expect(new Set(different).size).toBe(different.length);
  });

  it('fill 64 cells evenly, along positions, attempts and seeds alike (χ² with 63 degrees of freedom)', () => {
    const along = {
      positions: (i: number) => uniformAt(stream(1, Int32Array.of(4, 2), 0), i),
      attempts: (i: number) => uniformAt(stream(1, Int32Array.of(4, 2), i), 0),
      seeds: (i: number) => uniformAt(stream(i, Int32Array.of(4, 2), 0), 0),
    };
    for (const draw of Object.values(along)) {
      const cells = new Array<number>(64).fill(0);
      for (let i = 0; i < 64_000; i++) cells[Math.floor(64 * draw(i))]! += 1;
      const chi2 = cells.reduce((sum, n) => sum + (n - 1000) ** 2 / 1000, 0);
      expect(chi2).toBeLessThan(110); // one honest generator in five thousand exceeds this
      expect(chi2).toBeGreaterThan(30); // and one in ten thousand is more even than this
    }
  });

  it('have no memory: pairs of neighbours fill an 8 × 8 board evenly', () => {
    const place = stream(3, Int32Array.of(), 0);
    const cells = new Array<number>(64).fill(0);
    for (let i = 0; i < 64_000; i++) {
      cells[Math.floor(8 * uniformAt(place, i)) * 8 + Math.floor(8 * uniformAt(place, i + 1))]! += 1;
    }
    expect(cells.reduce((sum, n) => sum + (n - 1000) ** 2 / 1000, 0)).toBeLessThan(110);
  });

  it('draw tokens as often as their probabilities say', () => {
    const row = scores([0.05, 0.5, 0.15, 0.3]);
    const place = stream(11, Int32Array.of(9), 0);
    const counts = [0, 0, 0, 0];
    for (let i = 0; i < 20_000; i++) counts[choose(row, PLAIN, uniformAt(place, i)).token]! += 1;
    const chi2 = [1000, 10_000, 3000, 6000].reduce((sum, e, i) => sum + (counts[i]! - e) ** 2 / e, 0);
    expect(chi2).toBeLessThan(16.3); // 3 degrees of freedom, one in a thousand
  });
});
