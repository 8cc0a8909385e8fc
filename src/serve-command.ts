/** `pawl serve`: everything in the foreground until it is told to stop. */
import { Command } from 'commander';
import { exposure } from './api/guard.ts';
import { type Config, loadConfig } from './config.ts';
import { openLog } from './log.ts';
import { openOutput } from './output.ts';
import type { Serving } from './serve.ts';
import { version } from './version.ts';

export function serveCommand(): Command {
  return new Command('serve')
    .description(
      'Serve gateway and API, and turn the loops of its agents, in the foreground; Ctrl-C answers what is in flight, writes it down and stops.',
    )
    .option('-c, --config <file>', 'settings file (default: ./pawl.config.ts if it is there)')
    .option('--stop-with-stdin', 'stop when standard input closes: for a program that starts it and may die')
    .addHelpText('after', '\nExample:\n  PAWL_UPSTREAM=http://127.0.0.1:8000/v1 pawl serve\n')
    .action(async (options: { config?: string; stopWithStdin?: boolean }) => {
      const config = await loadConfig(options);
      const { log, linesLost } = openLog(process.env.PAWL_LOG ?? 'warn');
      const { serve } = await import('./serve.ts'); // only here, so that other commands start faster
      const names = config.agents.map(({ name }) => name);
      console.log(`Pawl ${version}, agent${names.length === 1 ? '' : 's'} ${names.join(', ')}`);
      const stop = new AbortController();
      const stopped = Promise.race([stopSignal(), ...(options.stopWithStdin ? [stdinClosed()] : [])]).then(() => {
        // The reader of what was said at the start may be long gone.
        openOutput(1).write('Stopping: answering what is in flight and writing it down. Ctrl-C again stops at once.\n');
        stop.abort();
      });
      let serving: Serving;
      try {
        serving = await serve(config, log, {
          show: showSecret,
          say: (text) => console.log(text),
          signal: stop.signal,
          linesLost,
        });
      } catch (error) {
        if (stop.signal.aborted) process.exit(130);
        throw error;
      }
      // A reader that goes away ends other commands; a server has callers.
      process.stdout.removeAllListeners('error').on('error', () => {});
      announce(serving, config);
      await stopped;
      await serving.close();
      process.exit(0);
    });
}

const line = (name: string, value: string): string => `  ${name.padEnd(12)}${value}\n`;

const about = {
  'admin token': 'shown only now',
  'client key': 'shown only now; may call, give feedback, report outcomes',
};

/** Resolves when the secret has been written out: only then may it be the one that counts. */
export function showSecret(name: keyof typeof about, token: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(line(name, `${token}   (${about[name]})`), (error) =>
      error ? reject(new Error(`The ${name} could not be shown (${error.message}), so it was not made.`)) : resolve(),
    );
  });
}

function announce(serving: Serving, { agents, host, upstreams, databaseUrl }: Config): void {
  const warning = exposure(host);
  const kind = databaseUrl === undefined ? 'embedded PostgreSQL' : 'PostgreSQL';
  const lines = [
    line('gateway', `${serving.url}/v1`),
    ...(warning === null ? [] : [line('warning', warning)]),
    line('api', `${serving.url}/api`),
    line('metrics', `${serving.url}/metrics`),
    line('database', serving.isConnected ? `${kind} ${serving.store.serverVersion}` : `${kind}, away`),
    ...serving.problems().map((problem) => line('problem', problem)),
    ...Object.entries(upstreams).map(([name, { baseUrl }]) => line('upstream', `${name}  ${baseUrl}`)),
  ];
  if (Object.keys(upstreams).length === 0)
    lines.push(
      agents.some(({ train }) => train.base !== undefined)
        ? line('engine', 'answers for agents that have a model of their own')
        : line('upstream', 'none yet: set PAWL_UPSTREAM=http://host:port/v1, or `upstreams` in pawl.config.ts'),
    );
  process.stdout.write(lines.join(''));
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
