/** A real Pawl in a process of its own, on a free port, with a home folder that is gone afterwards. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore, type Store } from '../src/store/postgres.ts';

export type PawlProcess = {
  readonly home: string;
  readonly url: string;
  /** A client key, made by the first start. */
  readonly key: string;
  readonly adminToken: string;
  readonly process: ChildProcess;
  /** Everything the process has printed. */
  output(): string;
  /** Connects to the database of this Pawl. */
  store(): Promise<Store>;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts again on the same home; the key stays valid. */
  restart(env?: Record<string, string>): Promise<PawlProcess>;
  /** Stops, if it runs, and removes the home folder. */
  remove(): Promise<void>;
};

export async function startPawl(
  env: Record<string, string> = {},
  home = mkdtempSync(join(tmpdir(), 'pawl-test-')),
  known = { key: '', adminToken: '' },
  args: string[] = [],
  /** Runs the command in something, e.g. under a limit. */
  inside: string[] = [],
): Promise<PawlProcess> {
  const child = spawn(
    inside[0] ?? process.execPath,
    [...inside.slice(1), ...(inside[0] ? [process.execPath] : []), 'bin/pawl.js', 'serve', ...args],
    {
      env: { ...process.env, DATABASE_URL: '', PAWL_HOME: home, PAWL_PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let text = '';
  const url = await new Promise<string>((resolve, reject) => {
    const onText = (chunk: string) => {
      text += chunk;
      const found = /gateway +(http:\S+)\/v1/.exec(text)?.[1];
      if (found && /upstream .*\n/.test(text)) setTimeout(() => resolve(found), 10);
    };
    child.stdout!.setEncoding('utf8').on('data', onText);
    child.stderr!.setEncoding('utf8').on('data', onText);
    child.once('exit', (code, signal) => reject(new Error(`pawl serve ended with ${code ?? signal}:\n${text}`)));
  });
  child.removeAllListeners('exit');
  const key = /client key +(\S+)/.exec(text)?.[1] ?? known.key;
  const adminToken = /admin token +(\S+)/.exec(text)?.[1] ?? known.adminToken;
  const exited = once(child, 'exit');
  const kill = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
  };
  return {
    home,
    url,
    key,
    adminToken,
    process: child,
    output: () => text,
    store: () => openStore({ home, join: true }),
    kill,
    restart: (more = {}) => startPawl({ ...env, ...more }, home, { key, adminToken }, args, inside),
    async remove() {
      await kill();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Calls `read` until `good` says so. A test that waits for what never comes ends by vitest's own limit. */
export async function until<T>(read: () => Promise<T> | T, good: (value: T) => boolean, everyMs = 50): Promise<T> {
  for (;;) {
    const value = await read();
    if (good(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
