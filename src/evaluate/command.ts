/** `pawl reports list` and `show`: evaluations, read at a terminal. Reads only. */
import { Command } from 'commander';
import { type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { NotFoundError } from '../errors.ts';
import { listReports, readReport } from '../store/reports.ts';
import { type Column, type Paint, plain, table } from '../terminal.ts';
import type { Comparison } from './compare.ts';
import { type Report, reportSchema } from './report.ts';
import { consequence, percent, type Verdict } from './verdict.ts';

const points = (share: number): string => `${share > 0 ? '+' : ''}${(share * 100).toFixed(1)}`;

export function verdictColour(verdict: Verdict, paint: Paint): (text: string) => string {
  switch (verdict) {
    case 'pass':
      return paint.green;
    case 'fail':
      return paint.red;
    case 'inconclusive':
    case 'unmeasured':
      return paint.yellow;
    default:
      return verdict satisfies never;
  }
}

/** Of several types each p is corrected for how many there are. */
const figures = ({ n, baseline, candidate, difference, interval: [low, high], p, holm = p }: Comparison): string[] => [
  String(n),
  percent(baseline),
  percent(candidate),
  points(difference),
  `${points(low)} … ${points(high)}`,
  holm < 0.0001 ? '<0.0001' : holm.toFixed(4),
];

/** A report as lines of text. */
export function reportLines(report: Report, terminal: { readonly columns: number; readonly paint: Paint }): string[] {
  const { overall, suite, types } = report;
  const right: Column[] = ['N', 'BEFORE', 'AFTER', 'POINTS', '95%', 'P'].map((title) => ({ title, right: true }));
  const rows = [
    ...(overall ? [['all', ...figures(overall)]] : []),
    ...Object.entries(types).map(([name, type]) => [name, ...figures(type)]),
    ...(report.broad === undefined ? [] : [[`broad: ${report.broad.suite}`, ...figures(report.broad.comparison)]]),
  ];
  return [
    plain(`${report.id}: ${report.candidate} against ${report.baseline}, agent ${report.agent}`),
    plain(
      `Suite ${suite.name} (${suite.tasks} tasks, hash ${suite.hash}), attempts ${report.attempts}, seed ${report.seed}, ${report.seconds.toFixed(1)} s`,
    ),
    ...(rows.length === 0 ? [] : ['', ...table([{ title: 'TASKS', shrinkTo: 8 }, ...right], rows, terminal)]),
    '',
    `Verdict: ${verdictColour(report.verdict, terminal.paint)(report.verdict)}. ${consequence(report.verdict)}`,
    ...report.reasons.map((reason) => plain(reason)),
    ...(report.passK ?? []).map(
      ({ k, baseline, candidate, interval: [low, high] }) =>
        `All of ${k} attempts solve a case: ${percent(baseline)} → ${percent(candidate)} (${points(low)} to ${points(high)} points, 95%).`,
    ),
    ...(report.reward === undefined
      ? []
      : [
          `Reward: ${report.reward.baseline.toFixed(3)} → ${report.reward.candidate.toFixed(3)}, paired t-test p ${report.reward.p < 0.0001 ? '< 0.0001' : `= ${report.reward.p.toFixed(4)}`}.`,
        ]),
    ...(overall?.detectable
      ? [`This suite can be relied on to show ${points(overall.detectable)} points or more.`]
      : []),
    ...gateLines(report, terminal),
    ...unsolvedLines(report, terminal),
  ];
}

const figure = (value: number | null): string => (value === null ? '–' : value.toFixed(2));

/** Every gate with its numbers; below it, what a person should look at. */
function gateLines({ gates = [] }: Report, terminal: { readonly columns: number; readonly paint: Paint }): string[] {
  if (gates.length === 0) return [];
  const columns: Column[] = [
    { title: 'GATE' },
    { title: 'BEFORE', right: true },
    { title: 'AFTER', right: true },
    { title: 'LIMIT', right: true },
    { title: 'VERDICT' },
    { title: 'WHY', shrinkTo: 20 },
  ];
  const rows = gates.map(({ name, baseline, candidate, limit, verdict, reason }) => [
    ...[name, figure(baseline), figure(candidate), figure(limit), verdict, reason],
  ]);
  const colour = (cell: string, row: number, column: number) =>
    columns[column]?.title === 'VERDICT' ? verdictColour(gates[row]!.verdict, terminal.paint)(cell) : cell;
  return [
    '',
    ...table(columns, rows, terminal, colour),
    ...gates.flatMap(({ name, look }) =>
      look.length === 0
        ? []
        : ['', `Look at (${name}):`, ...look.map(({ task, answer }) => plain(`  ${task}: ${answer}`))],
    ),
  ];
}

const unsolvedShown = 10;

/** What the candidate did not solve in every attempt, and why. */
function unsolvedLines({ tasks }: Report, terminal: { readonly columns: number; readonly paint: Paint }): string[] {
  const unsolved = tasks.flatMap(({ id, candidate, reasons }) =>
    candidate === 1 || reasons === undefined || reasons.candidate.length === 0
      ? []
      : [[id, candidate === null ? 'unmeasured' : percent(candidate), reasons.candidate.join('; ')]],
  );
  if (unsolved.length === 0) return [];
  const columns: Column[] = [
    { title: 'NOT SOLVED', shrinkTo: 10 },
    { title: 'AFTER', right: true },
    { title: 'WHY', shrinkTo: 20 },
  ];
  const more = unsolved.length - unsolvedShown;
  return [
    '',
    ...table(columns, unsolved.slice(0, unsolvedShown), terminal),
    ...(more > 0 ? [`and ${more} more; --json shows all.`] : []),
  ];
}

const list = withConfigOption(new Command('list'))
  .description('List evaluations, newest first.')
  .option('--agent <name>', 'only this agent’s')
  .option('--limit <n>', 'how many, at most 200', wholeNumber(1, 200), 20)
  .option('--json', 'one JSON object per line')
  .action((options: CommonOptions & { agent?: string; limit: number }) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const reports = await listReports(store, { agent: options.agent, limit: options.limit });
      if (options.json) {
        for (const report of reports) terminal.write(JSON.stringify(report));
        return;
      }
      if (reports.length === 0) {
        terminal.write('Nothing has been evaluated yet.');
        return;
      }
      const columns: Column[] = [
        { title: 'ID', shrinkTo: 10 },
        { title: 'CANDIDATE', shrinkTo: 8 },
        { title: 'BASELINE', shrinkTo: 8 },
        { title: 'SUITE', shrinkTo: 6 },
        { title: 'BEFORE', right: true },
        { title: 'AFTER', right: true },
        { title: 'VERDICT' },
        { title: 'TIME' },
      ];
      const rows = reports.map((r) => [
        r.id,
        r.candidate,
        r.baseline,
        `${r.suite.name} ${r.suite.tasks}`,
        r.overall ? percent(r.overall.baseline) : '–',
        r.overall ? percent(r.overall.candidate) : '–',
        r.verdict,
        new Date(r.createdAt).toISOString().slice(0, 16).replace('T', ' '),
      ]);
      const lines = table(columns, rows, terminal, (cell, row, column) =>
        columns[column]?.title === 'VERDICT' ? verdictColour(reports[row]!.verdict, terminal.paint)(cell) : cell,
      );
      for (const line of lines) terminal.write(line);
    }),
  );

const show = withConfigOption(new Command('show'))
  .description('Show one evaluation: before and after, by task type, and the verdict.')
  .argument('<id>', 'id of the report')
  .option('--json', 'everything as one JSON object')
  .action((id: string, options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const found = await readReport(store, id);
      if (found === null)
        throw new NotFoundError(`There is no report ${id}; \`pawl reports list\` shows those that exist.`);
      const report = reportSchema.parse(found);
      if (options.json) terminal.write(JSON.stringify(report, null, 2));
      else for (const line of reportLines(report, terminal)) terminal.write(line);
    }),
  );

export const reportsCommand = (): Command =>
  new Command('reports')
    .description('Look at evaluations.')
    .addCommand(list, { isDefault: true })
    .addCommand(show)
    .addHelpText('after', '\nExample:\n  pawl reports list --agent support-desk');
