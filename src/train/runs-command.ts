/**
 * `pawl runs list|show|episodes|watch|pause|stop|resume`. A run belongs to the process that trains it; the others look on through the
 * database, and ask it to pause or stop there.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { byOption, type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { datasetReader } from '../curate/read.ts';
import { openEngine } from '../engine/open.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import { postgresRunStore } from '../store/runs.ts';
import { plain, table } from '../terminal.ts';
import { askRun } from './ask.ts';
import { auditedRuns } from './audited-runs.ts';
import { duration } from './cost.ts';
import { conclude, follow, liveView } from './follow.ts';
import type { EpisodeStep } from './kept-episodes.ts';
import { toJsonLine, toPrometheus } from './metrics.ts';
import { problemOf, sendRun } from './mlflow.ts';
import { planRun, settingsOf } from './plan.ts';
import { fetchMaterial } from './portable.ts';
import type { RunRecord, RunStore } from './run-record.ts';
import { timeOf } from './step-clock.ts';
import { episodeLines, renderRun, timeColumns, timeRows } from './view.ts';

async function needRun(runs: RunStore, id: string): Promise<RunRecord> {
  const run = await runs.get(id);
  if (!run) throw new NotFoundError(`There is no run ${id}; 'pawl runs list' shows those that exist.`);
  return run;
}

const episodeColumns = [
  { title: 'STEP', right: true },
  { title: 'TASK', shrinkTo: 10 },
  { title: 'KIND', shrinkTo: 8 },
  { title: 'REWARDS' },
];

const noEpisodes = (id: string, step: number | undefined, steps: readonly EpisodeStep[]): string =>
  steps.length === 0
    ? `No episode of run ${id} is kept: it did not practise in an environment, or an older Pawl trained it.`
    : `No episode of step ${step} of run ${id} is kept; \`pawl runs episodes ${id} --steps\` lists those of which there are some.`;

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
    .description('Show a run: progress, curves, where the time of its steps went, checkpoints.')
    .argument('<id>')
    .option('--json', 'the record as JSON')
    .option('--jsonl', 'the metrics of every step, one JSON object a line')
    .option('--prometheus', 'the newest figures in Prometheus’ text format')
    .action((id: string, options: CommonOptions & { jsonl?: boolean; prometheus?: boolean }) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const runs = postgresRunStore(store);
        const run = await needRun(runs, id);
        const metrics = await runs.metrics(id);
        if (options.json)
          return terminal.write(
            JSON.stringify({ ...run, checkpoints: await runs.checkpoints(id), time: timeOf(metrics) }),
          );
        if (options.jsonl) return metrics.forEach((m) => void terminal.write(toJsonLine(id, m)));
        if (options.prometheus)
          return terminal.write(metrics.length ? await toPrometheus([{ id, last: metrics.at(-1)! }]) : '');
        terminal.write(plain(renderRun(run, metrics, terminal.columns)));
        const time = timeRows(metrics, 5);
        if (time.length > 0) for (const line of table(timeColumns, time, terminal)) terminal.write(line);
        for (const c of await runs.checkpoints(id))
          terminal.write(
            plain(
              `step ${c.step}${c.validation === null ? '' : `, validation ${c.validation.toFixed(3)}`}: ${c.folder}`,
            ),
          );
      }),
    );

  const episodes = withConfigOption(new Command('episodes'))
    .description('Attempts of a step to read: of one task, the best and the worst.')
    .argument('<id>')
    .option('--step <n>', 'counted from 1 (default: the newest of which some are kept)', wholeNumber(1, 1_000_000))
    .option('--steps', 'of which steps there are some')
    .option('--json', 'as JSON')
    .action((id: string, options: CommonOptions & { readonly step?: number; readonly steps?: boolean }) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const runs = postgresRunStore(store);
        await needRun(runs, id);
        const steps = await runs.episodeSteps(id);
        if (options.steps && options.json) return terminal.write(JSON.stringify(steps));
        if (options.steps) {
          const rows = steps.map(({ step, task, taskType, rewards }) => [
            ...[String(step + 1), task, taskType, rewards.map((reward) => reward.toFixed(2)).join(' ')],
          ]);
          for (const line of table(episodeColumns, rows, terminal)) terminal.write(line);
          return;
        }
        const step = options.step === undefined ? (steps.at(-1)?.step ?? 0) : options.step - 1;
        const found = await runs.episodes(id, step);
        if (options.json) return terminal.write(JSON.stringify({ run: id, step, episodes: found }));
        if (found.length === 0) throw new NotFoundError(noEpisodes(id, options.step, steps));
        terminal.write(plain(`Step ${step + 1}: ${found[0]!.task}, ${found[0]!.taskType}`));
        for (const one of found) for (const line of episodeLines(one, terminal)) terminal.write(line);
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
      .option(...byOption())
      .action((id: string, options: CommonOptions & { readonly by: string }) =>
        withHome(options, 'existing', async ({ store, terminal }) => {
          const runs = auditedRuns(store, options.by);
          const run = await needRun(runs, id);
          terminal.write((await askRun(runs, run, request, Date.now())).sentence);
        }),
      );

  const resume = withConfigOption(new Command('resume'))
    .description('Go on with a run that was paused, stopped or killed, from its newest checkpoint.')
    .argument('<id>')
    .option(...byOption())
    .option('--json', 'what came of it as one JSON object')
    .action((id: string, options: CommonOptions & { readonly by: string }) =>
      withHome(options, 'existing', async (opened) => {
        const { config, store, artifacts } = opened;
        const runs = auditedRuns(store, options.by);
        const run = await needRun(runs, id);
        const engine = await openEngine(config.engine);
        try {
          const here = await fetchMaterial(artifacts, { ...run, settings: settingsOf(run) });
          const { settings } = here;
          const agent = settings.ofAgent ? agentOf(config, run.agent) : undefined;
          const plan = await planRun(settings, here, engine, datasetReader(store, artifacts), agent);
          await follow(id, runs, { engine, plan, opened }, options.json ? process.stderr : process.stdout);
          await conclude(id, runs, { engine, opened, json: options.json === true });
        } finally {
          await engine.close();
        }
      }),
    );

  const mlflow = withConfigOption(new Command('mlflow'))
    .description('Send to MLflow what it does not have of a run.')
    .argument('<id>')
    .action((id: string, options: CommonOptions) =>
      withHome(options, 'existing', async ({ config, store, terminal }) => {
        const runs = postgresRunStore(store);
        await needRun(runs, id);
        if (config.mlflow === undefined)
          throw new ConfigError('The settings name no MLflow server: set mlflow.url (docs/train.md).');
        const { url, experiment } = config.mlflow;
        try {
          await sendRun(config.mlflow, id, runs);
        } catch (error) {
          throw new ConfigError(`MLflow at ${url} did not take run ${id}: ${problemOf(error)}`, { cause: error });
        }
        terminal.write(`Run ${id} is in experiment ${experiment} at ${url}.`);
      }),
    );

  return new Command('runs')
    .description('Training runs: look at them, pause, stop and resume them, send them to MLflow.')
    .addCommand(list, { isDefault: true })
    .addCommand(show)
    .addCommand(episodes)
    .addCommand(watch)
    .addCommand(ask('pause', 'Pause a run after the step it is in.'))
    .addCommand(ask('stop', 'Stop a run after the step it is in.'))
    .addCommand(resume)
    .addCommand(mlflow);
}
