/** `pawl review`: what waits for a person, and what that person says of it. */
import { Command } from 'commander';
import { showTrajectory } from '../collect/command.ts';
import { hashedId } from '../collect/person.ts';
import { type CommonOptions, type Opened, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { plain, table } from '../terminal.ts';
import { labelConversation, pickWindow, type Queue, readQueue } from './queue.ts';

type Options = CommonOptions & { readonly agent?: string; readonly reviewer?: string; readonly limit?: number };
const week = 7 * 86_400_000;

const withAgent = (command: Command) =>
  withConfigOption(command)
    .option('--agent <name>', 'the agent (default: the first of the settings)')
    .option('--json', 'as JSON');

const queueOf = async ({ store, config, secret }: Opened, { agent, reviewer, limit = 20 }: Options) =>
  readQueue(store, agentOf(config, agent), {
    limit,
    without: reviewer === undefined ? undefined : hashedId(reviewer, secret),
  });

const shown = (value: number | null): string => (value === null ? '–' : value.toFixed(2));

function queueLines({ agent, conversations, waiting, agreement }: Queue, terminal: Opened['terminal']): string[] {
  const lines = waiting.flatMap(({ kind, id, reasons, command }) => [
    plain(`${kind} ${id} waits for a person: ${reasons.join(' ')}`),
    `  ${command}`,
    '',
  ]);
  const columns = [
    { title: 'CONVERSATION', shrinkTo: 12 },
    { title: 'WHY' },
    { title: 'REWARD', right: true },
    { title: 'FEEDBACK', right: true },
    { title: 'LABELS', right: true },
  ];
  const rows = conversations.map(({ trajectory, why, reward, feedback, labelled }) => [
    ...[trajectory, why, shown(reward), shown(feedback), String(labelled)],
  ]);
  const { both, kappa } = agreement;
  return [
    ...lines,
    ...(rows.length === 0
      ? [`No conversation of ${agent} waits; \`pawl review pick\` picks from the last week.`]
      : table(columns, rows, terminal)),
    ...(both === 0
      ? []
      : [`Two people looked at ${both}: Cohen’s κ ${kappa === null ? 'cannot be told' : kappa.toFixed(2)}.`]),
  ];
}

const list = withAgent(new Command('list'))
  .description('What waits for a person: rollouts, evaluations, conversations.')
  .option('--reviewer <id>', 'without what this person has labelled')
  .option('--limit <n>', 'how many conversations, at most 1000', wholeNumber(1, 1000), 20)
  .action((options: Options) =>
    withHome(options, 'existing', async (opened) => {
      const queue = await queueOf(opened, options);
      if (options.json) opened.terminal.write(JSON.stringify(queue, null, 2));
      else for (const line of queueLines(queue, opened.terminal)) opened.terminal.write(line);
    }),
  );

const next = withAgent(new Command('next'))
  .description('Show the conversation that has waited longest, and how to label it.')
  .option('--reviewer <id>', 'the one who asks: what they have labelled is not shown again')
  .action((options: Options) =>
    withHome(options, 'existing', async (opened) => {
      const { terminal } = opened;
      const { agent, conversations, waiting } = await queueOf(opened, { ...options, limit: 1 });
      const [item] = conversations;
      if (options.json) {
        terminal.write(JSON.stringify(item ?? null));
        return;
      }
      if (waiting.length > 0)
        terminal.write(
          `${waiting.length === 1 ? '1 decision waits' : `${waiting.length} decisions wait`} too: pawl review list --agent ${agent}`,
        );
      if (item === undefined) {
        terminal.write(`No conversation of ${agent} waits.`);
        return;
      }
      await showTrajectory(opened, item.trajectory, { agent });
      const { why, reward, feedback, trajectory } = item;
      terminal.write('');
      terminal.write(
        `Picked ${why === 'random' ? 'at random' : 'because reward and feedback disagree'}: reward ${shown(reward)}, feedback ${shown(feedback)}.`,
      );
      terminal.write(plain(`  pawl review label ${trajectory} --agent ${agent} --reviewer YOU --score 0.8`));
    }),
  );

const show = withAgent(new Command('show'))
  .description('Show a conversation of the queue, turn by turn.')
  .argument('<id>', 'id of the conversation')
  .action((id: string, options: Options) =>
    withHome(options, 'existing', (opened) => showTrajectory(opened, id, options)),
  );

type LabelOptions = Options & {
  readonly score?: string;
  readonly approve?: boolean;
  readonly comment?: string;
  readonly correction?: string;
};

function scoreOf({ score, approve }: LabelOptions): number {
  if (approve === true && score === undefined) return 1;
  const value = Number(score);
  if (score !== undefined && approve !== true && score.trim() !== '' && value >= 0 && value <= 1) return value;
  throw new ConfigError('Say --score, a number from 0 to 1, or --approve, which is 1; one of the two.');
}

const label = withAgent(new Command('label'))
  .description('Say what a conversation was worth, and what the answer should have been.')
  .argument('<id>', 'id of the conversation')
  .requiredOption('--reviewer <id>', 'who says so')
  .option('--score <n>', '0 to 1')
  .option('--approve', 'it is as it should be: a score of 1')
  .option('--comment <text>', 'why')
  .option('--correction <text>', 'what the last answer should have been: a demonstration, and the better one of a pair')
  .addHelpText(
    'after',
    '\nExamples:\n  pawl review label case-17 --reviewer ann --approve\n  pawl review label case-18 --reviewer ann --score 0.2 --correction "Your parcel arrives on Monday."',
  )
  .action((id: string, options: LabelOptions) =>
    withHome(options, 'existing', async ({ store, config, secret, terminal }) => {
      const { name: agent } = agentOf(config, options.agent);
      const { reviewer = '', comment, correction } = options;
      const score = scoreOf(options);
      const now = new Date();
      await labelConversation(store, { agent, secret, now }, { trajectory: id, score, reviewer, comment, correction });
      if (options.json) terminal.write(JSON.stringify({ agent, trajectory: id, score }));
      else terminal.write(plain(`${id} is labelled ${score.toFixed(2)} by ${reviewer}.`));
    }),
  );

const pick = withAgent(new Command('pick'))
  .description('Pick conversations of the last week for review; `pawl serve` does so once a week.')
  .option('--days <n>', 'of so many days, at most 90', wholeNumber(1, 90), 7)
  .action((options: Options & { readonly days: number }) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const agent = agentOf(config, options.agent);
      const until = new Date();
      const since = new Date(until.getTime() - (options.days / 7) * week);
      const found = await pickWindow(store, agent, { since, until }, until);
      if (options.json) terminal.write(JSON.stringify({ agent: agent.name, ...found }));
      else
        terminal.write(
          `${found.picked} of ${found.scored} scored conversations of ${agent.name} are picked, ${found.added} of them now.`,
        );
    }),
  );

export const reviewCommand = (): Command =>
  new Command('review')
    .description('What waits for a person: conversations to label, evaluations and rollouts to decide.')
    .addCommand(list, { isDefault: true })
    .addCommand(next)
    .addCommand(show)
    .addCommand(label)
    .addCommand(pick)
    .addHelpText('after', '\nExample:\n  pawl review next --reviewer ann');
