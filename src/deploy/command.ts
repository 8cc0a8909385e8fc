/**
 * `pawl releases list|card`, `pawl rollouts list|show|approve|abort`, `pawl audit list|verify`: what serves, what is on its
 * way, and who did what. `abort` is the kill switch.
 */
import { userInfo } from 'node:os';
import { Command } from 'commander';
import { type CommonOptions, parseMoment, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { RequestError } from '../errors.ts';
import { readAudit } from '../store/audit.ts';
import type { Store } from '../store/postgres.ts';
import { listReleases, readRelease } from '../store/releases.ts';
import { readReport } from '../store/reports.ts';
import { listRollouts, readRollout } from '../store/rollouts.ts';
import { postgresRunStore } from '../store/runs.ts';
import { type Column, oneLine, plain, table } from '../terminal.ts';
import { verifyAudit } from './audit.ts';
import { modelCard } from './card.ts';
import { decide } from './decide.ts';
import { measureRollout, moveRollout } from './reconcile.ts';
import { isOpen, type Rollout, weightOf } from './rollout.ts';

type ListOptions = CommonOptions & { readonly agent?: string; readonly limit: number };

const time = (at: number): string => new Date(at).toISOString().slice(0, 19).replace('T', ' ');
const share = (weight: number): string => `${Number((weight * 100).toFixed(1))}%`;

const listing = (name: string, description: string): Command =>
  withConfigOption(new Command(name))
    .description(description)
    .option('--agent <name>', 'only this agent’s')
    .option('--limit <n>', 'how many, at most 1000', wholeNumber(1, 1000), 20)
    .option('--json', 'one JSON object per line');

const missing = (what: string, id: string, list: string): RequestError =>
  new RequestError(404, 'not_found', `There is no ${what} ${id}; \`pawl ${list} list\` shows those that exist.`);

export function releasesCommand(): Command {
  const list = listing('list', 'List releases, newest first; * marks the one that serves its agent.').action(
    (options: ListOptions) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const releases = await listReleases(store, { agent: options.agent, limit: options.limit });
        if (options.json) for (const release of releases) terminal.write(JSON.stringify(release));
        else if (releases.length === 0) terminal.write('There is no release yet.');
        else {
          const columns: Column[] = [
            { title: '' },
            { title: 'NAME', shrinkTo: 8 },
            { title: 'AGENT', shrinkTo: 6 },
            { title: 'MODEL', shrinkTo: 8 },
            { title: 'UPSTREAM', shrinkTo: 6 },
            { title: 'RUN', shrinkTo: 6 },
            { title: 'REPORT', shrinkTo: 6 },
            { title: 'MADE' },
          ];
          const rows = releases.map((r) => [
            ...[r.serving ? '*' : '', r.name, r.agent, r.model, r.upstream, r.run ?? '–', r.report ?? '–'],
            time(r.createdAt),
          ]);
          for (const line of table(columns, rows, terminal)) terminal.write(line);
        }
      }),
  );
  const card = withConfigOption(new Command('card'))
    .description('Print the model card of a release, in Markdown.')
    .argument('<name>', 'name of the release')
    .option('--agent <name>', 'whose (default: the agent of the settings)')
    .action((name: string, options: CommonOptions & { agent?: string }) =>
      withHome(options, 'existing', async ({ config, store, terminal }) => {
        const text = await cardOf(store, options.agent ?? agentOf(config).name, name);
        if (text === null) throw missing('release', name, 'releases');
        terminal.write(plain(text).trimEnd());
      }),
    );
  return new Command('releases')
    .description('What can answer traffic.')
    .addCommand(list, { isDefault: true })
    .addCommand(card)
    .addHelpText('after', '\nExample:\n  pawl releases card desk-7 > card.md');
}

/** The card of a release from everything that is stored about it; null if there is no such release. */
export async function cardOf(
  store: Store,
  agent: string,
  name: string,
  dataset: Parameters<typeof modelCard>[0]['dataset'] = null,
): Promise<string | null> {
  const release = await readRelease(store, { agent, name });
  if (release === null) return null;
  const rollout =
    (await listRollouts(store, { agent, limit: 1000 })).find((one) => one.candidate === release.id) ?? null;
  const baseline = rollout === null ? null : await readRelease(store, { id: rollout.baseline });
  const reportId = release.report ?? rollout?.report ?? null;
  const report = reportId === null ? null : await readReport(store, reportId);
  const run = release.run === null ? null : await postgresRunStore(store).get(release.run);
  const about = [release.id, ...(rollout === null ? [] : [rollout.id])];
  const audit = (await Promise.all(about.map((subject) => readAudit(store, { subject, limit: 1000 })))).flat();
  return modelCard({ release, baseline, run, report, rollout, dataset, audit: audit.sort((a, b) => a.n - b.n) });
}

export function rolloutsCommand(): Command {
  const list = listing('list', 'List rollouts, newest first.').action((options: ListOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const rollouts = await listRollouts(store, { agent: options.agent, limit: options.limit });
      if (options.json) for (const rollout of rollouts) terminal.write(JSON.stringify(rollout));
      else if (rollouts.length === 0) terminal.write('There has been no rollout yet.');
      else {
        const names = new Map((await listReleases(store, { limit: 10_000 })).map(({ id, name }) => [id, name]));
        const columns: Column[] = [
          { title: 'ID', shrinkTo: 8 },
          { title: 'AGENT', shrinkTo: 6 },
          { title: 'CANDIDATE', shrinkTo: 6 },
          { title: 'BASELINE', shrinkTo: 6 },
          { title: 'PHASE' },
          { title: 'SHARE', right: true },
          { title: 'SINCE' },
          { title: 'WHY', shrinkTo: 10 },
        ];
        const rows = rollouts.map((r) => [
          r.id,
          r.agent,
          names.get(r.candidate) ?? r.candidate,
          names.get(r.baseline) ?? r.baseline,
          r.phase,
          share(weightOf(r)),
          time(r.endedAt ?? r.stepSince ?? r.createdAt),
          r.reasons.join(' '),
        ]);
        for (const line of table(columns, rows, terminal)) terminal.write(line);
      }
    }),
  );

  const show = withConfigOption(new Command('show'))
    .description('Show a rollout: where it is, what is measured, what follows.')
    .argument('<id>')
    .option('--json', 'everything as one JSON object')
    .action((id: string, options: CommonOptions) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const rollout = await readRollout(store, id);
        if (rollout === null) throw missing('rollout', id, 'rollouts');
        const now = Date.now();
        const measurements = rollout.stepSince === null ? null : await measureRollout(store, rollout, now);
        const decision = measurements && isOpen(rollout) ? decide(rollout, measurements, now) : null;
        if (options.json) {
          terminal.write(JSON.stringify({ rollout, measurements, decision }, null, 2));
          return;
        }
        const { paint } = terminal;
        terminal.write(plain(`Rollout ${rollout.id} of agent ${rollout.agent}: ${describe(rollout)}`));
        for (const reason of rollout.reasons) terminal.write(`  ${oneLine(reason)}`);
        for (const check of decision?.checks ?? []) {
          const end = check.end === 'pass' ? paint.green : check.end === 'fail' ? paint.red : paint.yellow;
          terminal.write(`${end(check.end.padEnd(13))} ${oneLine(check.reason)}`);
        }
        if (decision) terminal.write(`Next: ${decision.kind}. ${decision.reasons.map(oneLine).join(' ')}`);
      }),
    );

  type MoveOptions = CommonOptions & { readonly by: string; readonly reason: string };
  const move = (name: 'approve' | 'abort', description: string, reason: string) =>
    withConfigOption(new Command(name))
      .description(description)
      .argument('<id>')
      .option('--by <name>', 'who does it; stands in the audit log', userName())
      .option('--reason <text>', 'why; stands in the audit log', reason)
      .action((id: string, options: MoveOptions) =>
        withHome(options, 'existing', async ({ store, terminal }) => {
          if ((await readRollout(store, id)) === null) throw missing('rollout', id, 'rollouts');
          const next = await moveRollout(store, id, name, options.by, options.reason, Date.now());
          terminal.write(plain(`Rollout ${id}: ${describe(next)}`));
        }),
      );

  return new Command('rollouts')
    .description('Releases on their way to the users.')
    .addCommand(list, { isDefault: true })
    .addCommand(show)
    .addCommand(move('approve', 'Let a rollout that waits or is paused go on.', 'Approved.'))
    .addCommand(move('abort', 'Kill switch: everybody gets the baseline again, at once.', 'Aborted.'))
    .addHelpText('after', '\nExample:\n  pawl rollouts abort r-7 --reason "complaints"');
}

const describe = (rollout: Rollout): string =>
  `${rollout.phase}, ${share(weightOf(rollout))} of the users get the candidate (step ${rollout.step + 1} of ${rollout.settings.steps.length}).`;

/** Containers may have a user id that no name belongs to. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

export function auditCommand(): Command {
  type AuditOptions = ListOptions & {
    readonly actor?: string;
    readonly event?: string;
    readonly subject?: string;
    readonly since?: Date;
    readonly until?: Date;
  };
  const list = listing('list', 'List what was done, newest first.')
    .option('--actor <name>', 'only what this one did; pawl for what happened by itself')
    .option('--event <name>', 'only this, e.g. rollout-promoted')
    .option('--subject <id>', 'only about this release, rollout, run or report')
    .option('--since <time>', 'after: 2h, 3d, or 2026-04-01', (text: string) => parseMoment(text))
    .option('--until <time>', 'before', (text: string) => parseMoment(text))
    .addHelpText(
      'after',
      '\nExample: who deployed in April?\n  pawl audit list --event rollout-started --since 2026-04-01 --until 2026-05-01',
    )
    .action((options: AuditOptions) =>
      withHome(options, 'existing', async ({ store, terminal }) => {
        const { agent, actor, event, subject, since, until, limit } = options;
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
        if (problem) throw new RequestError(409, 'audit_broken', `The audit log is not whole. ${problem.problem}`);
        terminal.write(`${rows} rows, unbroken. Head: ${head}`);
      }),
    );
  return new Command('audit').description('Who did what.').addCommand(list, { isDefault: true }).addCommand(verify);
}
