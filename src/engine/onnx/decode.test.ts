import { afterEach, describe, expect, test } from 'vitest';
import type { Scores } from './choose.ts';
import { type ModelConfig, parseModelConfig } from './config.ts';
import { capacityFor, Decoder, type Prompt, promptBatches, type Row } from './decode.ts';
import { tokenBytes } from './memory.ts';
import { Trainer } from './trainer.ts';
import { randomWeights, type Weights } from './weights.ts';

const GIB = 2 ** 30;

function model(over: Record<string, unknown> = {}): { config: ModelConfig; weights: Weights } {
  const config = parseModelConfig({
    model_type: 'qwen3',
    hidden_size: 32,
    intermediate_size: 48,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 16,
    vocab_size: 37,
    max_position_embeddings: 1500,
    ...over,
  });
  const weights = randomWeights(config, 1);
  // Larger than at the start of training, so that the distributions have peaks, and norms that are not all 1.
  for (const values of weights.values())
    for (let i = 0; i < values.length; i++)
      values[i] = values[i] === 1 || values[i] === 0 ? 0.5 + (i % 7) / 6 : 9 * values[i]!;
  return { config, weights };
}

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function decoder({ config, weights }: ReturnType<typeof model>, threads = 1): Promise<Decoder> {
  const made = await Decoder.create(config, weights, threads);
  closing.push(() => made.close());
  return made;
}

const prompt = (length: number, salt = 0): Prompt => ({
  tokens: Int32Array.from({ length }, (_, i) => (i * i * 5 + i * 3 + salt * 11 + 1) % 37),
  temperature: 1,
  wantLogprobs: false,
});

const copy = ({ logits, plain, tempered }: Scores): Scores => ({
  logits: logits.slice(),
  plain: plain.slice(),
  tempered: tempered.slice(),
});

/** [position][token]: the full forward's logprobs after every token, a target at a time. */
async function forwardLogprobs({ config, weights }: ReturnType<typeof model>, tokens: number[]): Promise<number[][]> {
  const trainer = new Trainer({ config, weights }, { threads: 1 });
  closing.push(() => trainer.close());
  const data = Array.from({ length: config.vocab_size }, (_, id) => ({ tokens, targets: tokens.map(() => id) }));
  const { logprobs } = await trainer.forward(data);
  return tokens.map((_, i) => logprobs.map((row) => row[i]!));
}

const furthest = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);

describe.each([
  ['a head of 16', {}],
  ['a head of 12, padded to 16', { head_dim: 12 }],
  [
    'a head of 24, padded to 32, tied embeddings and one key head',
    { head_dim: 24, tie_word_embeddings: true, num_key_value_heads: 1 },
  ],
  ['biases and a head of 12, padded to 16', { model_type: 'qwen2', head_dim: 12 }],
  [
    'stretched positions',
    {
      model_type: 'llama',
      rope_scaling: {
        rope_type: 'llama3',
        factor: 8,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 32,
      },
    },
  ],
] as const)('a decoder with %s', (_, over) => {
  const made = model(over);

  test('gives token by token what the full forward gives at once, to 1e-4', async () => {
    const tokens = [...prompt(24).tokens];
    const expected = await forwardLogprobs(made, tokens);
    const d = await decoder(made);
    const [prefix] = await d.prefill([{ ...prompt(24), tokens: Int32Array.from(tokens.slice(0, 5)) }]);
    expect(furthest(prefix!.scores.plain, expected[4]!.map(Math.exp))).toBeLessThan(1e-4);
    d.reserve(1, 24, 0, GIB);
    d.place(prefix!, 0);
    for (let i = 5; i < 24; i++) {
      const [scores] = await d.step([{ token: tokens[i]!, length: i, temperature: 1 }]);
      expect(furthest(Array.from(scores!.plain, Math.log), expected[i]!)).toBeLessThan(1e-4);
    }
  });

  test('gives the logprobs of a prompt that the full forward gives, the first NaN', async () => {
    const tokens = [...prompt(19).tokens];
    const expected = await forwardLogprobs(made, tokens);
    const d = await decoder(made);
    const [, prefix] = await d.prefill([
      { ...prompt(30), wantLogprobs: false },
      { ...prompt(19), wantLogprobs: true },
    ]);
    expect(prefix!.logprobs!.length).toBe(19);
    expect(prefix!.logprobs![0]).toBeNaN();
    for (let i = 1; i < 19; i++) expect(prefix!.logprobs![i]).toBeCloseTo(expected[i - 1]![tokens[i]!]!, 4);
  });
});

describe('a decoder', () => {
  const made = model();

  test('divides the logits by the temperature of each row for `tempered` and leaves `plain` alone', async () => {
    const d = await decoder(made);
    const prompts = [prompt(6), { ...prompt(6), temperature: 2 }, { ...prompt(6), temperature: 0 }];
    const [one, two, zero] = (await d.prefill(prompts)).map(({ scores }) => scores);
    expect(two!.plain).toEqual(one!.plain);
    expect(zero!.plain).toEqual(one!.plain);
    const root = Array.from(one!.plain, Math.sqrt); // softmax(l / 2) is √p, normalised
    const sum = root.reduce((a, b) => a + b);
    expect(
      furthest(
        two!.tempered,
        root.map((x) => x / sum),
      ),
    ).toBeLessThan(1e-6);
  });

  test.each([1, 2])('gives a sequence the same bits alone and in any company, with %i threads', async (threads) => {
    const d = await decoder(made, threads);
    const lengths = [1, 700, 2, 9, 33, 130, 1, 64];
    const follow = async (which: number[]) => {
      const prefixes = await d.prefill(which.map((i) => prompt(lengths[i]!, i)));
      d.reserve(which.length, 800, 0, GIB);
      const seen: Scores[][] = prefixes.map(({ scores }) => [copy(scores)]);
      for (const [row, prefix] of prefixes.entries()) d.place(prefix, row);
      for (let step = 0; step < 8; step++) {
        const rows = which.map(
          (i): Row => ({ token: (step * 7 + i) % 37, length: lengths[i]! + step, temperature: 0.7 }),
        );
        for (const [row, scores] of (await d.step(rows)).slice(0, which.length).entries())
          seen[row]!.push(copy(scores));
      }
      return new Map(which.map((i, row) => [i, seen[row]!]));
    };
    const together = await follow([0, 1, 2, 3, 4, 5, 6, 7]);
    for (const i of lengths.keys()) expect((await follow([i])).get(i), `sequence ${i}`).toEqual(together.get(i));
    expect((await follow([5, 0])).get(5)).toEqual(together.get(5));
  });

  test('reads a prompt longer than a piece as it reads it token by token', async () => {
    const d = await decoder(made);
    const long = prompt(1200);
    const [prefix] = await d.prefill([{ ...long, wantLogprobs: true }]);
    const [start] = await d.prefill([{ ...long, tokens: long.tokens.slice(0, 1000) }]);
    d.reserve(1, 1200, 0, GIB);
    d.place(start!, 0);
    for (let i = 1000; i < 1200; i++) {
      const [scores] = await d.step([{ token: long.tokens[i]!, length: i, temperature: 1 }]);
      if (i === 1199) expect(furthest(scores!.plain, prefix!.scores.plain)).toBeLessThan(1e-5);
      else expect(Math.log(scores!.plain[long.tokens[i + 1]!]!)).toBeCloseTo(prefix!.logprobs![i + 1]!, 4);
    }
  });

  test('keeps what rows hold when the cache grows and when a row moves', async () => {
    const d = await decoder(made);
    const [a, b] = await d.prefill([prompt(40, 1), prompt(40, 2)]);
    const next: Row = { token: 3, length: 40, temperature: 1 };
    d.reserve(2, 50, 0, GIB);
    d.place(a!, 0);
    d.place(b!, 1);
    const before = (await d.step([next, next])).map(copy);
    d.reserve(5, 300, 2, GIB);
    expect((await d.step([next, next])).map(copy)).toEqual(before);
    d.move(0, 4, 41);
    d.move(1, 0, 41);
    d.move(4, 1, 41);
    expect((await d.step([next, next])).map(copy)).toEqual(before.toReversed());
  });

  test('stays within the memory it is given and says what it would have needed', async () => {
    const d = await decoder(made);
    const row = tokenBytes(made.config) * 128;
    expect(row).toBe(128 * 2 * 4 * 2 * 2 * 16); // tokens · (keys, values) · bytes · layers · heads · headDim
    d.reserve(5, 100, 0, 6 * row);
    expect(d.cacheBytes).toBe(6 * row); // 8 rows would be the next power of two
    expect(() => d.reserve(7, 100, 0, 6 * row)).toThrow(`takes ${7 * row} bytes; the limit is ${6 * row}`);
    await expect(d.step(new Array(7).fill({ token: 0, length: 1, temperature: 1 }))).rejects.toThrow('needs a cache');
  });

  test('does not see what happens to the weights after it was made', async () => {
    const own = model();
    const d = await decoder(own);
    const [before] = await d.prefill([prompt(4)]);
    for (const values of own.weights.values()) values.fill(0);
    const [after] = await d.prefill([prompt(4)]);
    expect(after!.scores).toEqual(before!.scores);
  });
});

test('capacities are powers of two from 64 up to the context', () => {
  const { config } = model({ max_position_embeddings: 300 });
  expect([1, 64, 65, 256, 257, 300].map((n) => capacityFor(config, n))).toEqual([64, 64, 128, 256, 300, 300]);
});

test('prompts of like length are read together: padding at most half again, 4096 tokens at most, long ones alone', () => {
  expect(promptBatches([10, 15, 9, 1, 14])).toEqual([[1, 4, 0], [2], [3]]);
  expect(promptBatches([1000, 1000, 1000, 1000, 1000])).toEqual([[0, 1, 2, 3], [4]]);
  expect(promptBatches([1025, 1025, 1024])).toEqual([[0], [1], [2]]);
  expect(promptBatches([])).toEqual([]);
});
