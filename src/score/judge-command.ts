/** `pawl judge status`, `show` and `test`: who is asked, what that took, what was said of a conversation, and whether it works; `refine` is refine-command.ts. */

import { Command } from 'commander';
import { readableId } from '../collect/person.ts';
import { moneyText } from '../collect/price.ts';
import { type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { BoundaryError, ConfigError, NotFoundError } from '../errors.ts';
import { listVerdicts } from '../store/verdicts.ts';
import { type Column, table } from '../terminal.ts';
import { openJudge } from './ask-open.ts';
import { judgedLine } from './judge-print.ts';
import { judgeStatus } from './judge-status.ts';
import { tryJudge } from './judge-trial.ts';
import { refineCommand } from './refine-command.ts';

type AgentOption = CommonOptions & { readonly agent?: string };

const columns: readonly Column[] = [
  { title: 'DAY' },
  { title: 'AGENT', shrinkTo: 4 },
  { title: 'UPSTREAM', shrinkTo: 4 },
  { title: 'MODEL', shrinkTo: 8 },
  { title: 'CALLS', right: true },
  { title: 'TOKENS IN', right: true },
  { title: 'OUT', right: true },
  { title: 'MONEY', right: true },
];

const status = withConfigOption(new Command('status'))
  .description('Show who judges which agent’s conversations, and what that took, by day (UTC).')
  .option('--days <n>', 'of how many days', wholeNumber(1, 366), 7)
  .option('--json', 'one JSON object')
  .addHelpText('after', '\nExample:\n  pawl judge status --days 30')
  .action((options: CommonOptions & { readonly days: number }) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const found = await judgeStatus(store, config.agents, options.days);
      if (options.json) return terminal.write(JSON.stringify(found));
      for (const { agent, judge } of found.agents)
        terminal.write(
          judge === null
            ? `${agent}: no judge is configured; scorers that ask one measure nothing. Set \`judge\` in pawl.config.ts.`
            : `${agent}: ${judge.model} at ${judge.upstream}${judge.embeddingModel === null ? '' : `, embeddings by ${judge.embeddingModel}`}`,
        );
      const { verdicts, failed, moneyToday, budget, spending } = found;
      terminal.write(`${verdicts} verdicts are kept, ${failed} could not be had so far.`);
      terminal.write(`Today ${moneyText(moneyToday)}${budget.day === null ? '' : ` of ${budget.day}`} was spent.`);
      const rows = spending.map(({ day, agent, upstream, model, calls, promptTokens, completionTokens, money }) => [
        ...[day, agent, upstream, model, String(calls), String(promptTokens), String(completionTokens)],
        moneyText(money),
      ]);
      if (rows.length > 0) for (const line of table(columns, rows, terminal)) terminal.write(line);
    }),
  );

const show = withConfigOption(new Command('show'))
  .description('Show what judges said of one conversation: every verdict, and every criterion of a rubric.')
  .argument('<id>', 'id of the trajectory')
  .option('--agent <name>', 'whose, when two agents used the same id')
  .option('--json', 'one JSON object per verdict')
  .addHelpText('after', '\nExample:\n  pawl judge show order-4711')
  .action((id: string, options: AgentOption) =>
    withHome(options, 'existing', async ({ store, terminal, secret }) => {
      const verdicts = await listVerdicts(store, readableId(id, secret), options.agent);
      if (verdicts.length === 0)
        throw new NotFoundError(
          `No judge was asked about trajectory ${id}, or its verdicts are another’s with the same text.`,
        );
      for (const verdict of verdicts) {
        if (options.json) {
          terminal.write(JSON.stringify(verdict));
          continue;
        }
        const { prompt, model, value, reason, details = [], failures } = verdict;
        const said = failures > 0 ? `no verdict after ${failures} times` : value === null ? '–' : value.toFixed(3);
        terminal.write(terminal.paint.bold(`${prompt.split('\n')[0]}  ${said}  ${model}`));
        terminal.write(`  ${reason}`);
        for (const one of details)
          terminal.write(`  ${one.value.toFixed(2)}  ${one.name}  ${terminal.paint.dim(one.reason)}`);
      }
    }),
  );

const test = withConfigOption(new Command('test'))
  .description('Ask the judge about a conversation of three lines, and say whether it can be worked with.')
  .option('--agent <name>', 'whose judge (default: the first agent’s)')
  .option('--json', 'one JSON object')
  .addHelpText('after', '\nExample:\n  pawl judge test')
  .action((options: AgentOption) =>
    withHome(options, 'create', async ({ store, config, terminal }) => {
      const agent = agentOf(config, options.agent);
      const judge = openJudge(store, agent);
      if (judge === undefined)
        throw new ConfigError('No judge is configured: set `judge: { upstream, model }` in pawl.config.ts.');
      const { value, reason } = await tryJudge(judge, agent.name).catch((error: Error) => {
        throw new BoundaryError(`The judge cannot be worked with: ${error.message}`);
      });
      if (options.json) return terminal.write(JSON.stringify({ value, reason, judge: judge.counts() }));
      terminal.write(`It works. It said ${value}: ${reason}`);
      terminal.write(judgedLine(judge.counts()));
    }),
  );

export const judgeCommand = (): Command =>
  new Command('judge')
    .description('Who is asked by scorers that ask a model.')
    .addCommand(status)
    .addCommand(show)
    .addCommand(test)
    .addCommand(refineCommand)
    .addHelpText('after', '\nExample:\n  pawl judge status');
