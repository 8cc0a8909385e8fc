/**
 * One Pawl per data folder: the file `<home>/pawl.lock` names the process that owns it.
 *
 * Node has no flock(2), so the owner is named by pid and start time: after a kill -9 the pid is gone, or belongs to a
 * process that started at another time, and the lock is stale. The file appears by link(2), which is atomic and never
 * overwrites; a stale one is moved away by rename(2), and whoever moved the wrong one puts it back. It is not the last
 * line of defence: PostgreSQL itself refuses a second server on one cluster.
 * It does not reach across machines or containers that share a folder and not their process table.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../errors.ts';

export type HomeLock = {
  readonly path: string;
  /** Names this holding of the folder and no other; `homeHolder` reads it back. */
  readonly instance: string;
  release(): void;
};

/** Something that differs between two processes that had the same pid; null when the process does not exist. */
export const processStart = (pid: number): string | null => {
  if (!Number.isInteger(pid) || pid <= 0) return null;
  if (process.platform === 'linux') {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The name in parentheses may contain anything, also ')': the fields are counted from the last one.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields[0] === 'Z' || fields[0] === 'X') return null;
      return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19]}`;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ESRCH')
        return null;
      throw error;
    }
  }
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return null;
  }
  if (process.platform === 'win32') return 'alive';
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env: { LC_ALL: 'C' } }).trim();
  } catch {
    return null;
  }
};

/** `brief`: a command that will be done in a moment, and not a Pawl that serves. */
type Owner = { readonly pid: number; readonly start: string; readonly brief: boolean; readonly instance: string };

const readOwner = (text: string): Owner | null => {
  try {
    const value = JSON.parse(text) as Partial<Owner> | null;
    return typeof value?.pid === 'number' && typeof value.start === 'string'
      ? { pid: value.pid, start: value.start, brief: value.brief === true, instance: String(value.instance) }
      : null;
  } catch {
    return null;
  }
};

const read = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // Not there, or the home is no folder.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
};

/** Makes the folder, for its owner alone. */
export function makeHome(home: string): void {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unusable(home, error as NodeJS.ErrnoException);
  }
}

const unusable = (home: string, { code, message }: NodeJS.ErrnoException): ConfigError => {
  const why = code === 'EEXIST' || code === 'ENOTDIR' ? 'it, or what it would lie in, is a file' : message;
  return new ConfigError(
    `${home} cannot be the data folder: ${why}. Set PAWL_HOME, or \`home\` in the settings, to a folder that this user may write.`,
  );
};

/** The living process that has the folder, or null. */
export const homeHolder = (home: string): { readonly pid: number; readonly instance: string } | null => {
  const owner = readOwner(read(join(home, 'pawl.lock')) ?? '');
  return owner && processStart(owner.pid) === owner.start ? owner : null;
};

export const homeOwner = (home: string): number | null => homeHolder(home)?.pid ?? null;

const tryLink = (from: string, to: string): boolean => {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
};

const attempts = 50;
const briefMs = 100; // × attempts: how long a command is waited for
const silentAttempts = 5;

export type LockOptions = {
  readonly brief?: boolean;
  /** Told once of a command that is still waited for after half a second. */
  readonly onWait?: (pid: number) => void;
};

/** Takes the folder or throws a ConfigError that names the process that has it. A command that has it is waited for. */
export const lockHome = async (home: string, { brief = false, onWait }: LockOptions = {}): Promise<HomeLock> => {
  makeHome(home);
  const path = join(home, 'pawl.lock');
  const instance = randomBytes(6).toString('hex');
  const claim = `${path}.${process.pid}.${instance}`;
  const text = JSON.stringify({ pid: process.pid, start: processStart(process.pid), brief, instance });
  try {
    writeFileSync(claim, text);
  } catch (error) {
    throw unusable(home, error as NodeJS.ErrnoException);
  }
  try {
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (tryLink(claim, path)) {
        // A rival that judged the previous, stale file may just have moved ours away and be putting it back.
        await sleep(attempt === 0 ? 0 : 50);
        if (read(path) === text) {
          const inode = statSync(path).ino;
          const release = () => {
            try {
              if (statSync(path).ino === inode) unlinkSync(path);
            } catch (error) {
              if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
            }
          };
          return { path, instance, release };
        }
        continue;
      }
      const held = read(path);
      if (held === null) continue;
      const owner = readOwner(held);
      if (owner && processStart(owner.pid) === owner.start) {
        if (owner.brief && !brief && attempt + 1 < attempts) {
          if (attempt === silentAttempts) onWait?.(owner.pid);
          await sleep(briefMs);
          continue;
        }
        throw new ConfigError(
          `The data folder ${home} is in use by another Pawl, process ${owner.pid}${owner.brief ? ' (a command)' : ''}. Stop that one, or give this one its own folder with PAWL_HOME.`,
        );
      }
      const aside = `${claim}.stale`;
      try {
        renameSync(path, aside);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
        throw error;
      }
      if (read(aside) !== held) tryLink(aside, path);
      rmSync(aside, { force: true });
    }
  } finally {
    rmSync(claim, { force: true });
  }
  throw new ConfigError(`The lock ${path} keeps changing hands; is something starting Pawl again and again?`);
};
