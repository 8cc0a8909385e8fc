/** `pawl score run` and `show`: what conversations were worth, and why; `tools`: who uses those that are offered. */
import { Command, Option } from 'commander';
import { readableId } from '../collect/person.ts';
import { moneyText } from '../collect/price.ts';
import { type Origin, origins } from '../collect/trajectory.ts';
import { type CommonOptions, parseMoment, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { NotFoundError } from '../errors.ts';
import { dayOf } from '../store/partitions.ts';
import { listScores, summariseScores } from '../store/scores.ts';
import { type Column, counted, plain, sayProgress, table } from '../terminal.ts';
import { openJudge } from './ask-open.ts';
import { explain } from './explain.ts';
import { judgedLine } from './judge-print.ts';
import { lendEngine, openRewardModels } from './reward-models.ts';
import { planScoring, type ScoreCounts, type ScorePlan, scoreWindow } from './run.ts';
import type { Score } from './score.ts';
import { adoptionIn } from './tool-adoption.ts';

type RunOptions = CommonOptions & {
  readonly agent?: string;
  readonly origin?: Origin;
  readonly since?: Date;
  readonly until?: Date;
  readonly dryRun?: boolean;
};

const number = (value: number | null): string => (value === null ? '–' : value.toFixed(3));

const run = withConfigOption(new Command('run'))
  .description('Score the conversations of a window; those whose evidence has not changed are left alone.')
  .option('--agent <name>', 'whose (default: the first of the settings)')
  .addOption(new Option('--origin <origin>', 'of which origin (default: what the agent learns from)').choices(origins))
  .option('--since <time>', 'started after: 2h, 3d, or 2026-01-31 (default: 7d)', (text: string) => parseMoment(text))
  .option('--until <time>', 'started before (default: now)', (text: string) => parseMoment(text))
  .option(
    '--dry-run',
    'say how many conversations it would score, with how many calls to a judge and for how much money',
  )
  .option('--json', 'the counts as one JSON object')
  .addHelpText('after', '\nExample:\n  pawl score run --since 1d')
  .action((options: RunOptions) =>
    withHome(options, 'existing', async ({ store, artifacts, config, terminal }) => {
      const now = new Date();
      const whose = agentOf(config, options.agent);
      const { name: agent, reward: spec, curate } = whose;
      const judge = openJudge(store, whose);
      const rewardModels = openRewardModels({ store, artifacts }, lendEngine(config.engine));
      const { since = parseMoment('7d'), until = now, origin = curate.on } = options;
      const progress = sayProgress();
      const window = {
        ...{ agent, spec, since, until, origin, now, services: { judge, rewardModels } },
        onProgress: ({ trajectories }: ScoreCounts) => progress(() => `${trajectories} conversations so far …`),
      };
      if (options.dryRun) {
        const plan = await planScoring(store, window);
        terminal.write(options.json ? JSON.stringify({ agent, spec: spec.version, ...plan }) : planLine(agent, plan));
        return;
      }
      const counts = await scoreWindow(store, window);
      const days = { from: dayOf(since), to: dayOf(until) };
      const summary = await summariseScores(store, { agent, spec: spec.version, ...days });
      if (options.json) {
        terminal.write(
          JSON.stringify({ agent, spec: spec.version, ...counts, mean: summary.mean, judge: judge?.counts() ?? null }),
        );
        return;
      }
      if (counts.trajectories === 0) {
        terminal.write(
          `No conversation of ${agent} with origin ${origin} started in that time. \`pawl trajectories list\` shows the newest.`,
        );
        return;
      }
      const { trajectories, scored, rescored, unchanged, unmeasured, tooLong, tooLarge, broken, answers } = counts;
      const also = [
        // Those without a total are both; a scorer that failed may yet measure something.
        `${unmeasured - broken} with nothing to measure`,
        ...(tooLong > 0 ? [`${tooLong} too long`] : []),
        ...(tooLarge > 0 ? [`${tooLarge} too large to read`] : []),
        ...(answers > 0 ? [`${counted(answers, 'single answer')} where a turn was explored`] : []),
        ...(broken > 0 ? [`for ${broken} a scorer failed and will be asked again by the next run`] : []),
      ];
      terminal.write(
        `${counted(trajectories, 'conversation')} of ${agent}: ${scored} scored, ${rescored} scored again, ${unchanged} unchanged; ${also.join('; ')}.`,
      );
      if (judge !== undefined) terminal.write(judgedLine(judge.counts()));
      terminal.write(`Mean score of these days ${number(summary.mean)} (reward spec ${spec.version}).`);
    }),
  );

const planLine = (agent: string, plan: ScorePlan): string => {
  const { trajectories, pending, answers, calls, money, unpriced } = plan;
  const price = unpriced > 0 ? `${moneyText(money)} and what ${unpriced} calls without a price cost` : moneyText(money);
  const also = answers > 0 ? ` and ${counted(answers, 'single answer')} to explored turns` : '';
  return `${pending} of ${counted(trajectories, 'conversation')} of ${agent}${also} would be scored, with ${counted(calls, 'call')} to a judge for about ${price}.`;
};

const columns: readonly Column[] = [
  { title: 'PART' },
  { title: 'WEIGHT', right: true },
  { title: 'VALUE', right: true },
  { title: 'ADDS', right: true },
  { title: 'REASON', shrinkTo: 20 },
];

const scoreLines = (score: Score, terminal: Parameters<typeof table>[2]): string[] => {
  const { summary, parts } = explain(score);
  return [
    terminal.paint.bold(summary),
    terminal.paint.dim(`${score.trajectory} of ${score.day}, reward ${score.spec}`),
    ...parts.map(({ sentence }) => `  ${sentence[0]!.toUpperCase()}${sentence.slice(1)}`),
    ...table(
      columns,
      parts.map(({ name, adds }) => {
        const { weight, value, reason } = score.parts[name]!;
        return [name, String(weight), number(value), number(adds), reason];
      }),
      terminal,
    ),
    ...turnLines(score, terminal),
  ];
};

const turnLines = (score: Score, terminal: Parameters<typeof table>[2]): string[] =>
  score.turns.flatMap(({ turn, value, parts }, k) =>
    value === null
      ? []
      : [
          terminal.paint.dim(
            `turn ${k + 1}  ${number(value)}  ${Object.entries(parts)
              .map(([name, one]) => `${name} ${number(one)}`)
              .join(', ')}  ${turn}`,
          ),
        ],
  );

const show = withConfigOption(new Command('show'))
  .description('Explain the scores of one conversation: what each part added, and what nobody could tell.')
  .argument('<id>', 'id of the trajectory')
  .option('--agent <name>', 'whose, when two agents used the same id')
  .option('--json', 'one JSON object per score')
  .addHelpText('after', '\nExample:\n  pawl score show order-4711')
  .action((id: string, options: CommonOptions & { readonly agent?: string }) =>
    withHome(options, 'existing', async ({ store, terminal, secret }) => {
      const scores = await listScores(store, readableId(id, secret), options.agent);
      if (scores.length === 0)
        throw new NotFoundError(`Trajectory ${id} has no score. \`pawl score run\` gives it one.`);
      for (const [i, score] of scores.entries()) {
        if (options.json) terminal.write(JSON.stringify({ ...score, explanation: explain(score) }));
        else for (const line of [...(i === 0 ? [] : ['']), ...scoreLines(score, terminal)]) terminal.write(line);
      }
    }),
  );

type ToolsOptions = Omit<RunOptions, 'dryRun'>;
const share = (of: { readonly offered: number; readonly used: number } | null): string =>
  of === null || of.offered === 0 ? '–' : `${Math.round((100 * of.used) / of.offered)}%`;
const toolColumns: readonly Column[] = [
  { title: 'TASK TYPE', shrinkTo: 8 },
  { title: 'OFFERED', right: true },
  { title: 'USED', right: true },
  { title: 'SHARE', right: true },
  { title: 'BEFORE', right: true },
  { title: 'TOOLS', shrinkTo: 12 },
];

const tools = withConfigOption(new Command('tools'))
  .description('In how many conversations that were offered tools one was used, by task type, and before.')
  .option('--agent <name>', 'whose (default: the first of the settings)')
  .addOption(new Option('--origin <origin>', 'of which origin (default: what the agent learns from)').choices(origins))
  .option('--since <time>', 'turns after: 2h, 3d, or 2026-01-31 (default: 7d)', (text: string) => parseMoment(text))
  .option('--until <time>', 'turns before (default: now)', (text: string) => parseMoment(text))
  .option('--json', 'one JSON object per task type')
  .addHelpText('after', '\nExample:\n  pawl score tools --since 7d')
  .action((options: ToolsOptions) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const { name: agent, curate } = agentOf(config, options.agent);
      const { since = parseMoment('7d'), until = new Date(), origin = curate.on } = options;
      const found = await adoptionIn(store, { agent, origin, since, until });
      if (options.json) for (const one of found) terminal.write(JSON.stringify(one));
      else if (found.length === 0)
        terminal.write(`No conversation of ${agent} with origin ${origin} was offered tools in that time.`);
      else {
        const rows = found.map((one) => [
          ...[one.taskType, String(one.offered), String(one.used), share(one), share(one.before)],
          one.tools.map(({ name, conversations }) => `${plain(name)} ${conversations}`).join(', '),
        ]);
        for (const line of table(toolColumns, rows, terminal)) terminal.write(line);
      }
    }),
  );

export const scoreCommand = (): Command =>
  new Command('score')
    .description('Tell how good conversations were.')
    .addCommand(run)
    .addCommand(show)
    .addCommand(tools)
    .addHelpText('after', '\nExample:\n  pawl score run --since 1d');
