import { setImmediate as tick } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { EngineError } from '../../errors.ts';
import type { SampleParams } from '../engine.ts';
import { type ModelConfig, parseModelConfig } from './config.ts';
import { tokenBytes } from './memory.ts';
import { createSampler, type Sampler, type SamplerOptions } from './sampler.ts';
import { Trainer } from './trainer.ts';
import { randomWeights, type Weights } from './weights.ts';

const config: ModelConfig = parseModelConfig({
  model_type: 'qwen3',
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  vocab_size: 29,
  max_position_embeddings: 200,
  eos_token_id: 28,
});

function someWeights(): Weights {
  const weights = randomWeights(config, 3);
  for (const values of weights.values())
    for (let i = 0; i < values.length; i++) if (values[i] !== 1) values[i] = 9 * values[i]!;
  return weights;
}

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function sampler(options: Partial<SamplerOptions> = {}): Promise<Sampler> {
  const made = await createSampler(config, someWeights(), { threads: 1, ...options });
  open.push(made.close);
  return made;
}

async function scored(prompt: readonly number[], tokens: Int32Array): Promise<Float32Array> {
  const trainer = new Trainer({ config, weights: someWeights() }, { threads: 1 });
  const all = [...prompt, ...tokens];
  const { logprobs } = await trainer.forward([{ tokens: all.slice(0, -1), targets: all.slice(1) }]);
  await trainer.close();
  return logprobs[0]!;
}

/** Token 0 is 'a', 1 is 'b' … so that stop strings can be read off the ids. */
const letterOf = (id: number) => String.fromCharCode(97 + id);
const decodeText = (tokens: readonly number[]) => tokens.map(letterOf).join('');
const textStream = () => ({ push: letterOf, end: () => '' });

const FREE: SampleParams = { maxTokens: 30, seed: 5, stopTokens: [] };
const PROMPT = [3, 1, 4, 1, 5];

describe('a sampler', () => {
  test('reports the plain logprob of every token as the full forward has it, and the drawn one beside it', async () => {
    const s = await sampler({ version: 7 });
    const [result] = await s.sample([PROMPT], { ...FREE, promptLogprobs: true });
    const { tokens, logprobs, rawLogprobs, finish } = result!.samples[0]!;
    expect([tokens.length, finish, result!.version]).toEqual([30, 'length', 7]);
    expect(logprobs).toEqual(rawLogprobs); // temperature 1, nothing cut off: one distribution
    const expected = await scored(PROMPT, tokens);
    for (const [i, lp] of rawLogprobs.entries()) expect(lp).toBeCloseTo(expected[PROMPT.length - 1 + i]!, 4);
    expect(result!.promptLogprobs![0]).toBeNaN();
    for (let i = 1; i < PROMPT.length; i++) expect(result!.promptLogprobs![i]).toBeCloseTo(expected[i - 1]!, 4);
  });

  test('keeps raw logprobs plain and the others tempered when sampling at temperature 0.5 with top-k 3', async () => {
    const s = await sampler();
    const [result] = await s.sample([PROMPT], { ...FREE, temperature: 0.5, topK: 3 });
    const { tokens, logprobs, rawLogprobs } = result!.samples[0]!;
    const expected = await scored(PROMPT, tokens);
    for (const [i, lp] of rawLogprobs.entries()) expect(lp).toBeCloseTo(expected[PROMPT.length - 1 + i]!, 4);
    expect(logprobs.some((lp, i) => Math.abs(lp - rawLogprobs[i]!) > 0.01)).toBe(true);
    expect(Math.min(...logprobs)).toBeGreaterThan(Number.NEGATIVE_INFINITY);
  });

  test('takes the most probable token every time at temperature 0', async () => {
    const s = await sampler();
    const [greedy] = await s.sample([PROMPT], { ...FREE, temperature: 0, maxTokens: 12 });
    const { tokens, logprobs } = greedy!.samples[0]!;
    expect(logprobs.every((lp) => lp === 0)).toBe(true);
    for (const [i, token] of tokens.entries()) {
      const before = [...PROMPT, ...tokens.slice(0, i)];
      const every = await Promise.all(
        Array.from({ length: config.vocab_size }, (_, id) =>
          s.sample([[...before, id]], { maxTokens: 0, promptLogprobs: true }),
        ),
      );
      const last = every.map(([result]) => result!.promptLogprobs!.at(-1)!);
      expect(token).toBe(last.indexOf(Math.max(...last)));
    }
  });

  test('gives a seeded request the same tokens alone and in a crowd that joins and leaves around it', async () => {
    const s = await sampler({ slots: 6 });
    const [alone] = await s.sample([PROMPT], { ...FREE, maxTokens: 60, n: 2 });
    const crowd = Array.from({ length: 20 }, (_, i) =>
      s.sample([Array.from({ length: 1 + ((i * 13) % 40) }, (_, j) => (i + j) % 28)], {
        maxTokens: 1 + ((i * 7) % 25),
        temperature: 0.5 + i / 10,
        n: 1 + (i % 3),
      }),
    );
    let seen = 0;
    const [among] = await s.sample([PROMPT], { ...FREE, maxTokens: 60, n: 2 }, { onToken: () => seen++ });
    await Promise.all(crowd);
    expect(among).toEqual(alone);
    expect(seen).toBe(120);
    expect(among!.samples[0]!.tokens).not.toEqual(among!.samples[1]!.tokens);
  });

  test('gives other seeds other tokens, and unseeded requests each their own', async () => {
    const s = await sampler();
    const text = async (seed?: number) => {
      const [result] = await s.sample([PROMPT], {
        maxTokens: 20,
        stopTokens: [],
        ...(seed === undefined ? {} : { seed }),
      });
      return String(result!.samples[0]!.tokens);
    };
    expect(await text(1)).toBe(await text(1));
    expect(new Set([await text(1), await text(2), await text(), await text()]).size).toBe(4);
  });

  test('draws first tokens as often as the prompt’s distribution says', async () => {
    const s = await sampler();
    const [result] = await s.sample([PROMPT], { maxTokens: 1, n: 4000, seed: 9 });
    const counts = new Array<number>(config.vocab_size).fill(0);
    for (const { tokens } of result!.samples) counts[tokens[0]!]! += 1;
    let chi2 = 0;
    for (let id = 0; id < config.vocab_size; id++) {
      const expected = 4000 * Math.exp((await scored(PROMPT, Int32Array.of(id))).at(-1)!);
      chi2 += (counts[id]! - expected) ** 2 / expected;
    }
    expect(chi2).toBeLessThan(57); // 28 degrees of freedom, one in a thousand
  });

  test('reads a prompt once for all attempts, even when they outnumber the slots', async () => {
    const s = await sampler({ slots: 3 });
    const [result] = await s.sample([PROMPT], { ...FREE, maxTokens: 5, n: 10 });
    expect(result!.samples.length).toBe(10);
    expect(s.state).toEqual({ running: 0, waiting: 0, sampledTokens: 50, promptsRead: 1 });
    const wide = await sampler();
    expect(await wide.sample([PROMPT], { ...FREE, maxTokens: 5, n: 10 })).toEqual([result]);
  });

  test('answers every prompt of a call in its place, whatever their lengths', async () => {
    const s = await sampler({ slots: 4 });
    const prompts = [[1], Array.from({ length: 90 }, (_, i) => i % 28), [2, 3], PROMPT, Int32Array.of(7, 7, 7)];
    const together = await s.sample(prompts, { ...FREE, maxTokens: 9 });
    for (const [i, prompt] of prompts.entries())
      expect(await s.sample([prompt], { ...FREE, maxTokens: 9 })).toEqual([together[i]]);
    expect(await s.sample([], FREE)).toEqual([]);
  });

  test('lets a short request through while a long queue waits', async () => {
    const s = await sampler({ slots: 2 });
    const params = { maxTokens: 4, stopTokens: [] };
    const many = s.sample(
      Array.from({ length: 30 }, () => PROMPT),
      params,
    );
    const one = s.sample([PROMPT], params).then(() => s.state.waiting);
    // Its turn is the second: it runs beside the first of the many, and no more than a few others were let in by then.
    expect(await one).toBeGreaterThan(25);
    await many;
  });
});

describe('generation ends', () => {
  test('at a stop token, which is part of the sample; by default at the model’s own', async () => {
    const s = await sampler();
    const [free] = await s.sample([PROMPT], { ...FREE, maxTokens: 100 });
    const tokens = [...free!.samples[0]!.tokens];
    const stop = tokens[6]!;
    const [stopped] = await s.sample([PROMPT], { ...FREE, stopTokens: [stop] });
    expect(stopped!.samples[0]!.finish).toBe('stop');
    expect([...stopped!.samples[0]!.tokens]).toEqual(tokens.slice(0, tokens.indexOf(stop) + 1));
    const { stopTokens: _, ...usual } = FREE;
    const long = await s.sample([PROMPT], { ...usual, maxTokens: 150, n: 20 });
    const ended = long[0]!.samples.filter(({ finish }) => finish === 'stop');
    expect(ended.length).toBeGreaterThan(0);
    for (const sample of ended) expect(sample.tokens.indexOf(28)).toBe(sample.tokens.length - 1);
  });

  test('at a stop string that begins in one token and ends in another', async () => {
    const s = await sampler({ textStream });
    const [free] = await s.sample([PROMPT], { ...FREE, maxTokens: 60 });
    const text = decodeText([...free!.samples[0]!.tokens]);
    const stop = text.slice(40, 43);
    const [stopped] = await s.sample([PROMPT], { ...FREE, maxTokens: 60, stop: ['§§', stop] });
    expect(stopped!.samples[0]!.finish).toBe('stop');
    expect(decodeText([...stopped!.samples[0]!.tokens])).toBe(text.slice(0, text.indexOf(stop) + 3));
  });

  test('after maxTokens, and with none at all when only the prompt’s logprobs are asked for', async () => {
    const s = await sampler();
    const [result] = await s.sample([PROMPT], { maxTokens: 0, promptLogprobs: true, n: 2 });
    expect(result!.samples.map(({ tokens, finish }) => [tokens.length, finish])).toEqual([
      [0, 'length'],
      [0, 'length'],
    ]);
    expect(result!.promptLogprobs!.length).toBe(PROMPT.length);
  });

  test('for one call when its signal aborts: its rows are free at once and the others go on as if nothing was', async () => {
    const s = await sampler({ slots: 2 });
    const [expected] = await s.sample([PROMPT], { ...FREE, maxTokens: 40 });
    const controller = new AbortController();
    const other = s.sample([PROMPT], { ...FREE, maxTokens: 40 });
    let count = 0;
    const aborted = s.sample(
      [[1, 2], [3]],
      { maxTokens: 150, stopTokens: [] },
      {
        signal: controller.signal,
        onToken: () => {
          if (++count === 5) controller.abort(new Error('enough'));
        },
      },
    );
    const waited = s.sample([[4]], { maxTokens: 3, stopTokens: [] });
    await expect(aborted).rejects.toThrow('enough');
    expect(count).toBe(5);
    expect((await waited)[0]!.samples[0]!.tokens.length).toBe(3);
    expect(await other).toEqual([expected]);
    expect(s.state).toMatchObject({ running: 0, waiting: 0 });
    await expect(s.sample([PROMPT], FREE, { signal: AbortSignal.abort(new Error('late')) })).rejects.toThrow('late');
  });

  test('for one call when its callback throws', async () => {
    const s = await sampler();
    const throwing = s.sample([PROMPT], FREE, {
      onToken: () => {
        throw new Error('callback');
      },
    });
    const fine = s.sample([PROMPT], FREE);
    await expect(throwing).rejects.toThrow('callback');
    expect((await fine)[0]!.samples[0]!.tokens.length).toBe(30);
  });

  test('for all when the sampler closes, which then answers nobody', async () => {
    const s = await sampler();
    const running = s.sample([PROMPT], { ...FREE, maxTokens: 190 });
    await tick();
    const [, outcome] = await Promise.all([s.close(), running.catch((error: unknown) => error)]);
    expect(outcome).toBeInstanceOf(EngineError);
    await expect(s.sample([PROMPT], FREE)).rejects.toThrow('closed');
  });
});

describe('a sampler refuses', () => {
  const cases: [string, readonly number[], Partial<SampleParams>, string][] = [
    ['an empty prompt', [], {}, 'Prompt 1 is empty'],
    ['an id outside the vocabulary', [3, 29], {}, 'Prompt 1 has 29 at position 1; token ids are 0 to 28'],
    ['a negative id', [-1], {}, 'Prompt 1 has -1'],
    ['an id that is not whole', [0.5], {}, 'Prompt 1 has 0.5'],
    ['more than the context holds', PROMPT, { maxTokens: 196 }, "together 201: the model's context is 200"],
    ['a temperature below 0', PROMPT, { temperature: -1 }, 'temperature is -1'],
    ['a temperature that is not a number', PROMPT, { temperature: Number.NaN }, 'temperature is NaN'],
    ['a topP of 0', PROMPT, { topP: 0 }, 'topP is 0'],
    ['a topK that is not whole', PROMPT, { topK: 1.5 }, 'topK is 1.5'],
    ['a minP over 1', PROMPT, { minP: 2 }, 'minP is 2'],
    ['no attempts', PROMPT, { n: 0 }, 'n is 0'],
    ['a negative maxTokens', PROMPT, { maxTokens: -1 }, 'maxTokens is -1'],
    ['stop strings without a tokenizer', PROMPT, { stop: ['x'] }, 'need a model with a tokenizer'],
    ['an empty stop string', PROMPT, { stop: [''] }, 'a stop string is empty'],
  ];

  test.each(cases)('%s, with the numbers, and goes on', async (_, prompt, params, message) => {
    const s = await sampler();
    const refused = s.sample([PROMPT, prompt], { maxTokens: 3, ...params });
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toBeInstanceOf(EngineError);
    expect((await s.sample([PROMPT], { maxTokens: 2, stopTokens: [] }))[0]!.samples[0]!.tokens.length).toBe(2);
  });

  test('a request that cannot fit its memory, and holds back those that do not fit now', async () => {
    const row = 64 * tokenBytes(config);
    const s = await sampler({ cacheBytes: 4 * row });
    await expect(s.sample([PROMPT], { maxTokens: 190 })).rejects.toThrow(`may use ${4 * row}`);
    const both = await Promise.all([
      s.sample([PROMPT, [1], [2], [3], [4], [5]], { ...FREE, maxTokens: 50 }),
      s.sample([PROMPT], { ...FREE, maxTokens: 110 }), // 128 tokens: two such rows are all there is
    ]);
    expect(s.bytes - (await sampler()).bytes).toBeLessThanOrEqual(4 * row);
    const wide = await sampler();
    expect(both[0]).toEqual(await wide.sample([PROMPT, [1], [2], [3], [4], [5]], { ...FREE, maxTokens: 50 }));
    expect(both[1]![0]!.samples[0]!.tokens.length).toBe(110);
  });

  test('weights that are not finite or do not fit the config', async () => {
    const weights = someWeights();
    weights.get('model.norm.weight')![3] = Number.NaN;
    await expect(createSampler(config, weights, { threads: 1 })).rejects.toThrow('model.norm.weight holds NaN at 3');
    weights.delete('model.norm.weight');
    await expect(createSampler(config, weights, { threads: 1 })).rejects.toThrow('no tensor model.norm.weight');
  });
});
