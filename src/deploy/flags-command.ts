/** `pawl flags list|on|off`: switches of an agent for what happens by itself. */
import { Argument, Command } from 'commander';
import { type CommonOptions, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { plain, table } from '../terminal.ts';
import { type ActOptions, acting, reasonOption, time } from './command-parts.ts';
import { type FlagName, flagNames, listFlags, turnFlag } from './flag.ts';

const agentOption = ['--agent <name>', 'whose (default: the first agent of the settings)'] as const;

const list = withConfigOption(new Command('list'))
  .description('List the flags: what each governs, and who turned it.')
  .option(...agentOption)
  .option('--json', 'one JSON object per line')
  .action((options: CommonOptions & { readonly agent?: string }) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const found = await listFlags(store, agentOf(config, options.agent).name);
      if (options.json) {
        for (const flag of found) terminal.write(JSON.stringify(flag));
        return;
      }
      const columns = [
        { title: 'FLAG' },
        { title: 'IS' },
        { title: 'BY' },
        { title: 'SINCE' },
        { title: 'WHILE IT IS ON', shrinkTo: 20 },
      ];
      const rows = found.map(({ name, isOn, by = '–', at, governs }) => [
        ...[name, isOn ? 'on' : 'off', by, at === undefined ? '–' : time(at), governs],
      ]);
      for (const line of table(columns, rows, terminal)) terminal.write(line);
    }),
  );

const turn = (isOn: boolean) =>
  acting(isOn ? 'on' : 'off', `Turn a flag ${isOn ? 'on' : 'off'}; it takes effect everywhere within 2 s.`)
    .addArgument(new Argument('<flag>', 'which').choices(flagNames))
    .option(...agentOption)
    .option(...reasonOption, 'No reason was given.')
    .addHelpText('after', `\nExample:\n  pawl flags ${isOn ? 'on' : 'off'} exploration --agent support-desk`)
    .action((name: FlagName, options: ActOptions & { readonly agent?: string; readonly reason: string }) =>
      withHome(options, 'existing', async ({ config, store, terminal }) => {
        const agent = agentOf(config, options.agent).name;
        const { by, reason } = options;
        const changed = await turnFlag(store, { agent, name, isOn, by, reason, at: Date.now() });
        if (options.json) terminal.write(JSON.stringify({ agent, name, isOn, changed }, null, 2));
        else terminal.write(plain(`${name} of ${agent} ${changed ? 'is now' : 'was already'} ${isOn ? 'on' : 'off'}.`));
      }),
    );

export const flagsCommand = (): Command =>
  new Command('flags')
    .description('Switches of an agent for what happens by itself.')
    .addCommand(list, { isDefault: true })
    .addCommand(turn(true))
    .addCommand(turn(false))
    .addHelpText('after', '\nExample:\n  pawl flags off rollouts --reason "holidays"');
