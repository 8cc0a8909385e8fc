/** `pawl trajectories import`: conversations of a file, as if they had come through the gateway. */
import { createReadStream, statSync } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type CommonOptions, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import { counted, sayProgress, type Terminal } from '../terminal.ts';
import { type Format, formats, sourceName } from './conversation.ts';
import { cutLines } from './cut-lines.ts';
import { type ImportCounts, importConversations } from './import.ts';
import { piiOfAgents } from './redact/settings.ts';
import { type Origin, origins } from './trajectory.ts';

type ImportOptions = CommonOptions & {
  readonly agent?: string;
  readonly format?: Format;
  readonly origin: Origin;
  readonly source?: string;
};

/** Lines of a file; `-` is standard input. */
export function linesOf(file: string): AsyncIterable<string> {
  const found = file === '-' ? undefined : statSync(file, { throwIfNoEntry: false });
  if (file !== '-' && !found) throw new NotFoundError(`There is no file ${file}.`);
  if (found?.isDirectory())
    throw new ConfigError(`${file} is a folder. Give a file of JSON lines, or - for standard input.`);
  return cutLines(file === '-' ? process.stdin : createReadStream(file));
}

/** Whoever imports means to bring something in: a file that holds nothing was made by something that failed. */
export function refuseNothing(file: string, what: string, found: number): void {
  if (found === 0) throw new NotFoundError(`There is no ${what} in ${file === '-' ? 'standard input' : file}.`);
}

export function sayProblems({ bad, problems }: Pick<ImportCounts, 'bad' | 'problems'>, terminal: Terminal): void {
  for (const { line, reason } of problems) terminal.write(terminal.paint.yellow(`  line ${line}: ${reason}`));
  if (bad > problems.length) terminal.write(terminal.paint.yellow(`  and ${bad - problems.length} more`));
}

const sourceOf = (text: string): string => {
  const { data, error } = sourceName.safeParse(text);
  if (error) throw new InvalidArgumentError(`A source is called by ${error.issues[0]!.message}.`);
  return data;
};

export const importCommand = (): Command =>
  withConfigOption(new Command('import'))
    .description('Read conversations from a file of JSON lines; what was imported before is left alone.')
    .argument('<file>', 'one conversation per line; - is standard input')
    .option('--agent <name>', 'whose (default: the first of the settings)')
    .addOption(new Option('--format <format>', 'of the lines (default: told by each line)').choices(formats))
    .addOption(new Option('--origin <origin>', 'where they came from').choices(origins).default('production'))
    .option('--source <name>', 'what it is called where `curate.maxSourceShare` bounds one source', sourceOf)
    .option('--json', 'the counts as one JSON object')
    .addHelpText('after', '\nExample:\n  pawl trajectories import logs.jsonl --agent support-desk')
    .action((file: string, options: ImportOptions) =>
      withHome(options, 'create', async ({ store, config, terminal, secret }) => {
        const { name: agent } = agentOf(config, options.agent);
        const progress = sayProgress();
        const counts = await importConversations(store, {
          ...{
            agent,
            origin: options.origin,
            format: options.format,
            source: options.source,
            secret,
            now: new Date(),
            lines: linesOf(file),
          },
          pii: piiOfAgents(config),
          onProgress: ({ conversations }) => progress(() => `${conversations} conversations so far …`),
        });
        refuseNothing(file, 'conversation', counts.conversations + counts.bad);
        if (counts.bad > 0) process.exitCode = 1;
        if (options.json) {
          terminal.write(JSON.stringify({ agent, ...counts }));
          return;
        }
        const { conversations, turns, signals, known, redactions, bad } = counts;
        terminal.write(
          `${counted(conversations, 'conversation')} of ${agent}: new are ${counted(turns, 'turn')} and ${counted(signals, 'signal')}, ${known} were there; ${counted(redactions, 'piece')} of personal data replaced; ${counted(bad, 'line or entry', 'lines or entries')} not taken.`,
        );
        sayProblems(counts, terminal);
      }),
    );
