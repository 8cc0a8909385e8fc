/**
 * `pawl train`: begins a run on what was curated, on files, or in an environment, and carries it out; `--advise` says what there
 * is to learn from and which recipe that is enough for.
 */
import { join, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { trajectoryId } from '../collect/trajectory.ts';
import { type CommonOptions, type Opened, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { datasetOfFile, datasetReader } from '../curate/read.ts';
import type { Engine } from '../engine/engine.ts';
import { openEngine } from '../engine/open.ts';
import { ConfigError } from '../errors.ts';
import { servingRelease } from '../store/releases.ts';
import { postgresRunStore } from '../store/runs.ts';
import { plain } from '../terminal.ts';
import { adviceLines, adviseStored } from './advise-stored.ts';
import { estimateCost } from './cost.ts';
import { conclude, follow } from './follow.ts';
import { planRun, type RunSpec, type SpecOptions, specOf } from './plan.ts';
import { recipeNames } from './recipe-names.ts';
import { createRun } from './run.ts';
import type { Budget } from './stop.ts';
import { readStoredFacts } from './stored-facts.ts';

type Agent = ReturnType<typeof agentOf>;

type TrainOptions = CommonOptions & {
  readonly agent?: string;
  readonly base?: string;
  readonly recipe?: 'auto' | (typeof recipeNames)[number];
  readonly environment?: string;
  readonly examples?: string;
  readonly dataset?: string;
  readonly pairs?: string;
  readonly replay?: string;
  readonly replayShare?: number;
  readonly lora?: number;
  readonly steps?: number;
  readonly tasksPerStep?: number;
  readonly attempts?: number;
  readonly learningRate?: number;
  readonly kl?: number;
  readonly credit?: 'attempt' | 'turn';
  readonly seed: number;
  readonly budgetSeconds?: number;
  readonly budgetTokens?: number;
  readonly budgetMoney?: number;
  readonly moneyPerHour?: number;
  readonly advise?: boolean;
  readonly estimate?: boolean;
  readonly id?: string;
};

const positive = (text: string): number => {
  const value = Number(text);
  if (!(value >= 0) || !Number.isFinite(value)) throw new InvalidArgumentError('Give a number that is not negative.');
  return value;
};

export function trainCommand(): Command {
  return withConfigOption(new Command('train'))
    .description('Train a model: learn from what was curated, or practise in an environment.')
    .option('--agent <name>', 'whose settings and environment (default: the first of the settings)')
    .option('--dataset <id>', 'what `pawl curate run` made, such as support-desk-v3')
    .option('--base <folder>', 'checkpoint to start from (default: the serving release’s, else the agent’s train.base)')
    .addOption(
      new Option(
        '--recipe <name>',
        'how; auto decides by what there is to learn from, and says why (default: the agent’s)',
      ).choices(['auto', ...recipeNames]),
    )
    .option('--lora <rank>', 'train an adapter of this rank instead of all weights', wholeNumber(1, 1024))
    .option('--advise', 'only count what is stored, and say which recipe that is enough for')
    .option('--estimate', 'only say what it would cost')
    .option(
      '--environment <module#export>',
      'environment to practise in instead of the agent’s, e.g. examples/support-desk/desk.ts#supportDesk',
    )
    .option('--examples <file>', 'JSONL of {messages, quality, taskType}, or the file of a dataset')
    .option('--pairs <file>', 'JSONL of {prompt, chosen, rejected, gap}')
    .option('--replay <file>', 'JSONL of examples that must not be forgotten')
    .option('--replay-share <share>', 'their share of each batch (default: 0.1)', positive)
    .option('--steps <n>', 'steps of GRPO', wholeNumber(1, 1_000_000))
    .option('--tasks-per-step <n>', 'GRPO: tasks per step', wholeNumber(1, 4096))
    .option('--attempts <n>', 'RFT and GRPO: attempts per task', wholeNumber(2, 256))
    .option('--learning-rate <rate>', 'peak learning rate', positive)
    .option('--kl <coefficient>', 'GRPO: pull towards the reference (default: 0.05)', positive)
    .addOption(new Option('--credit <unit>', 'GRPO: what earns an advantage').choices(['attempt', 'turn']))
    .option('--seed <n>', 'everything random follows from it', wholeNumber(0, 4_294_967_295), 1)
    .option('--budget-seconds <n>', 'stop after this time', positive)
    .option('--budget-tokens <n>', 'stop after this many tokens', positive)
    .option('--budget-money <n>', 'stop after this cost; needs --money-per-hour', positive)
    .option('--money-per-hour <n>', 'what an hour of this machine costs', positive)
    .option('--id <id>', 'name of the run (default: made from recipe and time)')
    .option('--json', 'the run, or the advice, as one JSON object; progress goes to standard error')
    .addHelpText(
      'after',
      '\nExamples:\n  pawl train --advise\n  pawl train --agent support-desk --dataset support-desk-v3 --lora 16\n',
    )
    .action((options: TrainOptions) =>
      withHome(options, 'create', (opened) => (options.advise ? advise(options, opened) : begin(options, opened))),
    );
}

async function begin(options: TrainOptions, opened: Opened): Promise<void> {
  const { config, store, terminal } = opened;
  const say = (line: string) => (options.json ? console.error(plain(line)) : terminal.write(plain(line)));
  const agent = agentOf(config, options.agent);
  const reader = datasetReader(store, config.home);
  const given = await specOptions(options, agent, opened);
  const { spec, reasons, unused } = await specOf(agent, given, reader);
  for (const reason of reasons) say(reason);
  if (reasons.length > 0) say(`Recipe: ${spec.recipe}.`);
  for (const material of unused) say(`Not used: ${material}.`);
  const engine = await openEngine(config.engine);
  try {
    const rate = await measureRate(engine, spec);
    const runs = postgresRunStore(store);
    const id = options.id ?? `${spec.recipe}-${new Date().toISOString().replace(/[-:]/g, '').slice(0, 15)}`;
    if (!trajectoryId.safeParse(id).success || (await runs.get(id)))
      throw new ConfigError(`${id} cannot name this run: ids are letters, digits and _ . : -, and used once.`);
    const plan = await planRun(spec.settings, spec, engine, reader, agent);
    if (plan.tooLong > 0) say(`Left out: ${plan.tooLong} that are longer than the model’s context.`);
    say(estimateCost(plan.stages, rate).sentence);
    if (options.estimate) return;
    const folder = join(resolve(config.home), 'runs', id);
    await createRun(runs, { ...spec, id, folder }, plan.stages, Date.now());
    await follow(id, runs, { engine, plan, opened }, options.json ? process.stderr : process.stdout);
    await conclude(id, runs, { engine, opened, json: options.json === true });
  } finally {
    await engine.close();
  }
}

/** What was typed, as what this run sets above its agent's file. */
async function specOptions(options: TrainOptions, agent: Agent, { store }: Opened): Promise<SpecOptions> {
  if (options.budgetMoney !== undefined && (options.moneyPerHour ?? agent.train.moneyPerHour) === undefined)
    throw new ConfigError(`A budget of ${options.budgetMoney} needs a price: give --money-per-hour too.`);
  if (options.replayShare !== undefined && options.replay === undefined)
    throw new ConfigError(`A replay share of ${options.replayShare} needs something to replay: give --replay too.`);
  const path = (typed: string | undefined) => (typed === undefined ? undefined : resolve(typed));
  const file = path(options.examples);
  const ofFile = file === undefined ? null : await datasetOfFile(store, file);
  if (ofFile !== null && options.dataset !== undefined)
    throw new ConfigError(`${options.examples} is the dataset ${ofFile}; give it or --dataset, not both.`);
  const { recipe, steps, tasksPerStep, attempts, learningRate, kl, credit, moneyPerHour, lora } = options;
  const budget: Budget = dropUndefined({
    seconds: options.budgetSeconds,
    tokens: options.budgetTokens,
    money: options.budgetMoney,
  });
  return {
    base: path(options.base) ?? (await baseOf(agent, store)),
    seed: options.seed,
    dataset: ofFile ?? options.dataset,
    budget,
    overrides: dropUndefined({
      recipe,
      environment: options.environment?.replace(/^[^#]+/, (typed) => resolve(typed)),
      examples: ofFile === null ? file : undefined,
      pairs: path(options.pairs),
      replay: options.replay ? { file: resolve(options.replay), share: options.replayShare ?? 0.1 } : undefined,
      lora: lora === undefined ? undefined : { rank: lora, alpha: agent.train.lora?.alpha ?? 2 * lora },
      ...{ steps, tasksPerStep, attempts, learningRate, kl, credit, moneyPerHour },
    }),
  };
}

/** What serves is what is made better. */
async function baseOf(agent: Agent, store: Opened['store']): Promise<string> {
  const base = (await servingRelease(store, agent.name))?.checkpoint ?? agent.train.base;
  if (base) return base;
  throw new ConfigError(
    `Nothing says which model to train: no release of ${agent.name} that serves has a checkpoint, and its settings have no train.base. Give --base FOLDER, or set train.base.`,
  );
}

async function advise(options: TrainOptions, { config, store, terminal }: Opened): Promise<void> {
  const agent = agentOf(config, options.agent);
  const facts = await readStoredFacts(store, config.home, agent, options.dataset);
  const advice = adviseStored(facts);
  if (options.json) return terminal.write(JSON.stringify({ ...facts, ...advice }));
  for (const line of adviceLines(facts, advice, agent)) terminal.write(line);
}

/** Parameters, and tokens per second of learning from a timed forward: with its backward a step is about three of them. */
async function measureRate(engine: Engine, { base, settings: { lora } }: RunSpec) {
  const { parameters, vocabulary, context } = await engine.load('estimate', base, lora === undefined ? {} : { lora });
  const length = Math.min(128, context);
  const tokens = Int32Array.from({ length }, (_, i) => i % vocabulary);
  const batch = Array.from({ length: 16 }, () => ({ tokens, targets: tokens }));
  await engine.forward('estimate', batch); // the first one builds the graph
  const began = performance.now();
  await engine.forward('estimate', batch);
  const tokensPerSecondHere = (16 * length) / ((performance.now() - began) / 1000) / 3;
  await engine.unload('estimate');
  return { parameters, tokensPerSecondHere };
}

function dropUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
