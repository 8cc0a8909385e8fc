/** `pawl curate run` and `pawl datasets list|show`: choosing what to learn from, and seeing what was left out and why. */
import { Command } from 'commander';
import { clock } from '../collect/timeline-print.ts';
import { type CommonOptions, parseMoment, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { NotFoundError } from '../errors.ts';
import { defaultReward } from '../score/default-reward.ts';
import { scoreWindow } from '../score/run.ts';
import { listDatasets, readDataset } from '../store/datasets.ts';
import { type Column, type Terminal, table } from '../terminal.ts';
import type { Dataset } from './dataset.ts';
import { datasetFile } from './files.ts';
import type { FunnelStep } from './funnel.ts';
import { curateWindow } from './run.ts';

const funnelColumns: readonly Column[] = [
  { title: 'GATE' },
  { title: 'CAME', right: true },
  { title: 'LEFT OUT', right: true },
  { title: 'PASSED', right: true },
  { title: 'WHY', shrinkTo: 20 },
];

const count = (value: number): string => value.toLocaleString('en-US');

/** One line per gate; the reasons with the most first. */
export const funnelRows = (funnel: readonly FunnelStep[]): string[][] =>
  funnel.map(({ gate, entered, passed, left }) => [
    gate,
    count(entered),
    entered === passed ? '' : count(entered - passed),
    count(passed),
    Object.entries(left)
      .sort(([, a], [, b]) => b - a)
      .map(([reason, n]) => (n === entered - passed ? reason : `${count(n)} ${reason}`))
      .join(', '),
  ]);

export function datasetLines(dataset: Dataset, terminal: Pick<Terminal, 'columns' | 'paint'>): string[] {
  const types = Object.entries(dataset.taskTypes).map(([type, rows]) => `${type} ${count(rows)}`);
  const settings = Object.entries(dataset.settings).map(([name, value]) => `${name} ${value}`);
  return [
    `${terminal.paint.bold(dataset.id)}  ${count(dataset.rows)} conversations, made ${clock(new Date(dataset.createdAt))}`,
    ...table(funnelColumns, funnelRows(dataset.funnel), terminal),
    ...(types.length > 0 ? [`Task types: ${types.join(', ')}`] : []),
    terminal.paint.dim(`From ${clock(new Date(dataset.since))} to ${clock(new Date(dataset.until))}`),
    terminal.paint.dim(`Settings: ${settings.join(', ')}, seed ${dataset.seed}; reward spec ${dataset.spec}`),
    terminal.paint.dim(`SHA-256 ${dataset.hash}`),
  ];
}

type RunOptions = CommonOptions & {
  readonly agent?: string;
  readonly since?: Date;
  readonly until?: Date;
  readonly seed: number;
};

const run = withConfigOption(new Command('run'))
  .description('Score a window and make a dataset of what passes the gates. The same selection is not made twice.')
  .option('--agent <name>', 'whose (default: the agent of the settings)')
  .option('--since <time>', 'started after: 2h, 3d, or 2026-01-31 (default: 7d)', (text: string) => parseMoment(text))
  .option('--until <time>', 'started before (default: now)', (text: string) => parseMoment(text))
  .option('--seed <n>', 'draws among equals', wholeNumber(0, 2 ** 31 - 1), 0)
  .option('--json', 'the dataset as one JSON object')
  .addHelpText('after', '\nExample:\n  pawl curate run --since 7d')
  .action((options: RunOptions) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const now = new Date();
      const { since = parseMoment('7d'), until = now, seed } = options;
      const window = { agent: options.agent ?? agentOf(config).name, spec: defaultReward, since, until, now };
      await scoreWindow(store, window);
      const dataset = await curateWindow(store, config.home, { ...window, seed, refuseEmpty: true });
      if (options.json) {
        terminal.write(JSON.stringify(dataset));
        return;
      }
      for (const line of datasetLines(dataset, terminal)) terminal.write(line);
      if (dataset.createdAt !== now.getTime())
        terminal.write(`Nothing has changed since ${dataset.id} was made, so no new version was needed.`);
    }),
  );

export const curateCommand = (): Command =>
  new Command('curate')
    .description('Choose what to learn from.')
    .addCommand(run)
    .addHelpText('after', '\nExample:\n  pawl curate run --since 7d');

const listColumns: readonly Column[] = [
  { title: 'ID', shrinkTo: 8 },
  { title: 'MADE' },
  { title: 'CAME', right: true },
  { title: 'ROWS', right: true },
  { title: 'REWARD', shrinkTo: 6 },
  { title: 'SHA-256', shrinkTo: 8 },
];

type ListOptions = CommonOptions & { readonly agent?: string; readonly limit: number };

const list = withConfigOption(new Command('list'))
  .description('List datasets, newest first.')
  .option('--agent <name>', 'only this agent’s')
  .option('--limit <n>', 'how many, at most 200', wholeNumber(1, 200), 20)
  .option('--json', 'one JSON object per line')
  .action((options: ListOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const datasets = await listDatasets(store, { agent: options.agent, limit: options.limit });
      if (options.json) {
        for (const dataset of datasets) terminal.write(JSON.stringify(dataset));
        return;
      }
      if (datasets.length === 0) {
        terminal.write('There is no dataset yet. `pawl curate run` makes one.');
        return;
      }
      const rows = datasets.map(({ id, createdAt, funnel, rows: kept, spec, hash }) => [
        id,
        clock(new Date(createdAt)),
        count(funnel[0]?.entered ?? 0),
        count(kept),
        spec,
        hash.slice(0, 16),
      ]);
      for (const line of table(listColumns, rows, terminal)) terminal.write(line);
    }),
  );

const show = withConfigOption(new Command('show'))
  .description('Show one dataset: what came in, what was left out at which gate, and why.')
  .argument('<id>', 'id of the dataset, such as support-desk-v3')
  .option('--json', 'everything as one JSON object')
  .action((id: string, options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const dataset = await readDataset(store, { id });
      if (dataset === null) throw new NotFoundError(`There is no dataset ${id}. \`pawl datasets list\` shows them.`);
      if (options.json) {
        terminal.write(JSON.stringify(dataset, null, 2));
        return;
      }
      for (const line of datasetLines(dataset, terminal)) terminal.write(line);
      terminal.write(terminal.paint.dim(datasetFile(config.home, dataset.id)));
    }),
  );

export const datasetsCommand = (): Command =>
  new Command('datasets')
    .description('Look at what was chosen to learn from.')
    .addCommand(list)
    .addCommand(show)
    .addHelpText('after', '\nExample:\n  pawl datasets show support-desk-v1');
