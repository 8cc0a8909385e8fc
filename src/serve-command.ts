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
    .description('Serve gateway and API in the foreground; Ctrl-C answers what is in flight, writes it down and stops.')
    .option('-c, --config <file>', 'settings file (default: ./pawl.config.ts if it is there)')
    .addHelpText('after', '\nExample:\n  PAWL_UPSTREAM=http://127.0.0.1:8000/v1 pawl serve\n')
    .action(async (options: { config?: string }) => {
      const config = await loadConfig(options);
      const { log, linesLost } = openLog(process.env.PAWL_LOG ?? 'warn');
      const { serve } = await import('./serve.ts'); // only here, so that other commands start faster
      const serving = await serve(config, log, linesLost);
      // A reader that goes away ends other commands; a server has callers.
      process.stdout.removeAllListeners('error').on('error', () => {});
      announce(serving, config);
      await stopSignal();
      // The reader of what was said at the start may be long gone.
      openOutput(1).write('Stopping: answering what is in flight and writing it down. Ctrl-C again stops at once.\n');
      await serving.close();
      process.exit(0);
    });
}

function announce(serving: Serving, { agent, host, upstreams: settings }: Config): void {
  const upstreams = Object.entries(settings);
  const line = (name: string, value: string) => console.log(`  ${name.padEnd(12)}${value}`);
  console.log(`Pawl ${version}, agent ${agent}`);
  line('gateway', `${serving.url}/v1`);
  const warning = exposure(host);
  if (warning !== null) line('warning', warning);
  line('api', `${serving.url}/api`);
  line('metrics', `${serving.url}/metrics`);
  line(
    'database',
    serving.store.kind === 'embedded'
      ? `embedded PostgreSQL ${serving.store.serverVersion}`
      : `PostgreSQL ${serving.store.serverVersion}`,
  );
  for (const [name, { baseUrl }] of upstreams) line('upstream', `${name}  ${baseUrl}`);
  if (upstreams.length === 0)
    line('upstream', 'none yet: set PAWL_UPSTREAM=http://host:port/v1, or `upstreams` in pawl.config.ts');
  if (serving.made.clientToken) line('client key', `${serving.made.clientToken}   (shown only now)`);
  if (serving.made.adminToken) line('admin token', `${serving.made.adminToken}   (shown only now)`);
}

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
