/**
 * From a run's settings, which are data, to its stages, which are code. Settings are stored with the run, so a resume builds
 * the same stages from the same files. Files from outside are parsed here, line by line, and refused with their line number.
 */
import { appendFileSync, createReadStream } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { Engine } from '../engine/engine.ts';
import { ConfigError } from '../errors.ts';
import { loadChatCodec } from '../simulate/chat-codec.ts';
import type { ChatCodec } from '../simulate/engine-player.ts';
import { type Environment, makeTasks } from '../simulate/environment.ts';
import type { Message } from '../simulate/message.ts';
import { turnCredit } from './advantage.ts';
import { type Advice, adviseRecipe } from './advise.ts';
import type { Pair } from './dpo.ts';
import { environmentSource, exampleFrom, measureSuccess, toolSpecs, turnsFromMessages } from './episodes.ts';
import { grpoDefaults } from './grpo.ts';
import { type RecipeName, recipeNames, recipes } from './recipes.ts';
import { rftDefaults } from './rft.ts';
import type { Schedule } from './schedule.ts';
import type { Example } from './sft.ts';
import { sftDefaults } from './sft.ts';
import type { Stage } from './stage.ts';
import { type Candidate, keepingCandidates } from './synthetic.ts';

const file = z.string().min(1).max(4096);

export const runSettings = z.strictObject({
  recipe: z.enum(recipeNames as [RecipeName, ...RecipeName[]]),
  /** Module of the environment, with the name of its export after '#'; without one, the default export. */
  environment: file.optional(),
  /** Training and validation tasks generated from the seed. */
  tasks: z.int().min(1).max(1_000_000).default(2000),
  validationTasks: z.int().min(0).max(10_000).default(60),
  /** JSONL: {"messages": […], "quality": 0–1, "taskType": "…"} */
  examples: file.optional(),
  /** JSONL: {"prompt": [messages], "chosen": [messages], "rejected": [messages], "gap": 0–1} */
  pairs: file.optional(),
  /** JSONL like `examples`: the broad mix that must not be forgotten, and its share of each batch. */
  replay: z.strictObject({ file, share: z.number().gt(0).lt(1) }).optional(),
  steps: z.int().min(1).max(1_000_000).optional(),
  tasksPerStep: z.int().min(1).max(4096).optional(),
  attempts: z.int().min(2).max(256).optional(),
  learningRate: z.number().positive().max(1).optional(),
  kl: z.number().min(0).max(10).optional(),
  credit: z.enum(['attempt', 'turn']).optional(),
});
export type RunSettings = z.infer<typeof runSettings>;

export type Plan = {
  readonly stages: readonly Stage[];
  /** Held-out success of a model; absent without an environment. */
  readonly validate?: (engine: Engine, model: string) => Promise<number>;
};

/** `run`: what the run is called and where it writes; candidates for datasets go to candidates.jsonl there. */
export async function planRun(
  settings: RunSettings,
  run: { readonly id: string; readonly base: string; readonly folder: string; readonly seed: number },
  engine: Engine,
): Promise<Plan> {
  const { base, seed } = run;
  const codec = await loadChatCodec(base);
  const environment = settings.environment ? await loadEnvironment(settings.environment) : null;
  const tools = environment ? toolSpecs(environment.tools) : [];
  const keep = (found: readonly Candidate[]) => {
    if (found.length > 0)
      appendFileSync(join(run.folder, 'candidates.jsonl'), found.map((c) => `${JSON.stringify(c)}\n`).join(''));
  };
  const source = environment
    ? keepingCandidates(
        environmentSource(environment, makeTasks(environment, 'train', settings.tasks, seed), codec),
        { run: run.id },
        keep,
      )
    : null;
  const { learningRate } = settings;
  const rate = (defaults: { readonly schedule: Schedule }) =>
    learningRate === undefined ? {} : { schedule: { ...defaults.schedule, peak: learningRate } };
  const given = <K extends string, V>(key: K, value: V | undefined) =>
    (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: V };
  const practice = { ...given('attempts', settings.attempts) };
  const stages = await recipes[settings.recipe]({
    engine,
    base,
    seed,
    ...(source ? { source } : {}),
    ...given('examples', settings.examples ? await readExamples(settings.examples, codec, tools) : undefined),
    ...given('pairs', settings.pairs ? await readPairs(settings.pairs, codec, tools) : undefined),
    ...(settings.replay
      ? {
          replay: {
            examples: await readExamples(settings.replay.file, codec, tools),
            share: settings.replay.share,
          },
        }
      : {}),
    settings: {
      sft: rate(sftDefaults),
      rft: { ...practice, ...rate(rftDefaults) },
      grpo: {
        ...practice,
        ...given('steps', settings.steps),
        ...given('tasksPerStep', settings.tasksPerStep),
        ...rate(grpoDefaults),
        ...(settings.kl === undefined ? {} : { kl: { ...grpoDefaults.kl, coefficient: settings.kl } }),
        ...(settings.credit === 'turn' ? { credit: turnCredit } : {}),
      },
    },
  });
  if (!environment || settings.validationTasks === 0) return { stages };
  const held = makeTasks(environment, 'validation', settings.validationTasks, seed);
  return {
    stages,
    validate: async (on, model) => (await measureSuccess(environment, held, codec, on, model, { seed })).success,
  };
}

/** The advice for what these settings bring, before a recipe is chosen. */
export async function adviseFor(settings: Omit<RunSettings, 'recipe'>): Promise<Advice> {
  const lines = async (path: string | undefined, keep: (line: unknown) => boolean) => {
    if (!path) return 0;
    let n = 0;
    for await (const { value } of jsonLines(path)) if (keep(value)) n++;
    return n;
  };
  return adviseRecipe({
    pairs: await lines(settings.pairs, (v) => pairLine.safeParse(v).success),
    examples: await lines(
      settings.examples,
      (v) => (exampleLine.safeParse(v).data?.quality ?? 0) >= sftDefaults.minQuality,
    ),
    environment: settings.environment !== undefined,
  });
}

/** A module of the user's; it is code they chose to run. */
export async function loadEnvironment(reference: string): Promise<Environment<unknown, unknown>> {
  const [path, name = 'default'] = reference.split('#');
  const found = (await import(pathToFileURL(isAbsolute(path!) ? path! : resolve(path!)).href)) as Record<
    string,
    unknown
  >;
  const environment = found[name] as Environment<unknown, unknown> | undefined;
  if (typeof environment?.gradeEnd !== 'function' || !Array.isArray(environment.tools))
    throw new ConfigError(
      `${reference} is no environment: '${name}' must be an object with name, types, tools, user and graders; the module exports ${Object.keys(found).join(', ')}.`,
    );
  return environment;
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
