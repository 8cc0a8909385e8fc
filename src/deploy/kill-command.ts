/** `pawl kill AGENT`: one release for everybody at once, and nothing begins until `--undo`. */
import type { Command } from 'commander';
import { withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { plain } from '../terminal.ts';
import { type ActOptions, acting, reasonOption } from './command-parts.ts';
import { mustBeKnown } from './fit.ts';
import { unfitOption } from './fit-command.ts';
import { pullKillSwitch, releaseKillSwitch } from './kill.ts';
import { findRelease } from './register.ts';

type KillOptions = ActOptions & { readonly to?: string; readonly undo?: boolean; readonly unfit?: string };

export const killCommand = (): Command =>
  acting('kill', 'Kill switch: one release answers everybody at once, and nothing is rolled out until --undo.')
    .argument('<agent>', 'whose traffic')
    .option('--to <release>', 'what is to answer (default: the baseline, or what served before)')
    .option(...unfitOption)
    .option('--undo', 'let rollouts begin again; what answers stays')
    .option(...reasonOption, 'No reason was given.')
    .addHelpText(
      'after',
      '\nAn open rollout is aborted and pins do not count while the switch is pulled. Gateways follow within 2 s.\n\nExamples:\n  pawl kill support-desk --reason "it quotes prices"\n  pawl kill support-desk --undo',
    )
    .action((name: string, options: KillOptions) =>
      withHome(options, 'existing', async ({ config, store, terminal }) => {
        const of = agentOf(config, name);
        const agent = of.name;
        const { by: actor, reason = '', json, unfit } = options;
        if (options.undo) {
          if (options.to !== undefined) throw new ConfigError('--undo changes nothing that answers; leave --to away.');
          const killed = await releaseKillSwitch(store, { agent, actor, reason }, Date.now());
          if (json) terminal.write(JSON.stringify({ agent, killed: null, was: killed }, null, 2));
          else terminal.write(plain(`The kill switch of ${agent}, pulled by ${killed.by}, is released.`));
          return;
        }
        const to = options.to === undefined ? undefined : await findRelease(store, agent, options.to);
        if (to !== undefined) await mustBeKnown(store, of, to, { actor, way: 'kill', unfit });
        const { release, before, aborted } = await pullKillSwitch(store, { agent, to, actor, reason }, Date.now());
        if (json) {
          terminal.write(JSON.stringify({ agent, release: release.name, before: before.name, aborted }, null, 2));
          return;
        }
        const ended = aborted === null ? '' : ` Rollout ${aborted} is aborted.`;
        terminal.write(plain(`Release ${release.name} answers all traffic of ${agent} now.${ended}`));
        terminal.write(terminal.paint.dim(plain(`\`pawl kill ${agent} --undo\` lets rollouts begin again.`)));
      }),
    );
