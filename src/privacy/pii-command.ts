/** `pawl pii scan|report`: what is personal in a file or in what is stored, by kind and with where. Never the value. */
import { stat } from 'node:fs/promises';
import { Command } from 'commander';
import { settledPii } from '../collect/redact/settings.ts';
import { type CommonOptions, parseMoment, withConfigOption, withHome } from '../command.ts';
import { agentOf, loadConfig } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { scanning } from '../store/limits.ts';
import { type Column, counted, openTerminal, sayProgress, type Terminal, table } from '../terminal.ts';
import { type PiiFound, type PiiSurvey, scanFile, surveyPii } from './pii.ts';

type Options = CommonOptions & { readonly agent?: string; readonly since?: Date; readonly until?: Date };

const columns: Column[] = [
  { title: 'kind' },
  { title: 'times', right: true },
  { title: 'in', right: true },
  { title: 'where' },
  { title: 'first', shrinkTo: 12 },
];

const count = (n: number): string => n.toLocaleString('en-US');

function rowsOf(found: Readonly<Record<string, PiiFound>>): string[][] {
  return Object.entries(found)
    .sort(([, a], [, b]) => b.count - a.count)
    .map(([kind, { count: n, in: places, where, first }]) => [
      kind,
      count(n),
      count(places),
      Object.entries(where)
        .map(([who, times]) => `${who} ${count(times)}`)
        .join(', '),
      first.slice(0, 3).join(', '),
    ]);
}

function show(
  terminal: Pick<Terminal, 'write' | 'columns' | 'paint'>,
  title: string,
  found: Readonly<Record<string, PiiFound>>,
): void {
  const rows = rowsOf(found);
  terminal.write(rows.length === 0 ? `${title}: nothing.` : `${title}:`);
  if (rows.length > 0) for (const line of table(columns, rows, terminal)) terminal.write(line);
}

const windowed = (command: Command) =>
  withConfigOption(command)
    .option('--agent <name>', 'whose (default: the first of the settings)')
    .option('--since <time>', 'started after: 2h, 3d, or 2026-01-31 (default: 7d)', (text: string) => parseMoment(text))
    .option('--until <time>', 'started before (default: now)', (text: string) => parseMoment(text))
    .option('--json', 'as one JSON object');

async function survey(options: Options, isScan: boolean): Promise<void> {
  await withHome(options, 'existing', async ({ config, store, terminal }) => {
    const agent = agentOf(config, options.agent);
    const patient = store.within(scanning, 3);
    const progress = sayProgress();
    try {
      const { since = parseMoment('7d'), until = new Date() } = options;
      const result: PiiSurvey = await surveyPii(patient, {
        ...{ agent: agent.name, since, until },
        pii: isScan ? settledPii(agent.pii) : null,
        onProgress: (looked) => progress(() => `Looking: ${looked} conversations so far …`),
      });
      if (options.json) return terminal.write(JSON.stringify(result));
      terminal.write(
        `${counted(result.conversations, 'conversation')} of ${agent.name}, ${counted(result.turns, 'turn')}${result.unread > 0 ? `, ${count(result.unread)} too large to look through` : ''}.`,
      );
      if (result.found === null) show(terminal, 'Masked in what is stored', result.masked);
      else show(terminal, 'Would be replaced if it became a dataset today', result.found);
    } finally {
      await patient.close();
    }
  });
}

const scan = windowed(new Command('scan'))
  .argument('[file]', 'a file of text or JSON lines, instead of what is stored')
  .description(
    'Look for personal data in a file, or in what is stored, by kind and with where; the value is never shown.',
  )
  .addHelpText('after', '\nExamples:\n  pawl pii scan export.jsonl\n  pawl pii scan --since 7d')
  .action(async (file: string | undefined, options: Options) => {
    if (file === undefined) return survey(options, true);
    if (options.since || options.until) throw new ConfigError('A file or --since and --until, not both.');
    const config = await loadConfig(options);
    await stat(file).catch((cause) => {
      throw new ConfigError(`There is no file ${file}.`, { cause });
    });
    const result = await scanFile(file, settledPii(agentOf(config, options.agent).pii));
    const terminal = openTerminal();
    if (options.json) return terminal.write(JSON.stringify({ file, ...result }));
    terminal.write(`${count(result.lines)} lines of ${file}.`);
    show(terminal, 'Found', result.found);
  });

const report = windowed(new Command('report'))
  .description('What was masked in what is stored, by kind and with where.')
  .action((options: Options) => survey(options, false));

export const piiCommand = (): Command =>
  new Command('pii')
    .description('Personal data: scan a file or what is stored, report what was masked.')
    .addCommand(scan)
    .addCommand(report);
