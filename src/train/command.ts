/**
 * `pawl train` and `pawl runs list|show|watch|pause|stop|resume`. A run belongs to the process that trains it; the others
 * look on through the database, and ask it to pause or stop there.
 */
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { trajectoryId } from '../collect/trajectory.ts';
import { type CommonOptions, type Opened, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { datasetOfFile, datasetReader } from '../curate/read.ts';
import type { Engine } from '../engine/engine.ts';
import { openEngine } from '../engine/open.ts';
import { ConfigError, RequestError } from '../errors.ts';
import { postgresRunStore } from '../store/runs.ts';
import { plain, table } from '../terminal.ts';
import { duration, estimateCost } from './cost.ts';
import { toJsonLine, toPrometheus } from './metrics.ts';
import { ownerAlive } from './owner.ts';
import { adviseFor, type Plan, planRun, runSettings, settingsOf, wholeSettings } from './plan.ts';
import { recipeNames } from './recipe-names.ts';
import { resultOf } from './result.ts';
import { createRun, train } from './run.ts';
import { claimRefusal, type RunRecord, type RunStore } from './run-record.ts';
import { ignoredBy, materials } from './setting-use.ts';
import type { Budget } from './stop.ts';
import { renderRun } from './view.ts';

type TrainOptions = CommonOptions & {
  readonly base: string;
  readonly recipe: string;
  readonly environment?: string;
  readonly examples?: string;
  readonly dataset?: string;
  readonly pairs?: string;
  readonly replay?: string;
  readonly replayShare?: number;
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
    .description('Train a model: practise in an environment, or learn from examples and pairs.')
    .requiredOption('--base <folder>', 'checkpoint to start from (Hugging Face layout)')
    .addOption(
      new Option('--recipe <name>', 'how; auto decides by what there is to learn from, and says why')
        .choices(['auto', ...recipeNames])
        .default('auto'),
    )
    .option(
      '--environment <module#export>',
      'environment to practise in, e.g. examples/support-desk/desk.ts#supportDesk',
    )
    .option('--examples <file>', 'JSONL of {messages, quality, taskType}, or the file of a dataset')
    .option('--dataset <id>', 'what `pawl curate run` made, such as support-desk-v3')
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
    .option('--estimate', 'only say what it would cost')
    .option('--id <id>', 'name of the run (default: made from recipe and time)')
    .addHelpText(
      'after',
      '\nExample:\n  pawl train --base examples/support-desk/model --environment examples/support-desk/desk.ts#supportDesk\n',
    )
    .action((options: TrainOptions) => withHome(options, 'create', (opened) => begin(options, opened)));
}

async function begin(options: TrainOptions, opened: Opened): Promise<void> {
  const { config, store, terminal } = opened;
  if (options.budgetMoney !== undefined && options.moneyPerHour === undefined)
    throw new ConfigError(`A budget of ${options.budgetMoney} needs a price: give --money-per-hour too.`);
  if (options.replayShare !== undefined && options.replay === undefined)
    throw new ConfigError(`A replay share of ${options.replayShare} needs something to replay: give --replay too.`);
  const path = (given: string | undefined) => (given === undefined ? undefined : resolve(given));
  const file = path(options.examples);
  const ofFile = file === undefined ? null : await datasetOfFile(store, file);
  if (ofFile !== null && options.dataset !== undefined)
    throw new ConfigError(`${options.examples} is the dataset ${ofFile}; give it or --dataset, not both.`);
  const environment = options.environment?.replace(/^[^#]+/, (file) => resolve(file));
  const given = dropUndefined({
    environment,
    examples: ofFile === null ? file : undefined,
    dataset: ofFile ?? options.dataset,
    pairs: path(options.pairs),
    replay: options.replay ? { file: resolve(options.replay), share: options.replayShare ?? 0.1 } : undefined,
    steps: options.steps,
    tasksPerStep: options.tasksPerStep,
    attempts: options.attempts,
    learningRate: options.learningRate,
    kl: options.kl,
    credit: options.credit,
    moneyPerHour: options.moneyPerHour,
  });
  const reader = datasetReader(store, config.home);
  let recipe = options.recipe;
  const unused: Record<string, undefined> = {};
  if (recipe === 'auto') {
    const advice = await adviseFor(parsed(runSettings.omit({ recipe: true }), given), reader);
    for (const reason of advice.reasons) terminal.write(plain(reason));
    if (advice.recipe === null) throw new ConfigError('Give --environment, --examples, --dataset or --pairs.');
    recipe = advice.recipe;
    terminal.write(`Recipe: ${recipe}.`);
    // Among what there is to learn from it is auto's to choose; how to learn was set by a person.
    for (const material of ignoredBy(advice.recipe, given).filter((one) => materials.includes(one))) {
      terminal.write(`Not used: ${material}.`);
      unused[material] = undefined;
    }
  }
  const settings = wholeSettings(parsed(runSettings, { ...given, ...unused, recipe }));
  const base = resolve(options.base);
  const engine = await openEngine(config.engine);
  try {
    const { parameters, vocabulary, context } = await engine.load('estimate', base);
    const tokensPerSecondHere = await measureRate(engine, 'estimate', vocabulary, Math.min(128, context));
    await engine.unload('estimate');
    const runs = postgresRunStore(store);
    const id = options.id ?? `${recipe}-${new Date().toISOString().replace(/[-:]/g, '').slice(0, 15)}`;
    if (!trajectoryId.safeParse(id).success || (await runs.get(id)))
      throw new ConfigError(`${id} cannot name this run: ids are letters, digits and _ . : -, and used once.`);
    const folder = join(resolve(config.home), 'runs', id);
    const plan = await planRun(settings, { base, seed: options.seed }, engine, reader);
    terminal.write(estimateCost(plan.stages, { parameters, tokensPerSecondHere }).sentence);
    if (options.estimate) return;
    const budget: Budget = dropUndefined({
      seconds: options.budgetSeconds,
      tokens: options.budgetTokens,
      money: options.budgetMoney,
    });
    await createRun(
      runs,
      { id, agent: agentOf(config).name, recipe, settings, base, folder, seed: options.seed, budget },
      plan.stages,
      Date.now(),
    );
    await follow(id, runs, { engine, plan, opened }, process.stdout);
    await conclude(id, runs, (line) => terminal.write(line));
  } finally {
    await engine.close();
  }
}

function parsed<S extends z.ZodType>(schema: S, given: unknown): z.infer<S> {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new ConfigError(result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}.`).join('\n'));
}

/** Tokens per second of learning, from a timed forward: with its backward a step is about three of them. */
async function measureRate(engine: Engine, model: string, vocabulary: number, length: number): Promise<number> {
  const tokens = Int32Array.from({ length }, (_, i) => i % vocabulary);
  const batch = Array.from({ length: 16 }, () => ({ tokens, targets: tokens }));
  await engine.forward(model, batch); // the first one builds the graph
  const began = performance.now();
  await engine.forward(model, batch);
  return (16 * length) / ((performance.now() - began) / 1000) / 3;
}

/** Trains and redraws until the run ends. The first Ctrl-C or SIGTERM pauses after the step. */
async function follow(
  id: string,
  runs: RunStore,
  given: {
    readonly engine: Engine;
    readonly plan: Plan;
    readonly opened: Opened;
  },
  stream: NodeJS.WriteStream,
): Promise<void> {
  const draw = liveView(stream);
  given.opened.onInterrupt(() => {
    given.opened.terminal.write('Pausing after this step. Ctrl-C again stops at once; nothing that is saved is lost.');
    return runs.request(id, 'pause');
  });
  for await (const _ of train(id, { engine: given.engine, store: runs, ...given.plan }))
    draw(renderRun((await runs.get(id))!, await runs.metrics(id), stream.columns ?? 100));
}

async function conclude(id: string, runs: RunStore, write: (line: string) => void): Promise<void> {
  const run = (await runs.get(id))!;
  const result = resultOf(run, await runs.checkpoints(id));
  write(plain(`Run ${id} is ${run.status}${run.reason ? `: ${run.reason}` : '.'}`));
  if (result.kind === 'finished')
    write(plain(`Checkpoint of step ${result.checkpoint.step}: ${result.checkpoint.folder}`));
  else write(`Go on with: pawl runs resume ${id}`);
}

/** Redraws in place on a terminal; into a pipe goes only the newest second line, one per step. */
function liveView(stream: NodeJS.WriteStream): (text: string) => void {
  let lines = 0;
  return (text) => {
    const safe = plain(text);
    if (!stream.isTTY) {
      stream.write(`${safe.split('\n')[1]}\n`);
      return;
    }
    stream.write(`${lines > 0 ? `\u001b[${lines}A\u001b[0J` : ''}${safe}\n`);
    lines = safe.split('\n').length;
  };
}

async function needRun(runs: RunStore, id: string): Promise<RunRecord> {
  const run = await runs.get(id);
  if (!run) throw new RequestError(404, 'not_found', `There is no run ${id}; 'pawl runs list' shows those that exist.`);
  return run;
}

export function runsCommand(): Command {
  const list = withConfigOption(new Command('list'))
    .description('List training runs, newest first.')
    .option('--limit <n>', 'how many', wholeNumber(1, 1000), 20)
    .option('--json', 'one JSON object a line')
    .action((options: CommonOptions & { limit: number }) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const runs = await postgresRunStore(store).list(options.limit);
        if (options.json) for (const run of runs) terminal.write(JSON.stringify(run));
        else if (runs.length === 0) terminal.write('No runs yet. `pawl train --help` says how to begin one.');
        else
          for (const line of table(
            [
              { title: 'ID', shrinkTo: 10 },
              { title: 'AGENT', shrinkTo: 6 },
              { title: 'RECIPE' },
              { title: 'STATUS' },
              { title: 'STEP', right: true },
              { title: 'TIME', right: true },
              { title: 'BEGAN' },
              { title: 'REASON', shrinkTo: 10 },
            ],
            runs.map((r) => [
              r.id,
              r.agent,
              r.recipe,
              r.status,
              `${r.step}/${r.steps}`,
              duration(r.spent.seconds),
              new Date(r.createdAt).toISOString().slice(0, 16).replace('T', ' '),
              r.reason ?? '',
            ]),
            terminal,
          ))
            terminal.write(line);
      }),
    );

  const show = withConfigOption(new Command('show'))
    .description('Show a run: progress, curves, checkpoints.')
    .argument('<id>')
    .option('--json', 'the record as JSON')
    .option('--jsonl', 'the metrics of every step, one JSON object a line')
    .option('--prometheus', 'the newest figures in Prometheus’ text format')
    .action((id: string, options: CommonOptions & { jsonl?: boolean; prometheus?: boolean }) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const runs = postgresRunStore(store);
        const run = await needRun(runs, id);
        const metrics = await runs.metrics(id);
        if (options.json) return terminal.write(JSON.stringify({ ...run, checkpoints: await runs.checkpoints(id) }));
        if (options.jsonl) return metrics.forEach((m) => void terminal.write(toJsonLine(id, m)));
        if (options.prometheus)
          return terminal.write(metrics.length ? toPrometheus([{ id, last: metrics.at(-1)! }]) : '');
        terminal.write(plain(renderRun(run, metrics, terminal.columns)));
        for (const c of await runs.checkpoints(id))
          terminal.write(
            plain(
              `step ${c.step}${c.validation === null ? '' : `, validation ${c.validation.toFixed(3)}`}: ${c.folder}`,
            ),
          );
      }),
    );

  const watch = withConfigOption(new Command('watch'))
    .description('Watch a run that another process trains, until it ends.')
    .argument('<id>')
    .action((id: string, options: CommonOptions) =>
      withHome(options, 'existing', async ({ store }) => {
        const runs = postgresRunStore(store);
        await needRun(runs, id);
        const draw = liveView(process.stdout);
        for (let seen = -1; ; ) {
          const run = await needRun(runs, id);
          if (run.step !== seen) draw(renderRun(run, await runs.metrics(id), process.stdout.columns ?? 100));
          seen = run.step;
          if (run.status !== 'running' || process.stdout.errored) break; // nobody looks any more
          await sleep(500);
        }
      }),
    );

  const ask = (request: 'pause' | 'stop', description: string) =>
    withConfigOption(new Command(request))
      .description(description)
      .argument('<id>')
      .action((id: string, options: CommonOptions) =>
        withHome(options, 'existing', async ({ store, terminal }) => {
          const runs = postgresRunStore(store);
          const run = await needRun(runs, id);
          const asked = run.status === (request === 'pause' ? 'paused' : 'stopped') && run.request === request;
          if (run.status === 'finished' || run.status === 'stopped' || asked)
            return terminal.write(`Run ${id} is ${run.status} already.`);
          await runs.request(id, request);
          if (run.status === 'running' && claimRefusal(run, Date.now(), ownerAlive) !== null)
            return terminal.write(`Asked. It will ${request} after the step it is in.`);
          // Nobody trains it, so nobody would hear: it is done here, and the loop leaves the run alone from now on.
          const [status, word] =
            request === 'pause' ? (['paused', 'Paused'] as const) : (['stopped', 'Stopped'] as const);
          await runs.setStatus(id, status, `${word} on request.`, Date.now());
          terminal.write(`${word}: nobody trains it now. \`pawl runs resume ${id}\` goes on with it.`);
        }),
      );

  const resume = withConfigOption(new Command('resume'))
    .description('Go on with a run that was paused, stopped or killed, from its newest checkpoint.')
    .argument('<id>')
    .action((id: string, options: CommonOptions) =>
      withHome(options, 'existing', async (opened) => {
        const { config, store, terminal } = opened;
        const runs = postgresRunStore(store);
        const run = await needRun(runs, id);
        const engine = await openEngine(config.engine);
        try {
          const plan = await planRun(
            settingsOf(run),
            run,
            engine,
            datasetReader(store, config.home),
            agentOf(config, run.agent),
          );
          await follow(id, runs, { engine, plan, opened }, process.stdout);
          await conclude(id, runs, (line) => terminal.write(line));
        } finally {
          await engine.close();
        }
      }),
    );

  return new Command('runs')
    .description('Training runs: look at them, pause, stop and resume them.')
    .addCommand(list, { isDefault: true })
    .addCommand(show)
    .addCommand(watch)
    .addCommand(ask('pause', 'Pause a run after the step it is in.'))
    .addCommand(ask('stop', 'Stop a run after the step it is in.'))
    .addCommand(resume);
}

function dropUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
