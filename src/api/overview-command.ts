/** `pawl overview`: an agent's loop at a glance, as the first page of the dashboard shows it. */
import { Command } from 'commander';
import { type CommonOptions, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { progressElsewhere } from '../loop/progress.ts';
import { overviewJson, readOverview } from './overview.ts';
import { overviewLines } from './overview-show.ts';

export const overviewCommand = (): Command =>
  withConfigOption(new Command('overview'))
    .description('An agent’s loop at a glance: its stages, what needs a person, gains, cost and return, go or no-go.')
    .option('--agent <name>', 'whose (default: the first agent of the settings)')
    .option('--json', 'as JSON, as GET /api/overview answers')
    .addHelpText('after', '\nExample:\n  pawl overview --agent support-desk')
    .action((options: CommonOptions & { readonly agent?: string }) =>
      withHome(options, 'existing', async ({ config, store, terminal }) => {
        const agent = agentOf(config, options.agent);
        const found = await readOverview(store, agent, new Date(), (name) => progressElsewhere(store, name));
        if (options.json) {
          const agents = config.agents.map(({ name }) => name);
          terminal.write(JSON.stringify({ agents, ...overviewJson(found) }, null, 2));
          return;
        }
        for (const line of overviewLines(found, terminal)) terminal.write(line);
      }),
    );
