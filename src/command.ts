/**
 * What every command that works on the database shares: settings, the store, and errors in one sentence.
 * A command works while `pawl serve` runs (it joins that Pawl's database server) and while it does not (it starts the
 * server and stops it again).
 */
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import type { Artifacts } from './artifacts/artifacts.ts';
import { openArtifacts } from './artifacts/open.ts';
import { type Config, loadConfig } from './config.ts';
import { BoundaryError, ConfigError } from './errors.ts';
import { homeOwner, makeHome } from './store/lock.ts';
import { hasOtherClients } from './store/other-clients.ts';
import { openStore, type Store } from './store/postgres.ts';
import { installationSecret } from './store/secret.ts';
import { earliestTime } from './store/times.ts';
import { openTerminal, plain, type Terminal } from './terminal.ts';

/** Neither leaves behind a database server that this command started. */
const signals = ['SIGINT', 'SIGTERM'] as const;

export type CommonOptions = { readonly config?: string; readonly json?: boolean };

export type Opened = {
  readonly config: Config;
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly terminal: Terminal;
  /** What user ids are hashed with: whoever looks for one needs it (collect/person.ts). */
  readonly secret: string;
  /** What the first Ctrl-C or SIGTERM does, where stopping at once is not it. */
  onInterrupt(first: () => Promise<void>): void;
};

const joinAttempts = 60;
const lingerMs = 10_000;
const silentMs = 2_000;

/** Another command may just be starting or stopping the embedded server; that takes a second or two. */
async function openJoined({ home, databaseUrl }: Config): Promise<Store> {
  const slow = setTimeout(() => console.error('Waiting for the database …'), silentMs);
  const stop = new AbortController();
  const interrupted = () => {
    // A second one ends the process where it is; what it leaves is cleared away by the next start.
    if (stop.signal.aborted) process.exit(130);
    stop.abort();
  };
  for (const signal of signals) process.on(signal, interrupted);
  try {
    for (let attempt = 1; ; attempt++) {
      const shared = databaseUrl === undefined && homeOwner(home) !== null;
      try {
        // One connection: then every other one in the list that `waitForOthers` reads belongs to somebody else.
        return await openStore({ home, databaseUrl, join: true, poolSize: 1, signal: stop.signal });
      } catch (error) {
        if (stop.signal.aborted) process.exit(130);
        const busy = shared || (databaseUrl === undefined && homeOwner(home) !== null);
        if (!busy || attempt === joinAttempts) throw error;
        await sleep(250, undefined, { signal: stop.signal }).catch(() => process.exit(130));
      }
    }
  } finally {
    clearTimeout(slow);
    for (const signal of signals) process.removeListener(signal, interrupted);
  }
}

/** Commands that joined the server this one started finish before it is stopped. */
async function waitForOthers(config: Config, store: Store): Promise<void> {
  if (store.kind !== 'embedded' || homeOwner(config.home) !== process.pid) return;
  for (const end = Date.now() + lingerMs; Date.now() < end; await sleep(50))
    if (!(await hasOtherClients(store))) return;
}

/** `existing`: the command only reads, so a folder without data is a mistake and not a place for a new database. */
export async function withHome(
  options: CommonOptions,
  need: 'existing' | 'create',
  run: (opened: Opened) => Promise<void>,
): Promise<void> {
  const config = await loadConfig(options);
  if (need === 'existing' && config.databaseUrl === undefined && !existsSync(join(config.home, 'postgres')))
    throw new ConfigError(
      `There is nothing recorded in ${config.home} yet. Start \`pawl serve\` first, or set PAWL_HOME to the folder of a Pawl that has run.`,
    );
  makeHome(config.home);
  const store = await openJoined(config);
  const artifacts = openArtifacts(config);
  const close = () => store.close().finally(() => process.exit(130));
  let atFirst = close;
  const interrupted = () => {
    const now = atFirst;
    atFirst = close;
    now().catch(close);
  };
  for (const signal of signals) process.on(signal, interrupted);
  try {
    const onInterrupt = (first: () => Promise<void>) => {
      atFirst = first;
    };
    const warn = (message: string) => console.error(message);
    const secret = await installationSecret(store, config.home, { given: config.secret, warn });
    await run({
      config,
      store,
      artifacts,
      terminal: openTerminal(),
      secret,
      onInterrupt,
    });
    await waitForOthers(config, store);
  } finally {
    for (const signal of signals) process.removeListener(signal, interrupted);
    await artifacts.close();
    await store.close();
  }
}

export const withConfigOption = (command: Command): Command =>
  command.option('-c, --config <file>', 'settings file (default: ./pawl.config.ts)');

const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** A moment as typed: `2h`, `3d` (ago), `2026-01-31`, `2026-01-31T14:00:00Z`. */
export function parseMoment(text: string, now = Date.now()): Date {
  const ago = /^(\d{1,6})([smhdw])$/.exec(text);
  // Nothing is older than 2000, and days before our era have another form.
  if (ago) return new Date(Math.max(earliestTime, now - Number(ago[1]) * units[ago[2] as keyof typeof units]));
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw new InvalidArgumentError('Give how long ago, such as 90m, 2h or 3d, or a date such as 2026-01-31.');
  return new Date(at);
}

export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < least || value > most)
      throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
    return value;
  };

/** What a failed command prints. The stack is for whoever debugs Pawl itself. */
export function explain(error: unknown, debug: boolean): string {
  if (debug && error instanceof Error) return plain(error.stack ?? error.message);
  if (error instanceof BoundaryError) return plain(error.message);
  const { message, code } = error as { message?: string; code?: string };
  return plain(`${message || code || String(error)}\n\`pawl doctor\` checks what Pawl needs; PAWL_DEBUG=1 shows more.`);
}

/** A text of so many characters. */
export const sentence =
  (most: number) =>
  (text: string): string => {
    const said = text.trim();
    if (said === '' || said.length > most || said.includes('\0'))
      throw new InvalidArgumentError(`Give a text of 1 to ${most} characters.`);
    return said;
  };

/** Who does something, as the audit log has it. */
export const byOption = () =>
  ['--by <name>', 'who does it; stands in the audit log', sentence(200), userName()] as const;

/** Containers may have a user id that no name belongs to. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
