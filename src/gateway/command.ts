/** `pawl keys create`, `list` and `revoke`: the client keys that agents come through the gateway with. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { makeKey } from '../client-keys.ts';
import { clock } from '../collect/timeline-print.ts';
import { type Origin, origins } from '../collect/trajectory.ts';
import { byOption, type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf, unlisted } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { type Key, listKeys, scopes, usualScopes } from '../store/keys.ts';
import { plain, table } from '../terminal.ts';
import { newKey } from './new-key.ts';
import { revokeEverywhere, unconfirmedBy } from './revoke.ts';

/** How long gateways have to confirm a revocation: their slower way to hear of it takes this long. */
const confirmMs = 15_000;

type CreateOptions = CommonOptions & {
  readonly agent?: string;
  readonly origin: Origin;
  readonly scope?: readonly string[];
  readonly rate?: number;
  readonly region?: string;
  readonly tenant?: string;
  readonly by: string;
};

const baseUrlOf = (host: string, port: number): string => {
  const reachable = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port === 0 ? '<port>' : port}/v1`;
};

const create = withConfigOption(new Command('create'))
  .description('Make a client key. Its token is printed once and stored only as a hash.')
  .argument('<name>', 'what the key is for, e.g. "web shop"')
  .option('--agent <name>', 'the agent whose traffic this is (default: the first of the settings)')
  .addOption(new Option('--origin <origin>', 'what its traffic counts as').choices(origins).default('production'))
  .option(
    '--scope <list>',
    `what it may do, of ${scopes.join(', ')} (default: ${usualScopes.join(',')})`,
    (text: string) => text.split(',').map((scope) => scope.trim()),
  )
  .option('--rate <n>', 'requests per minute at most', wholeNumber(1, 10_000_000))
  .option('--region <name>', 'where its conversations are kept; a dataset is of one region (docs/privacy.md)')
  .option('--tenant <name>', 'whose they are; a dataset is of one tenant')
  .option(...byOption())
  .option('--json', 'print the key as JSON')
  .addHelpText(
    'after',
    '\nExamples:\n  pawl keys create "web shop" --agent support-desk --rate 600\n  pawl keys create "ticket system" --agent support-desk --scope outcomes',
  )
  .action((name: string, options: CreateOptions) =>
    withHome(options, 'create', async ({ config, store, terminal }) => {
      const parsed = newKey.safeParse({
        name,
        agent: options.agent ?? agentOf(config).name,
        origin: options.origin,
        scopes: options.scope,
        rateLimit: options.rate ?? null,
        region: options.region ?? null,
        tenant: options.tenant ?? null,
      });
      if (!parsed.success) {
        const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
        throw new ConfigError(`The key cannot be made: ${problems.join('; ')}.`);
      }
      const made = await makeKey(store, parsed.data, options.by);
      const warning = unlisted(config, parsed.data.agent);
      if (warning !== null) console.error(warning);
      if (options.json) {
        terminal.write(JSON.stringify(made, null, 2));
        return;
      }
      const baseUrl = baseUrlOf(config.host, config.port);
      const { paint } = terminal;
      terminal.write(
        `Key ${paint.bold(plain(parsed.data.name))} for agent ${paint.bold(parsed.data.agent)}, scope ${made.key.scopes.join(', ')}:\n`,
      );
      terminal.write(`  ${paint.bold(made.token)}\n`);
      terminal.write(paint.dim('It is not shown again. Point the agent here; nothing else changes:\n'));
      terminal.write(`  OPENAI_BASE_URL=${baseUrl}\n  OPENAI_API_KEY=${made.token}\n`);
      terminal.write(paint.dim('or, in TypeScript:\n'));
      terminal.write(`  new OpenAI({ baseURL: '${baseUrl}', apiKey: '${made.token}' })`);
    }),
  );

const stateOf = (key: Key): string => (key.revokedAt === null ? 'active' : `revoked ${clock(key.revokedAt)}`);

const list = withConfigOption(new Command('list'))
  .description('List the client keys.')
  .option('--json', 'one JSON object per line')
  .addHelpText('after', '\nExample:\n  pawl keys list')
  .action((options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const keys = await listKeys(store);
      if (options.json) {
        for (const key of keys) terminal.write(JSON.stringify(key));
        return;
      }
      if (keys.length === 0) {
        terminal.write('There are no keys yet. Make one: pawl keys create NAME --agent AGENT');
        return;
      }
      const columns = [
        { title: 'ID' },
        { title: 'NAME', shrinkTo: 6 },
        { title: 'AGENT', shrinkTo: 6 },
        { title: 'TOKEN' },
        { title: 'ORIGIN' },
        { title: 'SCOPE', shrinkTo: 8 },
        { title: 'REGION' },
        { title: 'TENANT', shrinkTo: 6 },
        { title: 'PER MINUTE', right: true },
        { title: 'LAST USED' },
        { title: 'STATE' },
      ];
      const rows = keys.map((key) => [
        key.id,
        key.name,
        key.agent,
        `${key.prefix}…`,
        key.origin,
        key.scopes.join(','),
        key.region ?? '–',
        key.tenant ?? '–',
        key.rateLimit === null ? 'no limit' : String(key.rateLimit),
        key.lastUsedAt === null ? 'never' : clock(key.lastUsedAt),
        stateOf(key),
      ]);
      const { paint } = terminal;
      const lines = table(columns, rows, terminal, (cell, row) => (keys[row]!.revokedAt ? paint.dim(cell) : cell));
      for (const line of lines) terminal.write(line);
    }),
  );

const keyId = (text: string): string => {
  if (!/^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text))
    throw new InvalidArgumentError('Give the id from the first column of `pawl keys list`.');
  return text.toLowerCase();
};

const revoke = withConfigOption(new Command('revoke'))
  .description('Make a key stop working, for good.')
  .argument('<id>', 'id of the key, from `pawl keys list`', keyId)
  .option(...byOption())
  .addHelpText('after', '\nExample:\n  pawl keys revoke 0190a6c2-7a1e-7c3d-9f41-2b7d5e6f8a90')
  .action((id: string, options: CommonOptions & { readonly by: string }) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const behind = await revokeEverywhere(store, id, options.by, confirmMs);
      if (behind === null) throw new ConfigError(`There is no key ${id} that works. \`pawl keys list\` shows all.`);
      terminal.write(`Key ${id} is revoked.`);
      terminal.write(behind.length === 0 ? 'No gateway accepts it any more.' : unconfirmedBy(behind));
    }),
  );

export const keysCommand = (): Command =>
  new Command('keys')
    .description('Client keys: one per agent and place it runs.')
    .addCommand(create)
    .addCommand(list)
    .addCommand(revoke)
    .addHelpText('after', '\nExample:\n  pawl keys create "web shop" --agent support-desk');
