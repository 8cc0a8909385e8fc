/**
 * How fast an engine is, found by asking it: a few calls of the shapes that a run's steps will have, on a model that is thrown away. The
 * first call of each kind is not counted, because servers compile then and engines build their graphs; how long it took is told apart.
 * The step of the optimizer has a learning rate of 0. What an engine does not answer in time is given up.
 */
import type { Engine, LoraSpec } from '../engine/engine.ts';
import { EngineError } from '../errors.ts';
import type { Stage } from './stage.ts';

/** Tokens per second; null where no stage asks for it. */
export type Rates = {
  readonly parameters: number;
  readonly trained: number;
  readonly forwarded: number | null;
  readonly sampled: number | null;
  /** What a step takes besides: the optimizer, and new weights for sampling. */
  readonly stepSeconds: number;
  /** What the first calls took longer than those after. */
  readonly firstSeconds: number;
};

/** What is asked of the engine: rows of so many tokens, and attempts at so many prompts. */
export type Shape = {
  readonly rows: number;
  readonly length: number;
  readonly forwards: boolean;
  /** 0: nothing is sampled. */
  readonly prompts: number;
};

const limitSeconds = 300;
const attempts = 8;
const sampledTokens = 64;
const enough = { rounds: 3, seconds: 2 };

/** The largest steps of the stages, as far as a probe of seconds can go. */
export function shapeOf(stages: readonly Pick<Stage, 'steps' | 'work'>[], context: number): Shape {
  const length = Math.max(2, Math.min(200, context - 1));
  const perStep = (tokens: (work: Stage['work']) => number) =>
    Math.max(...stages.map(({ steps, work }) => tokens(work) / Math.max(1, steps)));
  const rows = (tokens: number, most: number) => Math.max(1, Math.min(most, Math.round(tokens / length)));
  const sampled = perStep((work) => work.sampled);
  return {
    rows: rows(
      perStep((work) => work.trained),
      64,
    ),
    length,
    forwards: stages.some(({ work }) => work.forwarded > 0),
    prompts: sampled === 0 ? 0 : Math.max(1, Math.round(rows(sampled, 64) / attempts)),
  };
}

export async function probeEngine(
  engine: Engine,
  model: { readonly base: string; readonly lora?: LoraSpec | undefined },
  stages: readonly Pick<Stage, 'steps' | 'work'>[],
  say: (line: string) => void,
  now: () => number = () => performance.now() / 1000,
): Promise<Rates> {
  const name = 'probe';
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limitSeconds * 1000);
  const tooLate = new Promise<never>((_, fail) => {
    late.signal.addEventListener('abort', () =>
      fail(new EngineError(`The engine did not answer a few calls in ${limitSeconds} seconds.`, { retryable: true })),
    );
  });
  let firstSeconds = 0;
  /** Seconds of one call once it is warm. */
  const timed = async (what: string, call: () => Promise<unknown>): Promise<number> => {
    say(`Trying the engine: ${what} …`);
    const seconds: number[] = [];
    for (let spent = 0; seconds.length <= enough.rounds && spent < enough.seconds; ) {
      const began = now();
      await Promise.race([call(), tooLate]);
      seconds.push(now() - began);
      if (seconds.length > 1) spent += seconds.at(-1)!;
    }
    const best = Math.min(...seconds.slice(1));
    firstSeconds += Math.max(0, seconds[0]! - best);
    return Math.max(best, 1e-6);
  };

  try {
    say('Trying the engine: loading …');
    const loading = engine.load(name, model.base, model.lora ? { lora: model.lora } : {});
    const { parameters, vocabulary, context } = await Promise.race([loading, tooLate]);
    const { rows, length, forwards, prompts } = shapeOf(stages, context);
    const ids = (of: number, size: number) => Int32Array.from({ length: size }, (_, i) => (of * 31 + i) % vocabulary);
    const tokens = (of: number) => ids(of, length);
    const weights = new Float32Array(length).fill(1 / (rows * length));
    const data = Array.from({ length: rows }, (_, i) => ({ tokens: tokens(i), targets: tokens(i), weights }));
    const train = () => engine.forwardBackward(name, data, { kind: 'cross_entropy' });
    const learning = await timed(`${rows} × ${length} tokens to learn from`, train);
    const stepping = await timed('a step', () => engine.optimStep(name, { learningRate: 0 }));
    const forward = forwards ? await timed('logprobs', () => engine.forward(name, data)) : null;
    const frozen = `${name}.sampler`;
    const size = Math.max(1, Math.min(sampledTokens, context - length));
    const asked = Array.from({ length: prompts }, (_, i) => ids(i, Math.min(length, context - size)));
    const params = { maxTokens: size, n: attempts, seed: 1, stopTokens: [] };
    let freezing = 0;
    const sampling =
      prompts === 0
        ? null
        : await timed(`${prompts * attempts} × ${size} tokens to sample`, async () => {
            const began = now();
            await engine.snapshot(name, frozen);
            freezing = now() - began;
            await engine.sample(frozen, asked, params, { signal: late.signal });
            await engine.unload(frozen);
          });
    return {
      parameters,
      trained: (rows * length) / learning,
      forwarded: forward === null ? null : (rows * length) / forward,
      sampled: sampling === null ? null : (prompts * attempts * size) / Math.max(1e-6, sampling - freezing),
      stepSeconds: stepping + freezing,
      firstSeconds,
    };
  } finally {
    clearTimeout(timer);
    tooLate.catch(() => {});
    await engine.unload(name).catch(() => {});
  }
}
