/** `pawl explore`: what is asked of releases beyond what users ask, today. Reads only. */
import { Command } from 'commander';
import { type CommonOptions, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { type Column, table } from '../terminal.ts';
import { type ExploreStatus, exploreStatus } from './explore-status.ts';

const columns: readonly Column[] = [
  { title: 'AGENT', shrinkTo: 4 },
  { title: 'SHARE', right: true },
  { title: 'THIS HOUR', right: true },
  { title: 'TODAY', right: true },
  { title: 'MONEY TODAY', right: true },
];

const rowOf = ({ agent, share, askedThisHour, perHour, askedToday, moneyToday, moneyPerDay }: ExploreStatus) => [
  agent,
  `${share * 100}%`,
  `${askedThisHour} of ${perHour}`,
  String(askedToday),
  moneyPerDay === null ? '–' : `${moneyToday.toFixed(2)} of ${moneyPerDay}`,
];

export const exploreCommand = (): Command =>
  withConfigOption(new Command('explore'))
    .description('Show how many further answers were asked for after users had theirs, and what they cost, in UTC.')
    .option('--agent <name>', 'only this agent’s')
    .option('--json', 'one JSON object per agent and line')
    .addHelpText(
      'after',
      '\nHow much is explored is set in the agent’s file: explore: { share: 0.02, perHour: 300 }. docs/explore.md says how.\n\nExample:\n  pawl explore --json',
    )
    .action((options: CommonOptions & { readonly agent?: string }) =>
      withHome(options, 'existing', async ({ config, store, terminal }) => {
        const agents = options.agent === undefined ? config.agents : [agentOf(config, options.agent)];
        const all: ExploreStatus[] = [];
        for (const agent of agents) all.push(await exploreStatus(store, agent));
        if (options.json) for (const one of all) terminal.write(JSON.stringify(one));
        else for (const line of table(columns, all.map(rowOf), terminal)) terminal.write(line);
      }),
    );
