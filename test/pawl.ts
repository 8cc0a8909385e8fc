/** A real Pawl in a process of its own, on a free port, with a home folder that is gone afterwards. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoreError } from '../src/errors.ts';
import type { Role } from '../src/roles/ground.ts';
import { processStart } from '../src/store/lock.ts';
import { openStore, type Store } from '../src/store/postgres.ts';

/** `npm run test:all`: the many cases of what `npm test` shows with a few. */
export const isThorough = process.env.TEST_ALL === '1';

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
  command: 'serve' | Role = 'serve',
): Promise<PawlProcess> {
  const child = spawn(
    inside[0] ?? process.execPath,
    [...inside.slice(1), ...(inside[0] ? [process.execPath] : []), 'bin/pawl.js', command, ...args],
    {
      env: { ...process.env, DATABASE_URL: '', PAWL_HOME: home, PAWL_PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let text = '';
  const url = await new Promise<string>((resolve, reject) => {
    const onText = (chunk: string) => {
      text += chunk;
      const found = /(?:gateway|health) +(http:\/\/[^/\s]+)\/(?:v1|healthz)/.exec(text)?.[1];
      if (
        found &&
        (command === 'serve' || command === 'gateway' ? /(upstream|engine) .*\n/ : /database .*\n/).test(text)
      )
        setTimeout(() => resolve(found), 10);
    };
    child.stdout!.setEncoding('utf8').on('data', onText);
    child.stderr!.setEncoding('utf8').on('data', onText);
    child.once('exit', (code, signal) => reject(new Error(`pawl ${command} ended with ${code ?? signal}:\n${text}`)));
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
    store: () => storeOf(home),
    kill,
    restart: (more = {}) => startPawl({ ...env, ...more }, home, { key, adminToken }, args, inside, command),
    async remove() {
      await kill();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A gateway may be up before its database is; then the database is waited for. */
async function storeOf(home: string): Promise<Store> {
  for (;;) {
    try {
      return await openStore({ home, join: true });
    } catch (error) {
      if (!(error instanceof StoreError && error.retryable)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

export type HeldDatabase = {
  release(): void;
  /** Ends it where it stands, with whatever had been sent to it meanwhile. */
  kill(): Promise<void>;
};

/**
 * The database server of a home, held still until it is let go or killed. The postmaster alone would not do: each connection has a
 * process of its own, which goes on working while the postmaster is stopped.
 */
export function holdDatabase(home: string): HeldDatabase {
  const postmaster = Number(readFileSync(join(home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
  process.kill(postmaster, 'SIGSTOP'); // first, so that it makes no more of them
  const held = [postmaster, ...childrenOf(postmaster)];
  const tell = (signal: NodeJS.Signals) => {
    for (const pid of held) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  };
  tell('SIGSTOP');
  return {
    release: () => tell('SIGCONT'),
    async kill() {
      tell('SIGKILL');
      await until(
        () => held.filter((pid) => processStart(pid) !== null),
        (left) => left.length === 0,
      );
    },
  };
}

/** From /proc on Linux, where `ps` is not always installed. */
function childrenOf(parent: number): number[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && parentOf(name) === parent)
      .map(Number);
  }
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return lines
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([, of]) => of === parent)
    .map(([pid]) => pid!);
}

function parentOf(pid: string): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return null; // it ended meanwhile
  }
}

/** Calls `read` until `good` says so. A test that waits for what never comes ends by vitest's own limit. */
export async function until<T>(read: () => Promise<T> | T, good: (value: T) => boolean, everyMs = 50): Promise<T> {
  for (;;) {
    const value = await read();
    if (good(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
