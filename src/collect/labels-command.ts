/** `pawl labels`: what people who looked at conversations say they were worth. */
import { Command } from 'commander';
import { type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { type Label, listLabels } from '../store/labels.ts';
import { counted, table } from '../terminal.ts';
import { linesOf, refuseNothing, sayProblems } from './import-command.ts';
import { importLabels } from './import-labels.ts';
import { typedUser } from './person.ts';
import { piiOfAgents } from './redact/settings.ts';
import { clock } from './timeline-print.ts';

type Options = CommonOptions & { readonly agent?: string };
type ListOptions = Options & { readonly reviewer?: string; readonly hashed?: boolean; readonly limit: number };

const importing = withConfigOption(new Command('import'))
  .description(
    'Read labels from a file of JSON lines: {"trajectory", "score", "parts", "reviewer", "comment", "correction"}.',
  )
  .argument('<file>', 'one label per line; - is standard input')
  .option('--agent <name>', 'whose conversations (default: the first of the settings)')
  .option('--json', 'the counts as one JSON object')
  .addHelpText('after', '\nExample:\n  pawl labels import review-week-20.jsonl --agent support-desk')
  .action((file: string, options: Options) =>
    withHome(options, 'create', async ({ store, config, terminal, secret }) => {
      const { name: agent } = agentOf(config, options.agent);
      const counts = await importLabels(store, {
        ...{ agent, secret, now: new Date(), labels: linesOf(file), pii: piiOfAgents(config) },
      });
      refuseNothing(file, 'label', counts.labels + counts.bad);
      if (counts.bad > 0) process.exitCode = 1;
      if (options.json) {
        terminal.write(JSON.stringify({ agent, ...counts }));
        return;
      }
      const { labels, written, unchanged, unknown, bad } = counts;
      terminal.write(
        `${counted(labels, 'label')} of ${agent}: ${counted(written, 'value')} written, ${unchanged} stood already; about a conversation that is not recorded: ${unknown}; ${counted(bad, 'line')} not taken.`,
      );
      sayProblems(counts, terminal);
      terminal.write('`pawl reward status` says how well the reward agrees with them.');
    }),
  );

/** As `labels import` reads it; the reviewer is the stored hash. */
export const labelLine = ({ target, reviewer, score, parts, comment, correction, at }: Label): string =>
  JSON.stringify({
    [target.kind]: target.id,
    score,
    ...(Object.keys(parts).length === 0 ? {} : { parts }),
    ...(reviewer === null ? {} : { reviewer }),
    ...(comment === null ? {} : { comment }),
    ...(correction === null ? {} : { correction }),
    at: new Date(at).toISOString(),
  });

const listed = (name: string, description: string, limit: number): Command =>
  withConfigOption(new Command(name))
    .description(description)
    .option('--agent <name>', 'of whose conversations (default: the first of the settings)')
    .option('--reviewer <id>', 'only this reviewer’s; the id as it was given')
    .option('--hashed', 'the reviewer is given by the hash that a list shows')
    .option('--limit <n>', 'how many, at most 100000', wholeNumber(1, 100_000), limit);

async function read({ config, store, secret }: Parameters<Parameters<typeof withHome>[2]>[0], options: ListOptions) {
  const { name: agent } = agentOf(config, options.agent);
  const reviewer = options.reviewer === undefined ? undefined : typedUser(options.reviewer, secret, options.hashed);
  return { agent, labels: await listLabels(store, { agent, reviewer, limit: options.limit }) };
}

const list = listed('list', 'List labels, newest first.', 20)
  .option('--json', 'one JSON object per line')
  .addHelpText('after', '\nExample:\n  pawl labels list --reviewer ann')
  .action((options: ListOptions) =>
    withHome(options, 'existing', async (opened) => {
      const { terminal } = opened;
      const { agent, labels } = await read(opened, options);
      if (options.json) {
        for (const label of labels) terminal.write(JSON.stringify(label));
        return;
      }
      if (labels.length === 0) {
        terminal.write(`Nobody has labelled a conversation of ${agent} yet: pawl labels import FILE`);
        return;
      }
      const columns = [
        { title: 'TIME' },
        { title: 'ABOUT', shrinkTo: 12 },
        { title: 'SCORE', right: true },
        { title: 'PARTS', shrinkTo: 8 },
        { title: 'REVIEWER', shrinkTo: 8 },
        { title: 'COMMENT', shrinkTo: 10 },
      ];
      const rows = labels.map(({ at, target, score, parts, reviewer, comment }) => [
        clock(at),
        target.kind === 'turn' ? `turn ${target.id}` : target.id,
        score.toFixed(2),
        Object.entries(parts)
          .map(([part, value]) => `${part} ${value}`)
          .join(', ') || '–',
        reviewer ?? '–',
        comment ?? '–',
      ]);
      for (const line of table(columns, rows, terminal)) terminal.write(line);
    }),
  );

const exporting = listed(
  'export',
  'Write labels as JSON lines, as `labels import` reads them; reviewers are hashes.',
  100_000,
)
  .addHelpText('after', '\nExample:\n  pawl labels export > labels.jsonl')
  .action((options: ListOptions) =>
    withHome(options, 'existing', async (opened) => {
      const { labels } = await read(opened, options);
      for (const label of labels) opened.terminal.write(labelLine(label));
    }),
  );

export const labelsCommand = (): Command =>
  new Command('labels')
    .description('What people who looked at conversations say they were worth.')
    .addCommand(importing)
    .addCommand(list)
    .addCommand(exporting)
    .addHelpText('after', '\nExample:\n  pawl labels import review.jsonl');
