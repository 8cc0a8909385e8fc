/** `pawl reward`: whether what conversations are scored by can be trusted, and what would be better. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { type Agent, agentSchema } from '../agent.ts';
import { type CommonOptions, parseMoment, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import { listSpecs } from '../store/judged.ts';
import type { Store } from '../store/postgres.ts';
import { sayProgress, table } from '../terminal.ts';
import { importUserModule } from '../user-module.ts';
import { openJudge } from './ask-open.ts';
import { checkReward, compareStored, fitReward } from './check-reward.ts';
import { rewardModelsCommand, trainRewardCommand } from './reward-model-command.ts';
import { lendEngine, openRewardModels } from './reward-models.ts';
import { comparisonLines, proposalLines, trustLines, whatIfLines } from './reward-print.ts';
import { scoreWindow } from './run.ts';
import type { RewardSpec } from './weighted.ts';
import { readWeights, weightsHint, weightsPattern, whatIf } from './what-if.ts';

type Options = CommonOptions & { readonly agent?: string };

const agentOption = (command: Command): Command =>
  withConfigOption(command).option('--agent <name>', 'whose (default: the first of the settings)');

const status = agentOption(new Command('status'))
  .description('How well the reward agrees with labels, part by part, and how its parts moved from week to week.')
  .option('--json', 'print as JSON')
  .addHelpText('after', '\nExample:\n  pawl reward status --agent support-desk')
  .action((options: Options) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const agent = agentOf(config, options.agent);
      const check = await checkReward(store, agent, new Date());
      if (options.json) terminal.write(JSON.stringify(check));
      else for (const line of trustLines(check, terminal)) terminal.write(line);
    }),
  );

const versions = agentOption(new Command('versions'))
  .description('Versions of the reward under which conversations have scores.')
  .option('--json', 'one JSON object per line')
  .addHelpText('after', '\nExample:\n  pawl reward versions')
  .action((options: Options) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const { name, reward } = agentOf(config, options.agent);
      const found = await listSpecs(store, name);
      if (options.json) {
        for (const one of found) terminal.write(JSON.stringify({ ...one, current: one.version === reward.version }));
        return;
      }
      const columns = [{ title: 'VERSION' }, { title: 'SCORES', right: true }, { title: 'LATEST' }, { title: '' }];
      const rows = found.map(({ version, scores, at }) => [
        ...[version, String(scores), at.toISOString().slice(0, 16).replace('T', ' ')],
        version === reward.version ? 'the agent’s now' : '',
      ]);
      for (const line of table(columns, rows, terminal)) terminal.write(line);
    }),
  );

const fit = agentOption(new Command('fit'))
  .description('Propose weights from labels, or from a measured outcome, and say what would change.')
  .option('--outcome <name>', 'fit to this outcome instead of labels, e.g. resolved')
  .option('--json', 'print as JSON')
  .addHelpText(
    'after',
    '\nExamples:\n  pawl reward fit\n  pawl reward fit --outcome contained\n\nNothing is changed: put the weights you want into the agent’s file.',
  )
  .action((options: Options & { readonly outcome?: string }) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const agent = agentOf(config, options.agent);
      const proposal = await fitReward(store, agent, options.outcome);
      if (options.json) terminal.write(JSON.stringify({ agent: agent.name, spec: agent.reward.version, ...proposal }));
      else for (const line of proposalLines(proposal, options.outcome, terminal)) terminal.write(line);
    }),
  );

type CompareOptions = Options & { readonly since?: Date; readonly until?: Date };

/** A version under which there are scores, `current`, or an agent's file. */
async function specOf(given: string, agent: Agent, store: Store): Promise<RewardSpec | string> {
  if (given === 'current') return agent.reward;
  if (existsSync(given)) {
    const { default: read } = await importUserModule(resolve(given));
    const parsed = agentSchema.safeParse(read);
    if (parsed.success) return parsed.data.reward;
    throw new ConfigError(
      `${given} is no agent’s file: ${parsed.error.issues[0]?.message ?? 'its default export is odd'}.`,
    );
  }
  if (given === agent.reward.version) return agent.reward;
  if ((await listSpecs(store, agent.name)).some(({ version }) => version === given)) return given;
  throw new NotFoundError(
    `${given} is neither an agent’s file nor a version under which ${agent.name} has scores; \`pawl reward versions\` lists those.`,
  );
}

const compare = agentOption(new Command('compare'))
  .description('Score history under two rewards and list the conversations that change places.')
  .argument('<a>', 'an agent’s file, a version that `pawl reward versions` lists, or `current`')
  .argument('<b>', 'the same')
  .option('--since <time>', 'started after: 2h, 3d, or 2026-01-31 (default: 30d)', (text: string) => parseMoment(text))
  .option('--until <time>', 'started before (default: now)', (text: string) => parseMoment(text))
  .option('--json', 'print as JSON')
  .addHelpText('after', '\nExample:\n  pawl reward compare current agents/helper-next.ts --since 14d')
  .action((a: string, b: string, options: CompareOptions) =>
    withHome(options, 'existing', async ({ store, artifacts, config, terminal }) => {
      const agent = agentOf(config, options.agent);
      const now = new Date();
      const { since = parseMoment('30d'), until = now } = options;
      const sides = [await specOf(a, agent, store), await specOf(b, agent, store)] as const;
      const progress = sayProgress();
      for (const spec of sides)
        if (typeof spec !== 'string')
          await scoreWindow(store, {
            ...{ agent: agent.name, spec, since, until, now, origin: agent.curate.on },
            services: {
              judge: openJudge(store, agent),
              rewardModels: openRewardModels({ store, artifacts }, lendEngine(config.engine)),
            },
            onProgress: ({ trajectories }) => progress(() => `${trajectories} conversations so far …`),
          });
      const [versionA, versionB] = sides.map((spec) => (typeof spec === 'string' ? spec : spec.version)) as [
        string,
        string,
      ];
      const found = await compareStored(store, agent, { a: versionA, b: versionB, since, until });
      if (options.json) terminal.write(JSON.stringify({ agent: agent.name, a: versionA, b: versionB, ...found }));
      else for (const line of comparisonLines(found, versionA, versionB, terminal)) terminal.write(line);
    }),
  );

type WhatIfOptions = CompareOptions;

const other = agentOption(new Command('what-if'))
  .description('Weigh the newest scores otherwise: how they would be spread, and how many would be good enough.')
  .argument('<weights>', 'parts and weights, e.g. resolved:0.5,tools:0.3; others keep theirs, 0 leaves one out')
  .option('--since <time>', 'started after: 2h, 3d, or 2026-01-31 (default: 7d)', (text: string) => parseMoment(text))
  .option('--until <time>', 'started before (default: now)', (text: string) => parseMoment(text))
  .option('--json', 'print as JSON')
  .addHelpText(
    'after',
    '\nExample:\n  pawl reward what-if resolved:0.7,tools:0.1\n\nNothing is changed: put the weights you want into the agent’s file.',
  )
  .action((weights: string, options: WhatIfOptions) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      if (!weightsPattern.test(weights)) throw new ConfigError(`'${weights}' is not what is needed: ${weightsHint}.`);
      const agent = agentOf(config, options.agent);
      const { since = parseMoment('7d'), until = new Date() } = options;
      const found = await whatIf(store, agent, readWeights(weights), { since, until });
      if (options.json) terminal.write(JSON.stringify(found));
      else for (const line of whatIfLines(found, terminal)) terminal.write(line);
    }),
  );

export const rewardCommand = (): Command =>
  new Command('reward')
    .description('Whether the reward can be trusted, and what would be better.')
    .addCommand(status)
    .addCommand(fit)
    .addCommand(other)
    .addCommand(compare)
    .addCommand(versions)
    .addCommand(trainRewardCommand())
    .addCommand(rewardModelsCommand())
    .addHelpText('after', '\nExample:\n  pawl reward status');
