/** `pawl consent give`, `withdraw`, `show` and `list`: whether a user agreed that conversations may train a model. */
import { Command } from 'commander';
import { type CommonOptions, type Opened, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import {
  type ConsentRecord,
  giveConsent,
  hasConversed,
  listConsents,
  readConsent,
  withdrawConsent,
} from '../store/consents.ts';
import { plain, table } from '../terminal.ts';
import { typedUser } from './person.ts';
import { clock } from './timeline-print.ts';

type Options = CommonOptions & { readonly agent?: string };

const meaning = {
  given: 'conversations that begin from now on may train a model',
  withdrawn: 'no conversation may train a model',
  unknown: 'nobody said, so no conversation may train a model',
} as const;

/** The id that was typed is not repeated: it is personal, and output ends up in logs. */
async function print(record: ConsentRecord, { store, terminal }: Opened, json: boolean | undefined): Promise<void> {
  const seen = await hasConversed(store, record.agent, record.user);
  if (json) {
    terminal.write(JSON.stringify({ ...record, seen }));
    return;
  }
  const { paint } = terminal;
  const state = record.now === 'given' ? paint.green(record.now) : paint.yellow(record.now);
  terminal.write(`User ${record.user}, agent ${plain(record.agent)}: consent ${state}: ${meaning[record.now]}.`);
  if (record.givenAt !== null) terminal.write(`  given      ${clock(record.givenAt)}`);
  if (record.withdrawnAt !== null) terminal.write(`  withdrawn  ${clock(record.withdrawnAt)}`);
  if (!seen)
    terminal.write(
      `  This user has not begun a conversation with agent ${plain(record.agent)} yet. If that is a surprise, check the id: it is the one the agent sends, letter by letter.`,
    );
}

const one = (name: string, description: string, example: string): Command =>
  withConfigOption(new Command(name))
    .description(description)
    .argument('<user>', 'user id as the agent sends it')
    .option('--agent <name>', 'for which agent (default: `agent` of the settings)')
    .option('--json', 'print as JSON')
    .addHelpText('after', `\nExample:\n  ${example}`);

const give = one('give', 'The user agrees, from now on.', 'pawl consent give u-17 --agent support-desk').action(
  (user: string, options: Options) =>
    withHome(options, 'create', async (opened) => {
      const agent = options.agent ?? agentOf(opened.config).name;
      await print(
        await giveConsent(opened.store, agent, typedUser(user, opened.secret), new Date()),
        opened,
        options.json,
      );
    }),
);

const withdraw = one('withdraw', 'The user does not, or no longer, agree.', 'pawl consent withdraw u-17').action(
  (user: string, options: Options) =>
    withHome(options, 'create', async (opened) => {
      const agent = options.agent ?? agentOf(opened.config).name;
      await print(
        await withdrawConsent(opened.store, agent, typedUser(user, opened.secret), new Date()),
        opened,
        options.json,
      );
    }),
);

const show = one('show', 'Say what stands for a user.', 'pawl consent show u-17').action(
  (user: string, options: Options) =>
    withHome(options, 'existing', async (opened) => {
      const agent = options.agent ?? agentOf(opened.config).name;
      const stored = typedUser(user, opened.secret);
      const said = await readConsent(opened.store, agent, stored);
      const record = said ?? { agent, user: stored, now: 'unknown' as const, givenAt: null, withdrawnAt: null };
      await print(record, opened, options.json);
    }),
);

const list = withConfigOption(new Command('list'))
  .description('List what users said, by user id.')
  .option('--agent <name>', 'for which agent (default: `agent` of the settings)')
  .option('--limit <n>', 'how many, at most 10000', wholeNumber(1, 10_000), 100)
  .option('--json', 'one JSON object per line')
  .addHelpText('after', '\nExample:\n  pawl consent list --agent support-desk --limit 1000 --json')
  .action((options: Options & { readonly limit: number }) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const agent = options.agent ?? agentOf(config).name;
      const records = await listConsents(store, { agent, limit: options.limit });
      if (options.json) {
        for (const record of records) terminal.write(JSON.stringify(record));
        return;
      }
      if (records.length === 0) {
        terminal.write(`Nobody has said anything about agent ${plain(agent)}. Record it: pawl consent give USER`);
        return;
      }
      const columns = [
        { title: 'USER', shrinkTo: 12 },
        { title: 'CONSENT' },
        { title: 'GIVEN' },
        { title: 'WITHDRAWN' },
      ];
      const rows = records.map(({ user, now, givenAt, withdrawnAt }) => [
        user,
        now,
        givenAt === null ? '–' : clock(givenAt),
        withdrawnAt === null ? '–' : clock(withdrawnAt),
      ]);
      for (const line of table(columns, rows, terminal)) terminal.write(line);
      if (records.length === options.limit) terminal.write(terminal.paint.dim('There may be more: raise --limit.'));
    }),
  );

export const consentCommand = (): Command =>
  new Command('consent')
    .description('Whether users agreed to training. Only conversations with consent given are ever used.')
    .addCommand(give)
    .addCommand(withdraw)
    .addCommand(show)
    .addCommand(list)
    .addHelpText('after', '\nExample:\n  pawl consent give u-17 --agent support-desk');
