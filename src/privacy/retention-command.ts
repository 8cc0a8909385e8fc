/** `pawl retention run|status`: forgets what is older than is kept, and goes on with erasures that were interrupted. */
import { Command } from 'commander';
import { typedUser } from '../collect/person.ts';
import { clock } from '../collect/timeline-print.ts';
import { type CommonOptions, withConfigOption, withHome } from '../command.ts';
import { acting } from '../deploy/command-parts.ts';
import { ConflictError } from '../errors.ts';
import { type LegalHold, listHolds } from '../store/legal-holds.ts';
import { scanning } from '../store/limits.ts';
import { listRetention } from '../store/retention.ts';
import { counted, plain, sayProgress } from '../terminal.ts';
import { carryOutErasures } from './erase.ts';
import { hold, releaseHold } from './legal-hold.ts';
import { learnedDays, nextRetention, type RetentionResult, runRetention, surveyRetention } from './retention.ts';
import type { RetentionSettings } from './retention-settings.ts';

type RunOptions = CommonOptions & { readonly by: string; readonly dryRun?: boolean };

const settingLines = ({ days, datasets, afterTraining }: RetentionSettings): string[] => [
  `Conversations are kept ${days === null ? 'for good' : `for ${days} days`} (\`retention.days\`), datasets ${datasets === null ? 'for good' : `for ${datasets} days`} (\`retention.datasets\`).`,
  ...(afterTraining === null
    ? []
    : [
        `Days and datasets that were trained on go ${afterTraining} days after the first run on them (\`retention.afterTraining\`), however long they are kept otherwise.`,
      ]),
];

export function resultLines(result: RetentionResult, verb: string): string[] {
  const { before, days, conversations, turns, siblings, signals, keys, scores, datasets } = result;
  const learned = learnedDays(before, days);
  return [
    ...(before.day === null && days.length === 0
      ? []
      : [
          `${verb}${before.day === null ? '' : ` from before ${before.day}`}${learned.length === 0 ? '' : ` and of what was trained on (${learned.join(', ')})`}: ${counted(conversations, 'conversation')} (${counted(turns, 'turn')}, ${counted(siblings, 'explored answer')}) of ${counted(days.length, 'day')}, ${counted(signals, 'signal')}, ${counted(keys, 'business key')}, ${counted(scores, 'score')}.`,
        ]),
    ...(datasets.length === 0 ? [] : [`${verb}: datasets ${datasets.join(', ')}.`]),
  ];
}

const run = acting('run', 'Remove what is older than the settings keep, and finish erasures that were interrupted.')
  .option('--dry-run', 'say what would go; nothing is changed')
  .addHelpText('after', '\nA serving Pawl does this by itself once a day.\n\nExample:\n  pawl retention run --dry-run')
  .action((options: RunOptions) =>
    withHome(options, 'existing', async ({ config, store, artifacts, terminal }) => {
      const { retention: settings } = config;
      const patient = store.within(scanning, 3);
      const progress = sayProgress();
      const onProgress = (what: string) => progress(() => `Retention: ${what} …`);
      const show = (result: RetentionResult, verb: string) => {
        if (options.json) terminal.write(JSON.stringify(result));
        else for (const line of [...settingLines(settings), ...resultLines(result, verb)]) terminal.write(line);
      };
      try {
        if (options.dryRun) {
          show(await surveyRetention(patient, settings, Date.now()), 'Would go');
          return;
        }
        await carryOutErasures(patient, { artifacts, onProgress });
        const done = await runRetention(patient, {
          ...{ artifacts, settings, now: Date.now(), actor: options.by, onProgress },
        });
        if (done?.result == null)
          throw new ConflictError(
            'Another process of this database is removing what is old; `pawl retention status` shows when it is done.',
          );
        show(done.result, 'Removed');
      } finally {
        await patient.close();
      }
    }),
  );

const status = withConfigOption(new Command('status'))
  .description('What is kept for how long, when it was last looked at, and when it is next.')
  .option('--json', 'as one JSON object')
  .action((options: CommonOptions) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const runs = await listRetention(store, 10);
      const next = await nextRetention(store);
      if (options.json) {
        terminal.write(JSON.stringify({ settings: config.retention, next, runs }));
        return;
      }
      for (const line of settingLines(config.retention)) terminal.write(line);
      terminal.write(
        next === null ? 'Next: with the first `pawl serve`.' : `Next by a worker: from ${clock(new Date(next))} on.`,
      );
      for (const { at, actor, result } of runs) {
        terminal.write(`${clock(new Date(at))} by ${actor}${result === null ? ': interrupted, or under way' : ''}`);
        if (result !== null) for (const line of resultLines(result, 'Removed')) terminal.write(`  ${line}`);
      }
    }),
  );

type HoldOptions = CommonOptions & {
  readonly by: string;
  readonly reason: string;
  readonly agent?: string;
  readonly hashed?: boolean;
};

const holdLine = ({ id, user, agent, at, actor, reason, releasedAt }: LegalHold): string =>
  `${id}  user ${user} (${agent ?? 'every agent'}), since ${clock(at)} by ${plain(actor)}: ${plain(reason)}${releasedAt === null ? '' : `; released ${clock(releasedAt)}`}`;

const placeHold = acting('hold', 'Keep what is stored of a user, whoever asks and however old it is: a legal hold.')
  .argument('<user>', 'user id as the agent sends it')
  .requiredOption('--reason <text>', 'why; stands in the audit log')
  .option('--agent <name>', 'only what is this agent’s (default: every agent’s)')
  .option('--hashed', 'the user is given by the hash that a list shows')
  .addHelpText('after', '\nExample:\n  pawl retention hold u-17 --reason "case 4711"')
  .action((user: string, { by: actor, reason, agent, hashed, ...options }: HoldOptions) =>
    withHome(options, 'existing', async ({ store, secret, terminal }) => {
      const given = { user: typedUser(user, secret, hashed), agent: agent ?? null, reason, actor, at: new Date() };
      const placed = await hold(store, given);
      terminal.write(options.json ? JSON.stringify(placed) : holdLine(placed));
    }),
  );

const endHold = acting('release', 'End a legal hold; an erasure that waited for it goes on.')
  .argument('<id>', 'id of the hold, as `pawl retention holds` shows it')
  .addHelpText('after', '\nExample:\n  pawl retention release hold-17')
  .action((id: string, { by, ...options }: CommonOptions & { readonly by: string }) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const ended = await releaseHold(store, id, by, new Date());
      terminal.write(options.json ? JSON.stringify(ended) : holdLine(ended));
    }),
  );

const holds = withConfigOption(new Command('holds'))
  .description('List legal holds, newest first.')
  .option('--json', 'one JSON object per line')
  .action((options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const all = await listHolds(store);
      if (all.length === 0 && !options.json) terminal.write('There is no legal hold.');
      for (const one of all) terminal.write(options.json ? JSON.stringify(one) : holdLine(one));
    }),
  );

export const retentionCommand = (): Command =>
  new Command('retention')
    .description('How long conversations and datasets are kept.')
    .addCommand(run)
    .addCommand(status)
    .addCommand(placeHold)
    .addCommand(endHold)
    .addCommand(holds)
    .addHelpText('after', '\nExample:\n  pawl retention run --dry-run');
