/**
 * What every Engine must do, as a list of checks: the embedded one runs them in onnx/engine.test.ts, a remote one against
 * its server. Each check gets an engine of its own and a small checkpoint, and says in its name what must hold. Uses only
 * the interface, so it sees gradients through gradNorm and through what a step does to logprobs.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import {
  type AdamParams,
  type Datum,
  type Engine,
  forwardBackwardCustom,
  type Loss,
  type PerToken,
  type StepResult,
} from './engine.ts';

export type ConformanceSubject = {
  readonly engine: Engine;
  /** A checkpoint of a small model with full weights: a vocabulary of 16 or more, a context of 32 or more. */
  readonly folder: string;
  /** An empty folder the checks may write to. */
  readonly scratch: string;
  /** How far two logprobs that should be equal may be apart. */
  readonly tolerance?: number; // 1e-4
  readonly close: () => Promise<void>;
};

export type ConformanceCheck = {
  readonly name: string;
  /** Why this engine cannot do it. */
  readonly cannot?: string;
  readonly run: () => Promise<void>;
};

type Context = Omit<ConformanceSubject, 'close'> & { readonly tolerance: number };

/** The checks, each on a fresh subject from `factory`. `cannot` names those that are beyond an engine, and why. */
export function engineConformance(
  factory: () => Promise<ConformanceSubject>,
  cannot: Readonly<Record<string, string>> = {},
): ConformanceCheck[] {
  for (const name of Object.keys(cannot))
    if (!Object.hasOwn(checks, name)) throw new Error(`There is no check "${name}" that an engine could not pass.`);
  return Object.entries(checks).map(([name, check]) => ({
    name,
    ...(Object.hasOwn(cannot, name) ? { cannot: cannot[name]! } : {}),
    run: async () => {
      const { close, ...subject } = await factory();
      try {
        await check({ tolerance: 1e-4, ...subject });
      } finally {
        await close();
      }
    },
  }));
}

const crossEntropy: Loss = { kind: 'cross_entropy' };
const M = 'model';
const bySum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

/** A few tokens below 16, different for each number. */
function datum(seed: number, size: number): Required<Datum> {
  const ids = Array.from({ length: size + 1 }, (_, i) => (seed * 5 + i * 7 + ((i * i * (seed + 1)) % 11)) % 16);
  return {
    tokens: ids.slice(0, -1),
    targets: ids.slice(1),
    weights: ids.slice(1).map((_, i) => ((i + seed) % 3) * 0.5),
    advantages: ids.slice(1).map((_, i) => ((i + seed) % 3) - 1),
    logprobs: ids.slice(1).map(() => -2.5),
  };
}

function expectClose(a: PerToken, b: PerToken, tolerance: number, what: string): void {
  assert.equal(a.length, b.length, `${what}: lengths differ`);
  for (let i = 0; i < a.length; i++)
    assert.ok(
      Math.abs(a[i]! - b[i]!) <= tolerance,
      `${what}: ${a[i]} and ${b[i]} at ${i} are more than ${tolerance} apart`,
    );
}

/** A step whose gradient is known: an engine that does not say it cannot be checked by it. */
async function stepOf(engine: Engine, model: string, adam: AdamParams): Promise<StepResult & { gradNorm: number }> {
  const { gradNorm, version } = await engine.optimStep(model, adam);
  assert.ok(gradNorm !== null, 'the step does not tell the norm of its gradient');
  return { gradNorm, version };
}

const refuses = (call: () => Promise<unknown>, what: string) =>
  assert.rejects(call, (error) => error instanceof Error && error.message.length > 10, what);

/** Takes one step on a fresh copy of the checkpoint and returns its gradient norm and what the model says after it. */
async function afterStep({ engine, folder }: Context, name: string, backward: () => Promise<unknown>) {
  await engine.load(name, folder);
  await backward();
  const { gradNorm } = await stepOf(engine, name, { learningRate: 0.01 });
  const { logprobs } = await engine.forward(name, [datum(9, 12)]);
  return { gradNorm, logprobs: logprobs[0]! };
}

async function expectSameStep(
  c: Context,
  one: (name: string) => Promise<unknown>,
  other: (name: string) => Promise<unknown>,
) {
  const a = await afterStep(c, 'one', () => one('one'));
  const b = await afterStep(c, 'other', () => other('other'));
  assert.ok(
    Math.abs(a.gradNorm - b.gradNorm) <= 10 * c.tolerance * a.gradNorm,
    `norms ${a.gradNorm} and ${b.gradNorm}`,
  );
  // Adam divides by the gradient's size, which magnifies rounding where the gradient is next to nothing.
  expectClose(a.logprobs, b.logprobs, 100 * c.tolerance, 'logprobs after the step');
}

const checks: Record<string, (c: Context) => Promise<void>> = {
  'a loaded model is listed with its size until it is unloaded': async ({ engine, folder }) => {
    const info = await engine.load(M, folder);
    assert.equal(info.name, M);
    assert.equal(info.kind, 'trainable');
    assert.ok(info.parameters > 0 && info.vocabulary >= 16 && info.context >= 32 && info.bytes > 0);
    assert.deepEqual(
      (await engine.models()).map((m) => m.name),
      [M],
    );
    await refuses(() => engine.load(M, folder), 'a name is taken');
    await engine.unload(M);
    assert.deepEqual(await engine.models(), []);
    await refuses(() => engine.forward(M, [datum(1, 4)]), 'the model is gone');
  },

  'a loss is a plain sum over tokens and data': async ({ engine, folder, tolerance }) => {
    await engine.load(M, folder);
    const data = [datum(1, 12), datum(2, 5), datum(3, 20)];
    const { loss, logprobs } = await engine.forwardBackward(M, data, crossEntropy);
    const expected = -bySum(data.flatMap((d, k) => [...logprobs[k]!].map((lp, i) => lp * d.weights[i]!)));
    assert.ok(Math.abs(loss - expected) <= 10 * tolerance * Math.abs(expected), `${loss} and ${expected}`);
    const again = await engine.forward(M, data);
    for (const [k, lps] of logprobs.entries()) {
      expectClose(again.logprobs[k]!, lps, tolerance, 'forward and forwardBackward');
      const alone = await engine.forward(M, [data[k]!]);
      expectClose(alone.logprobs[0]!, lps, tolerance, 'a datum alone and in a batch');
      assert.ok(lps.every((lp) => lp < 0));
    }
  },

  'gradients add up over calls, in any order, until the step': (c) =>
    expectSameStep(
      c,
      (m) => c.engine.forwardBackward(m, [datum(1, 12), datum(2, 5)], crossEntropy),
      async (m) => {
        await c.engine.forwardBackward(m, [datum(2, 5)], crossEntropy);
        await c.engine.forwardBackward(m, [datum(1, 12)], crossEntropy);
      },
    ),

  'a step clears the gradient and counts the version up': async ({ engine, folder }) => {
    const { version } = await engine.load(M, folder);
    await engine.forwardBackward(M, [datum(1, 12)], crossEntropy);
    const first = await stepOf(engine, M, { learningRate: 1e-3 });
    assert.ok(first.gradNorm > 0);
    assert.equal(first.version, version + 1);
    const second = await stepOf(engine, M, { learningRate: 0 });
    assert.equal(second.gradNorm, 0);
    assert.equal((await engine.models())[0]!.version, version + 2);
  },

  'steps lower the loss they are taken for': async ({ engine, folder }) => {
    await engine.load(M, folder);
    const losses: number[] = [];
    for (let i = 0; i < 12; i++) {
      losses.push((await engine.forwardBackward(M, [datum(1, 12), datum(2, 9)], crossEntropy)).loss);
      await stepOf(engine, M, { learningRate: 0.01, gradClipNorm: 1 });
    }
    assert.ok(losses.at(-1)! < 0.8 * losses[0]!, `the loss went ${losses.map((l) => l.toFixed(2)).join(' ')}`);
  },

  'with equal logprobs, importance_sampling pushes as cross_entropy with the advantages as weights does': (c) =>
    expectSameStep(
      c,
      (m) => c.engine.forwardBackward(m, [{ ...datum(1, 12), weights: datum(1, 12).advantages }], crossEntropy),
      async (m) => {
        const { logprobs } = await c.engine.forward(m, [datum(1, 12)]);
        await c.engine.forwardBackward(m, [{ ...datum(1, 12), logprobs: logprobs[0]! }], {
          kind: 'importance_sampling',
        });
      },
    ),

  'ppo does not push a token whose ratio is beyond the clip in the direction of its advantage': async ({
    engine,
    folder,
  }) => {
    await engine.load(M, folder);
    const data = datum(1, 12);
    const { logprobs } = await engine.forward(M, [data]);
    const loss: Loss = { kind: 'ppo', clipLow: 0.8, clipHigh: 1.2 };
    // The ratio is e for good tokens and 1/e for bad ones: all have moved far enough.
    const sampled = data.advantages.map((a, i) => logprobs[0]![i]! - Math.sign(a));
    const far = await engine.forwardBackward(M, [{ ...data, logprobs: sampled }], loss);
    const clipped = -bySum([...data.advantages].map((a) => (a > 0 ? 1.2 : 0.8) * a));
    assert.ok(Math.abs(far.loss - clipped) < 1e-2, `${far.loss} and ${clipped}`);
    assert.equal((await stepOf(engine, M, { learningRate: 0 })).gradNorm, 0);
    const back = data.advantages.map((a, i) => logprobs[0]![i]! + Math.sign(a));
    await engine.forwardBackward(M, [{ ...data, logprobs: back }], loss);
    assert.ok((await stepOf(engine, M, { learningRate: 0 })).gradNorm > 0);
  },

  'cispo pushes every token, weighted by its clipped ratio': (c) =>
    expectSameStep(
      c,
      async (m) => {
        const { logprobs } = await c.engine.forward(m, [datum(1, 12)]);
        const sampled = logprobs[0]!.map((lp) => lp - Math.log(4));
        await c.engine.forwardBackward(m, [{ ...datum(1, 12), logprobs: sampled }], {
          kind: 'cispo',
          clipLow: 0,
          clipHigh: 3,
        });
      },
      (m) => {
        const weights = datum(1, 12).advantages.map((a) => 3 * a);
        return c.engine.forwardBackward(m, [{ ...datum(1, 12), weights }], crossEntropy);
      },
    ),

  'any loss of the logprobs can be trained through its gradient': (c) =>
    expectSameStep(
      c,
      (m) => c.engine.forwardBackward(m, [datum(1, 12), datum(2, 5)], crossEntropy),
      async (m) => {
        const data = [datum(1, 12), datum(2, 5)];
        const { loss } = await forwardBackwardCustom(c.engine, m, data, (logprobs) => ({
          loss: 42,
          gradients: logprobs.map((lps, k) => lps.map((_, i) => -data[k]!.weights[i]!)),
        }));
        assert.equal(loss, 42);
      },
    ),

  'a saved model loads as the same model and goes on along the same curve': async ({
    engine,
    folder,
    scratch,
    tolerance,
  }) => {
    await engine.load(M, folder);
    const step = async (m: string, seed: number) => {
      const { loss } = await engine.forwardBackward(m, [datum(seed, 12)], crossEntropy);
      return [loss, (await stepOf(engine, m, { learningRate: 0.01 })).gradNorm];
    };
    await step(M, 1);
    await step(M, 2);
    const saved = join(scratch, 'saved');
    await engine.save(M, saved);
    const restored = await engine.load('restored', saved);
    assert.equal(restored.version, (await engine.models()).find((m) => m.name === M)!.version);
    const two = [await step(M, 3), await step(M, 4)].flat();
    expectClose([await step('restored', 3), await step('restored', 4)].flat(), two, 10 * tolerance, 'the curve');
  },

  'an adapter trains little, changes what the model says, and is saved and loaded': async (c) => {
    const { engine, folder, scratch, tolerance } = c;
    const full = await engine.load('full', folder);
    const info = await engine.load(M, folder, { lora: { rank: 2, alpha: 4, seed: 1 } });
    assert.ok(info.trainableParameters < full.parameters);
    assert.equal(info.lora?.rank, 2);
    const data = [datum(1, 12)];
    const before = await engine.forward('full', data);
    expectClose((await engine.forward(M, data)).logprobs[0]!, before.logprobs[0]!, tolerance, 'a fresh adapter');
    for (let i = 0; i < 5; i++) {
      await engine.forwardBackward(M, data, crossEntropy);
      await stepOf(engine, M, { learningRate: 0.02 });
    }
    const after = await engine.forward(M, data);
    assert.ok(after.logprobs[0]!.some((lp, i) => Math.abs(lp - before.logprobs[0]![i]!) > 0.01));
    await engine.save(M, join(scratch, 'adapter'));
    const again = await engine.load('again', join(scratch, 'adapter'));
    assert.equal(again.trainableParameters, info.trainableParameters);
    expectClose((await engine.forward('again', data)).logprobs[0]!, after.logprobs[0]!, tolerance, 'the saved adapter');
    expectClose((await engine.forward('full', data)).logprobs[0]!, before.logprobs[0]!, tolerance, 'the base');
  },

  'samples carry the logprobs that training computes for them, untempered': async ({ engine, folder, tolerance }) => {
    await engine.load(M, folder);
    const prompt = [1, 2, 3, 4];
    const params = { maxTokens: 10, temperature: 0.7, seed: 3, stopTokens: [], promptLogprobs: true, n: 2 };
    const [result] = await engine.sample(M, [prompt], params);
    assert.equal(result!.samples.length, 2);
    assert.ok(Number.isNaN(result!.promptLogprobs![0]!));
    for (const { tokens, rawLogprobs, logprobs, finish } of result!.samples) {
      assert.equal(tokens.length, 10);
      assert.equal(finish, 'length');
      assert.equal(logprobs.length, 10);
      const whole = [...prompt, ...tokens];
      const trained = await engine.forward(M, [{ tokens: whole.slice(0, -1), targets: whole.slice(1) }]);
      expectClose(trained.logprobs[0]!.slice(3), rawLogprobs, 10 * tolerance, 'sampled and trained');
      expectClose(trained.logprobs[0]!.slice(0, 3), result!.promptLogprobs!.slice(1), 10 * tolerance, 'prompt');
    }
  },

  'a seed gives the same tokens alone and among others': async ({ engine, folder }) => {
    await engine.load(M, folder);
    const params = { maxTokens: 12, seed: 11, stopTokens: [] };
    const [alone] = await engine.sample(M, [[5, 6, 7]], params);
    const results = await Promise.all([
      engine.sample(M, [[1], [2, 3, 4, 5, 6]], { maxTokens: 9, seed: 5 }),
      engine.sample(M, [[5, 6, 7]], params),
    ]);
    assert.deepEqual(results[1]![0]!.samples[0]!.tokens, alone!.samples[0]!.tokens);
  },

  'sampling ends at a stop token, and tokens are told as they come': async ({ engine, folder }) => {
    await engine.load(M, folder);
    const greedy = { maxTokens: 8, temperature: 0, stopTokens: [] as number[] };
    const told: number[] = [];
    const onToken = (_prompt: number, _attempt: number, token: number) => void told.push(token);
    const [free] = await engine.sample(M, [[1, 2]], greedy, { onToken });
    const tokens = [...free!.samples[0]!.tokens];
    assert.deepEqual(told, tokens);
    const [stopped] = await engine.sample(M, [[1, 2]], { ...greedy, stopTokens: [tokens[3]!] });
    assert.equal(stopped!.samples[0]!.finish, 'stop');
    const end = tokens.indexOf(tokens[3]!);
    assert.deepEqual([...stopped!.samples[0]!.tokens].slice(0, end), tokens.slice(0, end));
  },

  'a snapshot does not change when its model learns': async ({ engine, folder }) => {
    await engine.load(M, folder);
    const learn = async (seed: number) => {
      await engine.forwardBackward(M, [datum(seed, 12)], crossEntropy);
      return stepOf(engine, M, { learningRate: 0.05 });
    };
    const { version } = await learn(5);
    const snapshot = await engine.snapshot(M, 'frozen');
    assert.equal(snapshot.kind, 'snapshot');
    const params = { maxTokens: 10, seed: 2, stopTokens: [] };
    const ask = async (m: string) => (await engine.sample(m, [[3, 1, 4]], params))[0]!;
    const before = await ask('frozen');
    for (let i = 0; i < 5; i++) await learn(i);
    const after = await engine.forward(M, [datum(9, 12)]);
    assert.deepEqual(await ask('frozen'), before);
    assert.deepEqual(
      (await engine.forward(M, [datum(9, 12)])).logprobs,
      after.logprobs,
      'sampling it changed its model',
    );
    assert.equal(before.version, version);
    const now = await ask(M);
    assert.equal(now.version, version + 5);
    assert.notDeepEqual(now.samples[0]!.rawLogprobs, before.samples[0]!.rawLogprobs);
    await engine.unload(M);
    assert.deepEqual(await ask('frozen'), before);
  },

  'an aborted sample ends, and the next one works': async ({ engine, folder }) => {
    await engine.load(M, folder);
    const abort = new AbortController();
    const onToken = () => abort.abort(new Error('enough of this'));
    const params = { maxTokens: 20, stopTokens: [] };
    await assert.rejects(engine.sample(M, [[1, 2]], params, { onToken, signal: abort.signal }));
    assert.equal((await engine.sample(M, [[1, 2]], params))[0]!.samples[0]!.tokens.length, 20);
  },

  'bad input is refused and harms nothing': async ({ engine, folder, tolerance }) => {
    const { vocabulary, context } = await engine.load(M, folder);
    const good = datum(1, 12);
    await engine.forwardBackward(M, [good], crossEntropy);
    const before = await engine.forward(M, [good]);
    const bad: (readonly Datum[])[] = [
      [],
      [{ tokens: [], targets: [], weights: [] }],
      [{ ...good, tokens: good.tokens.map(() => vocabulary) }],
      [{ ...good, targets: good.targets.map(() => -1) }],
      [{ ...good, targets: [1] }],
      [{ ...good, weights: [1] }],
      [{ ...good, weights: good.weights.map(() => Number.NaN) }],
      [{ tokens: good.tokens, targets: good.targets }],
      [datum(1, context + 1)],
    ];
    for (const [i, data] of bad.entries())
      await refuses(() => engine.forwardBackward(M, data, crossEntropy), `bad data ${i}`);
    await refuses(() => engine.sample(M, [[]], { maxTokens: 4 }), 'an empty prompt');
    await refuses(() => engine.sample(M, [[vocabulary]], { maxTokens: 4 }), 'an id out of range');
    await refuses(
      () => engine.sample(M, [Array(context + 1).fill(1)], { maxTokens: 4 }),
      'a prompt beyond the context',
    );
    await refuses(() => engine.load('nothing', join(folder, 'nothing')), 'a folder that is not there');
    await refuses(() => engine.optimStep(M, { learningRate: Number.NaN }), 'a learning rate that is no number');
    const after = await engine.forward(M, [good]);
    expectClose(after.logprobs[0]!, before.logprobs[0]!, tolerance, 'what the model says');
    assert.ok((await stepOf(engine, M, { learningRate: 0 })).gradNorm > 0, 'the good gradient is still there');
  },
};
