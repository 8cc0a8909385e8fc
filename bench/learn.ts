/**
 * `npm run bench -- learn -- --recipe grpo --seeds 3`: does training make the support desk's base model better, by how much,
 * in what time? For each seed the base model is trained by the recipe on training tasks and measured before and after on the
 * golden tasks, which share no entity and no wording with them, at temperature 1. The last line is one JSON object.
 *
 * Seeds may be trained apart: `--save FILE` adds each seed's figures to a file as a line of JSON, and `--report FILE` makes
 * the last line from such a file without training. To choose settings, measure with `--on validation`: the golden tasks
 * are for reports.
 *
 * seconds   training alone, collecting attempts included, measuring excluded; mean over seeds
 * cpu       processor seconds of the same; on a quiet machine of n cores, seconds is at least cpu / n
 * ±95%      tasks and seeds are both samples: se² = s²(tasks)/tasks + s²(seeds)/seeds
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { broad } from '../examples/support-desk/corpus.ts';
import { supportDesk } from '../examples/support-desk/desk.ts';
import { readGolden } from '../examples/support-desk/golden.ts';
import type { DatasetReader } from '../src/curate/read.ts';
import type { Engine } from '../src/engine/engine.ts';
import { openEngine } from '../src/engine/open.ts';
import { loadChatCodec } from '../src/simulate/chat-codec.ts';
import type { ChatCodec } from '../src/simulate/engine-player.ts';
import { makeTasks } from '../src/simulate/environment.ts';
import { measureSuccess, type Success } from '../src/train/episodes.ts';
import { type OfAgent, planRun, type SpecOptions, specOf } from '../src/train/plan.ts';
import { type RecipeName, recipeNames } from '../src/train/recipe-names.ts';
import { isRecipe } from '../src/train/recipes.ts';
import { createRun, train } from '../src/train/run.ts';
import { memoryRunStore } from '../src/train/run-record.ts';
import { trainSettings } from '../src/train/settings.ts';

const { values: options } = parseArgs({
  options: {
    recipe: { type: 'string', default: 'grpo' },
    seeds: { type: 'string', default: '3' },
    'first-seed': { type: 'string', default: '1' },
    base: { type: 'string', default: 'examples/support-desk/model' },
    credit: { type: 'string', default: 'attempt' },
    steps: { type: 'string' },
    'tasks-per-step': { type: 'string' },
    attempts: { type: 'string' },
    'learning-rate': { type: 'string' },
    kl: { type: 'string' },
    lag: { type: 'string' },
    entropy: { type: 'string' },
    /** Of sft and dpo. */
    epochs: { type: 'string' },
    /** Of dpo. */
    beta: { type: 'string' },
    imitation: { type: 'string' },
    replay: { type: 'string', default: '0.1' },
    threads: { type: 'string' },
    /** Measure on this many golden tasks instead of all; for quick looks, not for reports. */
    golden: { type: 'string' },
    /** Attempts at each task when measuring. */
    'measure-attempts': { type: 'string', default: '4' },
    /** `golden`, or `validation`: as many tasks of the validation split. */
    on: { type: 'string', default: 'golden' },
    save: { type: 'string' },
    report: { type: 'string' },
  },
});
const recipe = options.recipe;
if (!isRecipe(recipe)) throw new Error(`There is no recipe ${recipe}; there are ${recipeNames.join(', ')}.`);
const number = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));
const given = <K extends string, V>(key: K, value: V | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: V };

if (options.on !== 'golden' && options.on !== 'validation')
  throw new Error(`--on is golden or validation, not ${options.on}.`);

const base = resolve(options.base);
const golden = (options.on === 'golden' ? readGolden() : makeTasks(supportDesk, 'validation', 150, 1)).slice(
  0,
  number(options.golden) ?? Infinity,
);
const codec = await loadChatCodec(base);
const folder = mkdtempSync(join(tmpdir(), 'pawl-learn-'));
const engine = await openEngine({ threads: number(options.threads) });

/** What the model must not forget. */
const kept = (seed: number) => broad('train', 400, seed).map(({ messages, kind }) => ({ messages, taskType: kind }));
/** The recipes play for what they learn from. */
const noDatasets: DatasetReader = {
  async *examples() {},
  async *pairs() {},
};

type Result = {
  readonly seed: number;
  readonly recipe: string;
  readonly credit: string;
  readonly before: Success;
  readonly after: Success;
  readonly broad: readonly [number, number];
  readonly seconds: number;
  readonly cpu: number;
  readonly tokens: number;
  /** Success of the attempts of each step that played. */
  readonly curve: readonly (readonly [step: number, success: number])[];
};
const results: Result[] = [];
try {
  if (options.report) results.push(...saved(options.report));
  else
    for (let i = 0; i < Number(options.seeds); i++) {
      const result = await learn(Number(options['first-seed']) + i);
      results.push(result);
      if (options.save) appendFileSync(options.save, `${JSON.stringify(result)}\n`);
    }
} finally {
  await engine.close();
  rmSync(folder, { recursive: true, force: true });
}
report(results);

/** This recipe's lines of a file that `--save` wrote. */
function saved(file: string): Result[] {
  const all = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result)
    .filter((r) => r.recipe === recipe && r.credit === options.credit)
    .sort((a, b) => a.seed - b.seed);
  if (all.length === 0) throw new Error(`${file} holds no result of ${recipe} with credit ${options.credit}.`);
  return all;
}

async function learn(seed: number): Promise<Result> {
  const measure = (model: string) =>
    measureSuccess(supportDesk, golden, codec, engine, model, {
      seed,
      attempts: Number(options['measure-attempts']),
    });
  const model = `learn-${seed}`;
  await engine.load(model, base);
  const before = await measure(model);
  const broadBefore = await broadSuccess(engine, model, codec);
  await engine.unload(model);

  const replayShare = Number(options.replay);
  const agent: OfAgent = {
    name: 'support-desk',
    environment: supportDesk,
    train: trainSettings.parse({
      ...(replayShare > 0 ? { replay: { share: replayShare, examples: kept } } : {}),
      validationTasks: 0,
    }),
  };
  const started = performance.now();
  const cpuBefore = process.cpuUsage();
  const epochs = given('epochs', number(options.epochs));
  const overrides: NonNullable<SpecOptions['overrides']> = {
    recipe: recipe as RecipeName,
    ...given('learningRate', number(options['learning-rate'])),
    ...given('steps', number(options.steps)),
    ...given('tasksPerStep', number(options['tasks-per-step'])),
    ...given('attempts', number(options.attempts)),
    ...given('kl', number(options.kl)),
    ...given('lag', number(options.lag)),
    ...(options.credit === 'turn' ? { credit: 'turn' as const } : {}),
    stages: {
      sft: epochs,
      dpo: { ...epochs, ...given('beta', number(options.beta)), ...given('imitation', number(options.imitation)) },
      grpo: given('entropy', number(options.entropy)),
    },
  };
  const { spec } = await specOf(agent, { base, seed, overrides }, noDatasets);
  const plan = await planRun(spec.settings, spec, engine, noDatasets, agent);
  const store = memoryRunStore();
  await createRun(store, { ...spec, id: model, folder: join(folder, model) }, plan.stages, Date.now());
  const parts = { engine, store, ...plan, model, checkpointEvery: 1000 };
  const curve: [number, number][] = [];
  for await (const { step, stage, values, taskTypes } of train(model, parts)) {
    if (values.success !== undefined) curve.push([step, values.success]);
    if (step % 5 !== 0) continue;
    const figures = (
      [
        'success',
        'reward_std',
        'loss',
        'accuracy',
        'margin',
        'kl',
        'entropy',
        'grad_norm',
        'zero_variance_fraction',
        'sampler_gap',
        'lag_gap',
        'seconds',
      ] as const
    )
      .flatMap((name) => (values[name] === undefined ? [] : `${name} ${values[name].toFixed(4)}`))
      .join('  ');
    const types = Object.entries(taskTypes ?? {}).map(([type, { success }]) => `${type} ${success.toFixed(2)}`);
    console.log([`seed ${seed}  ${stage} ${step}`, figures, ...types.sort()].join('  '));
  }
  const seconds = (performance.now() - started) / 1000;
  const used = process.cpuUsage(cpuBefore);
  const cpu = (used.user + used.system) / 1e6;
  const record = (await store.get(model))!;
  if (record.reason) console.log(`seed ${seed}: ${record.status}: ${record.reason}`);
  const after = await measure(model);
  const broadAfter = await broadSuccess(engine, model, codec);
  await engine.unload(model);
  console.log(
    `seed ${seed}: ${before.success.toFixed(3)} → ${after.success.toFixed(3)} in ${seconds.toFixed(0)} s (${cpu.toFixed(0)} s of processor)`,
  );
  return {
    seed,
    recipe,
    credit: options.credit,
    before,
    after,
    broad: [broadBefore, broadAfter],
    seconds,
    cpu,
    tokens: record.spent.tokens,
    curve,
  };
}

/** Share of broad questions, of golden entities, whose greedy answer is the right one. */
async function broadSuccess(on: Engine, model: string, chat: ChatCodec): Promise<number> {
  const cases = broad('golden', 100, 1);
  const prompts = cases.map(({ messages }) => chat.encode(messages.slice(0, 1), [], { generate: true }));
  const answers = await on.sample(model, prompts, { maxTokens: 32, temperature: 0, stopTokens: chat.stopTokens });
  const right = cases.filter(({ answer }, i) => {
    const tokens = [...answers[i]!.samples[0]!.tokens].filter((t) => !chat.stopTokens.includes(t));
    return (chat.decode(tokens).message.content ?? '').trim() === answer;
  });
  return right.length / cases.length;
}

function report(all: readonly Result[]): void {
  const mean = (xs: readonly number[]) => xs.reduce((a, b) => a + b, 0) / xs.length;
  const variance = (xs: readonly number[]) =>
    xs.length < 2 ? 0 : xs.reduce((s, x) => s + (x - mean(xs)) ** 2, 0) / (xs.length - 1);
  /** `of[seed][task]` */
  const interval = (of: readonly (readonly number[])[]) => {
    const perTask = of[0]!.map((_, t) => mean(of.map((seed) => seed[t]!)));
    const perSeed = of.map(mean);
    const half = 1.96 * Math.sqrt(variance(perTask) / perTask.length + variance(perSeed) / perSeed.length);
    const middle = mean(perSeed);
    return { mean: round(middle), low: round(middle - half), high: round(middle + half) };
  };
  const types = Object.keys(all[0]!.before.types);
  console.log(
    JSON.stringify({
      bench: 'learn',
      recipe,
      credit: options.credit,
      seeds: all.length,
      [options.on]: all[0]!.before.tasks.length,
      attempts: all[0]!.before.episodes / all[0]!.before.tasks.length,
      before: interval(all.map((r) => r.before.tasks)),
      after: interval(all.map((r) => r.after.tasks)),
      gain: interval(all.map((r) => r.after.tasks.map((a, t) => a - r.before.tasks[t]!))),
      gains: all.map((r) => round(r.after.success - r.before.success)),
      seconds: round(mean(all.map((r) => r.seconds))),
      cpu: round(mean(all.map((r) => r.cpu))),
      tokens: Math.round(mean(all.map((r) => r.tokens))),
      types: Object.fromEntries(
        types.map((type) => [
          type,
          [
            round(mean(all.map((r) => r.before.types[type]!.success))),
            round(mean(all.map((r) => r.after.types[type]!.success))),
          ],
        ]),
      ),
      broad: [round(mean(all.map((r) => r.broad[0]))), round(mean(all.map((r) => r.broad[1])))],
    }),
  );
}

function round(x: number): number {
  return Math.round(x * 1000) / 1000;
}
