/** `pawl serve`, and `pawl gateway`, `pawl worker`, `pawl api`, which are its parts: in the foreground until told to stop. */
import { Command } from 'commander';
import { exposure } from './api/guard.ts';
import { wholeNumber } from './command.ts';
import { type Config, loadConfig } from './config.ts';
import { ConfigError } from './errors.ts';
import { openLog } from './log.ts';
import { openOutput } from './output.ts';
import { type Child, thisChild } from './roles/child.ts';
import { allRoles, type Role } from './roles/ground.ts';
import { childHome } from './roles/left-journals.ts';
import type { Serving } from './serve.ts';
import { version } from './version.ts';

type Options = { readonly config?: string; readonly stopWithStdin?: boolean };

const named = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .option('-c, --config <file>', 'settings file (default: ./pawl.config.ts if it is there)')
    .option('--stop-with-stdin', 'stop when standard input closes: for a program that starts it and may die');

export const serveCommand = (): Command =>
  named(
    'serve',
    'Serve gateway, API and dashboard, and turn the loops of its agents, in the foreground; Ctrl-C answers what is in flight, writes it down and stops.',
  )
    .addHelpText('after', '\nExample:\n  PAWL_UPSTREAM=http://127.0.0.1:8000/v1 pawl serve\n')
    .action((options: Options) => run('serve', allRoles, options));

const apart = (role: Role, description: string, example: string): Command =>
  named(
    role,
    `${description} Any number of them work on one database, on any machines, each with a home folder of its own; docs/scale.md says how.`,
  )
    .addHelpText('after', `\nExample:\n  DATABASE_URL=postgres://pawl@db/pawl ${example}\n`)
    .action((options: Options) => run(role, [role], options));

export const gatewayCommand = (): Command =>
  apart('gateway', 'The part of `pawl serve` that answers agents and records.', 'PAWL_HOME=/var/lib/pawl pawl gateway')
    .option(
      '--processes <n>',
      'so many processes on one port, each with a journal of its own; one that dies is started again',
      wholeNumber(1, 256),
    )
    .action(async (options: Options & { readonly processes?: number }) => {
      const child = thisChild();
      if (child !== null) await runChild(child, options);
      else if (options.processes === undefined) await run('gateway', ['gateway'], options);
      else await runParent(options.processes, options);
    });

export const workerCommand = (): Command =>
  apart(
    'worker',
    'The part of `pawl serve` that scores, curates, trains, evaluates and moves rollouts. What only one may do at a time is done by one, and by another when that one dies.',
    'PAWL_PORT=4701 PAWL_HOME=/var/lib/pawl-worker pawl worker',
  );

export const apiCommand = (): Command =>
  apart(
    'api',
    'The part of `pawl serve` that people and programs ask: the dashboard and /api.',
    'PAWL_PORT=4702 PAWL_HOME=/var/lib/pawl-api pawl api',
  );

async function configFor(command: string, roles: readonly Role[], options: Options): Promise<Config> {
  const config = await loadConfig(options);
  if (roles.length < allRoles.length && config.databaseUrl === undefined)
    throw new ConfigError(
      `\`pawl ${command}\` is one of several processes on a database of your own: set DATABASE_URL, e.g. to postgres://pawl@db/pawl. The embedded database serves one process, \`pawl serve\`, which is all of them.`,
    );
  return config;
}

function hello(command: string, { agents }: Config): void {
  const names = agents.map(({ name }) => name);
  console.log(
    `Pawl ${version}${command === 'serve' ? '' : ` ${command}`}, agent${names.length === 1 ? '' : 's'} ${names.join(', ')}`,
  );
}

/** Resolves when it is told to stop; then that was said. */
const toldToStop = async (roles: readonly Role[], { stopWithStdin }: Options): Promise<void> => {
  await Promise.race([stopSignal(), ...(stopWithStdin ? [stdinClosed()] : [])]);
  // The reader of what was said at the start may be long gone.
  openOutput(1).write(`${goodbye(roles)} Ctrl-C again stops at once.\n`);
};

/** A reader that goes away ends other commands; a server has callers. */
const outliveReader = () => process.stdout.removeAllListeners('error').on('error', () => {});

async function run(command: string, roles: readonly Role[], options: Options): Promise<void> {
  const config = await configFor(command, roles, options);
  const { log, linesLost } = openLog(process.env.PAWL_LOG ?? 'warn');
  const { serve } = await import('./serve.ts'); // only here, so that other commands start faster
  hello(command, config);
  const stop = new AbortController();
  const stopped = toldToStop(roles, options).then(() => stop.abort());
  const say = (text: string) => console.log(text);
  let serving: Serving;
  try {
    serving = await serve(config, log, { roles, show: showSecret, say, signal: stop.signal, linesLost });
  } catch (error) {
    if (stop.signal.aborted) process.exit(130);
    throw error;
  }
  outliveReader();
  announce(serving, roles, config);
  await stopped;
  await endWithin(serving.close());
}

const endMs = 60_000;

/** Each part has a limit of its own; should one be without, the process ends all the same. What was answered is in the journal. */
async function endWithin(closing: Promise<void>): Promise<never> {
  const late = setTimeout(() => {
    process.stderr.write(
      `Not everything came to an end within ${endMs / 1000} s; the next start goes on where this one was.\n`,
    );
    process.exit(1);
  }, endMs);
  await closing;
  clearTimeout(late);
  return process.exit(0);
}

/** Several gateway processes on one port. */
async function runParent(count: number, options: Options): Promise<void> {
  const config = await configFor('gateway', ['gateway'], options);
  const { log } = openLog(process.env.PAWL_LOG ?? 'warn');
  const { startFamily } = await import('./roles/family.ts');
  hello('gateway', config);
  const stopped = toldToStop(['gateway'], options);
  const starting = startFamily(config, log, { count, say: (text) => console.log(text) });
  const family = await Promise.race([starting, stopped]);
  if (family === undefined) return process.exit(130);
  // A second Ctrl-C ends this process at once, and them with it.
  process.on('exit', () => family.kill());
  outliveReader();
  process.stdout.write(
    [
      line('gateway', `${family.url}/v1`),
      line('processes', `${count}, with journals in ${config.home}/gateway-1 and so on`),
      line('metrics', `${family.url}/metrics, of all of them`),
      ...upstreamLines(config),
    ].join(''),
  );
  await stopped;
  await family.close();
  process.exit(0);
}

/** One of them: its parent speaks for it, and says when it is to end. */
async function runChild(child: Child, options: Options): Promise<void> {
  // Ctrl-C reaches every process of a terminal; the parent's word is the one that counts.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  const { log, linesLost } = openLog(process.env.PAWL_LOG ?? 'warn');
  const stop = new AbortController();
  const stopped = child.stopped.then(() => stop.abort());
  try {
    const config = await configFor('gateway', ['gateway'], options);
    const own = { ...config, home: childHome(config.home, child.number) };
    const { serve } = await import('./serve.ts');
    const serving = await serve(own, log, {
      ...{ roles: ['gateway'], show: showSecret, signal: stop.signal, linesLost, child },
    });
    outliveReader();
    child.up(serving.url);
    await stopped;
    await endWithin(serving.close());
  } catch (error) {
    if (stop.signal.aborted) process.exit(130);
    child.failed(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
    process.disconnect?.();
  }
}

const goodbye = (roles: readonly Role[]): string =>
  roles.includes('gateway')
    ? 'Stopping: answering what is in flight and writing it down.'
    : 'Stopping; what is under way goes on where it was.';

const line = (name: string, value: string): string => `  ${name.padEnd(12)}${value}\n`;

const about = {
  'admin token': 'shown only now',
  'client key': 'shown only now; may call, give feedback, report outcomes',
};

/** Resolves when the secret has been written out: only then may it be the one that counts. */
export function showSecret(name: keyof typeof about, token: string, link?: string): Promise<void> {
  const shown = [
    line(name, `${token}   (${about[name]})`),
    ...(link === undefined ? [] : [line('dashboard', `${link}   (shown only now)`)]),
  ];
  return new Promise((resolve, reject) => {
    process.stdout.write(shown.join(''), (error) =>
      error ? reject(new Error(`The ${name} could not be shown (${error.message}), so it was not made.`)) : resolve(),
    );
  });
}

function announce(serving: Serving, roles: readonly Role[], config: Config): void {
  const { host, databaseUrl } = config;
  const answers = roles.includes('gateway');
  const warning = exposure(host);
  const kind = databaseUrl === undefined ? 'embedded PostgreSQL' : 'PostgreSQL';
  const lines = [
    ...(answers ? [line('gateway', `${serving.url}/v1`)] : []),
    ...(warning === null ? [] : [line('warning', warning)]),
    ...(roles.includes('api')
      ? [line('dashboard', `${serving.url}/   (link: pawl access create NAME)`), line('api', `${serving.url}/api`)]
      : []),
    line('metrics', `${serving.url}/metrics`),
    ...(answers ? [] : [line('health', `${serving.url}/healthz`)]),
    line('database', serving.isConnected ? `${kind} ${serving.store.serverVersion}` : `${kind}, away`),
    ...serving.problems().map((problem) => line('problem', problem)),
    ...(answers ? upstreamLines(config) : []),
  ];
  process.stdout.write(lines.join(''));
}

function upstreamLines({ agents, upstreams }: Config): string[] {
  if (Object.keys(upstreams).length > 0)
    return Object.entries(upstreams).map(([name, { baseUrl }]) => line('upstream', `${name}  ${baseUrl}`));
  return [
    agents.some(({ train }) => train.base !== undefined)
      ? line('engine', 'answers for agents that have a model of their own')
      : line('upstream', 'none yet: set PAWL_UPSTREAM=http://host:port/v1, or `upstreams` in pawl.config.ts'),
  ];
}

/** Resolves when whoever holds the other end of standard input has closed it or is gone. */
const stdinClosed = (): Promise<void> =>
  new Promise((resolve) => {
    process.stdin.resume();
    process.stdin.once('close', resolve).once('error', () => resolve());
  });

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process without ceremony. */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let told = false;
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.on(signal, () => {
        if (told) process.exit(130);
        told = true;
        resolve();
      });
  });
}
