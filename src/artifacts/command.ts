/** `pawl artifacts list|show|verify|prune`: what is kept, whether it is still what was kept, and an end for what nothing needs. */
import { Command } from 'commander';
import { type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { ArtifactError } from '../errors.ts';
import { sayProgress, type Terminal, table } from '../terminal.ts';
import type { Listed } from './artifacts.ts';
import { type Entry, findArtifact, listArtifacts } from './inventory.ts';
import { pruneArtifacts } from './prune.ts';

const units = ['B', 'KB', 'MB', 'GB', 'TB'];
const sized = (bytes: number): string => {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(bytes) / Math.log(1024)));
  const value = bytes / 1024 ** power;
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
};
const time = (at: number): string => new Date(at).toISOString().slice(0, 16).replace('T', ' ');
const short = (reference: string): string => reference.slice(0, 'artifact:'.length + 16);

const lines = (entries: readonly Entry[], terminal: Terminal): string[] =>
  table(
    [
      { title: 'ARTIFACT' },
      { title: 'KIND' },
      { title: 'SIZE', right: true },
      { title: 'FILES', right: true },
      { title: 'KEPT' },
      { title: 'USED BY', shrinkTo: 12 },
    ],
    entries.map(({ reference, manifest, bytes, at, referredBy }) => [
      short(reference),
      manifest?.kind ?? 'broken',
      sized(bytes),
      String(manifest?.files.length ?? 0),
      time(at),
      referredBy.join(', '),
    ]),
    terminal,
  );

const list = withConfigOption(new Command('list'))
  .description('List what is kept, newest first, with what uses it.')
  .option('--limit <n>', 'how many', wholeNumber(1, 1000), 50)
  .option('--json', 'one JSON object a line')
  .action((options: CommonOptions & { readonly limit: number }) =>
    withHome(options, 'existing', async ({ store, artifacts, terminal }) => {
      const entries = await listArtifacts(artifacts, store, options.limit);
      if (options.json) for (const entry of entries) terminal.write(JSON.stringify(entry));
      else if (entries.length === 0) terminal.write(`Nothing is kept in ${artifacts.where} yet.`);
      else for (const line of lines(entries, terminal)) terminal.write(line);
    }),
  );

const show = withConfigOption(new Command('show'))
  .description('Show one artifact: its files, and what uses it.')
  .argument('<artifact>', 'its reference, or the first digits of it')
  .option('--json', 'everything as one JSON object')
  .action((given: string, options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, artifacts, terminal }) => {
      const entry = await findArtifact(artifacts, store, given);
      if (options.json) return terminal.write(JSON.stringify(entry, null, 2));
      const { reference, manifest, at, referredBy } = entry;
      terminal.write(reference);
      terminal.write(`In ${artifacts.where}, kept ${time(at)}`);
      terminal.write(`Used by ${referredBy.length === 0 ? 'nothing' : referredBy.join(', ')}`);
      if (manifest === null)
        return terminal.write('Its manifest is not what was kept; `pawl artifacts verify` says why.');
      terminal.write(`${manifest.kind}${manifest.of === '' ? '' : ` of ${manifest.of}`}`);
      for (const need of manifest.needs) terminal.write(`Needs ${need}`);
      const rows = manifest.files.map(({ path, size, sha256 }) => [path, sized(size), sha256.slice(0, 16)]);
      for (const line of table(
        [{ title: 'FILE', shrinkTo: 20 }, { title: 'SIZE', right: true }, { title: 'SHA-256' }],
        rows,
        terminal,
      ))
        terminal.write(line);
    }),
  );

const verify = withConfigOption(new Command('verify'))
  .description('Read every byte of what is kept and compare it with what was.')
  .argument('[artifact...]', 'references, or the first digits of them (default: all)')
  .option('--json', 'one JSON object a line')
  .addHelpText('after', '\nThe exit code is 1 when something is not as it was.')
  .action((given: readonly string[], options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, artifacts, terminal, onInterrupt }) => {
      const stop = new AbortController();
      onInterrupt(async () => stop.abort(new Error('Stopped; nothing was changed.')));
      const chosen: Listed[] = [];
      if (given.length === 0) for await (const one of artifacts.list()) chosen.push(one);
      for (const one of given) chosen.push(await findArtifact(artifacts, store, one));
      const progress = sayProgress();
      let wrong = 0;
      for (const [i, { reference }] of chosen.entries()) {
        progress(() => `${i} of ${chosen.length} are checked …`);
        const problem = await artifacts.verify(reference, stop.signal).then(
          () => null,
          (error: unknown) => {
            if (error instanceof ArtifactError && !error.retryable) return error.message;
            throw error;
          },
        );
        if (problem !== null) wrong++;
        if (options.json) terminal.write(JSON.stringify({ reference, ok: problem === null, problem }));
        else if (problem !== null) terminal.write(problem);
      }
      if (!options.json) terminal.write(`${chosen.length - wrong} of ${chosen.length} artifacts are as they were.`);
      if (wrong > 0) process.exitCode = 1;
    }),
  );

const prune = withConfigOption(new Command('prune'))
  .description('Remove what nothing in the database uses and is a day old. Without --yes only says what that is.')
  .option('--yes', 'remove it')
  .option('--force', 'even where this database uses nothing of what is kept')
  .option('--json', 'what was removed, or would be, as one JSON object')
  .action((options: CommonOptions & { readonly yes?: boolean; readonly force?: boolean }) =>
    withHome(options, 'existing', async ({ store, artifacts, terminal }) => {
      const { yes = false, force = false } = options;
      const progress = sayProgress();
      const onRemoved = (count: number) => progress(() => `${count} removed …`);
      const pruned = await pruneArtifacts(artifacts, store, { now: Date.now(), dryRun: !yes, force, onRemoved });
      if (options.json) return terminal.write(JSON.stringify({ ...pruned, dryRun: !yes }));
      const { kept, young, removed, files } = pruned;
      for (const { reference, at } of removed) terminal.write(`${short(reference)}  kept ${time(at)}`);
      terminal.write(
        `${yes ? 'Removed' : 'Would remove'} ${removed.length} artifacts and ${files} files of uploads that never ended; ${kept} are used, ${young} are younger than a day.`,
      );
      if (!yes && removed.length + files > 0) terminal.write('Remove them: pawl artifacts prune --yes');
    }),
  );

export const artifactsCommand = (): Command =>
  new Command('artifacts')
    .description('What is kept as files: datasets, models, checkpoints, suites.')
    .addCommand(list, { isDefault: true })
    .addCommand(show)
    .addCommand(verify)
    .addCommand(prune)
    .addHelpText('after', '\nExample:\n  pawl artifacts verify');
