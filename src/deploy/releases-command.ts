/** `pawl releases create|serve|list|show|card`: what can answer traffic, and what does. */
import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { typedUser } from '../collect/person.ts';
import { type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import { listKeys } from '../store/keys.ts';
import { listPins } from '../store/pins.ts';
import type { Store } from '../store/postgres.ts';
import { listReleases, readRelease, routedAliases, servingRelease } from '../store/releases.ts';
import { type Column, oneLine, plain, table } from '../terminal.ts';
import { adapterState } from './adapter-state.ts';
import { type ActOptions, acting, type ListOptions, listing, reasonOption, time } from './command-parts.ts';
import { type Reach, unfitOption, withFit } from './fit-command.ts';
import { type Pinned, pin, unpin } from './pin.ts';
import { readCard, readCardYaml } from './read-card.ts';
import { serveRelease } from './reconcile.ts';
import { findRelease, type ReleaseAsked, registerRelease, releaseAsked } from './register.ts';
import { releaseSchema } from './release.ts';
import { standingRouting } from './task-routing.ts';

type OneOptions = CommonOptions & { readonly agent?: string };
const agentOption = ['--agent <name>', 'whose it is (default: the first agent of the settings)'] as const;

type CreateOptions = ActOptions &
  Omit<Partial<ReleaseAsked>, 'prompt'> & { readonly prompt?: string; readonly promptRule?: 'replace' | 'before' };

function fileText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new InvalidArgumentError(
      `The file cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

function promptRule(text: string): string {
  if (text === 'replace' || text === 'before') return text;
  throw new InvalidArgumentError('Give replace or before.');
}

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
  .option('--checkpoint <folder>', 'weights that Pawl’s own engine serves: a folder, or the reference of one')
  .option('--adapter <folder>', 'an adapter for --upstream to load: a PEFT folder, or the reference of one')
  .option('--upstream <name>', 'a model server of the settings')
  .option('--model <name>', 'the model’s name there')
  .option('--sampling <json>', 'fields for requests that do not set them, e.g. \'{"temperature":0.7}\'', samplingFrom)
  .option('--prompt <file>', 'instructions of its own: a text file', fileText)
  .option('--prompt-rule <rule>', 'replace puts them in place of the caller’s, before in front of them', promptRule)
  .option('--thinking <tokens>', 'most tokens of thinking before an answer; 0: none', wholeNumber(0, 1_000_000))
  .option('--parent <release>', 'what it was made from (default: what serves)')
  .option('--run <id>', 'the training run it came from; with --upstream alone, its adapter is what answers')
  .option('--report <id>', 'an evaluation of it')
  .option('--dataset <id>', 'what it was trained on (default: what the run says)')
  .addHelpText(
    'after',
    '\nExamples:\n  pawl releases create v2 --agent support-desk --checkpoint .pawl/models/v2 --run run-7\n  pawl releases create v1 --agent support-desk --upstream vllm --model Qwen/Qwen3-8B\n  pawl releases create v3 --agent support-desk --upstream vllm --run run-8',
  )
  .action((name: string, options: CreateOptions) =>
    withHome(options, 'create', async ({ config, store, artifacts, terminal }) => {
      const { checkpoint, adapter, upstream, model, sampling, thinking, parent, run, report, dataset } = options;
      if (options.promptRule !== undefined && options.prompt === undefined)
        throw new ConfigError('--prompt-rule is for --prompt; give both, or neither.');
      const prompt =
        options.prompt === undefined ? undefined : { text: options.prompt, rule: options.promptRule ?? 'replace' };
      const agent = agentOf(config, options.agent).name;
      const asked = {
        ...{ name, agent, checkpoint, adapter, upstream, model, sampling, prompt, thinking, parent },
        ...{ run, report, dataset },
      };
      const parsed = releaseAsked.safeParse(asked);
      if (!parsed.success) {
        const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
        throw new ConfigError(`The release cannot be made: ${problems.join('; ')}.`);
      }
      const release = await registerRelease(
        { store, artifacts, say: (text) => console.error(text) },
        config,
        parsed.data,
        options.by,
        Date.now(),
      );
      if (options.json) {
        terminal.write(JSON.stringify(release, null, 2));
        return;
      }
      const serves = await servingRelease(store, agent);
      const next =
        serves === null
          ? `Nothing serves ${agent} yet: \`pawl releases serve ${name} --agent ${agent}\` lets it answer.`
          : serves.name === name
            ? 'It was made before, and serves.'
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

type ServeOptions = ActOptions & OneOptions & { readonly alias?: readonly string[] | false; readonly unfit?: string };

const serveCommand = (reach: Reach) =>
  acting('serve', 'Let a release answer all of its agent’s traffic at once: the first one, or the way back.')
    .argument('<name>', 'name of the release')
    .option(...agentOption)
    .option(...reasonOption)
    .option(
      '--alias <model>',
      'a model name that clients ask for, besides the agent’s own; may be repeated (default: as before)',
      alias,
    )
    .option('--no-alias', 'only the agent’s own name from now on')
    .option(...unfitOption)
    .addHelpText(
      'after',
      '\nA candidate goes to the users step by step with `pawl rollouts start`; this does not wait or measure, but\nwhat never served is asked first whether it fits its server (`pawl evaluate compat`).\n\nExamples:\n  pawl releases serve v1 --alias qwen3\n  pawl releases serve v1 --agent support-desk --reason "v2 is rude in German"',
    )
    .action((name: string, options: ServeOptions) =>
      withFit(reach, options, { actor: options.by, way: 'serve', unfit: options.unfit }, async (opened, fitOf) => {
        const { config, store, terminal } = opened;
        const of = agentOf(config, options.agent);
        const agent = of.name;
        const release = await findRelease(store, agent, name);
        await fitOf(of)(release);
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
          terminal.write(
            terminal.paint.dim(plain(`Clients get it when they ask for the model ${names.join(' or ')}.`)),
          );
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
      const adapter = await adapterState(config.upstreams, release);
      if (options.json) {
        terminal.write(JSON.stringify({ ...release, serving, adapter }, null, 2));
        return;
      }
      const { sampling } = release;
      terminal.write(
        plain(`Release ${release.name} of agent ${release.agent}${serving ? ', which serves its traffic' : ''}`),
      );
      for (const [title, value] of [
        ['model', `${release.model} at upstream ${release.upstream}`],
        ['adapter', adapter?.sentence ?? null],
        ['checkpoint', release.checkpoint],
        ['sampling', Object.keys(sampling).length === 0 ? null : JSON.stringify(sampling)],
        ['prompt', release.prompt === null ? null : `${release.prompt.rule}: ${release.prompt.text.slice(0, 200)}`],
        ['thinking', release.thinking === null ? null : `${release.thinking} tokens at most`],
        ['parent', release.parent === null ? null : ((await readRelease(store, { id: release.parent }))?.name ?? null)],
        ['run', release.run],
        ['report', release.report],
        ['dataset', release.dataset],
        ['internal', release.internal ? 'learned from what is confidential; stays inside this deployment' : null],
        ['made', time(release.createdAt)],
      ] as const)
        if (value !== null) terminal.write(`  ${title.padEnd(11)}${oneLine(value)}`);
    }),
  );

const card = withConfigOption(new Command('card'))
  .description('Print the model card of a release, in Markdown or YAML.')
  .argument('<name>', 'name of the release')
  .option(...agentOption)
  .option('--yaml', 'the same records as YAML, for a program')
  .action((name: string, options: OneOptions & { readonly yaml?: boolean }) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const release = await findRelease(store, agentOf(config, options.agent).name, name);
      terminal.write(plain(await (options.yaml ? readCardYaml : readCard)(store, release)).trimEnd());
    }),
  );

type PinOptions = ActOptions &
  OneOptions & { readonly key?: string; readonly user?: string; readonly hashed?: boolean; readonly unfit?: string };

/** The key by its name or id, the user as the agent sends them. */
async function pinnedFrom(
  store: Store,
  agent: string,
  { key, user, hashed }: PinOptions,
  secret: string,
): Promise<Pinned> {
  if ((key === undefined) === (user === undefined)) throw new ConfigError('Give --key or --user, one of the two.');
  if (user !== undefined) return { kind: 'user', value: typedUser(user, secret, hashed) };
  const found = (await listKeys(store)).find((one) => one.agent === agent && (one.id === key || one.name === key));
  if (found === undefined)
    throw new NotFoundError(`Agent ${agent} has no key ${key}; \`pawl keys list\` shows those that exist.`);
  return { kind: 'key', value: found.id };
}

const pinOptions = (command: Command): Command =>
  command
    .option(...agentOption)
    .option('--key <name>', 'a client key, by its name or id')
    .option('--user <id>', 'a user, by the id that the agent sends')
    .option('--hashed', 'the user is given by the hash that a list shows');

const pinCommand = (reach: Reach) =>
  pinOptions(acting('pin', 'Pin a client key or a user to a release, whatever is rolled out.'))
    .argument('<name>', 'name of the release')
    .option(...unfitOption)
    .addHelpText(
      'after',
      '\nThe kill switch counts more than a pin.\n\nExample:\n  pawl releases pin v1 --key batch-jobs',
    )
    .action((name: string, options: PinOptions) =>
      withFit(reach, options, { actor: options.by, way: 'pin', unfit: options.unfit }, async (opened, fitOf) => {
        const { config, store, secret, terminal } = opened;
        const of = agentOf(config, options.agent);
        const agent = of.name;
        const release = await findRelease(store, agent, name);
        const who = await pinnedFrom(store, agent, options, secret);
        await fitOf(of)(release);
        await pin(store, release, who, options.by, Date.now());
        if (options.json) terminal.write(JSON.stringify({ agent, release: name, ...who }, null, 2));
        else terminal.write(plain(`The ${who.kind} ${options.key ?? options.user} gets release ${name} from now on.`));
      }),
    );

const unpinFrom = pinOptions(acting('unpin', 'Let a pinned client key or user go.')).action((options: PinOptions) =>
  withHome(options, 'existing', async ({ config, store, secret, terminal }) => {
    const agent = agentOf(config, options.agent).name;
    const who = await pinnedFrom(store, agent, options, secret);
    await unpin(store, agent, who, options.by, Date.now());
    if (options.json) terminal.write(JSON.stringify({ agent, ...who, release: null }, null, 2));
    else terminal.write(plain(`The ${who.kind} ${options.key ?? options.user} is pinned no more.`));
  }),
);

const pins = withConfigOption(new Command('pins'))
  .description('List who is pinned to which release.')
  .option(...agentOption)
  .option('--json', 'one JSON object per line')
  .action((options: OneOptions) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const found = await listPins(store, agentOf(config, options.agent).name);
      if (options.json) for (const one of found) terminal.write(JSON.stringify(one));
      else if (found.length === 0) terminal.write('Nobody is pinned.');
      else
        for (const one of found)
          terminal.write(
            plain(`${one.kind} ${one.value}: ${(await readRelease(store, { id: one.release }))!.name}, by ${one.by}`),
          );
    }),
  );

const routing = withConfigOption(new Command('routing'))
  .description(
    'Show which types of task another release answers than the one that serves, and what showed that it is better.',
  )
  .option(...agentOption)
  .option('--json', 'as one JSON object')
  .action((options: OneOptions) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const agent = agentOf(config, options.agent).name;
      const standing = await standingRouting(store, agent);
      if (options.json)
        return terminal.write(JSON.stringify(standing && { ...standing.routing, notInForce: standing.notInForce }));
      const found = standing?.routing;
      if (found === undefined || found.types.length === 0)
        return terminal.write(`Every type of task of ${agent} is answered by the release that serves.`);
      const { notInForce } = standing!;
      if (notInForce !== null) terminal.write(plain(`Not in force: ${notInForce}.`));
      const name = async (id: string) => (await readRelease(store, { id }))!.name;
      terminal.write(
        plain(
          `By rollout ${found.rollout}, while ${await name(found.serving)} serves, ${await name(found.other)} answers:`,
        ),
      );
      for (const { type, users, difference, z, bound } of found.types)
        terminal.write(
          plain(
            `  ${type}: +${difference.toFixed(3)} (z ${z.toFixed(2)}, ${bound.toFixed(2)} needed; users: baseline ${users.baseline}, candidate ${users.candidate})`,
          ),
        );
    }),
  );

export const releasesCommand = (reach: Reach): Command =>
  new Command('releases')
    .description('What can answer traffic.')
    .addCommand(list, { isDefault: true })
    .addCommand(create)
    .addCommand(serveCommand(reach))
    .addCommand(show)
    .addCommand(card)
    .addCommand(pinCommand(reach))
    .addCommand(unpinFrom)
    .addCommand(pins)
    .addCommand(routing)
    .addHelpText('after', '\nExample:\n  pawl releases card desk-7 > card.md');
