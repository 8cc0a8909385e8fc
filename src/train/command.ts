/**
 * `pawl train`: begins a run on what was curated, on files, or in an environment, and carries it out; `--advise` says what there
 * is to learn from and which recipe that is enough for.
 */
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Agent } from '../agent.ts';
import { isReference } from '../artifacts/artifact.ts';
import { byOption, type CommonOptions, type Opened, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf, type Config } from '../config.ts';
import { type ConditionName, conditionNames } from '../curate/prerequisites.ts';
import { datasetOfFile, datasetReader } from '../curate/read.ts';
import type { Engine } from '../engine/engine.ts';
import { openEngine } from '../engine/open.ts';
import { ConfigError, EngineError } from '../errors.ts';
import { plain } from '../terminal.ts';
import { adviseOnEngine, type EngineAdvice, engineLines } from './advise-engine.ts';
import { adviceLines, adviseStored } from './advise-stored.ts';
import { auditedRuns } from './audited-runs.ts';
import { type AskedRun, auditOverride, nameRun, specAsked } from './begin.ts';
import { runFolder } from './checkpoints.ts';
import { estimateCost } from './cost.ts';
import { conclude, follow } from './follow.ts';
import { markFor } from './internal.ts';
import { type Plan, planRun, type RunSpec } from './plan.ts';
import { fetchMaterial, keepMaterial } from './portable.ts';
import { probeEngine } from './probe.ts';
import { type RecipeName, recipeNames } from './recipe-names.ts';
import { createRun } from './run.ts';
import type { Budget } from './stop.ts';
import { readStoredFacts } from './stored-facts.ts';

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
  readonly lag?: number;
  readonly seed: number;
  readonly budgetSeconds?: number;
  readonly budgetTokens?: number;
  readonly budgetMoney?: number;
  readonly moneyPerHour?: number;
  readonly advise?: boolean;
  readonly estimate?: boolean;
  readonly probe: boolean;
  readonly id?: string;
  readonly without?: readonly ConditionName[];
  readonly by: string;
};

const positive = (text: string): number => {
  const value = Number(text);
  if (!(value >= 0) || !Number.isFinite(value)) throw new InvalidArgumentError('Give a number that is not negative.');
  return value;
};

const conditionList = (text: string): ConditionName[] =>
  text.split(',').map((typed) => {
    const name = conditionNames.find((one) => one === typed.trim());
    if (name === undefined) throw new InvalidArgumentError(`Give names of ${conditionNames.join(', ')}.`);
    return name;
  });

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
    .option(
      '--advise',
      'only count what is stored, say which recipe that is enough for, and how long it takes on the engine that is configured',
    )
    .option('--estimate', 'only say what it would cost')
    .option('--no-probe', 'do not try the engine for how fast it is')
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
    .addOption(
      new Option('--credit <unit>', 'what earns credit in SFT, RFT and GRPO: the whole, or each turn').choices([
        'attempt',
        'turn',
      ]),
    )
    .option('--lag <steps>', 'GRPO: 1 plays the next batch while this one is learned (default: 0)', wholeNumber(0, 1))
    .option('--seed <n>', 'everything random follows from it', wholeNumber(0, 4_294_967_295), 1)
    .option('--budget-seconds <n>', 'stop after this time', positive)
    .option('--budget-tokens <n>', 'stop after this many tokens', positive)
    .option('--budget-money <n>', 'stop after this cost; needs --money-per-hour', positive)
    .option('--money-per-hour <n>', 'what an hour of this machine costs', positive)
    .option(
      '--without <names>',
      `go on without these conditions of \`pawl curate check\`, of ${conditionNames.join(', ')}; stands in the audit log`,
      conditionList,
    )
    .option(...byOption())
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
  const { config, store, artifacts, terminal } = opened;
  const say = (line: string) => (options.json ? console.error(plain(line)) : terminal.write(plain(line)));
  if (options.estimate && !options.probe)
    throw new ConfigError('An estimate is made by trying the engine: leave out --no-probe, or --estimate.');
  const agent = agentOf(config, options.agent);
  const reader = datasetReader(store, artifacts);
  const asked = await askedBy(options, opened);
  const { spec, reasons, unused, overridden } = await specAsked({ store, artifacts, agent }, asked);
  for (const { name, found, needed } of overridden) say(`Without ${name}: ${found}, needed: ${needed}.`);
  for (const reason of reasons) say(reason);
  if (reasons.length > 0) say(`Recipe: ${spec.recipe}.`);
  for (const material of unused) say(`Not used: ${material}.`);
  const engine = await openEngine(config.engine);
  try {
    const internal = await markFor({ store, artifacts, engine }, spec);
    if (internal) say('Internal: what it learns from is confidential; its model stays inside this deployment.');
    const here = await fetchMaterial(artifacts, spec);
    const runs = auditedRuns(store, options.by);
    const id = await nameRun(runs, spec.recipe, options.id, new Date());
    const plan = await planRun(here.settings, here, engine, reader, agent);
    if (plan.tooLong > 0) say(`Left out: ${plan.tooLong} that are longer than the model’s context.`);
    if (options.probe) {
      const advice = await measured(engine, here, plan, { agent, config });
      for (const line of engineLines(advice)) say(line);
      say(estimateCost(plan.stages, advice.rates.parameters).sentence);
    }
    if (options.estimate) return;
    const kept = await keepMaterial(artifacts, spec);
    const fresh = { ...kept, id, folder: runFolder(artifacts, id), internal };
    const run = await createRun(runs, fresh, plan.stages, Date.now());
    await auditOverride(store, run, overridden, options.by);
    await follow(id, runs, { engine, plan, opened }, options.json ? process.stderr : process.stdout);
    await conclude(id, runs, { engine, opened, json: options.json === true });
  } finally {
    await engine.close();
  }
}

/** What was typed, as what this run sets above its agent's file. */
async function askedBy(options: TrainOptions, { store }: Opened): Promise<AskedRun> {
  if (options.replayShare !== undefined && options.replay === undefined)
    throw new ConfigError(`A replay share of ${options.replayShare} needs something to replay: give --replay too.`);
  const path = (typed: string | undefined) => (typed === undefined || isReference(typed) ? typed : resolve(typed));
  const file = path(options.examples);
  const ofFile = file === undefined ? null : await datasetOfFile(store, file);
  if (ofFile !== null && options.dataset !== undefined)
    throw new ConfigError(`${options.examples} is the dataset ${ofFile}; give it or --dataset, not both.`);
  const { recipe, steps, tasksPerStep, attempts, learningRate, kl, credit, lag, moneyPerHour } = options;
  const budget: Budget = dropUndefined({
    seconds: options.budgetSeconds,
    tokens: options.budgetTokens,
    money: options.budgetMoney,
  });
  return {
    base: path(options.base),
    seed: options.seed,
    lora: options.lora,
    without: options.without,
    dataset: ofFile ?? options.dataset,
    budget,
    overrides: dropUndefined({
      recipe,
      environment: options.environment?.replace(/^[^#]+/, (typed) => resolve(typed)),
      examples: ofFile === null ? file : undefined,
      pairs: path(options.pairs),
      replay: options.replay ? { file: resolve(options.replay), share: options.replayShare ?? 0.1 } : undefined,
      ...{ steps, tasksPerStep, attempts, learningRate, kl, credit, lag, moneyPerHour },
    }),
  };
}

async function advise(options: TrainOptions, opened: Opened): Promise<void> {
  const { config, store, artifacts, terminal } = opened;
  const agent = agentOf(config, options.agent);
  const facts = await readStoredFacts(store, artifacts, agent, options.dataset);
  const advice = adviseStored(facts);
  if (!options.json) for (const line of adviceLines(facts, advice, agent)) terminal.write(line);
  const { recipe } = advice;
  const canTry = options.probe && recipe !== null && (facts.base ?? options.base) !== undefined;
  const tried = canTry ? await tryEngine(recipe, facts.dataset?.id, options, opened) : null;
  if (options.json) return terminal.write(JSON.stringify({ ...facts, ...advice, onEngine: tried }));
  if (tried === null) return;
  const lines = 'problem' in tried ? [`The engine could not be tried: ${tried.problem}`] : engineLines(tried);
  for (const line of lines) terminal.write(plain(line));
}

/** The advice for the engine that is configured. That it cannot be tried says something too, and takes nothing from the rest. */
async function tryEngine(
  recipe: RecipeName,
  dataset: string | undefined,
  options: TrainOptions,
  opened: Opened,
): Promise<EngineAdvice | { readonly problem: string }> {
  const { config, store, artifacts } = opened;
  const agent = agentOf(config, options.agent);
  try {
    const asked = await askedBy(options, opened);
    const overrides = { ...asked.overrides, recipe };
    // Nothing is learned here, so what the dataset lacks is no matter.
    const without = [...conditionNames];
    const { spec } = await specAsked({ store, artifacts, agent }, { ...asked, dataset, overrides, without });
    const here = await fetchMaterial(artifacts, spec);
    const engine = await openEngine(config.engine);
    try {
      const plan = await planRun(here.settings, here, engine, datasetReader(store, artifacts), agent);
      return await measured(engine, here, plan, { agent, config });
    } finally {
      await engine.close();
    }
  } catch (error) {
    if (error instanceof ConfigError || error instanceof EngineError) return { problem: error.message };
    throw error;
  }
}

/** For somebody who waits and looks on. */
const progress = (line: string) => void (process.stderr.isTTY && process.stderr.write(`${plain(line)}\n`));

async function measured(
  engine: Engine,
  { base, recipe, settings: { lora, moneyPerHour, stages: set } }: RunSpec,
  { stages }: Plan,
  { agent, config }: { readonly agent: Agent; readonly config: Config },
): Promise<EngineAdvice> {
  const rates = await probeEngine(engine, { base, lora }, stages, progress);
  return adviseOnEngine({ name: engineName(config.engine), ...engine.traits }, rates, recipe, stages, {
    moneyPerHour,
    hours: agent.train.budget.hours,
    lag: Number(set?.grpo?.lag ?? 0),
  });
}

const engineName = ({ kind, url, baseModel }: Config['engine']): string =>
  kind === 'tinker' ? `${baseModel} at ${url}` : 'embedded, in this process';

function dropUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
