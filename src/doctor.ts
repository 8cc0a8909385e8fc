/**
 * `pawl doctor`: looks at everything Pawl stands on and says, line by line, what is well, what is not, and the way out.
 * It changes nothing: no migration is run, no database made, no segment touched; what it writes to try a place it removes. Each check is one function that
 * returns what it found; a check that itself fails is a finding, never a crash.
 */
import { constants, existsSync, readFileSync } from 'node:fs';
import { access, mkdtemp, rm, stat, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { request } from 'undici';
import { openArtifacts } from './artifacts/open.ts';
import { readBacklog } from './collect/backlog.ts';
import { type Config, loadConfig } from './config.ts';
import { root } from './root.ts';
import { trustBar } from './score/agreement.ts';
import { keptCheck } from './score/trust-metrics.ts';
import { diagnoseDatabase } from './store/diagnose.ts';
import { runningEmbedded } from './store/embedded.ts';
import { homeHolder } from './store/lock.ts';
import { planMigrations, readMigrations } from './store/migrate.ts';
import { shownUrl } from './store/postgres.ts';
import type { ProcessRecord } from './store/processes.ts';
import { oneLine, openTerminal, type Terminal } from './terminal.ts';
import { version } from './version.ts';

/** `warn` is worth knowing and works; `fail` does not work. */
export type Check = {
  readonly name: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
  readonly wayOut?: string;
};

const ok = (name: string, found: string): Check => ({ name, state: 'ok', found });
const warn = (name: string, found: string, wayOut: string): Check => ({ name, state: 'warn', found, wayOut });
const fail = (name: string, found: string, wayOut: string): Check => ({ name, state: 'fail', found, wayOut });

const reason = (error: unknown): string => {
  const { message, code } = error as { message?: string; code?: string };
  return message || code || String(error);
};

/** Bytes as people say them: 512 B, 1.5 KB, 20 GB. */
export function bytes(count: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(count) / Math.log(1024)));
  const value = count / 1024 ** power;
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}

export function checkNode(running: string): Check {
  const [major = 0, minor = 0] = running.split('.').map(Number);
  return major > 20 || (major === 20 && minor >= 19)
    ? ok('node', `Node ${running}`)
    : fail('node', `Node ${running} is too old`, 'Install Node 20.19 or newer.');
}

type Lock = Readonly<Record<string, { version?: string; optional?: boolean; dev?: boolean }>>;

/** What the lockfile wants and node_modules does not have in that version. Development packages may be left out. */
export const missingPackages = (wanted: Lock, present: Lock): string[] =>
  Object.entries(wanted)
    .filter(([path, entry]) => path !== '' && !entry.optional && !(entry.dev && !present[path]))
    .filter(([path, entry]) => present[path]?.version !== entry.version)
    .map(([path]) => path.replace(/^.*node_modules\//, ''));

function checkPackages(): Check {
  const read = (name: string): Lock | null => {
    const path = new URL(name, root);
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as { packages: Lock }).packages : null;
  };
  const wanted = read('package-lock.json');
  const present = read('node_modules/.package-lock.json');
  if (wanted === null || present === null) return ok('packages', `Pawl ${version}, installed as a package`);
  const missing = missingPackages(wanted, present);
  return missing.length === 0
    ? ok('packages', `Pawl ${version}, ${Object.keys(present).length} packages as in the lockfile`)
    : fail(
        'packages',
        `${missing.length} packages are missing or of another version: ${missing.slice(0, 5).join(', ')}`,
        'Run `npm ci --ignore-scripts`.',
      );
}

/** The nearest folder that exists, for a home that is yet to be made. */
const nearestFolder = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path));

export function judgeDisk(free: number, journalBytes: number): Check {
  const name = 'disk';
  const found = `${bytes(free)} free`;
  if (free < 256 * 1024 ** 2)
    return fail(name, `only ${found}`, 'Free some space: recording stops when the disk is full (answers go on).');
  if (free < journalBytes)
    return warn(
      name,
      `${found}, less than the ${bytes(journalBytes)} the journal may take while the database is away`,
      'Free some space, or lower record.journalMb in the settings.',
    );
  return ok(name, found);
}

async function checkHome(config: Config): Promise<Check[]> {
  const folder = nearestFolder(config.home);
  const exists = folder === config.home;
  try {
    if (!(await stat(folder)).isDirectory()) throw new Error(`${folder} is a file`);
    await access(folder, constants.W_OK | constants.X_OK);
    if (exists) await rm(await mkdtemp(join(folder, 'doctor-')), { recursive: true });
  } catch (error) {
    return [
      fail(
        'home',
        `${config.home} cannot be written: ${reason(error)}`,
        'Change its owner, or set PAWL_HOME to another.',
      ),
    ];
  }
  const { bavail, bsize } = await statfs(folder);
  return [
    ok('home', exists ? config.home : `${config.home} (made at the first start)`),
    judgeDisk(bavail * bsize, config.record.journalMb * 1024 ** 2),
  ];
}

async function checkJournal(config: Config, running: boolean): Promise<Check> {
  const folder = join(config.home, 'journal');
  if (!existsSync(folder)) return ok('journal', 'empty');
  const backlog = await readBacklog(folder);
  if (backlog.rejected.entries > 0)
    return warn(
      'journal',
      `${backlog.rejected.entries} entries were refused by the database`,
      `See ${backlog.rejected.files.join(', ')} for the reasons; delete the file once they are understood.`,
    );
  if (backlog.odd.length > 0)
    return warn(
      'journal',
      `${backlog.odd.join(' ')} ${bytes(backlog.bytes)} wait for the database.`,
      'Nothing is lost by it. Find out who changes files in this folder: only Pawl should.',
    );
  // A running Pawl is writing the last record right now; what looks torn from outside is not.
  if (backlog.damaged > (running ? 1 : 0))
    return warn(
      'journal',
      `${backlog.damaged} damaged stretches in ${bytes(backlog.bytes)} waiting`,
      'Nothing to do: a crash tore them, the records around them are kept. If there was no crash, check the disk.',
    );
  if (backlog.bytes === 0) return ok('journal', 'everything is in the database');
  return running
    ? ok('journal', `${bytes(backlog.bytes)} on their way to the database`)
    : warn('journal', `${bytes(backlog.bytes)} wait for the database`, 'They are written at the next `pawl serve`.');
}

async function checkDatabase(config: Config): Promise<Check[]> {
  const name = 'database';
  const url = config.databaseUrl ?? (existsSync(join(config.home, 'postgres')) ? runningEmbedded(config.home) : null);
  if (url === null)
    return existsSync(join(config.home, 'postgres', 'data'))
      ? [ok(name, 'embedded, stopped; it starts with `pawl serve` or any command that needs it')]
      : [ok(name, 'embedded, made at the first start')];
  const kind = config.databaseUrl ? shownUrl(url) : 'embedded, running';
  try {
    const found = await diagnoseDatabase(url);
    const { serverVersion: major, answeredInMs, aheadMs, applied, losses } = found;
    const pending = planMigrations(readMigrations(), applied);
    const plural = (count: number) => `${count} migration${count === 1 ? '' : 's'}`;
    return [
      major >= 14 && major <= 18
        ? ok(name, `${kind}, PostgreSQL ${major}, answers in ${Math.round(answeredInMs)} ms`)
        : fail(name, `${kind} is PostgreSQL ${major}`, 'Pawl works with 14 to 18: set DATABASE_URL to one of those.'),
      pending.length === 0
        ? ok('schema', `${plural(applied.length)}, up to date`)
        : warn('schema', `${plural(pending.length)} to run`, 'They run at the next `pawl serve`.'),
      ...(losses.length === 0
        ? []
        : [
            warn(
              'losses',
              losses.map(({ reason: why, count }) => `${count} × ${why}`).join(', '),
              'These could not be recorded. Give the journal more room (record.journalMb) or the database more speed.',
            ),
          ]),
      ...judgeProcesses(found.processes, Date.now() + aheadMs),
      ...found.failedJobs.map(({ name: job, problem }) =>
        warn(`job ${job}`, `failed: ${problem}`, 'It is tried again by itself; a worker’s log has more.'),
      ),
      ...judgeRewards(found.rewards),
      judgeClock(aheadMs),
    ];
  } catch (error) {
    return [
      fail(
        name,
        `${config.databaseUrl ? shownUrl(url) : 'the embedded server'} does not answer: ${reason(error)}`,
        config.databaseUrl
          ? 'Check DATABASE_URL and that the server is up. Recording waits in the journal meanwhile.'
          : `Its log is ${join(config.home, 'postgres', 'server.log')}.`,
      ),
    ];
  }
}

/** One line for each process that works on the database; one that was killed and not started again is worth knowing. */
export function judgeProcesses(processes: readonly ProcessRecord[], now: number): Check[] {
  return processes.map(({ roles, host, pid, startedAt, seenAt, isAlive, problems }) => {
    const name = roles.length > 1 ? 'pawl serve' : `pawl ${roles[0]}`;
    const ago = `${Math.max(0, Math.round((now - seenAt.getTime()) / 1000))} s ago`;
    const found = `process ${pid} on ${host}, since ${startedAt.toISOString()}, last seen ${ago}`;
    if (!isAlive)
      return warn(name, found, 'It was killed, or cannot reach the database. Start it again unless it is not missed.');
    return problems.length === 0 ? ok(name, found) : warn(name, `${found}: ${problems.join('; ')}`, 'See its log.');
  });
}

/** A reward that orders conversations differently from people teaches the wrong thing. */
export function judgeRewards(rewards: readonly { readonly agent: string; readonly result: unknown }[]): Check[] {
  return rewards.flatMap(({ agent, result }): Check[] => {
    const { total } = keptCheck.safeParse(result).data ?? {};
    if (total === undefined || total.spearman === null || total.state === 'unmeasured') return [];
    const found = `Spearman ${total.spearman.toFixed(2)} with ${total.labels} labels`;
    return total.state === 'ok'
      ? [ok(`reward ${agent}`, found)]
      : [
          warn(
            `reward ${agent}`,
            `${found}, below ${trustBar}`,
            '`pawl reward status` says which part; `pawl reward fit` proposes weights.',
          ),
        ];
  });
}

export function judgeClock(aheadMs: number): Check {
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  if (seconds < 5) return ok('clock', 'agrees with the database');
  const found = `the database's clock is ${seconds} s ${aheadMs > 0 ? 'ahead' : 'behind'}`;
  return warn('clock', found, 'Synchronise both machines (NTP): consent and outcomes are matched by time.');
}

/** An address may carry a name and password; neither belongs on a screen. */
function withoutPassword(address: string): string {
  const url = new URL(address);
  url.username = '';
  url.password = '';
  return url.href.replace(/\/+$/, '');
}

async function checkUpstreams(config: Config): Promise<Check[]> {
  const names = Object.keys(config.upstreams);
  const own = config.agents.filter(({ train }) => train.base !== undefined).map(({ name }) => name);
  if (names.length === 0 && own.length > 0)
    return [ok('upstreams', `none is set; Pawl’s engine answers for ${own.join(', ')}`)];
  if (names.length === 0)
    return [
      fail(
        'upstreams',
        'none is set, so nothing can answer',
        'Set PAWL_UPSTREAM=http://host:8000/v1, or `upstreams` in pawl.config.ts.',
      ),
    ];
  return Promise.all(
    names.map(async (name): Promise<Check> => {
      const { baseUrl: address, key } = config.upstreams[name]!;
      const baseUrl = withoutPassword(address);
      const label = `upstream ${name}`;
      try {
        const before = performance.now();
        const answer = await request(`${address}/models`, {
          headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
          headersTimeout: 5000,
          bodyTimeout: 5000,
        });
        await answer.body.dump();
        const took = `${Math.round(performance.now() - before)} ms`;
        const { statusCode } = answer;
        if (statusCode < 300) return ok(label, `${baseUrl} answers in ${took}`);
        if (statusCode === 401 || statusCode === 403)
          return fail(label, `${baseUrl} refuses the key (HTTP ${statusCode})`, `Check \`key\` of upstream ${name}.`);
        if (statusCode < 500)
          return warn(
            label,
            `${baseUrl} answers in ${took}, but /models gives HTTP ${statusCode}`,
            'Model calls may still work; check that the address ends in /v1 if they do not.',
          );
        return fail(label, `${baseUrl} gives HTTP ${statusCode}`, 'Look at the model server.');
      } catch (error) {
        return fail(
          label,
          `${baseUrl} cannot be reached: ${reason((error as { cause?: unknown }).cause ?? error)}`,
          'Start the model server, or correct its address.',
        );
      }
    }),
  );
}

const isOpen = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2000 });
    const done = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
    socket.once('timeout', () => done(false));
  });

type Holder = ReturnType<typeof homeHolder>;

async function checkPort(config: Config, holder: Holder): Promise<Check> {
  const name = 'port';
  if (config.port === 0) return ok(name, 'any free one');
  const host = ['0.0.0.0', '::'].includes(config.host) ? '127.0.0.1' : config.host;
  const shown = `${host.includes(':') ? `[${host}]` : host}:${config.port}`;
  if (!(await isOpen(host, config.port)))
    return holder === null
      ? ok(name, `${shown} is free`)
      : warn(name, `Pawl runs as process ${holder.pid} and does not answer at ${shown}`, 'It may be on another port.');
  try {
    const answer = await request(`http://${shown}/healthz`, { headersTimeout: 3000, bodyTimeout: 3000 });
    const health = (await answer.body.json()) as Record<'status' | 'version' | 'instance' | 'problems', unknown>;
    if (typeof health.version !== 'string' || typeof health.status !== 'string') throw new Error('not Pawl');
    if (health.instance !== holder?.instance)
      return fail(
        name,
        `${shown} is taken by another Pawl (${health.version}), whose home is not ${config.home}`,
        'Set PAWL_PORT to another port, or PAWL_HOME to the folder of that Pawl.',
      );
    const problems = Array.isArray(health.problems) ? health.problems.map(String) : [];
    return problems.length === 0
      ? ok(name, `Pawl ${health.version} answers at ${shown}`)
      : warn(name, `Pawl ${health.version} at ${shown} says: ${problems.join('; ')}`, 'See `pawl serve`’s log.');
  } catch {
    return fail(name, `${shown} is taken by something that is not Pawl`, 'Stop it, or set PAWL_PORT to another port.');
  }
}

/** A check that throws is a finding. */
const guarded = async (name: string, run: () => Promise<Check | Check[]> | Check): Promise<Check[]> => {
  try {
    return [await run()].flat();
  } catch (error) {
    return [fail(name, `could not be checked: ${reason(error)}`, 'Run again with PAWL_DEBUG=1 and report it.')];
  }
};

/** A folder in the home is made when it is needed; one that the settings name and that is not there may be a share that is away. */
async function checkArtifacts(config: Config): Promise<Check> {
  const name = 'artifacts';
  const artifacts = openArtifacts(config);
  if (typeof config.artifacts !== 'object' && !existsSync(artifacts.where))
    return config.artifacts === join(config.home, 'artifacts')
      ? ok(name, `${artifacts.where} (made when it is needed)`)
      : warn(
          name,
          `${artifacts.where} is not there, and is made when it is needed`,
          'If it is a share, mount it first.',
        );
  try {
    await artifacts.probe();
    return ok(name, `${artifacts.where} can be written, read and cleared`);
  } catch (error) {
    return fail(
      name,
      reason(error),
      'Correct `artifacts` in the settings, or what it names; docs/artifacts.md says how.',
    );
  } finally {
    await artifacts.close();
  }
}

export async function diagnose(
  options: { config?: string },
  env = process.env,
  folder = process.cwd(),
): Promise<Check[]> {
  const out = [checkNode(process.versions.node), ...(await guarded('packages', checkPackages))];
  let config: Config;
  try {
    config = await loadConfig(options, env, folder);
    const file =
      options.config ??
      (existsSync(join(folder, 'pawl.config.ts')) ? 'pawl.config.ts' : 'no file; from the environment');
    out.push(ok('settings', file));
  } catch (error) {
    return [...out, fail('settings', reason(error), 'Correct the settings; the other checks need them.')];
  }
  const holder = existsSync(config.home) ? homeHolder(config.home) : null;
  out.push(...(await guarded('home', () => checkHome(config))));
  out.push(ok('process', holder === null ? 'no Pawl is running in this home' : `Pawl runs as process ${holder.pid}`));
  out.push(...(await guarded('database', () => checkDatabase(config))));
  out.push(...(await guarded('journal', () => checkJournal(config, holder !== null))));
  out.push(...(await guarded('artifacts', () => checkArtifacts(config))));
  out.push(...(await guarded('upstreams', () => checkUpstreams(config))));
  out.push(...(await guarded('port', () => checkPort(config, holder))));
  return out;
}

export function checkLines(checks: readonly Check[], { paint }: Pick<Terminal, 'paint'>): string[] {
  const marks = { ok: paint.green('✓'), warn: paint.yellow('!'), fail: paint.red('✗') };
  const longest = Math.max(...checks.map(({ name }) => name.length));
  return checks.flatMap(({ name, state, found, wayOut }) => [
    `${marks[state]} ${oneLine(name).padEnd(longest)}  ${oneLine(found)}`,
    ...(wayOut === undefined ? [] : [`  ${' '.repeat(longest)}  → ${oneLine(wayOut)}`]),
  ]);
}

export const doctorCommand = (): Command =>
  new Command('doctor')
    .description('Check everything Pawl needs and say what to do.')
    .option('-c, --config <file>', 'settings file (default: ./pawl.config.ts)')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', '\nExample:\n  pawl doctor\n\nThe exit code is 1 when something does not work (✗).')
    .action(async (options: { config?: string; json?: boolean }) => {
      const checks = await diagnose(options);
      const terminal = openTerminal();
      if (options.json)
        terminal.write(JSON.stringify({ ok: !checks.some((c) => c.state === 'fail'), checks }, null, 2));
      else for (const line of checkLines(checks, terminal)) terminal.write(line);
      if (checks.some(({ state }) => state === 'fail')) process.exitCode = 1;
    });
