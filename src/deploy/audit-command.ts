/** `pawl audit list|verify`: who did what, and that nobody changed the record of it. */
import { Command } from 'commander';
import { type CommonOptions, parseMoment, withConfigOption, withHome } from '../command.ts';
import { StoreError } from '../errors.ts';
import { readAudit } from '../store/audit.ts';
import { type Column, table } from '../terminal.ts';
import { verifyAudit } from './audit.ts';
import { type ListOptions, listing, time } from './command-parts.ts';

export function auditCommand(): Command {
  type AuditOptions = ListOptions & {
    readonly who?: string;
    readonly type?: string;
    readonly subject?: string;
    readonly since?: Date;
    readonly until?: Date;
  };
  const list = listing('list', 'List what was done, newest first.')
    .option('--who <name>', 'only what this one did; pawl for what happened by itself')
    .option('--type <event>', 'only this, e.g. rollout-promoted; rollout- for all that begin so')
    .option('--subject <id>', 'only about this release, rollout, run or report')
    .option('--since <time>', 'after: 2h, 3d, or 2026-04-01', (text: string) => parseMoment(text))
    .option('--until <time>', 'before', (text: string) => parseMoment(text))
    .addHelpText(
      'after',
      '\nExample: who deployed in April?\n  pawl audit list --type rollout-started --since 2026-04-01 --until 2026-05-01',
    )
    .action((options: AuditOptions) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const { agent, who: actor, type: event, subject, since, until, limit } = options;
        const rows = await readAudit(store, { agent, actor, event, subject, since, until, limit });
        if (options.json) {
          for (const row of rows) terminal.write(JSON.stringify(row));
          return;
        }
        if (rows.length === 0) {
          terminal.write('Nothing matches.');
          return;
        }
        const columns: Column[] = [
          { title: 'N', right: true },
          { title: 'TIME' },
          { title: 'AGENT', shrinkTo: 6 },
          { title: 'ACTOR', shrinkTo: 6 },
          { title: 'EVENT' },
          { title: 'SUBJECT', shrinkTo: 8 },
          { title: 'DETAILS', shrinkTo: 10 },
        ];
        const cells = rows.map((r) => [String(r.n), time(r.at), r.agent, r.actor, r.event, r.subject, r.details]);
        for (const line of table(columns, cells, terminal)) terminal.write(line);
      }),
    );
  const verify = withConfigOption(new Command('verify'))
    .description('Check that no row of the log was changed or removed; ends with 1 if one was.')
    .option('--head <hash>', 'a hash noted earlier, e.g. on a model card, that must still be there')
    .action((options: CommonOptions & { head?: string }) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const { rows, head, problem } = await verifyAudit(store, options.head);
        if (problem) throw new StoreError(`The audit log is not whole. ${problem.problem}`);
        terminal.write(
          `${rows} rows, unbroken${options.head === undefined ? '' : ', and the hash given is among them'}. Head: ${head}`,
        );
      }),
    );
  return new Command('audit').description('Who did what.').addCommand(list, { isDefault: true }).addCommand(verify);
}
