/** The trainer by invariants: slopes, splits, order, packing, adapters, repeatability, and input that must do no harm. */
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../errors.ts';
import type { Datum, Loss } from '../engine.ts';
import { tokenLoss } from '../losses.ts';
import { type ModelConfig, parseModelConfig } from './config.ts';
import { normal, seededRandom } from './random.ts';
import { Trainer, type TrainerParts } from './trainer.ts';
import { randomWeights, type Weights } from './weights.ts';

const config = parseModelConfig({
  model_type: 'qwen3',
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 6,
  vocab_size: 19,
  max_position_embeddings: 64,
  tie_word_embeddings: true,
});
const untied = { ...config, tie_word_embeddings: false };
const qwen2: ModelConfig = { ...config, model_type: 'qwen2' };
const llama: ModelConfig = {
  ...untied,
  model_type: 'llama',
  rope_scaling: {
    rope_type: 'llama3',
    factor: 4,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 32,
  },
};

/** Far from the flat start of training, so that every gradient is large enough to check. */
function lively(seed: number, of = config): Weights {
  const weights = randomWeights(of, seed);
  const draw = normal(seededRandom(seed, 9));
  for (const values of weights.values())
    for (let i = 0; i < values.length; i++) values[i] = values.length <= 16 ? 1 + 0.2 * draw() : 0.3 * draw();
  return weights;
}

const trainer = (parts: Partial<TrainerParts> = {}) =>
  new Trainer({ config, weights: lively(1, parts.config ?? config), ...parts }, { threads: 1 });

function sequences(sizes: readonly number[], seed = 3): Required<Datum>[] {
  const random = seededRandom(seed);
  const draw = normal(random);
  return sizes.map((size) => {
    const ids = Array.from({ length: size + 1 }, () => Math.floor(random() * config.vocab_size));
    return {
      tokens: ids.slice(0, -1),
      targets: ids.slice(1),
      weights: Float32Array.from({ length: size }, draw),
      advantages: Float32Array.from({ length: size }, (_, i) => (i % 5 === 0 ? 0 : draw())),
      logprobs: Float32Array.from({ length: size }, () => -3 + 0.8 * draw()),
    };
  });
}

const crossEntropy: Loss = { kind: 'cross_entropy' };
const losses: Loss[] = [
  crossEntropy,
  { kind: 'importance_sampling' },
  { kind: 'ppo', clipLow: 0.7, clipHigh: 1.3 },
  { kind: 'cispo', clipLow: 0.7, clipHigh: 1.3 },
];

const copied = (weights: Weights) => new Map([...weights].map(([name, values]) => [name, values.slice()]));

function expectClose(a: Weights, b: Weights, tolerance: number) {
  expect([...a.keys()]).toEqual([...b.keys()]);
  for (const [name, values] of a) {
    const other = b.get(name)!;
    const scale = Math.max(...other.map(Math.abs), 1e-3);
    for (const [i, value] of values.entries())
      if (Math.abs(value - other[i]!) > tolerance * scale)
        throw new Error(`${name}[${i}] is ${value} in one and ${other[i]} in the other.`);
  }
}

describe.each([
  ['full weights, tied head', {}],
  ['full weights, untied head', { config: untied }],
  ['biases, as in Qwen2.5', { config: qwen2 }],
  ['stretched positions and no norms on heads, as in Llama 3', { config: llama }],
  ['an adapter beside biases', { config: qwen2, lora: { spec: { rank: 2, alpha: 3, targets: ['q_proj', 'k_proj'] } } }],
  ['an adapter', { lora: { spec: { rank: 2, alpha: 3, targets: ['q_proj', 'v_proj', 'o_proj', 'down_proj'] } } }],
] as const)('the gradient with %s', (_, parts) => {
  test.each(losses)('of $kind is the slope of the loss along a random direction in every tensor', async (loss) => {
    const t = trainer(parts as Partial<TrainerParts>);
    const { base, adapter } = t.weights();
    const trainable = adapter ?? base;
    // A fresh adapter's B is zero, where A has no gradient yet.
    const draw = normal(seededRandom(8));
    for (const [name, values] of trainable)
      if (name.endsWith('lora_B.weight')) values.set(values.map(() => 0.2 * draw()));
    const data = sequences([9, 4, 3, 12]);
    const { logprobs: start } = await t.forwardBackward(data, loss);
    /** The loss in double precision; cispo's weight is a constant at the start. */
    const value = async () => {
      const { logprobs } = await t.forward(data);
      let sum = 0;
      for (const [d, datum] of data.entries())
        for (const [i, lp] of logprobs[d]!.entries()) {
          const a = (loss.kind === 'cross_entropy' ? datum.weights : datum.advantages)[i]!;
          const q = datum.logprobs[i]!;
          if (loss.kind !== 'cispo') sum += tokenLoss(loss, lp, q, a);
          else sum -= Math.min(Math.max(Math.exp(start[d]![i]! - q), loss.clipLow), loss.clipHigh) * a * lp;
        }
      return sum;
    };
    const h = 1 / 256;
    const gradients = t.gradients();
    expect([...gradients.keys()]).toEqual([...trainable.keys()]);
    const norm = Math.hypot(...[...gradients.values()].flatMap((g) => [...g]));
    for (const [name, values] of trainable) {
      const direction = Float64Array.from(values, draw);
      const length = Math.hypot(...direction);
      const kept = values.slice();
      const at = async (step: number) => {
        for (let i = 0; i < values.length; i++) values[i] = kept[i]! + (step * direction[i]!) / length;
        return await value();
      };
      const slope = ((await at(h)) - (await at(-h))) / (2 * h);
      values.set(kept);
      const predicted = gradients.get(name)!.reduce((sum, g, i) => sum + (g * direction[i]!) / length, 0);
      expect(Math.abs(slope - predicted), `${name}: slope ${slope}, gradient ${predicted}`).toBeLessThan(2e-3 * norm);
    }
    await t.close();
  });
});

describe('a sum', () => {
  test('is the same for one batch, its parts, and its parts in another order', async () => {
    const data = sequences([20, 3, 7, 31, 5, 5, 12]);
    const whole = trainer();
    const { loss, logprobs } = await whole.forwardBackward(data, crossEntropy);
    const parts = trainer();
    let sum = 0;
    for (const i of [4, 2, 6, 0, 1, 5, 3]) {
      const alone = await parts.forwardBackward([data[i]!], crossEntropy);
      sum += alone.loss;
      for (const [k, lp] of alone.logprobs[0]!.entries()) expect(lp).toBeCloseTo(logprobs[i]![k]!, 4);
    }
    expect(sum).toBeCloseTo(loss, 2);
    expectClose(parts.gradients(), whole.gradients(), 1e-4);
    await whole.close();
    await parts.close();
  });

  test('is cleared by the step', async () => {
    const t = trainer();
    await t.forwardBackward(sequences([5]), crossEntropy);
    expect(t.optimStep({ learningRate: 0 }).gradNorm).toBeGreaterThan(0);
    expect(t.optimStep({ learningRate: 0 })).toEqual({ gradNorm: 0, version: 2 });
    await t.close();
  });
});

test('many small batches give the gradient of one large one', async () => {
  const data = sequences([20, 3, 7, 31, 5, 5, 12]);
  const large = trainer();
  const small = new Trainer({ config, weights: lively(1) }, { threads: 1, batchTokens: 16 });
  const [a, b] = [await large.forwardBackward(data, crossEntropy), await small.forwardBackward(data, crossEntropy)];
  expect(b.loss).toBeCloseTo(a.loss, 3);
  expectClose(small.gradients(), large.gradients(), 1e-4);
  await large.close();
  await small.close();
});

test('a token’s logprob does not depend on what comes after it or on what shares its row', async () => {
  const t = trainer();
  const [long] = sequences([24]);
  const { logprobs } = await t.forward([long!]);
  const cut = { tokens: long!.tokens.slice(0, 10), targets: long!.targets.slice(0, 10) };
  const packed = await t.forward([cut, ...sequences([5, 24, 6], 77)]);
  for (let i = 0; i < 10; i++) expect(packed.logprobs[0]![i]).toBeCloseTo(logprobs[0]![i]!, 5);
  await t.close();
});

describe('an adapter', () => {
  const lora = { spec: { rank: 3, alpha: 6, seed: 4 } };

  test('changes nothing when fresh, and when trained gives what its merged weights give', async () => {
    const data = sequences([15, 8]);
    const plain = trainer();
    const adapted = trainer({ lora });
    const before = (await plain.forward(data)).logprobs;
    expect((await adapted.forward(data)).logprobs).toEqual(before);
    for (let i = 0; i < 5; i++) {
      await adapted.forwardBackward(data, crossEntropy);
      adapted.optimStep({ learningRate: 0.02 });
    }
    const after = (await adapted.forward(data)).logprobs;
    expect(Math.abs(after[0]![3]! - before[0]![3]!)).toBeGreaterThan(0.01);
    const merged = trainer({ weights: adapted.merged() });
    const found = (await merged.forward(data)).logprobs;
    for (const [d, lps] of after.entries())
      for (const [i, lp] of lps.entries()) expect(found[d]![i]).toBeCloseTo(lp, 4);
    for (const t of [plain, adapted, merged]) await t.close();
  });

  test('leaves the base untouched and trains only its own weights', async () => {
    const weights = lively(1);
    const t = trainer({ weights, lora });
    await t.forwardBackward(sequences([10]), crossEntropy);
    t.optimStep({ learningRate: 0.1 });
    expect(t.weights().base).toEqual(lively(1));
    // 2 layers × rank 3 × (in + out) of q 16+24, k and v 16+12, o 24+16, gate and up 16+24, down 24+16
    expect(t.trainableParameters).toBe(2 * 3 * (40 + 28 + 28 + 40 + 40 + 40 + 40));
    await t.close();
  });
});

test.each([1, 2, 3])('two runs with the same seed and %i threads agree to the last bit', async (threads) => {
  const once = async () => {
    const t = new Trainer({ config, weights: lively(1) }, { threads });
    const curve: number[] = [];
    for (let i = 0; i < 3; i++) {
      const data = sequences([64, 60, 41, 64, 33, 12, 64, 64, 50, 6], i);
      curve.push((await t.forwardBackward(data, crossEntropy)).loss);
      t.optimStep({ learningRate: 0.01, gradClipNorm: 1, weightDecay: 0.1 });
    }
    await t.close();
    return { curve, weights: copied(t.weights().base) };
  };
  expect(await once()).toEqual(await once());
});

test('a trainer restored from its weights and optimizer state goes on to the last bit', async () => {
  const step = async (t: Trainer, seed: number) => {
    await t.forwardBackward(sequences([11, 6], seed), crossEntropy);
    return t.optimStep({ learningRate: 0.01 });
  };
  const through = trainer();
  for (let i = 0; i < 3; i++) await step(through, i);
  const { m, v, ...rest } = through.optimizer();
  const saved = {
    weights: copied(through.weights().base),
    optimizer: { ...rest, m: copied(m as Weights), v: copied(v as Weights) },
  };
  const expected = await step(through, 9);
  const restored = trainer(saved);
  expect(await step(restored, 9)).toEqual(expected);
  expect(expected.version).toBe(4);
  expect(restored.weights().base).toEqual(through.weights().base);
  await through.close();
  await restored.close();
});

test('cross-entropy on a Markov source falls to its entropy', async () => {
  // From token t to t+1 with probability 3/4 and to t+2 with 1/4, modulo 19: 0.5623 nats a token.
  const random = seededRandom(12);
  const draw = (): Datum => {
    const ids = [Math.floor(random() * 19)];
    while (ids.length < 33) ids.push((ids.at(-1)! + (random() < 0.75 ? 1 : 2)) % 19);
    return { tokens: ids.slice(0, -1), targets: ids.slice(1), weights: Array(32).fill(1 / (32 * 16)) };
  };
  const t = trainer({ weights: randomWeights(config, 2) });
  const first = await t.forwardBackward(Array.from({ length: 16 }, draw), crossEntropy);
  expect(first.loss).toBeCloseTo(Math.log(19), 1);
  for (let i = 0; i < 120; i++) {
    t.optimStep({ learningRate: i < 80 ? 0.02 : 0.004 });
    await t.forwardBackward(Array.from({ length: 16 }, draw), crossEntropy);
  }
  const held = Array.from({ length: 100 }, draw);
  const { logprobs } = await t.forward(held);
  let [model, source] = [0, 0];
  for (const [d, { tokens, targets }] of held.entries())
    for (let i = 0; i < 32; i++) {
      model -= logprobs[d]![i]! / 3200;
      source -= Math.log((targets[i]! - tokens[i]! + 19) % 19 === 1 ? 0.75 : 0.25) / 3200;
    }
  // What the model loses beyond the source's own surprise on the same draws is the divergence between the two.
  expect(model - source).toBeGreaterThan(-0.01);
  expect(model - source).toBeLessThan(0.02);
  await t.close();
});

describe('bad input is refused with its reason and changes nothing', () => {
  const [good] = sequences([6]);
  const bad: [string, () => readonly Datum[], Loss, RegExp][] = [
    ['no data', () => [], crossEntropy, /no data/],
    ['an empty datum', () => [good!, { tokens: [], targets: [], weights: [] }], crossEntropy, /Datum 1 has no tokens/],
    [
      'an id beyond the vocabulary',
      () => [{ ...good!, tokens: [1, 2, 19, 3, 4, 5] }],
      crossEntropy,
      /19 among its tokens.*0 to 18/,
    ],
    ['a negative target', () => [{ ...good!, targets: [1, 2, -1, 3, 4, 5] }], crossEntropy, /-1 among its targets/],
    ['an id that is not a whole number', () => [{ ...good!, tokens: [1, 2, 2.5, 3, 4, 5] }], crossEntropy, /2.5 among/],
    ['too few targets', () => [{ ...good!, targets: [1] }], crossEntropy, /1 targets for 6 tokens/],
    ['too few weights', () => [{ ...good!, weights: [1] }], crossEntropy, /1 weights for 6 tokens/],
    ['no weights', () => [{ tokens: [1], targets: [2] }], crossEntropy, /no weights, which cross_entropy needs/],
    [
      'a weight that is not a number',
      () => [{ ...good!, weights: [0, 0, Number.NaN, 0, 0, 0] }],
      crossEntropy,
      /NaN among its weights/,
    ],
    [
      'no logprobs for a policy loss',
      () => [{ tokens: [1], targets: [2], advantages: [1] }],
      losses[1]!,
      /no logprobs/,
    ],
    [
      'a sequence beyond the context',
      () => sequences([65]),
      crossEntropy,
      /65 tokens, more than the model's context of 64/,
    ],
    ['crossed clip bounds', () => [good!], { kind: 'ppo', clipLow: 1.2, clipHigh: 0.8 }, /clipLow/],
  ];

  test.each(bad)('%s', async (_, data, loss, reason) => {
    const t = trainer();
    await t.forwardBackward([good!], crossEntropy);
    const [gradients, weights] = [copied(t.gradients()), copied(t.weights().base)];
    const refused = t.forwardBackward(data(), loss);
    await expect(refused).rejects.toThrow(EngineError);
    await expect(refused).rejects.toThrow(reason);
    expect(t.gradients()).toEqual(gradients);
    expect(t.weights().base).toEqual(weights);
    expect(t.optimStep({ learningRate: 0.1 }).gradNorm).toBeGreaterThan(0);
    await t.close();
  });

  test('weights that are not finite, missing, unknown or of another size', () => {
    const broken = (change: (w: Weights) => void) => () => {
      const weights = lively(1);
      change(weights);
      return trainer({ weights });
    };
    expect(broken((w) => w.get('model.norm.weight')!.fill(Number.NaN, 3, 4))).toThrow(
      /model.norm.weight holds NaN at 3/,
    );
    expect(broken((w) => w.get('model.norm.weight')!.fill(-Infinity, 0, 1))).toThrow(EngineError);
    expect(broken((w) => w.delete('model.norm.weight'))).toThrow(/no tensor model.norm.weight/);
    expect(broken((w) => w.set('lm_head.weight', new Float32Array(1)))).toThrow(/lm_head.weight that the config/);
    expect(broken((w) => w.set('model.norm.weight', new Float32Array(15)))).toThrow(/has 15 numbers.*16/);
  });

  test('a step with settings outside their bounds, which keeps the gradient', async () => {
    const t = trainer();
    await t.forwardBackward([good!], crossEntropy);
    expect(() => t.optimStep({ learningRate: Number.NaN })).toThrow(/learningRate NaN/);
    expect(() => t.optimStep({ learningRate: 1, beta2: 1 })).toThrow(/beta2 1 must be/);
    expect(t.optimStep({ learningRate: 0 }).gradNorm).toBeGreaterThan(0);
    await t.close();
  });

  test('a gradient that overflows, which is dropped without a step', async () => {
    const t = trainer();
    const weights = copied(t.weights().base);
    await t.forwardBackward([{ ...good!, weights: Array(6).fill(3e38) }], crossEntropy);
    expect(() => t.optimStep({ learningRate: 0.1 })).toThrow(/the step was not taken/);
    expect(t.weights().base).toEqual(weights);
    expect(t.version).toBe(0);
    await t.forwardBackward([good!], crossEntropy);
    expect(t.optimStep({ learningRate: 0.1 }).version).toBe(1);
    await t.close();
  });

  test('a model that has diverged, whose gradient is cleared so that the next step is clean', async () => {
    const t = trainer();
    const norm = t.weights().base.get('model.norm.weight')!;
    const kept = norm.slice();
    await t.forwardBackward([good!], crossEntropy);
    norm.fill(Number.NaN);
    await expect(t.forward([good!])).rejects.toThrow(/computes NaN/);
    await expect(t.forwardBackward([good!], crossEntropy)).rejects.toThrow(/computes NaN.*was cleared/);
    norm.set(kept);
    expect(t.optimStep({ learningRate: 0 }).gradNorm).toBe(0);
    await t.forwardBackward([good!], crossEntropy);
    expect(t.optimStep({ learningRate: 0 }).gradNorm).toBeGreaterThan(0);
    await t.close();
  });

  test('a sequence whose attention does not fit the memory, with the numbers', async () => {
    const weights = lively(1);
    const t = new Trainer({ config, weights }, { threads: 1, memory: 300_000 });
    await expect(t.forwardBackward(sequences([60]), crossEntropy)).rejects.toThrow(
      /sequence of 64 tokens needs .* MiB/,
    );
    await t.forwardBackward(sequences([8]), crossEntropy);
    await t.close();
  });

  test('LoRA settings that mean nothing', () => {
    expect(() => trainer({ lora: { spec: { rank: 0, alpha: 1 } } })).toThrow(/rank 0/);
    expect(() => trainer({ lora: { spec: { rank: 1, alpha: 1, targets: ['lm_head'] } } })).toThrow(
      /lm_head is not a linear/,
    );
  });
});
