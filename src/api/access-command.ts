/** `pawl access create`, `list` and `revoke`: who may look at the dashboard and use the API, and as what. */
import { userInfo } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
import { clock } from '../collect/timeline-print.ts';
import { type CommonOptions, withConfigOption, withHome } from '../command.ts';
import type { Config } from '../config.ts';
import { NotFoundError } from '../errors.ts';
import { type AccessRole, accessRoles, listAccess } from '../store/access.ts';
import { servingAddress } from '../store/address.ts';
import { plain, table } from '../terminal.ts';
import { grantAccess, withdrawAccess } from './access.ts';

/** Where the dashboard is: of the Pawl that serves this home, else as the settings say. */
const dashboardOf = ({ home, host, port }: Config): string => {
  const there = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host;
  return servingAddress(home) ?? `http://${there.includes(':') ? `[${there}]` : there}:${port}`;
};

const actor = (): string => userInfo().username || 'command';

const personName = (text: string): string => {
  const name = text.trim();
  if (name.length === 0 || name.length > 100 || /\p{Cc}/u.test(name))
    throw new InvalidArgumentError('Give a name of 1 to 100 characters without control characters.');
  return name;
};

const create = withConfigOption(new Command('create'))
  .description('Give somebody access. The link and its token are printed once; the token is stored only as a hash.')
  .argument('<name>', 'who it is for, e.g. ann; stands in the audit log', personName)
  .addOption(new Option('--role <role>', 'what they may do').choices(accessRoles).default('viewer'))
  .option('--json', 'print it as JSON')
  .addHelpText('after', '\nExample:\n  pawl access create ann --role reviewer')
  .action((name: string, options: CommonOptions & { readonly role: AccessRole }) =>
    withHome(options, 'create', async ({ config, store, terminal }) => {
      const made = await grantAccess(store, { name, role: options.role }, actor(), Date.now());
      const link = `${dashboardOf(config)}/#token=${made.token}`;
      if (options.json) {
        terminal.write(JSON.stringify({ ...made, link }, null, 2));
        return;
      }
      const { paint } = terminal;
      terminal.write(`Access for ${paint.bold(plain(name))} as ${paint.bold(options.role)}:\n`);
      terminal.write(`  ${paint.bold(link)}\n`);
      terminal.write(paint.dim('It is not shown again. Programs send the token: Authorization: Bearer pawl_access_…'));
    }),
  );

const list = withConfigOption(new Command('list'))
  .description('List who has access besides the holder of the admin token.')
  .option('--json', 'one JSON object per line')
  .addHelpText('after', '\nExample:\n  pawl access list')
  .action((options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const all = await listAccess(store);
      if (options.json) {
        for (const one of all) terminal.write(JSON.stringify(one));
        return;
      }
      if (all.length === 0) {
        terminal.write('Nobody but the holder of the admin token. Add somebody: pawl access create NAME --role viewer');
        return;
      }
      const columns = ['ID', 'NAME', 'ROLE', 'TOKEN', 'LAST USED', 'STATE'].map((title) => ({ title }));
      const rows = all.map((one) => [
        ...[one.id, one.name, one.role, `${one.prefix}…`],
        one.lastUsedAt === null ? 'never' : clock(one.lastUsedAt),
        one.revokedAt === null ? 'active' : `revoked ${clock(one.revokedAt)}`,
      ]);
      for (const line of table(columns, rows, terminal)) terminal.write(line);
    }),
  );

const accessId = (text: string): string => {
  if (!/^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text))
    throw new InvalidArgumentError('Give the id from the first column of `pawl access list`.');
  return text.toLowerCase();
};

const revoke = withConfigOption(new Command('revoke'))
  .description('Take somebody’s access away, for good; their sessions end with it.')
  .argument('<id>', 'id from `pawl access list`', accessId)
  .addHelpText('after', '\nExample:\n  pawl access revoke 0190a6c2-7a1e-7c3d-9f41-2b7d5e6f8a90')
  .action((id: string, options: CommonOptions) =>
    withHome(options, 'existing', async ({ store, terminal }) => {
      const access = await withdrawAccess(store, id, actor(), Date.now());
      if (access === null) throw new NotFoundError(`There is no access ${id}. \`pawl access list\` shows all.`);
      terminal.write(`${plain(access.name)} (${access.role}) has no access any more.`);
    }),
  );

export const accessCommand = (): Command =>
  new Command('access')
    .description('Who may look at the dashboard and use the API besides the holder of the admin token.')
    .addCommand(create)
    .addCommand(list)
    .addCommand(revoke);
