/**
 * Learning code tested by invariants, on an engine that really learns (fixtures/tabular-engine.ts): equal rewards move
 * nothing, shuffled rewards teach nothing, split batches and other orders give the same gradient, and what should rise rises.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { seeded } from '../score/resample.ts';
import { turnCredit } from './advantage.ts';
import type { AttemptSource } from './attempt.ts';
import { dpo, pairsFrom } from './dpo.ts';
import { TabularEngine } from './fixtures/tabular-engine.ts';
import { rightAnswer, toy, toySource } from './fixtures/toy.ts';
import { type GrpoSettings, grpo, grpoDefaults, type PolicyRow, policyGradient, policyRows } from './grpo.ts';
import { mixSeed } from './order.ts';
import { rft } from './rft.ts';
import { type Example, sft } from './sft.ts';
import type { Stage } from './stage.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-learn-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fast: Partial<GrpoSettings> = {
  steps: 40,
  tasksPerStep: 4,
  attempts: 16,
  lengthNormaliser: 2,
  schedule: { peak: 0.1, shape: 'constant', warmup: 0, floor: 1 },
};

let folders = 0;
async function begin(stage: Stage, seed = 1, engine = new TabularEngine(toy.vocabulary)) {
  if ((await engine.models()).length === 0) engine.create('m');
  const start = join(folder, String(folders++));
  await engine.save('m', start);
  return { engine, active: await stage.begin({ engine, model: 'm', start, seed }) };
}

async function trainAll(stage: Stage, seed = 1, engine?: TabularEngine) {
  const { engine: used, active } = await begin(stage, seed, engine);
  const steps = [];
  for (let i = 0; i < stage.steps; i++) steps.push(await active.step(i));
  await active.end();
  return { engine: used, steps };
}

/** Exact chance of the right first token, mean over tasks. */
function skill(engine: TabularEngine): number {
  const table = engine.table('m');
  let sum = 0;
  for (let t = 0; t < toy.tasks; t++) {
    const e = table[t]!.map(Math.exp);
    sum += e[rightAnswer(t)]! / e.reduce((a, b) => a + b);
  }
  return sum / toy.tasks;
}

describe('GRPO', () => {
  it('learns the toy task', async () => {
    const { engine, steps } = await trainAll(grpo(toySource(), fast));
    expect(skill(engine)).toBeGreaterThan(0.9);
    expect(steps.at(-1)!.values.reward_mean!).toBeGreaterThan(steps[0]!.values.reward_mean! + 0.5);
    expect(steps.at(-1)!.values.kl!).toBeGreaterThan(steps[0]!.values.kl!);
    expect(steps[0]!.values.sampler_gap!).toBeLessThan(1e-6);
    expect(Object.keys(steps[0]!.taskTypes!).sort()).toEqual(['high', 'low']);
  });

  it('learns it from attempts of the weights before, which are played while it learns', async () => {
    const events: string[] = [];
    const source = toySource();
    const watched: AttemptSource = {
      ...source,
      async play(request) {
        const groups = await source.play(request);
        events.push(`played by ${groups[0]![0]!.version}`);
        return groups;
      },
    };
    const engine = new TabularEngine(toy.vocabulary);
    const step = engine.optimStep.bind(engine);
    engine.optimStep = async (...call) => {
      const result = await step(...call);
      events.push(`moved to ${result.version}`);
      return result;
    };
    const { steps } = await trainAll(grpo(watched, { ...fast, lag: 1 }), 1, engine);
    expect(skill(engine)).toBeGreaterThan(0.9);
    // The first batch is played and learned; from then on each is of one version before.
    expect(events.filter((event) => event.startsWith('played')).slice(0, 4)).toEqual([
      ...['played by 0', 'played by 0', 'played by 1', 'played by 2'],
    ]);
    expect(events.filter((event) => event.startsWith('played'))).toHaveLength(steps.length);
    expect(steps[0]!.values.sampler_gap!).toBeLessThan(1e-6);
    expect(steps[1]!.values).not.toHaveProperty('sampler_gap');
    expect(steps[1]!.values.lag_gap!).toBeGreaterThan(1e-4);
  });

  it('learns it off policy too, and clips there', async () => {
    const { engine, steps } = await trainAll(
      grpo(toySource(), { ...fast, updates: 4, attempts: 32, schedule: { ...grpoDefaults.schedule, peak: 0.3 } }),
    );
    expect(skill(engine)).toBeGreaterThan(0.9);
    expect(Math.max(...steps.map((s) => s.values.clip_fraction ?? 0))).toBeGreaterThan(0);
  });

  it('moves nothing when all rewards are equal: no gradient, no step, every group counted', async () => {
    const engine = new TabularEngine(toy.vocabulary);
    engine.create('m');
    const before = engine.table('m');
    const { steps } = await trainAll(
      grpo(
        toySource(() => 0.3),
        { ...fast, steps: 5 },
      ),
      1,
      engine,
    );
    expect(engine.table('m')).toEqual(before);
    expect(engine.calls).toEqual([]);
    for (const s of steps) expect(s.values).toMatchObject({ zero_variance_fraction: 1, grad_norm: 0, loss: 0 });
  });

  it('learns nothing from rewards that were shuffled among the attempts', async () => {
    const shuffledSource: AttemptSource = {
      tasks: toy.tasks,
      async play(request) {
        const groups = await toySource().play(request);
        const next = seeded(mixSeed(request.seed, 5));
        const rewards = groups.flat().map((a) => a.reward);
        for (let i = rewards.length - 1; i > 0; i--) {
          const j = Math.floor(next() * (i + 1));
          [rewards[i], rewards[j]] = [rewards[j]!, rewards[i]!];
        }
        let k = 0;
        return groups.map((g) => g.map((a) => ({ ...a, reward: rewards[k++]! })));
      },
    };
    const skills = [];
    for (const seed of [1, 2, 3, 4, 5, 6])
      skills.push(skill((await trainAll(grpo(shuffledSource, fast), seed)).engine));
    const mean = skills.reduce((a, b) => a + b) / skills.length;
    // Chance is 0.1; the honest rewards above give over 0.9.
    expect(mean).toBeLessThan(0.25);
  });

  it('a stronger pull to the reference keeps the policy nearer to it', async () => {
    const drift = async (coefficient: number) =>
      (await trainAll(grpo(toySource(), { ...fast, kl: { coefficient } }))).steps.at(-1)!.values.kl!;
    expect(await drift(0.8)).toBeLessThan((await drift(0.01)) / 2);
  });

  it('an entropy bonus leaves more entropy', async () => {
    const left = async (entropy: number) =>
      (await trainAll(grpo(toySource(), { ...fast, entropy, kl: { coefficient: 0 } }))).steps.at(-1)!.values.entropy!;
    expect(await left(0.3)).toBeGreaterThan((await left(0)) + 0.3);
  });

  it('refuses attempts of other weights, and a group of one', async () => {
    const { active } = await begin(
      grpo({
        tasks: 4,
        play: async (request) =>
          (await toySource().play(request)).map((g) => g.map((a) => ({ ...a, version: a.version - 1 }))),
      }),
    );
    await expect(active.step(0)).rejects.toThrow(/written by weights version -1/);
    expect(() => grpo(toySource(), { attempts: 1 })).toThrow(/no peer/);
  });

  it('gives one gradient for a batch, however it is split or ordered', async () => {
    const engine = new TabularEngine(toy.vocabulary);
    engine.create('m');
    const groups = await toySource().play({ engine, model: 'm', tasks: [0, 1, 2, 3], attempts: 16, seed: 3 });
    const { rows } = policyRows(groups, { kind: 'attempt' });
    expect(rows.length).toBeGreaterThan(16);
    // KL and entropy are centred over the batch they are given, so they are left out of this comparison.
    const options = { settings: { ...grpoDefaults, entropy: 0 }, normaliser: 100 };
    const gradient = async (parts: (typeof rows)[]) => {
      const fresh = new TabularEngine(toy.vocabulary);
      fresh.create('m');
      for (const part of parts)
        await policyGradient(fresh, 'm', part, { ...options, old: await logprobsOf(fresh, part) });
      return fresh.gradient('m');
    };
    const whole = await gradient([rows]);
    expect(Math.max(...whole.map(Math.abs))).toBeGreaterThan(1e-3);
    for (const other of [await gradient([rows.slice(0, 7), rows.slice(7)]), await gradient([[...rows].reverse()])])
      for (const [i, g] of whole.entries()) expect(Math.abs(other[i]! - g)).toBeLessThan(1e-9);
  });

  it('plays with a snapshot of the weights under a name of its own, and leaves none behind', async () => {
    const played: string[] = [];
    const toyTasks = toySource();
    const source = {
      ...toyTasks,
      play: (request: Parameters<typeof toyTasks.play>[0]) => {
        played.push(request.model);
        return toyTasks.play(request);
      },
    };
    const { engine } = await trainAll(grpo(source, { ...fast, steps: 2 }));
    expect(played).toEqual(['m.sampler', 'm.sampler']);
    expect((await engine.models()).map(({ name }) => name)).toEqual(['m']);
  });

  it('with turn-level credit, pushes only the turn that differed', async () => {
    const base = { task: 't', taskType: 'x', reward: 0.5, success: false, version: 0 };
    const turns = (second: number, reward: number) => [
      { prompt: [0], completion: [5], logprobs: [-Math.log(10)], reward: 0 },
      { prompt: [0, 5, 1], completion: [second], logprobs: [-Math.log(10)], reward },
    ];
    // Same first turn, same final reward; the second turns earned 1 and 0: advantages ± 0.25 there, 0 before.
    const { rows } = policyRows(
      [
        [
          { ...base, id: 'a', turns: turns(6, 1) },
          { ...base, id: 'b', turns: turns(7, 0) },
        ],
      ],
      turnCredit,
    );
    const engine = new TabularEngine(10);
    engine.create('m');
    const old = await logprobsOf(engine, rows);
    await policyGradient(engine, 'm', rows, { settings: { ...grpoDefaults, entropy: 0 }, normaliser: 1, old });
    const gradient = engine.gradient('m');
    expect(gradient.slice(0, 10).every((g) => Math.abs(g) < 1e-9)).toBe(true);
    // 1·10 + 6: after the tool's token 1, token 6 rises and 7 falls (a gradient is descended).
    expect(gradient[16]).toBeCloseTo(-0.25, 5);
    expect(gradient[17]).toBeCloseTo(0.25, 5);
  });
});

const example = (task: number, answer: number, quality = 1): Example => ({
  id: `${task}-${answer}`,
  taskType: 'toy',
  quality,
  turns: [{ prompt: [task], completion: [answer, toy.stop] }],
});
const schedule = { peak: 0.2, shape: 'constant', warmup: 0, floor: 1 } as const;

const logprobsOf = async (engine: TabularEngine, rows: readonly PolicyRow[]) =>
  (
    await engine.forward(
      'm',
      rows.map((r) => r.sequence),
    )
  ).logprobs;

describe('SFT', () => {
  it('learns good examples and never sees those below quality 0.8', async () => {
    const good = [0, 1, 2, 3].map((t) => example(t, rightAnswer(t), 0.8));
    const bad = [0, 1, 2, 3].map((t) => example(t, 0, 0.79));
    const { engine, steps } = await trainAll(sft([...good, ...bad], { epochs: 30, batchSize: 4, schedule }));
    expect(skill(engine)).toBeGreaterThan(0.9);
    expect(engine.calls.flatMap((c) => c.data).every((d) => d.targets[0] !== 0)).toBe(true);
    expect(steps.at(-1)!.values.loss!).toBeLessThan(steps[0]!.values.loss! / 4);
    expect(() => sft(bad)).toThrow(/None of the 4 examples reaches quality 0.8/);
  });

  it('replay keeps an old skill that new data would overwrite', async () => {
    // Token 0 used to be answered by 8; the new data answers it by 4. After replay both remain.
    const news = [example(0, 4)];
    const oldSkill = async (share: number) => {
      const replay = { examples: [example(0, 8)], share };
      const { engine } = await trainAll(sft(news, { epochs: 40, batchSize: 1, schedule, replay }));
      const e = engine.table('m')[0]!.map(Math.exp);
      return e[8]! / e.reduce((a, b) => a + b);
    };
    expect(await oldSkill(0)).toBeLessThan(0.01);
    expect(await oldSkill(0.5)).toBeGreaterThan(0.3);
  });
});

describe('RFT', () => {
  it('learns from the best of each group, if it earned more than 0.9', async () => {
    const { engine, steps } = await trainAll(
      rft(toySource(), { rounds: 3, tasksPerRound: 4, attempts: 32, learningSteps: 10, batchSize: 4, schedule }),
    );
    expect(skill(engine)).toBeGreaterThan(0.9);
    expect(steps[0]!.values.kept_fraction).toBeGreaterThan(0);
    const none = await trainAll(
      rft(
        toySource(() => 0.9),
        { rounds: 1, tasksPerRound: 4, attempts: 4, learningSteps: 2, schedule },
      ),
    );
    expect(none.engine.calls).toEqual([]);
  });
});

describe('DPO', () => {
  it('prefers chosen to rejected, more than the reference does', async () => {
    const engine = new TabularEngine(toy.vocabulary);
    engine.create('m');
    const groups = await toySource().play({
      engine,
      model: 'm',
      tasks: Array.from({ length: 40 }, (_, i) => i % 4),
      attempts: 16,
      seed: 1,
    });
    const pairs = pairsFrom(groups);
    expect(pairs.length).toBeGreaterThan(10);
    const before = skill(engine);
    const { steps } = await trainAll(dpo(pairs, { imitation: 0, epochs: 10, batchSize: 8, schedule }), 1, engine);
    expect(steps.at(-1)!.values.accuracy).toBe(1);
    expect(steps.at(-1)!.values.margin!).toBeGreaterThan(0.5);
    expect(steps[0]!.values.loss).toBeCloseTo(Math.LN2, 5);
    expect(skill(engine)).toBeGreaterThan(before + 0.3);
  });

  it('imitates the chosen side by the mean over its own tokens, and leaves the rejected side to the preference', async () => {
    const turn = (completion: number[]) => [{ prompt: [0], completion }];
    const pair = { id: 'p', taskType: 'x', chosen: turn([1, 2]), rejected: turn([3]), gap: 1 };
    // Every token has chance 1/V and Δ = 0: the loss is ln 2 + a·ln V. A chosen token weighs β/2 + a/2, a rejected one −β/2.
    for (const a of [0, 1, 3]) {
      const { engine, active } = await begin(dpo([pair], { beta: 0.1, imitation: a, schedule }));
      const { values } = await active.step(0);
      expect(values.loss).toBeCloseTo(Math.LN2 + a * Math.log(toy.vocabulary), 5);
      const weights = engine.calls.at(-1)!.data.map((datum) => Array.from(datum.weights!).filter((w) => w !== 0));
      expect(weights.map((row) => row.map((w) => w.toFixed(4)))).toEqual([
        [(0.05 + a / 2).toFixed(4), (0.05 + a / 2).toFixed(4)],
        ['-0.0500'],
      ]);
    }
  });

  it('pairs the best attempt at a task with the worst, the second with the last but one, where they differ by 0.2', () => {
    const at = (reward: number) => ({
      id: `${reward}`,
      task: 't',
      taskType: 'x',
      reward,
      success: false,
      version: 0,
      turns: [],
    });
    expect(
      pairsFrom([
        [at(0.5), at(0.9), at(0.1)],
        [at(0.5), at(0.6)],
      ]),
    ).toMatchObject([{ id: '0.9>0.1' }]);
    const four = [[at(0.1), at(0.6), at(1), at(0.2)]];
    expect(pairsFrom(four).map(({ id }) => id)).toEqual(['1>0.1', '0.6>0.2']);
    expect(pairsFrom(four, 0.2, 1).map(({ id }) => id)).toEqual(['1>0.1']);
    expect(pairsFrom([[at(1), at(0.6), at(0.5), at(0)]]).map(({ id }) => id)).toEqual(['1>0']);
  });
});
