/** Evaluating with a real, tiny engine: a task names a token, and the right answer is the token four above it. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { EngineError } from '../errors.ts';
import type { ChatCodec } from '../simulate/engine-player.ts';
import { type Environment, makeTask } from '../simulate/environment.ts';
import { listReports, readReport, saveReport } from '../store/reports.ts';
import { withStore } from '../store/test-store.ts';
import { TabularEngine } from '../train/fixtures/tabular-engine.ts';
import { engineContender } from './engine-contender.ts';
import { gateSettings } from './gates/all.ts';
import { playMatch } from './match.ts';
import { reportSchema } from './report.ts';
import { makeSuite } from './suite.ts';

type Data = { token: number };
const stop = 9;
const world: Environment<Data, null> = {
  name: 'tokens',
  system: '',
  types: { low: (rng) => ({ token: rng.integer(0, 1) }), high: (rng) => ({ token: rng.integer(2, 3) }) },
  data: z.strictObject({ token: z.int() }),
  database: () => null,
  tools: [],
  user: ({ data }) => ({ open: () => String(data.token), answer: () => null }),
  gradeTurn: () => ({ reward: 0, parts: {}, reasons: [] }),
  gradeEnd: ({ task, messages }) => {
    const success = messages.at(-1)?.content === String(task.data.token + 4);
    return { success, reward: success ? 1 : 0, parts: {}, reasons: [] };
  },
  limits: { turns: 2, callsPerTurn: 1, mistakes: 1, tokensPerTurn: 4, tokens: 64, seconds: 60, characters: 100 },
};
const codec: ChatCodec = {
  encode: (messages) => messages.map(({ content }) => Number(content)),
  decode: (tokens) => ({ message: { role: 'assistant', content: tokens.join(' ') } }),
  stopTokens: [stop],
};
const suite = makeSuite(
  'golden',
  Array.from({ length: 40 }, (_, i) => makeTask(world, i % 2 === 0 ? 'low' : 'high', 'golden', i)),
);

/** Says token + 4 and stops, for the tokens it knows; says nothing but "stop" for the others. */
const knowing = (known: readonly number[]) =>
  Array.from({ length: 10 }, (_, from) =>
    Array.from({ length: 10 }, (_, to) => (to === (known.includes(from) ? from + 4 : stop) ? 50 : 0)),
  );

type Options = {
  engine: TabularEngine;
  model?: string;
  attempts?: number;
  seed?: number;
  gates?: z.input<typeof gateSettings>;
  onProgress?: (n: number) => void;
};

function options(known: readonly number[], better: readonly number[]): Options {
  const engine = new TabularEngine(10);
  engine.create('old', knowing(known));
  engine.create('new', knowing(better));
  return { engine };
}

/** Tables this sure are all drift and no entropy, so those gates are off unless a test is about them. */
function evaluate({ engine, model = 'new', attempts = 1, seed = 7, gates, onProgress = () => {} }: Options) {
  const on = { engine, environment: world, suite, temperature: 1 };
  const candidate = engineContender(on, { name: 'v2', model, codec });
  const baseline = engineContender(on, { name: 'v1', model: 'old', codec });
  const drift = () => candidate.driftFrom('old');
  return playMatch({
    ...{ agent: 'desk', suite, baseline, candidate, attempts, seed, temperature: 1, drift, onProgress },
    settings: { gates: gateSettings.parse({ drift: null, entropy: null, ...gates }) },
    now: () => 1000,
  });
}

const tokens = suite.tasks.map(({ data }) => data.token);
const count = (...wanted: number[]) => tokens.filter((token) => wanted.includes(token)).length;

describe('an evaluation', () => {
  it('is the same when the engine dies under it and comes back', async () => {
    const { seconds: _, ...whole } = await evaluate(options([0], [0, 1, 2, 3]));
    class MortalEngine extends TabularEngine {
      asked = 0;
      override async sample(...call: Parameters<TabularEngine['sample']>) {
        // Twice: once with some of the baseline's episodes answered, once with some of the candidate's.
        if ([5, 60].includes(++this.asked)) throw new EngineError('The engine died.', { retryable: true });
        return super.sample(...call);
      }
    }
    const engine = new MortalEngine(10);
    engine.create('old', knowing([0]));
    engine.create('new', knowing([0, 1, 2, 3]));
    expect(await evaluate({ ...options([0], []), engine })).toMatchObject(whole);
    expect(engine.asked).toBeGreaterThan(80);
  });

  it('passes a model that learned something, and says of what type', async () => {
    const progress: number[] = [];
    const report = await evaluate({ ...options([0], [0, 1, 2, 3]), onProgress: (played) => progress.push(played) });
    expect(report).toMatchObject({
      verdict: 'pass',
      suite: { name: 'golden', tasks: 40 },
      overall: { n: 40, baseline: count(0) / 40, candidate: 1, better: count(1, 2, 3), worse: 0, test: 'mcnemar' },
      types: { low: { n: 20, candidate: 1 }, high: { n: 20, baseline: 0, candidate: 1 } },
    });
    expect(progress.at(-1)).toBe(80);
    expect(reportSchema.parse(report)).toEqual(report);
  });

  it('fails a model that knows less, and one that says the same thing to everybody', async () => {
    expect((await evaluate(options([0, 1, 2, 3], [0, 1]))).verdict).toBe('fail');
    expect((await evaluate(options([0, 1, 2, 3], []))).verdict).toBe('fail');
  });

  it('leaves a model that learned one thing and forgot another to a person', async () => {
    // All of type low is lost, all of type high is won.
    const report = await evaluate(options([0, 1], [2, 3]));
    expect(report.verdict).toBe('inconclusive');
    expect(report.reasons[1]).toMatch(/type low fell from 100\.0% to 0\.0%/);
  });

  it('says how far the candidate’s answers have moved from the baseline’s', async () => {
    // The candidate is certain of two tokens where the baseline finds all 10 equally likely: ln 10 each.
    const given = options([], [0, 1, 2, 3]);
    given.engine.create(
      'old',
      Array.from({ length: 10 }, () => new Array<number>(10).fill(0)),
    );
    expect((await evaluate(given)).drift).toBeCloseTo(Math.log(10), 5);
    const judged = await evaluate({ ...given, gates: { drift: 0.5 } });
    expect(judged).toMatchObject({ verdict: 'fail' });
    expect(judged.reasons).toContainEqual(expect.stringMatching(/drifted 2\.30 nats per token .* more than 0\.5/));
    expect((await evaluate(options([0, 1], [0, 1]))).drift).toBe(0);
  });

  it('measures nothing when the model is not there, and does not call that a failure', async () => {
    const report = await evaluate({ ...options([0], [0]), model: 'absent' });
    expect(report).toMatchObject({ verdict: 'unmeasured', overall: null });
    expect(report.tasks[0]).toMatchObject({ candidate: null });
  });

  it('gives the same report for the same seed, whatever else, and keeps the first', async () => {
    const uneven = Array.from({ length: 10 }, () => new Array<number>(10).fill(0));
    const play = async (seed: number) => {
      const given = options([0], [0, 1]);
      given.engine.create('new', uneven); // says anything
      return evaluate({ ...given, attempts: 4, seed });
    };
    const [first, again, other] = [await play(7), await play(7), await play(8)];
    expect(again).toEqual(first);
    expect(other.id).not.toBe(first.id);
    expect(other.tasks).not.toEqual(first.tasks);

    const store = await withStore();
    await saveReport(store, first);
    await saveReport(store, { ...again, seconds: 99 });
    expect(await readReport(store, first.id)).toEqual(first);
    expect(await listReports(store, { agent: 'desk' })).toEqual([first]);
    expect(await listReports(store, { agent: 'other' })).toEqual([]);
  });
});

describe('a suite', () => {
  it('is known by its content', () => {
    expect(makeSuite('other name', suite.tasks).hash).toBe(suite.hash);
    expect(makeSuite('golden', suite.tasks.slice(1)).hash).not.toBe(suite.hash);
  });

  it('has no task twice and none that is trained on', () => {
    const task = suite.tasks[0]!;
    expect(() => makeSuite('s', [task, task])).toThrow(`two tasks with the id ${task.id}`);
    expect(() => makeSuite('s', [{ ...task, split: 'train' }])).toThrow('is from the train split');
  });
});
