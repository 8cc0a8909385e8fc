/** `pawl consent give`, `withdraw`, `show` and `list`: what users agreed to: that conversations train a model, cross a border or a tenant. */
import { Command, Option } from 'commander';
import { typedUser } from '../collect/person.ts';
import { clock } from '../collect/timeline-print.ts';
import { type CommonOptions, type Opened, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf, unlisted } from '../config.ts';
import { hasConversed, listConsents } from '../store/consents.ts';
import { plain, table } from '../terminal.ts';
import { type ConsentPurpose, consentPurposes, sayConsent, type WholeConsent, wholeConsent } from './consent.ts';

type Options = CommonOptions & { readonly agent?: string; readonly hashed?: boolean };
type SayOptions = Options & { readonly for: ConsentPurpose; readonly by: string };

const meaning = {
  given: 'conversations that begin from now on may train a model',
  withdrawn: 'no conversation may train a model',
  unknown: 'nobody said, so no conversation may train a model',
} as const;

const purposeWords = { transfer: 'transfer to another region', tenants: 'learning across tenants' } as const;

/** The id that was typed is not repeated: it is personal, and output ends up in logs. */
async function print(record: WholeConsent, { store, terminal }: Opened, { json, hashed }: Options): Promise<void> {
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
  for (const { purpose, now, givenAt } of record.others)
    if (now !== 'unknown')
      terminal.write(`  ${purposeWords[purpose]}: ${now}${now === 'given' ? ` ${clock(givenAt!)}` : ''}`);
  if (!seen)
    terminal.write(
      `  This user has not begun a conversation with agent ${plain(record.agent)} yet. If that is a surprise, check the id: it is the one the agent sends, letter by letter${hashed ? '' : ', or the hash that a list shows together with --hashed'}.`,
    );
}

const one = (name: string, description: string, example: string): Command =>
  withConfigOption(new Command(name))
    .description(description)
    .argument('<user>', 'user id as the agent sends it')
    .option('--agent <name>', 'for which agent (default: the first of the settings)')
    .option('--hashed', 'the user is given by the hash that a list shows')
    .option('--json', 'print as JSON')
    .addHelpText('after', `\nExample:\n  ${example}`);

const saying = (name: 'give' | 'withdraw', description: string, example: string): Command =>
  one(name, description, example)
    .addOption(
      new Option('--for <purpose>', 'to what: learning from it, taking it abroad, learning across tenants')
        .choices(consentPurposes)
        .default('learn'),
    )
    .option('--by <name>', 'who says so; it stands in the audit log', 'command line')
    .action((user: string, options: SayOptions) =>
      withHome(options, 'create', async (opened) => {
        const said = {
          agent: options.agent ?? agentOf(opened.config).name,
          user: typedUser(user, opened.secret, options.hashed),
          says: name === 'give' ? ('given' as const) : ('withdrawn' as const),
          ...{ purpose: options.for, actor: options.by, at: new Date() },
        };
        const warning = unlisted(opened.config, said.agent);
        if (warning !== null) console.error(warning);
        await print(await sayConsent(opened.store, said), opened, options);
      }),
    );

const give = saying('give', 'The user agrees, from now on.', 'pawl consent give u-17 --agent support-desk');
const withdraw = saying('withdraw', 'The user does not, or no longer, agree.', 'pawl consent withdraw u-17');

const show = one('show', 'Say what stands for a user.', 'pawl consent show u-17').action(
  (user: string, options: Options) =>
    withHome(options, 'existing', async (opened) => {
      const agent = options.agent ?? agentOf(opened.config).name;
      const stored = typedUser(user, opened.secret, options.hashed);
      await print(await wholeConsent(opened.store, agent, stored), opened, options);
    }),
);

const list = withConfigOption(new Command('list'))
  .description('List what users said, by user id.')
  .option('--agent <name>', 'for which agent (default: the first of the settings)')
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
