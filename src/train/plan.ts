/**
 * From an agent's settings to a run's, which are data, and from there to its stages, which are code: the one place where the
 * loop, a command or a bench makes either.
 *
 * spec   all that a run is: recipe, settings, base, seed, budget. Settings are stored whole with the run, defaults included,
 *        and refer to what is large or code: a dataset by its id, an environment by its module or as the agent's own, tasks and
 *        mixes by the run's seed. So whoever goes on with a run, in whatever process, builds the same stages
 * plan   what train() carries out
 */
import { resolve } from 'node:path';
import { z } from 'zod';
import type { DatasetReader } from '../curate/read.ts';
import { readModelConfig } from '../engine/checkpoint.ts';
import type { Engine, LoraSpec } from '../engine/engine.ts';
import { ConfigError } from '../errors.ts';
import { loadChatCodec } from '../simulate/chat-codec.ts';
import { type Environment, makeTasks } from '../simulate/environment.ts';
import { importUserModule } from '../user-module.ts';
import { turnCredit } from './advantage.ts';
import { type Advice, adviseRecipe } from './advise.ts';
import { dpoDefaults, type Pair } from './dpo.ts';
import { environmentSource, exampleFrom, measureSuccess, toolSpecs } from './episodes.ts';
import { grpoDefaults } from './grpo.ts';
import {
  exampleLine,
  exampleOf,
  fitsExample,
  fitsPair,
  jsonLines,
  pairLine,
  pairOf,
  readExamples,
  readPairs,
} from './material.ts';
import { type RecipeName, recipeNames } from './recipe-names.ts';
import { type Ingredients, recipes } from './recipes.ts';
import { rftDefaults } from './rft.ts';
import type { RunRecord } from './run-record.ts';
import type { Schedule } from './schedule.ts';
import { ignoredBy, materials, type ReadSetting, refuseIgnored } from './setting-use.ts';
import type { TrainSettings } from './settings.ts';
import type { Example } from './sft.ts';
import { sftDefaults } from './sft.ts';
import type { Stage } from './stage.ts';
import { type Budget, type StopRules, stopDefaults } from './stop.ts';

const file = z.string().min(1).max(4096);
const json = z.record(z.string(), z.json());

export const runSettings = z.strictObject({
  recipe: z.enum(recipeNames),
  /** Module of the environment, with the name of its export after '#'; without one, the default export. */
  environment: file.optional(),
  /** Practises in the environment that the run's agent has in its file, and replays what is named there. */
  ofAgent: z.boolean().optional(),
  /** Training and validation tasks generated from the seed. */
  tasks: z.int().min(1).max(1_000_000).default(2000),
  validationTasks: z.int().min(0).max(10_000).default(60),
  /** JSONL: {"messages": […], "quality": 0–1, "taskType": "…"} */
  examples: file.optional(),
  /** Id of a dataset that `pawl curate` or the loop made: SFT learns its conversations, DPO its pairs. */
  dataset: z.string().min(1).max(200).optional(),
  /** JSONL: {"prompt": [messages], "chosen": [messages], "rejected": [messages], "gap": 0–1} */
  pairs: file.optional(),
  /** What must not be forgotten, JSONL like `examples` or else the agent's, and its share of each batch. */
  replay: z.strictObject({ file: file.optional(), share: z.number().gt(0).lt(1) }).optional(),
  steps: z.int().min(1).max(1_000_000).optional(),
  tasksPerStep: z.int().min(1).max(4096).optional(),
  attempts: z.int().min(2).max(256).optional(),
  learningRate: z.number().positive().max(1).optional(),
  kl: z.number().min(0).max(10).optional(),
  credit: z.enum(['attempt', 'turn']).optional(),
  lag: z.int().min(0).max(1).optional(),
  /** An adapter of this rank is trained; without it, all weights. */
  lora: z.strictObject({ rank: z.int().min(1).max(1024), alpha: z.number().positive() }).optional(),
  moneyPerHour: z.number().min(0).optional(),
  /** Every setting of every algorithm and of the stop rules as they were when the run began (`wholeSettings`); before, some. */
  stages: z.partialRecord(z.enum(['sft', 'rft', 'dpo', 'grpo']), json).optional(),
  rules: json.optional(),
});
export type RunSettings = z.infer<typeof runSettings>;

/** All that a run is, before it has a name. */
export type RunSpec = {
  readonly agent: string;
  readonly recipe: RecipeName;
  readonly settings: RunSettings;
  readonly base: string;
  readonly seed: number;
  readonly budget: Budget;
};

/** What a run takes from its agent's definition: settings, and code, which is not stored with it. */
export type OfAgent = {
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever its tasks and database are
  readonly environment?: Environment<any, any> | undefined;
  readonly train: TrainSettings;
};

export type Plan = {
  readonly stages: readonly Stage[];
  readonly lora?: LoraSpec;
  /** Examples and pairs that are longer than the model's context. */
  readonly tooLong: number;
  readonly rules: Partial<StopRules>;
  readonly moneyPerHour: number;
  /** Held-out success of a model, and how often a run measures it; absent without an environment. */
  readonly validate?: (engine: Engine, model: string) => Promise<number>;
  readonly validateEvery?: number;
};

export type SpecOptions = {
  readonly base: string;
  readonly seed: number;
  readonly dataset?: string | undefined;
  /** What this run sets itself, above the agent's file. What its recipe does not read is refused. */
  readonly overrides?: Partial<Omit<z.input<typeof runSettings>, 'recipe'>> & { readonly recipe?: 'auto' | RecipeName };
  readonly budget?: Budget | undefined;
};

export type Specified = {
  readonly spec: RunSpec;
  /** Why this recipe; empty where a person chose it. */
  readonly reasons: readonly string[];
  /** What there is to learn from and the recipe does not use. */
  readonly unused: readonly ReadSetting[];
};

/** The run that an agent's settings and what there is to learn from make. */
export async function specOf(agent: OfAgent, options: SpecOptions, readDataset: DatasetReader): Promise<Specified> {
  const { base, seed, dataset } = options;
  const { recipe: wanted = agent.train.recipe, ...overrides } = options.overrides ?? {};
  const own = ofAgent(agent, overrides.environment === undefined);
  const typed = given({ ...overrides, ...(dataset && { dataset }) });
  const read = given(parsed(runSettings.omit({ recipe: true }).partial(), typed));
  // Without the schema's own defaults: nobody asked for them, and they would stand above the agent's settings.
  const person: Partial<typeof read> = Object.fromEntries(
    Object.entries(read).filter(([name]) => Object.hasOwn(typed, name)),
  );
  const set = { ...own, ...person };
  const hasEnvironment = set.environment !== undefined || (set.ofAgent === true && agent.environment !== undefined);
  const advice =
    wanted === 'auto' ? await adviseFor(set, hasEnvironment, readDataset) : { recipe: wanted, reasons: [] };
  const { recipe, reasons } = advice;
  if (recipe === null)
    throw new ConfigError(
      `${reasons.join(' ')} Collect and curate first (\`pawl train --advise\` counts what is stored), or give --environment, --examples, --dataset or --pairs.`,
    );
  // Among what there is to learn from it is auto's to choose. An agent's settings may be for several recipes, unless it names
  // one. What a person set for this run must be read.
  const isAgents = agent.train.recipe === recipe && options.overrides?.recipe === undefined;
  const dropped = ignoredBy(recipe, set).filter((one) =>
    one in person ? wanted === 'auto' && materials.includes(one) : !isAgents || wanted === 'auto',
  );
  const kept = Object.fromEntries(Object.entries(set).filter(([name]) => !dropped.includes(name as ReadSetting)));
  const { hours, ...limits } = agent.train.budget;
  return {
    spec: {
      agent: agent.name,
      recipe,
      settings: wholeSettings(parsed(runSettings, { ...kept, recipe })),
      base,
      seed,
      budget: { ...given({ seconds: hours === undefined ? undefined : hours * 3600, ...limits }), ...options.budget },
    },
    reasons,
    unused: dropped.filter((one) => materials.includes(one)),
  };
}

/** The agent's settings as a run's. */
function ofAgent({ environment, train }: OfAgent, useEnvironment: boolean): Partial<RunSettings> {
  const { tasks, steps, tasksPerStep, attempts, learningRate, kl, credit, lag, validationTasks, moneyPerHour } = train;
  const usesCode = (useEnvironment && environment !== undefined) || train.replay !== undefined;
  return given({
    tasks,
    validationTasks,
    steps,
    tasksPerStep,
    attempts,
    learningRate,
    kl,
    credit,
    lag,
    moneyPerHour,
    lora: train.lora && { rank: train.lora.rank, alpha: train.lora.alpha ?? 2 * train.lora.rank },
    replay: train.replay && { share: train.replay.share },
    ofAgent: usesCode || undefined,
  });
}

/** Without what was left undefined. */
function given<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

function parsed<S extends z.ZodType>(schema: S, value: unknown): z.infer<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new ConfigError(result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}.`).join('\n'));
}

/** The settings as they are stored: a Pawl with other defaults goes on with the run as it was begun. */
export function wholeSettings(settings: RunSettings): RunSettings {
  refuseIgnored(settings.recipe, settings);
  const stages = Object.entries(stageSettings(settings)).map(([name, one]) => [
    name,
    { ...one, ...settings.stages?.[name as keyof NonNullable<RunSettings['stages']>] },
  ]);
  return runSettings.parse({ ...settings, stages: Object.fromEntries(stages), rules: stopDefaults });
}

function stageSettings(settings: RunSettings): NonNullable<Ingredients['settings']> {
  const { learningRate, attempts, steps, tasksPerStep, kl, credit, lag } = settings;
  const rate = ({ schedule }: { readonly schedule: Schedule }) =>
    learningRate === undefined ? {} : { schedule: { ...schedule, peak: learningRate } };
  return {
    sft: { ...sftDefaults, ...rate(sftDefaults), ...(credit === 'turn' ? { credit } : {}) },
    rft: { ...rftDefaults, ...given({ attempts }), ...rate(rftDefaults), ...(credit === 'turn' ? { credit } : {}) },
    dpo: { ...dpoDefaults, ...rate(dpoDefaults) },
    grpo: {
      ...grpoDefaults,
      ...given({ attempts, steps, tasksPerStep, lag }),
      ...rate(grpoDefaults),
      ...(kl === undefined ? {} : { kl: { ...grpoDefaults.kl, coefficient: kl } }),
      ...(credit === 'turn' ? { credit: turnCredit } : {}),
    },
  };
}

/** The run's settings as they stand in its record. */
export function settingsOf(run: Pick<RunRecord, 'id' | 'settings'>): RunSettings {
  const parsed = runSettings.safeParse(run.settings);
  if (parsed.success) return parsed.data;
  throw new ConfigError(
    `The settings of run ${run.id} do not say what it learns from (${parsed.error.issues[0]!.message}), so nobody can go on with it: an older Pawl began it. End it with \`pawl runs stop ${run.id}\` and begin anew.`,
  );
}

export async function planRun(
  settings: RunSettings,
  run: { readonly base: string; readonly seed: number },
  engine: Engine,
  readDataset: DatasetReader,
  agent?: OfAgent,
): Promise<Plan> {
  const { base, seed } = run;
  const { dataset } = settings;
  const codec = await loadChatCodec(base);
  const { max_position_embeddings: context } = await readModelConfig(base);
  const environment = await environmentOf(settings, agent);
  const tools = environment ? toolSpecs(environment.tools) : [];
  const reads = (algorithm: string) => settings.recipe.split('-').includes(algorithm);
  const examples: Example[] = settings.examples ? await readExamples(settings.examples, codec, tools) : [];
  if (dataset && reads('sft'))
    for await (const one of readDataset.examples(dataset)) examples.push(exampleOf(codec, one));
  const pairs: Pair[] = settings.pairs ? await readPairs(settings.pairs, codec, tools) : [];
  if (dataset && reads('dpo')) for await (const one of readDataset.pairs(dataset)) pairs.push(pairOf(codec, one));
  const algorithms = (settings.stages as Ingredients['settings'] | undefined) ?? stageSettings(settings);
  if (reads('grpo') && (algorithms.grpo?.lag ?? 0) > 0 && !engine.traits.overlaps)
    throw new ConfigError(
      'lag: 1 plays with the weights of before while the model trains, and this server samples in the place that trains: each step would wait for the attempts all the same. Leave it out.',
    );
  const most = typeof context === 'number' ? context : Number.POSITIVE_INFINITY;
  const [shortExamples, shortPairs] = [examples.filter(fitsExample(most)), pairs.filter(fitsPair(most))];
  const stages = await recipes[settings.recipe]({
    engine,
    base,
    seed,
    ...(environment
      ? { source: environmentSource(environment, makeTasks(environment, 'train', settings.tasks, seed), codec) }
      : {}),
    ...(settings.examples || dataset ? { examples: shortExamples } : {}),
    ...(settings.pairs || dataset ? { pairs: shortPairs } : {}),
    ...(settings.replay ? { replay: await replayOf(settings.replay) } : {}),
    settings: algorithms,
  });
  const plan = {
    stages,
    ...(settings.lora ? { lora: { ...settings.lora, seed } } : {}),
    tooLong: examples.length + pairs.length - shortExamples.length - shortPairs.length,
    rules: { ...settings.rules },
    moneyPerHour: settings.moneyPerHour ?? 0,
  };
  if (!environment || settings.validationTasks === 0) return plan;
  const held = makeTasks(environment, 'validation', settings.validationTasks, seed);
  return {
    ...plan,
    validate: async (on, model) => (await measureSuccess(environment, held, codec, on, model, { seed })).success,
    validateEvery: 20,
  };

  async function replayOf({ file: path, share }: NonNullable<RunSettings['replay']>) {
    const kept = settings.ofAgent ? agent?.train.replay?.examples : undefined;
    if (path) return { examples: await readExamples(path, codec, tools), share };
    if (typeof kept === 'string') return { examples: await readExamples(kept, codec, tools), share };
    if (kept === undefined) throw new ConfigError('replay needs a file to replay from, or an agent that names one.');
    const examples = kept(seed).map(({ messages, taskType = 'kept', quality = 1 }, i) =>
      exampleFrom(codec, messages, { id: `kept-${i}`, taskType, quality }),
    );
    return { examples, share };
  }
}

async function environmentOf({ ofAgent, environment }: RunSettings, agent?: OfAgent) {
  if (environment) return loadEnvironment(environment);
  return (ofAgent && agent?.environment) || null;
}

/** What `auto` makes of an agent and a dataset. */
export const adviceFor = (agent: OfAgent, dataset: string | undefined, readDataset: DatasetReader): Promise<Advice> =>
  adviseFor({ dataset }, agent.environment !== undefined, readDataset);

/** The advice for what these settings bring, before a recipe is chosen. */
async function adviseFor(
  settings: Partial<RunSettings>,
  environment: boolean,
  readDataset: DatasetReader,
): Promise<Advice> {
  const { dataset } = settings;
  const facts = { pairs: 0, examples: 0, environment };
  const isGood = (quality: number | undefined) => (quality ?? 0) >= sftDefaults.minQuality;
  const isClear = (gap: number | undefined) => (gap ?? 0) >= dpoDefaults.minGap;
  if (dataset !== undefined) {
    for await (const { quality } of readDataset.examples(dataset)) if (isGood(quality)) facts.examples++;
    for await (const { gap } of readDataset.pairs(dataset)) if (isClear(gap)) facts.pairs++;
  }
  if (settings.examples !== undefined)
    for await (const { value } of jsonLines(settings.examples))
      if (isGood(exampleLine.safeParse(value).data?.quality)) facts.examples++;
  if (settings.pairs !== undefined)
    for await (const { value } of jsonLines(settings.pairs))
      if (isClear(pairLine.safeParse(value).data?.gap)) facts.pairs++;
  return adviseRecipe(facts);
}

/** What a module of the user's exports under a name; it is code they chose to run. */
async function exported(reference: string): Promise<{ name: string; value: unknown; all: string }> {
  const [path, name = 'default'] = reference.split('#');
  const module = await importUserModule(resolve(path!));
  return { name, value: module[name], all: Object.keys(module).join(', ') };
}

const isEnvironment = (value: unknown): boolean => {
  const found = value as Environment<unknown, unknown> | undefined;
  return typeof found?.gradeEnd === 'function' && Array.isArray(found.tools);
};

export async function loadEnvironment(reference: string): Promise<Environment<unknown, unknown>> {
  const { name, value, all } = await exported(reference);
  if (!isEnvironment(value))
    throw new ConfigError(
      `${reference} is no environment: '${name}' must be an object with name, types, tools, user and graders; the module exports ${all}.`,
    );
  return value as Environment<unknown, unknown>;
}
