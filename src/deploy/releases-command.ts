/** `pawl releases create|serve|list|show|card`: what can answer traffic, and what does. */
import { Command, InvalidArgumentError } from 'commander';
import { type CommonOptions, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { listReleases, routedAliases, servingRelease } from '../store/releases.ts';
import { type Column, oneLine, plain, table } from '../terminal.ts';
import { type ActOptions, acting, type ListOptions, listing, reasonOption, time } from './command-parts.ts';
import { readCard } from './read-card.ts';
import { serveRelease } from './reconcile.ts';
import { findRelease, type ReleaseAsked, registerRelease, releaseAsked } from './register.ts';
import { releaseSchema } from './release.ts';

type OneOptions = CommonOptions & { readonly agent?: string };
const agentOption = ['--agent <name>', 'whose it is (default: the first agent of the settings)'] as const;

function samplingFrom(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('Give a JSON object, e.g. \'{"temperature":0.7}\'.');
  }
}

const create = acting('create', 'Register a release: a model or checkpoint that can answer an agent’s traffic.')
  .argument('<name>', 'a name that this agent has not used yet')
  .option(...agentOption)
  .option('--checkpoint <folder>', 'weights that Pawl’s own engine serves')
  .option('--upstream <name>', 'a model server of the settings')
  .option('--model <name>', 'the model’s name there')
  .option('--sampling <json>', 'fields for requests that do not set them, e.g. \'{"temperature":0.7}\'', samplingFrom)
  .option('--run <id>', 'the training run it came from')
  .option('--report <id>', 'an evaluation of it')
  .option('--dataset <id>', 'what it was trained on (default: what the run says)')
  .addHelpText(
    'after',
    '\nExamples:\n  pawl releases create v2 --agent support-desk --checkpoint .pawl/models/v2 --run run-7\n  pawl releases create v1 --agent support-desk --upstream vllm --model Qwen/Qwen3-8B',
  )
  .action((name: string, options: ActOptions & Partial<ReleaseAsked>) =>
    withHome(options, 'create', async ({ config, store, terminal }) => {
      const { checkpoint, upstream, model, sampling, run, report, dataset } = options;
      const agent = agentOf(config, options.agent).name;
      const asked = { name, agent, checkpoint, upstream, model, sampling, run, report, dataset };
      const parsed = releaseAsked.safeParse(asked);
      if (!parsed.success) {
        const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
        throw new ConfigError(`The release cannot be made: ${problems.join('; ')}.`);
      }
      const release = await registerRelease(store, config.upstreams, parsed.data, options.by, Date.now());
      if (options.json) {
        terminal.write(JSON.stringify(release, null, 2));
        return;
      }
      const serves = await servingRelease(store, agent);
      const next =
        serves === null
          ? `Nothing serves ${agent} yet: \`pawl releases serve ${name} --agent ${agent}\` lets it answer.`
          : `${serves.name} serves; \`pawl evaluate --agent ${agent} --candidate ${name}\` compares the two, \`pawl rollouts start --agent ${agent} --candidate ${name}\` brings it to the users.`;
      terminal.write(plain(`Release ${name} of agent ${agent}: ${release.model} at upstream ${release.upstream}.`));
      terminal.write(terminal.paint.dim(plain(next)));
    }),
  );

const alias = (text: string, before: readonly string[] = []): readonly string[] => {
  if (!releaseSchema.shape.model.safeParse(text).success)
    throw new InvalidArgumentError('Give the name of a model, of 1 to 256 characters.');
  return [...before, text];
};

type ServeOptions = ActOptions & OneOptions & { readonly alias?: readonly string[] | false };

const serve = acting(
  'serve',
  'Let a release answer all of its agent’s traffic at once: the first one, or the way back.',
)
  .argument('<name>', 'name of the release')
  .option(...agentOption)
  .option(...reasonOption)
  .option(
    '--alias <model>',
    'a model name that clients ask for, besides the agent’s own; may be repeated (default: as before)',
    alias,
  )
  .option('--no-alias', 'only the agent’s own name from now on')
  .addHelpText(
    'after',
    '\nA candidate goes to the users step by step with `pawl rollouts start`; this does not wait or measure.\n\nExamples:\n  pawl releases serve v1 --alias qwen3\n  pawl releases serve v1 --agent support-desk --reason "v2 is rude in German"',
  )
  .action((name: string, options: ServeOptions) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const agent = agentOf(config, options.agent).name;
      const release = await findRelease(store, agent, name);
      const before = await servingRelease(store, agent);
      const changed = await serveRelease(store, release, options.by, Date.now(), {
        ...(options.reason === undefined ? {} : { reason: options.reason }),
        ...(options.alias === undefined ? {} : { aliases: options.alias || [] }),
      });
      if (options.json) terminal.write(JSON.stringify({ release, before: before?.name ?? null, changed }, null, 2));
      else if (!changed) terminal.write(plain(`Release ${name} serves all traffic of ${agent} already.`));
      else {
        const instead = before === null || before.id === release.id ? '' : `, in place of ${before.name}`;
        terminal.write(plain(`Release ${name} serves all traffic of ${agent} now${instead}.`));
        const names = [agent, ...(await routedAliases(store, agent))];
        terminal.write(terminal.paint.dim(plain(`Clients get it when they ask for the model ${names.join(' or ')}.`)));
      }
    }),
  );

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

const show = withConfigOption(new Command('show'))
  .description('Show a release: what answers, where it came from, whether it serves.')
  .argument('<name>', 'name of the release')
  .option(...agentOption)
  .option('--json', 'everything as one JSON object')
  .action((name: string, options: OneOptions) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const release = await findRelease(store, agentOf(config, options.agent).name, name);
      const serving = (await servingRelease(store, release.agent))?.id === release.id;
      if (options.json) {
        terminal.write(JSON.stringify({ ...release, serving }, null, 2));
        return;
      }
      const { sampling } = release;
      terminal.write(
        plain(`Release ${release.name} of agent ${release.agent}${serving ? ', which serves its traffic' : ''}`),
      );
      for (const [title, value] of [
        ['model', `${release.model} at upstream ${release.upstream}`],
        ['checkpoint', release.checkpoint],
        ['sampling', Object.keys(sampling).length === 0 ? null : JSON.stringify(sampling)],
        ['run', release.run],
        ['report', release.report],
        ['dataset', release.dataset],
        ['made', time(release.createdAt)],
      ] as const)
        if (value !== null) terminal.write(`  ${title.padEnd(11)}${oneLine(value)}`);
    }),
  );

const card = withConfigOption(new Command('card'))
  .description('Print the model card of a release, in Markdown.')
  .argument('<name>', 'name of the release')
  .option(...agentOption)
  .action((name: string, options: OneOptions) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const release = await findRelease(store, agentOf(config, options.agent).name, name);
      terminal.write(plain(await readCard(store, release)).trimEnd());
    }),
  );

export const releasesCommand = (): Command =>
  new Command('releases')
    .description('What can answer traffic.')
    .addCommand(list, { isDefault: true })
    .addCommand(create)
    .addCommand(serve)
    .addCommand(show)
    .addCommand(card)
    .addHelpText('after', '\nExample:\n  pawl releases card desk-7 > card.md');
