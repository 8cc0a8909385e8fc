/** `pawl trajectories list` and `show`: what was recorded, read at a terminal. Reads only; `import` is import-command.ts. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { type CommonOptions, type Opened, parseMoment, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { NotFoundError } from '../errors.ts';
import { cancelledAmong } from '../store/cancelled.ts';
import type { Store } from '../store/postgres.ts';
import { isSearch, type Search, searchTrajectories, votes } from '../store/search-trajectories.ts';
import { readSiblings } from '../store/siblings.ts';
import {
  listTrajectories,
  readTokens,
  readTrajectory,
  type TrajectoryFilter,
  type TrajectoryPage,
} from '../store/trajectories.ts';
import { type Column, table } from '../terminal.ts';
import { importCommand } from './import-command.ts';
import { readableId, typedUser } from './person.ts';
import { moneyOfAll } from './price.ts';
import { timelineOf } from './timeline.ts';
import { clock, duration, timelineLines } from './timeline-print.ts';
import { type Consent, consents, type Origin, origins, type Trajectory } from './trajectory.ts';

type ListOptions = CommonOptions &
  Search & {
    readonly consent?: Consent;
    readonly agent?: string;
    readonly user?: string;
    readonly hashed?: boolean;
    readonly origin?: Origin;
    readonly release?: string;
    readonly errors?: boolean;
    readonly since?: Date;
    readonly until?: Date;
    readonly limit: number;
  };

const columns: readonly Column[] = [
  { title: 'TIME' },
  { title: 'ID', shrinkTo: 6 },
  { title: 'AGENT', shrinkTo: 4 },
  { title: 'USER', shrinkTo: 4 },
  { title: 'TURNS', right: true },
  { title: 'TOKENS', right: true },
  { title: 'LATENCY', right: true },
  { title: 'STATUS' },
  { title: 'RELEASE', shrinkTo: 5 },
  { title: 'CONSENT' },
];

const statusOf = ({ errors }: Trajectory, cancelled: boolean): string => {
  if (errors === 0) return cancelled ? 'cancelled' : 'ok';
  return errors === 1 ? '1 error' : `${errors} errors`;
};
const tokensOf = ({ promptTokens, completionTokens }: Trajectory): string =>
  promptTokens + completionTokens === 0 ? '–' : (promptTokens + completionTokens).toLocaleString('en-US');

/** On a narrow terminal the time is `05-20 12:00`, so that all columns fit in 80. */
const rowOf = (t: Trajectory, cancelled: boolean, narrow: boolean): string[] => [
  narrow ? clock(t.startedAt).slice(5, 16) : clock(t.startedAt),
  t.id,
  t.agent,
  t.user ?? '–',
  String(t.turns),
  tokensOf(t),
  duration(t.latencyMs),
  statusOf(t, cancelled),
  t.release,
  t.consent,
];

const share = (text: string): number => {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError('Give a number from 0 to 1.');
};

/** A page of a search may be short where few fit; so many are asked for before it says that there may be more. */
const mostPages = 50;

async function findTrajectories(
  store: Store,
  asked: TrajectoryFilter & Search & { readonly limit: number },
): Promise<TrajectoryPage> {
  if (!isSearch(asked)) return listTrajectories(store, asked);
  const found: Trajectory[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < mostPages; pages++) {
    const page: TrajectoryPage = await searchTrajectories(store, {
      ...asked,
      limit: asked.limit - found.length,
      cursor,
    });
    found.push(...page.trajectories);
    cursor = page.cursor;
    if (cursor === null || found.length >= asked.limit) break;
  }
  return { trajectories: found, cursor };
}

const list = withConfigOption(new Command('list'))
  .description('List conversations, newest first.')
  .option('--agent <name>', 'only this agent’s')
  .option('--user <id>', 'only this user’s; the id as the agent sends it')
  .option('--hashed', 'the user is given by the hash that a list shows')
  .addOption(new Option('--origin <origin>', 'only of this origin').choices(origins))
  .option('--release <name>', 'only those that this release answered last')
  .option('--errors', 'only those with a failed turn')
  .addOption(new Option('--consent <said>', 'only where the user said so').choices(consents))
  .addOption(new Option('--vote <vote>', 'only those voted up, down, or by nobody').choices(votes))
  .option('--task-type <type>', 'only of this task type')
  .option('--min-score <n>', 'only where the newest score is this or above, 0 to 1', share)
  .option('--max-score <n>', 'only where it is this or below', share)
  .option('--text <words>', 'only where this stands in what was asked or answered')
  .option('--since <time>', 'started after: 2h, 3d, or 2026-01-31', (text: string) => parseMoment(text))
  .option('--until <time>', 'started before', (text: string) => parseMoment(text))
  .option('--limit <n>', 'how many, at most 200', wholeNumber(1, 200), 20)
  .option('--json', 'one JSON object per line')
  .addHelpText(
    'after',
    '\nExamples:\n  pawl trajectories list --since 2h --errors\n  pawl trajectories list --agent support-desk --user u-17 --json',
  )
  .action((options: ListOptions) =>
    withHome(options, 'existing', async ({ store, terminal, secret }) => {
      const { agent, origin, release, since, until, limit, json, consent } = options;
      const { vote, taskType, minScore, maxScore, text } = options;
      const user = options.user === undefined ? undefined : typedUser(options.user, secret, options.hashed);
      const status = options.errors ? 'error' : undefined;
      const page = await findTrajectories(store, {
        ...{ agent, user, origin, release, status, since, until, limit, consent },
        ...{ vote, taskType, minScore, maxScore, text },
      });
      const cancelled = await cancelledAmong(store, page.trajectories);
      if (json) {
        for (const trajectory of page.trajectories)
          terminal.write(JSON.stringify({ ...trajectory, cancelled: cancelled.has(trajectory) }));
        return;
      }
      if (page.trajectories.length === 0) {
        terminal.write(
          'No trajectory matches. An agent’s calls through the gateway appear here within a second or two.',
        );
        return;
      }
      const { paint } = terminal;
      const rows = page.trajectories.map((one) => rowOf(one, cancelled.has(one), terminal.columns < 110));
      const lines = table(columns, rows, terminal, (cell, row, column) => {
        if (columns[column]?.title === 'STATUS' && page.trajectories[row]!.errors > 0) return paint.red(cell);
        return columns[column]?.title === 'TIME' ? paint.dim(cell) : cell;
      });
      for (const line of lines) terminal.write(line);
      if (page.cursor !== null) terminal.write(paint.dim('There are more: narrow with --since, or raise --limit.'));
    }),
  );

type ShowOptions = CommonOptions & { readonly agent?: string; readonly full?: boolean; readonly turns: number };

const shownTurns = 200;

/** One conversation at a terminal, as `trajectories show` and `review` show it. */
export async function showTrajectory(
  { store, terminal, secret, config }: Pick<Opened, 'store' | 'terminal' | 'secret' | 'config'>,
  id: string,
  options: Partial<ShowOptions>,
): Promise<void> {
  const found = await readTrajectory(store, readableId(id, secret), {
    agent: options.agent,
    maxTurns: options.turns ?? shownTurns,
  });
  if (found === null)
    throw new NotFoundError(
      `There is no trajectory ${id}${options.agent === undefined ? '' : ` of agent ${options.agent}`}. \`pawl trajectories list\` shows the newest.`,
    );
  const { trajectory, turns, signals } = found;
  const { siblings, cut: siblingsCut } = await readSiblings(store, {
    agent: trajectory.agent,
    turns: turns.map((turn) => turn.id),
  });
  const money = moneyOfAll(await readTokens(store, trajectory), config.upstreams);
  if (options.json) {
    terminal.write(JSON.stringify({ ...found, money, siblings: [...siblings.values()].flat(), siblingsCut }, null, 2));
    return;
  }
  const print = { columns: terminal.columns, paint: terminal.paint, full: options.full === true };
  const timeline = timelineOf(turns, signals, siblings);
  for (const line of timelineLines(trajectory, timeline, print, { ...found, money, siblingsCut })) terminal.write(line);
}

const show = withConfigOption(new Command('show'))
  .description('Show one conversation, turn by turn.')
  .argument('<id>', 'id of the trajectory')
  .option('--agent <name>', 'whose, when two agents used the same id')
  .option('--full', 'do not shorten long texts')
  .option('--turns <n>', 'how many turns, from the first, at most 10000', wholeNumber(1, 10_000), 200)
  .option('--json', 'everything as one JSON object')
  .addHelpText('after', '\nExample:\n  pawl trajectories show order-4711 --full | less -R')
  .action((id: string, options: ShowOptions) =>
    withHome(options, 'existing', (opened) => showTrajectory(opened, id, options)),
  );

export const trajectoriesCommand = (): Command =>
  new Command('trajectories')
    .description('Look at what was recorded, and import what was recorded elsewhere.')
    .addCommand(list)
    .addCommand(show)
    .addCommand(importCommand())
    .addHelpText('after', '\nExample:\n  pawl trajectories list --since 1d');
