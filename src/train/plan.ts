/**
 * From a run's settings, which are data, to its stages, which are code: the one place where either the loop or a command
 * builds them. Settings are stored whole with the run, defaults included, and refer to what is large or code: a dataset by
 * its id, an environment by its module or as the agent's own, tasks and mixes by the run's seed. So whoever goes on with a
 * run, in whatever process, builds the same stages. Files from outside are parsed here, line by line, and refused with their line number.
 */
import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { DatasetReader } from '../curate/read.ts';
import type { Engine } from '../engine/engine.ts';
import { ConfigError } from '../errors.ts';
import { loadChatCodec } from '../simulate/chat-codec.ts';
import type { ChatCodec } from '../simulate/engine-player.ts';
import { type Environment, makeTasks } from '../simulate/environment.ts';
import type { Message } from '../simulate/message.ts';
import { importUserModule } from '../user-module.ts';
import { turnCredit } from './advantage.ts';
import { type Advice, adviseRecipe } from './advise.ts';
import { dpoDefaults, type Pair } from './dpo.ts';
import { environmentSource, exampleFrom, measureSuccess, toolSpecs, turnsFromMessages } from './episodes.ts';
import { grpoDefaults } from './grpo.ts';
import { recipeNames } from './recipe-names.ts';
import { type Ingredients, recipes } from './recipes.ts';
import { rftDefaults } from './rft.ts';
import type { RunRecord } from './run-record.ts';
import type { Schedule } from './schedule.ts';
import { refuseIgnored } from './setting-use.ts';
import type { TrainSettings } from './settings.ts';
import type { Example } from './sft.ts';
import { sftDefaults } from './sft.ts';
import type { Stage } from './stage.ts';
import { type StopRules, stopDefaults } from './stop.ts';

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
  /** Id of a dataset that `pawl curate` or the loop made in this home. */
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
  moneyPerHour: z.number().min(0).optional(),
  /** Every setting of every algorithm and of the stop rules as they were when the run began (`wholeSettings`). */
  stages: z.partialRecord(z.enum(['sft', 'rft', 'dpo', 'grpo']), json).optional(),
  rules: json.optional(),
});
export type RunSettings = z.infer<typeof runSettings>;

/** What a run takes from its agent's definition: code, which is not stored with it. */
export type OfAgent = {
  // biome-ignore lint/suspicious/noExplicitAny: whatever its tasks and database are
  readonly environment?: Environment<any, any> | undefined;
  readonly train: TrainSettings;
};

export type Plan = {
  readonly stages: readonly Stage[];
  readonly rules: Partial<StopRules>;
  readonly moneyPerHour: number;
  /** Held-out success of a model, and how often a run measures it; absent without an environment. */
  readonly validate?: (engine: Engine, model: string) => Promise<number>;
  readonly validateEvery?: number;
};

/** The settings as they are stored: a Pawl with other defaults goes on with the run as it was begun. */
export function wholeSettings(settings: RunSettings): RunSettings {
  refuseIgnored(settings.recipe, settings);
  return runSettings.parse({ ...settings, stages: stageSettings(settings), rules: stopDefaults });
}

function stageSettings(settings: RunSettings): NonNullable<Ingredients['settings']> {
  const { learningRate, attempts, steps, tasksPerStep, kl, credit } = settings;
  const rate = ({ schedule }: { readonly schedule: Schedule }) =>
    learningRate === undefined ? {} : { schedule: { ...schedule, peak: learningRate } };
  const given = <K extends string, V>(key: K, value: V | undefined) =>
    (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: V };
  return {
    sft: { ...sftDefaults, ...rate(sftDefaults) },
    rft: { ...rftDefaults, ...given('attempts', attempts), ...rate(rftDefaults) },
    dpo: { ...dpoDefaults, ...rate(dpoDefaults) },
    grpo: {
      ...grpoDefaults,
      ...given('attempts', attempts),
      ...given('steps', steps),
      ...given('tasksPerStep', tasksPerStep),
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
  const codec = await loadChatCodec(base);
  const environment = await environmentOf(settings, agent);
  const tools = environment ? toolSpecs(environment.tools) : [];
  const examples = [
    ...(settings.examples ? await readExamples(settings.examples, codec, tools) : []),
    ...(settings.dataset ? await datasetExamples(readDataset(settings.dataset), codec) : []),
  ];
  const stages = await recipes[settings.recipe]({
    engine,
    base,
    seed,
    ...(environment
      ? { source: environmentSource(environment, makeTasks(environment, 'train', settings.tasks, seed), codec) }
      : {}),
    ...(settings.examples || settings.dataset ? { examples } : {}),
    ...(settings.pairs ? { pairs: await readPairs(settings.pairs, codec, tools) } : {}),
    ...(settings.replay ? { replay: await replayOf(settings.replay) } : {}),
    settings: (settings.stages as Ingredients['settings'] | undefined) ?? stageSettings(settings),
  });
  const plan = { stages, rules: { ...settings.rules }, moneyPerHour: settings.moneyPerHour ?? 0 };
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

/** Written again from its words: what was redacted has no exact tokens, and the rest must look the same. */
async function datasetExamples(curated: ReturnType<DatasetReader>, codec: ChatCodec): Promise<Example[]> {
  const examples: Example[] = [];
  for await (const one of curated) examples.push(exampleFrom(codec, one.messages, one, one.tools));
  return examples;
}

/** The advice for what these settings bring, before a recipe is chosen. */
export async function adviseFor(settings: Omit<RunSettings, 'recipe'>, readDataset: DatasetReader): Promise<Advice> {
  const lines = async (path: string | undefined, keep: (line: unknown) => boolean) => {
    if (!path) return 0;
    let n = 0;
    for await (const { value } of jsonLines(path)) if (keep(value)) n++;
    return n;
  };
  let curated = 0;
  if (settings.dataset)
    for await (const { quality } of readDataset(settings.dataset)) if (quality >= sftDefaults.minQuality) curated++;
  return adviseRecipe({
    pairs: await lines(settings.pairs, (v) => pairLine.safeParse(v).success),
    examples:
      curated +
      (await lines(settings.examples, (v) => (exampleLine.safeParse(v).data?.quality ?? 0) >= sftDefaults.minQuality)),
    environment: settings.environment !== undefined,
  });
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

const message = z.looseObject({ role: z.enum(['system', 'user', 'assistant', 'tool']), content: z.string().nullish() });
const conversation = z.array(message).min(1).max(1000);
const exampleLine = z.object({
  id: z.string().max(200).optional(),
  messages: conversation.min(2),
  quality: z.number().min(0).max(1).default(1),
  taskType: z.string().max(200).default('example'),
});
const pairLine = z.object({
  id: z.string().max(200).optional(),
  prompt: conversation,
  chosen: conversation,
  rejected: conversation,
  gap: z.number().min(0).max(1).default(1),
  taskType: z.string().max(200).default('pair'),
});

export async function readExamples(
  path: string,
  codec: ChatCodec,
  tools: ReturnType<typeof toolSpecs> = [],
): Promise<Example[]> {
  const out: Example[] = [];
  for await (const { value, line } of jsonLines(path)) {
    const { messages, quality, taskType, id } = parseLine(exampleLine, value, path, line);
    out.push(exampleFrom(codec, messages as unknown as Message[], { id: id ?? `${line}`, taskType, quality }, tools));
  }
  return out;
}

export async function readPairs(
  path: string,
  codec: ChatCodec,
  tools: ReturnType<typeof toolSpecs> = [],
): Promise<Pair[]> {
  const out: Pair[] = [];
  for await (const { value, line } of jsonLines(path)) {
    const { prompt, chosen, rejected, gap, taskType, id } = parseLine(pairLine, value, path, line);
    // Only what comes after the shared prompt is the pair's; what the assistant said before is context.
    const side = (said: typeof chosen) => {
      const all = turnsFromMessages(codec, [...prompt, ...said] as unknown as Message[], tools);
      return all.slice(prompt.filter((m) => m.role === 'assistant').length);
    };
    out.push({ id: id ?? `${line}`, taskType, gap, chosen: side(chosen), rejected: side(rejected) });
  }
  return out;
}

async function* jsonLines(path: string): AsyncGenerator<{ value: unknown; line: number }> {
  let line = 0;
  for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    line++;
    if (text.trim() === '') continue;
    if (text.length > 4_000_000) throw new ConfigError(`${path}, line ${line}: longer than 4 MB.`);
    try {
      yield { value: JSON.parse(text), line };
    } catch (error) {
      throw new ConfigError(`${path}, line ${line}: not JSON.`, { cause: error });
    }
  }
}

function parseLine<S extends z.ZodType>(schema: S, value: unknown, path: string, line: number): z.infer<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path: at, message: what } = parsed.error.issues[0]!;
  throw new ConfigError(`${path}, line ${line}: ${at.join('.') || 'the line'}: ${what}`);
}
