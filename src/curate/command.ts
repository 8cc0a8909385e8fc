/** `pawl curate run` and `pawl datasets list|show|diff|export`: choosing what to learn from, seeing what was left out and why. */

import { Command, Option } from 'commander';
import { settledPii } from '../collect/redact/settings.ts';
import { clock } from '../collect/timeline-print.ts';
import { byOption, type CommonOptions, parseMoment, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { NotFoundError } from '../errors.ts';
import { openJudge } from '../score/ask-open.ts';
import { lendEngine, openRewardModels } from '../score/reward-models.ts';
import { scoreWindow } from '../score/run.ts';
import { listDatasets, readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { type Column, counted, plain, sayProgress, type Terminal, table } from '../terminal.ts';
import { datasetFacts } from './check.ts';
import { type Dataset, type DatasetDraft, goneSentence } from './dataset.ts';
import { contentsOf, type DatasetDiff, diffDatasets } from './diff.ts';
import { type ExportFormat, exportFormats } from './export.ts';
import { exportLines, exportToFile, refuseInternal } from './export-run.ts';
import { readLines } from './files.ts';
import type { FunnelStep } from './funnel.ts';
import { type Condition, conditionsOf, unready } from './prerequisites.ts';
import { needKey, releaseShift } from './release-shift.ts';
import { curateWindow, previewWindow } from './run.ts';

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

const pairCount = ({ rows, sources }: Dataset['pairs']): string =>
  `${count(rows)} pairs${
    rows === 0
      ? ''
      : ` (${Object.entries(sources)
          .map(([source, n]) => `${source} ${count(n)}`)
          .join(', ')})`
  }`;

export function datasetLines(
  dataset: DatasetDraft & { readonly id?: string },
  terminal: Pick<Terminal, 'columns' | 'paint'>,
): string[] {
  const types = Object.entries(dataset.taskTypes).map(([type, rows]) => `${type} ${count(rows)}`);
  const settings = Object.entries(dataset.settings).flatMap(([name, value]) =>
    value === undefined ? [] : `${name} ${value}`,
  );
  const { pairs } = dataset;
  const made = dataset.id === undefined ? 'not made' : `made ${clock(new Date(dataset.createdAt))}`;
  return [
    `${terminal.paint.bold(dataset.id ?? dataset.agent)}  ${counted(dataset.rows, 'conversation')}, ${pairCount(pairs)}, ${made}`,
    ...table(funnelColumns, funnelRows(dataset.funnel), terminal),
    ...((pairs.funnel[0]?.entered ?? 0) === 0
      ? []
      : [
          'Votes, corrections and explored answers, for pairs:',
          ...table(funnelColumns, funnelRows(pairs.funnel), terminal),
        ]),
    ...(types.length > 0 ? [`Task types: ${types.join(', ')}`] : []),
    ...(dataset.internal
      ? [terminal.paint.yellow('Internal: it holds what is confidential, and does not leave.')]
      : []),
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
  readonly dryRun?: boolean;
  readonly by: string;
};

const run = withConfigOption(new Command('run'))
  .description('Score a window and make a dataset of what passes the gates. The same selection is not made twice.')
  .option('--agent <name>', 'whose (default: the first of the settings)')
  .option('--since <time>', 'started after: 2h, 3d, or 2026-01-31 (default: 7d)', (text: string) => parseMoment(text))
  .option('--until <time>', 'started before (default: now)', (text: string) => parseMoment(text))
  .option('--seed <n>', 'draws among equals', wholeNumber(0, 2 ** 31 - 1), 0)
  .option('--dry-run', 'only show what would be chosen')
  .option(...byOption())
  .option('--json', 'the dataset as one JSON object')
  .addHelpText('after', '\nExample:\n  pawl curate run --since 7d')
  .action((options: RunOptions) =>
    withHome(options, 'existing', async ({ store, artifacts, config, terminal }) => {
      const now = new Date();
      const whose = agentOf(config, options.agent);
      const { name: agent, reward: spec, curate: settings } = whose;
      const { since = parseMoment('7d'), until = now, seed } = options;
      const progress = sayProgress();
      const window = { agent, spec, since, until, now };
      await scoreWindow(store, {
        ...window,
        origin: settings.on,
        services: {
          judge: openJudge(store, whose),
          rewardModels: openRewardModels({ store, artifacts }, lendEngine(config.engine)),
        },
        onProgress: ({ trajectories }) => progress(() => `Scoring: ${trajectories} conversations so far …`),
      });
      const select = {
        ...{ ...window, settings, seed, refuseEmpty: true, pii: settledPii(whose.pii), by: options.by },
        onProgress: (looked: number) => progress(() => `Choosing: ${looked} conversations looked at so far …`),
      };
      const dataset = options.dryRun
        ? await previewWindow(store, artifacts, select)
        : await curateWindow(store, artifacts, select);
      if (options.json) {
        terminal.write(JSON.stringify(dataset));
        return;
      }
      for (const line of datasetLines(dataset, terminal)) terminal.write(line);
      if ('id' in dataset && dataset.createdAt !== now.getTime())
        terminal.write(`Nothing has changed since ${dataset.id} was made, so no new version was needed.`);
    }),
  );

export const checkLines = (
  id: string,
  conditions: readonly Condition[],
  without: readonly string[],
  { paint }: Pick<Terminal, 'columns' | 'paint'>,
): string[] => [
  `Dataset ${id}:`,
  ...conditions.flatMap(({ name, met, found, needed, way }) => {
    const isLetPass = !met && without.includes(name);
    const mark = met ? paint.green('✓') : isLetPass ? paint.yellow('!') : paint.red('✗');
    return [
      `${mark} ${name.padEnd(9)} ${found}; needed: ${needed}${isLetPass ? '; train.without lets it pass' : ''}`,
      ...(way === '' ? [] : [`    → ${way}`]),
    ];
  }),
];

type CheckOptions = CommonOptions & { readonly agent?: string; readonly dataset?: string };

const check = withConfigOption(new Command('check'))
  .description('Say of a dataset what must hold before it is trained on: each condition, its number, and what to do.')
  .option('--agent <name>', 'whose (default: the first of the settings)')
  .option('--dataset <id>', 'which (default: the newest of the agent)')
  .option('--json', 'as one JSON object')
  .addHelpText(
    'after',
    '\nEnds with 1 if a condition does not hold that the agent’s train.without does not name.\n\nExample:\n  pawl curate check --dataset support-desk-v3',
  )
  .action((options: CheckOptions) =>
    withHome(options, 'existing', async ({ store, artifacts, config, terminal }) => {
      const named = options.dataset === undefined ? null : await needDataset(store, options.dataset);
      const agent = agentOf(config, options.agent ?? named?.agent);
      const dataset = named ?? (await readDataset(store, { agent: agent.name }));
      if (dataset === null)
        throw new NotFoundError(`There is no dataset of ${agent.name} yet. \`pawl curate run\` makes one.`);
      const conditions = conditionsOf(await datasetFacts(store, artifacts, dataset, agent), agent.curate.require);
      const why = unready(dataset.id, conditions, agent.train.without);
      if (options.json)
        terminal.write(
          JSON.stringify({ dataset: dataset.id, ready: why === null, without: agent.train.without, conditions }),
        );
      else for (const line of checkLines(dataset.id, conditions, agent.train.without, terminal)) terminal.write(line);
      if (why !== null) process.exitCode = 1;
    }),
  );

type ReleaseOptions = CommonOptions & { readonly agent?: string; readonly by: string; readonly reason?: string };

const release = withConfigOption(new Command('release'))
  .description('Let what came until now with a key be learned from, although its scores of a task type jumped.')
  .argument('<key>', 'id of the client key, as `pawl curate check` names it')
  .argument('<type>', 'task type')
  .option('--agent <name>', 'whose (default: the first of the settings)')
  .option(...byOption())
  .option('--reason <text>', 'why; stands in the audit log')
  .option('--json', 'as one JSON object')
  .addHelpText(
    'after',
    '\nExample:\n  pawl curate release 0190a6c2-7a1e-7c3d-9f41-2b7d5e6f8a90 refund --reason "a new form"',
  )
  .action((key: string, taskType: string, { agent: named, by, reason, ...options }: ReleaseOptions) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const of = { agent: agentOf(config, named).name, key, taskType };
      await needKey(store, of);
      await releaseShift(store, of, { actor: by, reason: reason ?? null, at: new Date() });
      terminal.write(
        options.json
          ? JSON.stringify({ ...of, released: true })
          : `What came until now with key ${plain(key)} about ${plain(taskType)} may be learned from.`,
      );
    }),
  );

export const curateCommand = (): Command =>
  new Command('curate')
    .description('Choose what to learn from.')
    .addCommand(run)
    .addCommand(check)
    .addCommand(release)
    .addHelpText('after', '\nExample:\n  pawl curate run --since 7d');

const listColumns: readonly Column[] = [
  { title: 'ID', shrinkTo: 8 },
  { title: 'MADE' },
  { title: 'CAME', right: true },
  { title: 'ROWS', right: true },
  { title: 'PAIRS', right: true },
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
      const rows = datasets.map(({ id, createdAt, funnel, rows: kept, pairs, spec, hash, gone }) => [
        gone === null ? id : `${id} (gone)`,
        clock(new Date(createdAt)),
        count(funnel[0]?.entered ?? 0),
        count(kept),
        count(pairs.rows),
        spec,
        hash.slice(0, 16),
      ]);
      for (const line of table(listColumns, rows, terminal)) terminal.write(line);
    }),
  );

async function needDataset(store: Store, id: string): Promise<Dataset> {
  const dataset = await readDataset(store, { id });
  if (dataset === null) throw new NotFoundError(`There is no dataset ${id}. \`pawl datasets list\` shows them.`);
  return dataset;
}

const show = withConfigOption(new Command('show'))
  .description('Show one dataset: what came in, what was left out at which gate, and why.')
  .argument('<id>', 'id of the dataset, such as support-desk-v3')
  .option('--json', 'everything as one JSON object')
  .action((id: string, options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const dataset = await needDataset(store, id);
      if (options.json) {
        terminal.write(JSON.stringify(dataset, null, 2));
        return;
      }
      for (const line of datasetLines(dataset, terminal)) terminal.write(line);
      terminal.write(
        dataset.gone === null
          ? terminal.paint.dim(dataset.artifact ?? 'A file in the home of the Pawl that made it.')
          : terminal.paint.yellow(goneSentence(dataset.id, dataset.gone)),
      );
    }),
  );

export function diffLines(diff: DatasetDiff, terminal: Pick<Terminal, 'columns' | 'paint'>): string[] {
  const [first, second] = diff.datasets;
  const only = (keys: readonly string[]) => keys.map((key) => key.slice(key.indexOf(' ') + 1));
  const some = (title: string, keys: readonly string[]) =>
    keys.length === 0 ? [] : [`${title}: ${only(keys).slice(0, 20).join(', ')}${keys.length > 20 ? ', …' : ''}`];
  const { rows, pairs } = diff;
  const numbers = (value: number | null) => (value === null ? '–' : count(value));
  return [
    ...table(
      [{ title: '' }, ...[first, second, 'IN BOTH'].map((title) => ({ title, right: true, shrinkTo: 8 }))],
      [
        [
          'only in',
          count(rows.onlyFirst.length),
          count(rows.onlySecond.length),
          count(rows.same + rows.changed.length),
        ],
        ...Object.entries(diff.taskTypes).map(([type, n]) => [
          `  ${type}`,
          count(n.onlyFirst),
          count(n.onlySecond),
          count(n.both),
        ]),
        ['pairs', count(pairs.onlyFirst), count(pairs.onlySecond), count(pairs.same)],
      ],
      terminal,
    ),
    ...some(`Only in ${first}`, rows.onlyFirst),
    ...some(`Only in ${second}`, rows.onlySecond),
    ...some('In both, but not the same', rows.changed),
    ...table(
      [
        { title: 'GATE' },
        { title: `CAME ${first}`, right: true, shrinkTo: 8 },
        { title: `CAME ${second}`, right: true, shrinkTo: 8 },
        { title: `PASSED ${first}`, right: true, shrinkTo: 8 },
        { title: `PASSED ${second}`, right: true, shrinkTo: 8 },
      ],
      diff.funnel.map(({ gate, entered, passed }) => [gate, ...[...entered, ...passed].map(numbers)]),
      terminal,
    ),
    ...Object.entries(diff.settings).map(([name, [a, b]]) => `${name}: ${a} in ${first}, ${b} in ${second}`),
  ];
}

const diff = withConfigOption(new Command('diff'))
  .description('Show what two datasets do not share: conversations, pairs, settings, what came to each gate.')
  .argument('<first>', 'id of a dataset')
  .argument('<second>', 'id of another')
  .option('--json', 'everything as one JSON object')
  .addHelpText('after', '\nExample:\n  pawl datasets diff support-desk-v1 support-desk-v2')
  .action((first: string, second: string, options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, artifacts, terminal }) => {
      const [a, b] = [await needDataset(store, first), await needDataset(store, second)];
      const inA = await contentsOf(readLines(artifacts, a));
      const found = diffDatasets(a, b, inA, await contentsOf(readLines(artifacts, b)));
      if (options.json) terminal.write(JSON.stringify(found));
      else for (const line of diffLines(found, terminal)) terminal.write(line);
    }),
  );

type ExportOptions = CommonOptions & {
  readonly format: ExportFormat;
  readonly out: string;
  readonly force?: boolean;
  readonly internal?: boolean;
  readonly by: string;
};

const exportTo = withConfigOption(new Command('export'))
  .description('Write a dataset in the format of another trainer, without what users have withdrawn since.')
  .argument('<id>', 'id of the dataset, such as support-desk-v3')
  .addOption(
    new Option('--format <format>', 'TRL’s conversational types, or OpenAI’s')
      .choices(exportFormats)
      .makeOptionMandatory(),
  )
  .requiredOption(
    '--out <file>',
    'file to write, JSONL, or Parquet if its name ends in .parquet; it appears whole or not at all',
  )
  .option('--force', 'write over a file that is there')
  .option('--internal', 'also a dataset that holds what is confidential; it stays inside your deployment')
  .option(...byOption())
  .option('--json', 'what was written and left out as one JSON object')
  .addHelpText('after', '\nExample:\n  pawl datasets export support-desk-v3 --format trl-sft --out sft.jsonl')
  .action((id: string, options: ExportOptions) =>
    withHome(options, 'existing', async ({ store, artifacts, terminal, onInterrupt }) => {
      const dataset = await needDataset(store, id);
      refuseInternal(dataset, options.internal);
      const { format, out, force = false } = options;
      const stop = new AbortController();
      onInterrupt(async () => stop.abort(new Error(`Stopped; ${out} was not written.`)));
      const progress = sayProgress();
      const { rows, left, thoughtsLost } = await exportToFile(
        exportLines(store, artifacts, dataset, { format, by: options.by }),
        out,
        {
          format,
          force,
          signal: stop.signal,
          onRow: (written) => progress(() => `${written} lines so far …`),
        },
      );
      if (options.json) {
        terminal.write(JSON.stringify({ dataset: id, format, out, rows, left, thoughtsLost }));
        return;
      }
      terminal.write(`${count(rows)} lines of ${format} from ${id} in ${out}.`);
      for (const [reason, n] of Object.entries(left)) terminal.write(`Left out: ${count(n)}, ${reason}.`);
      if (thoughtsLost > 0)
        terminal.write(`Without the reasoning of ${count(thoughtsLost)} answers: ${format} has no key for it.`);
    }),
  );

export const datasetsCommand = (): Command =>
  new Command('datasets')
    .description('Look at what was chosen to learn from.')
    .addCommand(list)
    .addCommand(show)
    .addCommand(diff)
    .addCommand(exportTo)
    .addHelpText('after', '\nExample:\n  pawl datasets show support-desk-v1');
