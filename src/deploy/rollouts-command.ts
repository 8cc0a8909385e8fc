/**
 * `pawl rollouts start|approve|hold|promote|abort|list|show`: releases on their way to the users. `abort` is the kill switch.
 * What moves a rollout by itself is the `pawl serve` that has the traffic.
 */
import { Command, InvalidArgumentError } from 'commander';
import { type CommonOptions, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { listReleases } from '../store/releases.ts';
import { listRollouts, readRollout } from '../store/rollouts.ts';
import { type Column, oneLine, plain, type Terminal, table } from '../terminal.ts';
import { beginRollout, sayOf } from './begin.ts';
import { type ActOptions, acting, type ListOptions, listing, reasonOption, share, time } from './command-parts.ts';
import { type Reach, unfitOption, withFit } from './fit-command.ts';
import { look } from './reconcile.ts';
import { isOpen, type PersonMove, type Rollout, rolloutId, usualReason, weightOf } from './rollout.ts';

const describe = (rollout: Rollout): string =>
  `${rollout.phase}, ${share(weightOf(rollout))} of the users get the candidate (step ${rollout.step + 1} of ${rollout.settings.steps.length}).`;

function print(rollout: Rollout, json: boolean | undefined, terminal: Terminal): void {
  if (json) terminal.write(JSON.stringify(rollout, null, 2));
  else terminal.write(plain(`Rollout ${rollout.id}: ${describe(rollout)}`));
}

const idFrom = (text: string): string => {
  const parsed = rolloutId.safeParse(text);
  if (!parsed.success) throw new InvalidArgumentError(`Give ${parsed.error.issues[0]!.message}.`);
  return parsed.data;
};

type StartOptions = ActOptions & {
  readonly agent?: string;
  readonly candidate: string;
  readonly report?: string;
  readonly force?: boolean;
  readonly id?: string;
  readonly unfit?: string;
};

const startCommand = (reach: Reach) =>
  acting('start', 'Bring a release to the users step by step, as the agent’s deploy settings say.')
    .requiredOption('--candidate <release>', 'the release')
    .option('--agent <name>', 'whose it is (default: the first agent of the settings)')
    .option('--report <id>', 'the evaluation that speaks for it (default: the newest against what serves)')
    .option('--force', 'begin whatever the evaluation says; needs --reason')
    .option(...reasonOption)
    .option(...unfitOption)
    .option('--id <id>', 'what to call the rollout (default: the release’s name and a number)', idFrom)
    .addHelpText(
      'after',
      '\nA report that passes begins; one that fails is refused; any other waits for `pawl rollouts approve`.\nWhat never served is asked first whether it fits its server (`pawl evaluate compat`); --force does not change that, --unfit does.\n\nExample:\n  pawl rollouts start --agent support-desk --candidate v2',
    )
    .action((options: StartOptions) =>
      withFit(reach, options, { actor: options.by, way: 'rollout', unfit: options.unfit }, async (opened, fitOf) => {
        const { config, store, terminal } = opened;
        const { candidate, report, force = false, reason, id, by: actor } = options;
        if (force && reason === undefined)
          throw new ConfigError('--force needs --reason: say why, it stands in the audit log.');
        if (!force && reason !== undefined)
          throw new ConfigError('--reason is for --force; a rollout that begins as it should needs none.');
        const asked = { candidate, report, id, actor, forced: force ? reason : undefined };
        const agent = agentOf(config, options.agent);
        const rollout = await beginRollout(store, agent, asked, fitOf(agent), Date.now());
        print(rollout, options.json, terminal);
        if (options.json) return;
        for (const why of rollout.reasons) terminal.write(`  ${oneLine(why)}`);
        terminal.write(
          terminal.paint.dim(
            rollout.phase === 'waiting'
              ? `\`pawl rollouts approve ${rollout.id}\` lets it begin, \`pawl rollouts abort ${rollout.id}\` ends it.`
              : `\`pawl rollouts show ${rollout.id}\` says how it goes; it moves on the traffic of \`pawl serve\`.`,
          ),
        );
      }),
    );

const missing = (id: string): NotFoundError =>
  new NotFoundError(`There is no rollout ${id}; \`pawl rollouts list\` shows those that exist.`);

const list = listing('list', 'List rollouts, newest first.').action((options: ListOptions) =>
  withHome(options, 'existing', async ({ store, terminal }) => {
    const rollouts = await listRollouts(store, { agent: options.agent, limit: options.limit });
    if (options.json) for (const rollout of rollouts) terminal.write(JSON.stringify(rollout));
    else if (rollouts.length === 0) terminal.write('There has been no rollout yet.');
    else await printTable(rollouts, store, terminal);
  }),
);

async function printTable(rollouts: readonly Rollout[], store: Store, terminal: Terminal): Promise<void> {
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

const show = withConfigOption(new Command('show'))
  .description('Show a rollout: where it is, what is measured, what follows.')
  .argument('<id>')
  .option('--json', 'everything as one JSON object')
  .action((id: string, options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const rollout = await readRollout(store, id);
      if (rollout === null) throw missing(id);
      const { measurements, decision } = await look(store, rollout, Date.now());
      if (options.json) {
        terminal.write(JSON.stringify({ rollout, measurements, decision }, null, 2));
        return;
      }
      const { paint } = terminal;
      terminal.write(plain(`Rollout ${rollout.id} of agent ${rollout.agent}: ${describe(rollout)}`));
      for (const reason of rollout.reasons) terminal.write(`  ${oneLine(reason)}`);
      if (!isOpen(rollout)) return;
      for (const check of decision.checks) {
        const end = check.end === 'pass' ? paint.green : check.end === 'fail' ? paint.red : paint.yellow;
        terminal.write(`${end(check.end.padEnd(13))} ${oneLine(check.reason)}`);
      }
      terminal.write(`Next: ${decision.kind}. ${decision.reasons.map(oneLine).join(' ')}`);
    }),
  );

type MoveOptions = ActOptions & { readonly reason: string; readonly unfit?: string };

const carryOut = (reach: Reach, move: PersonMove) => (id: string, options: MoveOptions) =>
  withFit(reach, options, { actor: options.by, way: move, unfit: options.unfit }, async (opened, fitOf) => {
    const { config, store, terminal } = opened;
    const said = { move, actor: options.by, reason: options.reason };
    print(await sayOf(store, config.agents, id, said, fitOf, Date.now()), options.json, terminal);
  });

const approve = (reach: Reach) =>
  acting('approve', 'Let a rollout that waits or is paused go on; or begin that of a report which waits for a person.')
    .argument('<id>', 'of the rollout, or of the report')
    .option(...reasonOption, usualReason.approve)
    .option(...unfitOption)
    .action(carryOut(reach, 'approve'));
const hold = (reach: Reach) =>
  acting('hold', 'Keep a rollout at its share until it is approved; a failing check still ends it.')
    .argument('<id>')
    .option(...reasonOption, usualReason.hold)
    .action(carryOut(reach, 'hold'));
const promote = (reach: Reach) =>
  acting('promote', 'End a rollout at once with the candidate for everybody; nothing is waited for.')
    .argument('<id>')
    .requiredOption(...reasonOption)
    .option(...unfitOption)
    .action(carryOut(reach, 'promote'));
const abort = (reach: Reach) =>
  acting('abort', 'Kill switch: everybody gets the baseline again, at once.')
    .argument('<id>')
    .option(...reasonOption, usualReason.abort)
    .action(carryOut(reach, 'abort'));

export const rolloutsCommand = (reach: Reach): Command =>
  new Command('rollouts')
    .description('Releases on their way to the users.')
    .addCommand(list, { isDefault: true })
    .addCommand(startCommand(reach))
    .addCommand(show)
    .addCommand(approve(reach))
    .addCommand(hold(reach))
    .addCommand(promote(reach))
    .addCommand(abort(reach))
    .addHelpText('after', '\nExample:\n  pawl rollouts abort v2-r1 --reason "complaints"');
