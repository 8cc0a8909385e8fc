/**
 * A real PostgreSQL server as a child process, with its data under `<home>/postgres`.
 *
 *   data/         the cluster          password     what we log in with, 0600, made once
 *   server.log    cut when it grows    server.json  the settings the running server was started with
 *
 * It listens on 127.0.0.1 alone, on a free port, has no Unix socket, and asks for the password. It is in its own process
 * group, so Ctrl-C in the terminal reaches Pawl and not the database, which stops last. If Pawl is killed, the server
 * lives on and the next start adopts it. PostgreSQL refuses to run as root; then the server gets the owner of the data
 * folder, or nobody, as its user, and no user is created. No `pg_ctl`: it adds a shell and a second opinion.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ConfigError, StoreError } from '../errors.ts';
import { writeAtomically } from './atomic-file.ts';
import { processStart } from './lock.ts';
import { findNative, type Native, type ServerUser } from './native.ts';

export type EmbeddedServer = {
  readonly url: string;
  readonly pid: number;
  /** Whether the server was already running, left by a Pawl that was killed. */
  readonly adopted: boolean;
  /** Fast shutdown: open transactions are rolled back, everything committed is on disk. */
  stop(): Promise<void>;
};

export type EmbeddedOptions = {
  readonly home: string;
  /** For tests and benches: no fsync, so a crash of the machine loses the data. */
  readonly volatile?: boolean;
  /** Gives up a start that is under way; what was begun is stopped again. */
  readonly signal?: AbortSignal | undefined;
};

const logLimit = 4 * 1024 * 1024;
const startLimitMs = 120_000; // crash recovery of a large journal takes its time
const watchMs = 500;
/** More than whoever starts it. */
const nicer = 5;
const role = 'pawl';

/**
 * Sized for a laptop. Errors and statements are not logged (`log_min_messages = log` skips ERROR): they would carry the
 * users' words into a text file that no redaction sees.
 */
const settings = (volatile: boolean): Record<string, string> => ({
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: volatile ? '200' : '50', // many tests at once
  shared_buffers: '128MB',
  maintenance_work_mem: '64MB',
  synchronous_commit: volatile ? 'off' : 'on',
  fsync: volatile ? 'off' : 'on',
  full_page_writes: volatile ? 'off' : 'on',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '1GB',
  min_wal_size: '80MB',
  checkpoint_completion_target: '0.9',
  jit: 'off',
  // Batches are small and the data is warm: helper processes for reading would only add switches.
  io_method: 'sync',
  password_encryption: 'scram-sha-256',
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_checkpoints: 'off',
  cluster_name: 'pawl',
});

type Paths = { readonly base: string; readonly data: string; readonly log: string; readonly state: string };
const pathsOf = (home: string): Paths => {
  const base = resolve(home, 'postgres');
  return { base, data: join(base, 'data'), log: join(base, 'server.log'), state: join(base, 'server.json') };
};

/** Who the server runs as when we are root: whoever owns the data already, else the owner of the folder, else nobody. */
export const chooseUser = (owners: readonly ServerUser[], passwd: string): ServerUser => {
  const ordinary = owners.find((owner) => owner.uid !== 0);
  if (ordinary) return ordinary;
  const nobody = /^nobody:[^:]*:(\d+):(\d+):/m.exec(passwd);
  return nobody ? { uid: Number(nobody[1]), gid: Number(nobody[2]) } : { uid: 65534, gid: 65534 };
};

const serverUser = (paths: Paths, home: string): ServerUser | null => {
  if (process.getuid?.() !== 0) return null;
  const passwd = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8') : '';
  const owners = [paths.data, home].filter((path) => existsSync(path)).map((path) => statSync(path));
  return chooseUser(owners, passwd);
};

/**
 * How a program that runs as `user` names the folder it was started in. That user may be unable to pass through our
 * folders (a /root of mode 700), but the kernel resolves /proc/self/cwd without walking the path, and the fork changes
 * into the folder while it is still root.
 */
const asSeenBy = (user: ServerUser | null, folder: string): string =>
  user !== null && process.platform === 'linux' ? '/proc/self/cwd' : folder;

const passwordOf = (paths: Paths): string => {
  const path = join(paths.base, 'password');
  if (existsSync(path)) return readFileSync(path, 'utf8').trim();
  const password = randomBytes(24).toString('base64url');
  writeAtomically(path, `${password}\n`);
  return password;
};

const environment = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' });

/** Makes the cluster in a folder aside and moves it into place when it is whole, so an interruption leaves none. */
const initialise = async (
  paths: Paths,
  native: Native,
  user: ServerUser | null,
  password: string,
  { volatile, signal }: EmbeddedOptions,
): Promise<void> => {
  if (existsSync(paths.data)) return;
  const making = join(paths.base, 'making');
  const data = join(making, 'data');
  const secret = join(making, 'password');
  rmSync(making, { recursive: true, force: true });
  mkdirSync(data, { recursive: true, mode: 0o700 });
  writeFileSync(secret, `${password}\n`, { mode: 0o600 });
  if (user) for (const path of [data, secret]) chownSync(path, user.uid, user.gid);
  // A file as standard input, not a pipe: initdb opens it again by the name /dev/stdin.
  const input = openSync(secret, 'r');
  const child = spawn(
    native.bin('initdb'),
    [
      ...['-D', asSeenBy(user, data), '-U', role, '--auth=scram-sha-256', '--pwfile=/dev/stdin'],
      ...['--encoding=UTF8', '--locale=C', '--no-instructions', ...(volatile ? ['--no-sync'] : [])],
    ],
    // In a process group of its own: Ctrl-C reaches it through Pawl, which then also tidies up.
    { cwd: data, ...user, detached: true, stdio: [input, 'ignore', 'pipe'], env: environment() },
  );
  closeSync(input);
  const stop = () => child.pid !== undefined && signalTo(-child.pid, 'SIGKILL');
  signal?.addEventListener('abort', stop);
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const status = await new Promise<number | null>((ended) => {
    child.once('close', ended);
    child.once('error', (error) => {
      said = error.message;
      ended(null);
    });
  });
  signal?.removeEventListener('abort', stop);
  if (status !== 0) {
    rmSync(making, { recursive: true, force: true });
    signal?.throwIfAborted();
    const hint = said.includes('could not look up effective user ID')
      ? 'Give this user id a name in /etc/passwd, or set DATABASE_URL to a PostgreSQL of your own.'
      : 'Set DATABASE_URL to use a PostgreSQL of your own instead.';
    throw new StoreError(`The embedded PostgreSQL could not be initialised in ${paths.data}: ${said.trim()} ${hint}`);
  }
  renameSync(data, paths.data);
  rmSync(making, { recursive: true, force: true });
};

type PidFile = { readonly pid: number; readonly port: number; readonly status: string };

/** Lines of postmaster.pid: pid, data folder, start time, port, socket folder, address, shared memory, status. */
export const parsePidFile = (text: string): PidFile | null => {
  const lines = text.split('\n');
  const pid = Math.abs(Number(lines[0]));
  const port = Number(lines[3]);
  if (!Number.isInteger(pid) || pid === 0) return null;
  return { pid, port: Number.isInteger(port) ? port : 0, status: (lines[7] ?? '').trim() };
};

const readPidFile = (paths: Paths): PidFile | null => {
  try {
    return parsePidFile(readFileSync(join(paths.data, 'postmaster.pid'), 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
};

const alive = (pid: number): boolean => processStart(pid) !== null;

/**
 * Whose a pid is: the server of this cluster, a stranger that got a recycled number, or a PostgreSQL of which this user
 * cannot see in which folder it works. A server's folder is compared as a place and not by its name: links and mounts give one
 * folder many names.
 */
export const whose = (data: string, pid: number): 'nobody' | 'ours' | 'stranger' | 'unknown' => {
  if (!alive(pid)) return 'nobody';
  if (process.platform === 'win32') return 'ours';
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
    return stdout.includes(data) ? 'ours' : /postgres/.test(stdout) ? 'unknown' : 'stranger';
  }
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== 'postgres') return 'stranger';
    const [theirs, own] = [statSync(`/proc/${pid}/cwd`), statSync(data)];
    return theirs.ino === own.ino && theirs.dev === own.dev ? 'ours' : 'stranger';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ENOENT: it ended meanwhile, or its folder is deleted and it serves nobody.
    return code === 'EACCES' || code === 'EPERM' ? 'unknown' : 'stranger';
  }
};

const urlOf = (port: number, password: string, database: string): string =>
  `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;

/** Postgres' own words for "not yet": starting up, shutting down, recovering. */
const answers = async (url: string): Promise<'yes' | 'later' | 'no'> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000, query_timeout: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('select 1');
    return 'yes';
  } catch (error) {
    return (error as { code?: string }).code === '57P03' ? 'later' : 'no';
  } finally {
    await client.end().catch(() => {});
  }
};

const waitGone = async (pid: number, limitMs: number): Promise<boolean> => {
  const end = Date.now() + limitMs;
  while (alive(pid)) {
    if (Date.now() > end) return false;
    await sleep(20);
  }
  return true;
};

/** A negative pid is a process group. */
const signalTo = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

/** SIGINT asks PostgreSQL for a fast shutdown, SIGQUIT for an immediate one, after which it recovers at the next start. */
const stopServer = async (paths: Paths, pid: number): Promise<void> => {
  for (const [name, limitMs] of [['SIGINT', 60_000] as const, ['SIGQUIT', 15_000] as const]) {
    if (!alive(pid)) return;
    signalTo(pid, name);
    if (await waitGone(pid, limitMs)) return;
  }
  throw new StoreError(
    `The embedded PostgreSQL in ${paths.data} (process ${pid}) does not stop. End it by hand and start again.`,
  );
};

const freePort = (): Promise<number> =>
  new Promise((found, failed) => {
    const probe = createServer();
    probe.once('error', failed);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => (address && typeof address === 'object' ? found(address.port) : failed(new Error('no port'))));
    });
  });

const tailOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(-12).join('\n').trim();
  } catch {
    return '';
  }
};

const trimLog = (path: string): void => {
  try {
    if (statSync(path).size > logLimit) truncateSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
};

/** Whoever is nice may become nicer and never less so; a server that is gone already says itself why. */
const giveWay = (pid: number): void => {
  try {
    setPriority(pid, Math.min(19, getPriority() + nicer));
  } catch {
    // It shares the processors as it did.
  }
};

/** One attempt; null when the port was taken in the meantime. */
const launch = async (
  paths: Paths,
  native: Native,
  user: ServerUser | null,
  options: Record<string, string>,
  { wantedPort, signal }: { readonly wantedPort?: number; readonly signal?: AbortSignal | undefined },
): Promise<{ port: number; pid: number } | null> => {
  const port = wantedPort ?? (await freePort());
  trimLog(paths.log);
  const logStart = existsSync(paths.log) ? statSync(paths.log).size : 0;
  const log = openSync(paths.log, 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn(
      native.bin('postgres'),
      [
        '-D',
        asSeenBy(user, paths.data),
        '-p',
        String(port),
        ...Object.entries(options).flatMap(([k, v]) => ['-c', `${k}=${v}`]),
      ],
      { cwd: paths.data, ...user, detached: true, stdio: ['ignore', log, log], env: environment() },
    );
  } finally {
    closeSync(log);
  }
  let failure: Error | null = null;
  child.once('error', (error) => {
    failure = error;
  });
  child.unref();
  // Answering comes first: where processors are short, the database waits for the gateway and not the other way round.
  if (child.pid !== undefined) giveWay(child.pid);
  const end = Date.now() + startLimitMs;
  for (;;) {
    const said = () => readFileSync(paths.log, 'utf8').slice(logStart);
    if (failure !== null || child.exitCode !== null || child.signalCode !== null) {
      if (failure === null && /Address already in use|could not bind/.test(said())) return null;
      throw new StoreError(
        `The embedded PostgreSQL did not start: ${failure ? (failure as Error).message : tailOf(paths.log)}\n(log: ${paths.log})`,
        { retryable: true },
      );
    }
    const file = readPidFile(paths);
    if (file?.pid === child.pid && file?.status === 'ready') return { port, pid: file.pid };
    if (signal?.aborted) {
      if (child.pid !== undefined) await stopServer(paths, child.pid);
      signal.throwIfAborted();
    }
    if (Date.now() > end) {
      if (child.pid !== undefined) signalTo(child.pid, 'SIGQUIT');
      throw new StoreError(`The embedded PostgreSQL was not ready after ${startLimitMs / 1000} s (log: ${paths.log}).`);
    }
    await sleep(15);
  }
};

/** A server that a killed Pawl left behind: taken over as it is, or stopped if it was started otherwise. */
const adopt = async (
  paths: Paths,
  password: string,
  fingerprint: string,
  abort?: AbortSignal,
): Promise<PidFile | null> => {
  const file = readPidFile(paths);
  if (file === null) return null;
  switch (whose(paths.data, file.pid)) {
    case 'nobody':
      // PostgreSQL clears the file away itself, after looking whether processes of the dead server still hold its memory.
      return null;
    case 'stranger':
      // A recycled number. PostgreSQL would believe any living process of the same user to be its server.
      rmSync(join(paths.data, 'postmaster.pid'), { force: true });
      return null;
    case 'unknown':
      if ((await answers(urlOf(file.port, password, 'postgres'))) === 'yes') return file;
      throw new StoreError(
        `${join(paths.data, 'postmaster.pid')} names process ${file.pid}, a PostgreSQL that this user may not look into. Stop it, or remove the file if it is the server of another folder.`,
        { retryable: true },
      );
    case 'ours':
  }
  const sameSettings = existsSync(paths.state) && readFileSync(paths.state, 'utf8') === fingerprint;
  const end = Date.now() + startLimitMs;
  while (sameSettings && alive(file.pid) && Date.now() < end && !abort?.aborted) {
    const now = readPidFile(paths);
    const answer = now === null ? 'no' : await answers(urlOf(now.port, password, 'postgres'));
    if (answer === 'yes') return now;
    if (answer === 'no' && now?.status !== 'starting') break;
    await sleep(50);
  }
  await stopServer(paths, file.pid);
  abort?.throwIfAborted();
  return null;
};

const ensureDatabase = async (port: number, password: string): Promise<void> => {
  const client = new pg.Client({
    connectionString: urlOf(port, password, 'postgres'),
    connectionTimeoutMillis: 10_000,
    query_timeout: 60_000, // copying the template of a new database on a slow disk
  });
  client.on('error', () => {});
  await client.connect();
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [role]);
    if (found.rowCount === 0) await client.query(`create database ${role}`);
  } finally {
    await client.end();
  }
};

/** Starts or adopts the server. The caller holds the lock on `home` (lock.ts). */
export const startEmbedded = async (given: EmbeddedOptions): Promise<EmbeddedServer> => {
  const { home, volatile = false, signal } = given;
  const paths = pathsOf(home);
  mkdirSync(paths.base, { recursive: true, mode: 0o700 });
  const user = serverUser(paths, home);
  if (user !== null && process.platform === 'win32') throw new ConfigError('Set DATABASE_URL.');
  const native = findNative(paths.base, user);
  const major = native.version.split('.')[0] ?? '';
  if (existsSync(join(paths.data, 'PG_VERSION'))) {
    const of = readFileSync(join(paths.data, 'PG_VERSION'), 'utf8').trim();
    if (of !== major)
      throw new ConfigError(
        `The data in ${paths.data} was made by PostgreSQL ${of}, and this Pawl brings ${major}. ` +
          `Dump it with the Pawl that made it, or serve it with a PostgreSQL ${of} of your own and set DATABASE_URL.`,
      );
  }
  const password = passwordOf(paths);
  await initialise(paths, native, user, password, given);
  if (user) {
    // A folder that changed hands (copied, or first used by another user) must belong to the server's user.
    if (statSync(paths.data).uid !== user.uid) chownTree(paths.data, user);
  }
  chmodSync(paths.data, 0o700);

  const options = settings(volatile);
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([native.version, options]))
    .digest('hex');
  const found = await adopt(paths, password, fingerprint, signal);
  let running: { port: number; pid: number } | null = found;
  for (let attempt = 0; running === null && attempt < 10; attempt++)
    running = await launch(paths, native, user, options, { signal });
  if (running === null) throw new StoreError('No free port for the embedded PostgreSQL was found in 10 attempts.');
  const { port } = running;
  let { pid } = running;
  writeAtomically(paths.state, fingerprint);
  try {
    await ensureDatabase(port, password);
  } catch (error) {
    await stopServer(paths, pid);
    throw error;
  }

  const trimming = setInterval(() => trimLog(paths.log), 3_600_000);
  trimming.unref();

  // A server that dies is started again on the same port, so that everybody's connections find it. What it had committed
  // is recovered by PostgreSQL itself. A start that fails (processes of the dead server still hold its memory) is tried
  // again at the next look.
  let restarting: Promise<void> | null = null;
  const restart = async (): Promise<void> => {
    const left = await adopt(paths, password, fingerprint);
    pid = (left ?? (await launch(paths, native, user, options, { wantedPort: port })))?.pid ?? pid;
  };
  const watching = setInterval(() => {
    if (restarting !== null || alive(pid)) return;
    restarting = restart()
      .catch(() => {})
      .finally(() => {
        restarting = null;
      });
  }, watchMs);
  watching.unref();
  return {
    url: urlOf(port, password, role),
    get pid() {
      return pid;
    },
    adopted: found !== null,
    stop: async () => {
      clearInterval(trimming);
      clearInterval(watching);
      await restarting;
      await stopServer(paths, pid);
    },
  };
};

/** Where a Pawl that is running in `home` has its server, for commands that look on; null when none is running. */
export const runningEmbedded = (home: string): string | null => {
  const paths = pathsOf(home);
  const file = readPidFile(paths);
  if (file === null || !['ours', 'unknown'].includes(whose(paths.data, file.pid))) return null;
  return urlOf(file.port, passwordOf(paths), role);
};

const chownTree = (folder: string, user: ServerUser): void => {
  chownSync(folder, user.uid, user.gid);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) chownTree(path, user);
    else if (!entry.isSymbolicLink()) chownSync(path, user.uid, user.gid);
  }
};
