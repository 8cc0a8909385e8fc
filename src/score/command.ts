/** `pawl score run` and `show`: what conversations were worth, and why. */
import { Command, Option } from 'commander';
import { readableId } from '../collect/person.ts';
import { type Origin, origins } from '../collect/trajectory.ts';
import { type CommonOptions, parseMoment, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { NotFoundError } from '../errors.ts';
import { dayOf } from '../store/partitions.ts';
import { listScores, summariseScores } from '../store/scores.ts';
import { type Column, sayProgress, table } from '../terminal.ts';
import { scoreWindow } from './run.ts';
import type { Score } from './score.ts';

type RunOptions = CommonOptions & {
  readonly agent?: string;
  readonly origin?: Origin;
  readonly since?: Date;
  readonly until?: Date;
};

const number = (value: number | null): string => (value === null ? '–' : value.toFixed(3));
const percent = (share: number): string => `${Math.round(share * 100)}%`;

const run = withConfigOption(new Command('run'))
  .description('Score the conversations of a window; those whose evidence has not changed are left alone.')
  .option('--agent <name>', 'whose (default: the first of the settings)')
  .addOption(new Option('--origin <origin>', 'of which origin (default: what the agent learns from)').choices(origins))
  .option('--since <time>', 'started after: 2h, 3d, or 2026-01-31 (default: 7d)', (text: string) => parseMoment(text))
  .option('--until <time>', 'started before (default: now)', (text: string) => parseMoment(text))
  .option('--json', 'the counts as one JSON object')
  .addHelpText('after', '\nExample:\n  pawl score run --since 1d')
  .action((options: RunOptions) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const now = new Date();
      const { name: agent, reward: spec, curate } = agentOf(config, options.agent);
      const { since = parseMoment('7d'), until = now, origin = curate.on } = options;
      const progress = sayProgress();
      const counts = await scoreWindow(store, {
        ...{ agent, spec, since, until, origin, now },
        onProgress: ({ trajectories }) => progress(() => `${trajectories} conversations so far …`),
      });
      const days = { from: dayOf(since), to: dayOf(until) };
      const summary = await summariseScores(store, { agent, spec: spec.version, ...days });
      if (options.json) {
        terminal.write(JSON.stringify({ agent, spec: spec.version, ...counts, mean: summary.mean }));
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
        `${unmeasured} with nothing to measure`,
        ...(tooLong > 0 ? [`${tooLong} too long`] : []),
        ...(tooLarge > 0 ? [`${tooLarge} too large to read`] : []),
        ...(answers > 0 ? [`${answers} single answers where a turn was explored`] : []),
        ...(broken > 0 ? [`for ${broken} a scorer failed and will be asked again by the next run`] : []),
      ];
      terminal.write(
        `${trajectories} conversations of ${agent}: ${scored} scored, ${rescored} scored again, ${unchanged} unchanged; ${also.join('; ')}.`,
      );
      terminal.write(`Mean score of these days ${number(summary.mean)} (reward spec ${spec.version}).`);
    }),
  );

const columns: readonly Column[] = [
  { title: 'PART' },
  { title: 'WEIGHT', right: true },
  { title: 'VALUE', right: true },
  { title: 'REASON', shrinkTo: 20 },
];

const scoreLines = (score: Score, terminal: Parameters<typeof table>[2]): string[] => [
  terminal.paint.bold(
    `${score.total === null ? 'no score' : number(score.total)}  ` +
      `${percent(score.measured)} measured, ${score.day}, reward spec ${score.spec}`,
  ),
  ...table(
    columns,
    Object.entries(score.parts).map(([name, { weight, value, reason }]) => [
      name,
      String(weight),
      number(value),
      reason,
    ]),
    terminal,
  ),
  ...score.turns.flatMap(({ turn, value, parts }, k) =>
    value === null
      ? []
      : [
          terminal.paint.dim(
            `turn ${k + 1}  ${number(value)}  ${Object.entries(parts)
              .map(([name, one]) => `${name} ${number(one)}`)
              .join(', ')}  ${turn}`,
          ),
        ],
  ),
];

const show = withConfigOption(new Command('show'))
  .description('Show the scores of one conversation, part by part.')
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
        if (options.json) terminal.write(JSON.stringify(score));
        else for (const line of [...(i === 0 ? [] : ['']), ...scoreLines(score, terminal)]) terminal.write(line);
      }
    }),
  );

export const scoreCommand = (): Command =>
  new Command('score')
    .description('Tell how good conversations were.')
    .addCommand(run)
    .addCommand(show)
    .addHelpText('after', '\nExample:\n  pawl score run --since 1d');
