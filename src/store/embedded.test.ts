import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { getPriority, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { chooseUser, parsePidFile, runningEmbedded, whose } from './embedded.ts';
import { homeOwner, lockHome, processStart } from './lock.ts';
import { completeInstall, reachableBy } from './native.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const hold = fileURLToPath(new URL('./fixtures/hold.ts', import.meta.url));
const typescript = new URL('../typescript.js', import.meta.url).href;
const isRoot = process.getuid?.() === 0;
const folders: string[] = [];
const children: ChildProcess[] = [];

const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'pawl-embedded-'));
  folders.push(made);
  return made;
};

const serverPid = (home: string): number | null => {
  try {
    return parsePidFile(readFileSync(join(home, 'postgres/data/postmaster.pid'), 'utf8'))?.pid ?? null;
  } catch {
    return null;
  }
};

const gone = async (pid: number): Promise<void> => {
  while (processStart(pid) !== null) await new Promise((done) => setTimeout(done, 10));
};

type Said = { url: string; count: number; started: string; inserted: number; error?: string; name?: string };
type Held = { child: ChildProcess; said: Said; lines: string[]; exited: Promise<unknown> };

const start = async (
  home: string,
  {
    turns = 0,
    flags = [],
    uid,
    niceness,
  }: { turns?: number; flags?: ('join' | 'durable')[]; uid?: number; niceness?: number } = {},
): Promise<Held> => {
  const child = spawn(process.execPath, ['--import', typescript, hold, home, String(turns), ...flags], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(uid !== undefined && { uid, gid: uid }),
    // What tsx keeps of its work is nobody's of another user.
    env: { ...process.env, HOME: home, ...(uid !== undefined && { TSX_DISABLE_CACHE: '1' }) },
  });
  children.push(child);
  if (niceness !== undefined) setPriority(child.pid!, niceness);
  const exited = once(child, 'exit');
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout! });
  const first = once(reader, 'line') as Promise<[string]>;
  reader.on('line', (line) => lines.push(line));
  const said = await Promise.race([first, exited.then(() => null)]);
  if (said === null && lines.length === 0) throw new Error('the process said nothing');
  return { child, said: JSON.parse((said as [string] | null)?.[0] ?? lines[0]!) as Said, lines, exited };
};

const stop = async ({ child, exited }: Held): Promise<void> => {
  child.kill('SIGTERM');
  await exited;
};

afterEach(async () => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  for (const home of folders.splice(0)) {
    const pid = serverPid(home);
    if (pid !== null && runningEmbedded(home) !== null) {
      process.kill(pid, 'SIGQUIT');
      await gone(pid);
    }
    rmSync(home, { recursive: true, force: true });
  }
});

describe('the embedded server', () => {
  test('starts, keeps what it has through a restart, and stops with its Pawl', async () => {
    const home = folder();
    const first = await start(home, { turns: 3 });
    expect(first.said).toMatchObject({ inserted: 3, count: 3 });
    expect(new URL(first.said.url).hostname).toBe('127.0.0.1');
    expect(statSync(join(home, 'postgres/password')).mode & 0o777).toBe(0o600);
    const pid = serverPid(home)!;
    // Its own session: Ctrl-C in the terminal does not reach it.
    if (process.platform === 'linux') expect(readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[5]).toBe(String(pid));
    await stop(first);
    expect(first.lines.at(-1)).toBe('closed');
    expect(processStart(pid)).toBeNull();
    expect(serverPid(home)).toBeNull();
    const second = await start(home);
    expect(second.said.count).toBe(3);
    await stop(second);
  });

  test('writes down its settings beside a link, never through it', async () => {
    const home = folder();
    const victim = join(home, 'victim');
    writeFileSync(victim, 'precious');
    mkdirSync(join(home, 'postgres'));
    symlinkSync(victim, join(home, 'postgres/server.json.new'));
    await stop(await start(home));
    expect(readFileSync(victim, 'utf8')).toBe('precious');
    expect(lstatSync(join(home, 'postgres/server.json')).isFile()).toBe(true);
  });

  test('left behind by kill -9, is adopted by the next Pawl and stopped by it', async () => {
    const home = folder();
    const first = await start(home, { turns: 2 });
    const pid = serverPid(home)!;
    first.child.kill('SIGKILL');
    await first.exited;
    expect(processStart(pid)).not.toBeNull();
    expect(homeOwner(home)).toBeNull();
    const second = await start(home);
    expect(second.said).toMatchObject({ count: 2, started: first.said.started });
    expect(serverPid(home)).toBe(pid);
    await stop(second);
    expect(processStart(pid)).toBeNull();
  });

  test('left behind with other settings, is stopped and started anew', async () => {
    const home = folder();
    const first = await start(home, { turns: 2 });
    first.child.kill('SIGKILL');
    await first.exited;
    writeFileSync(join(home, 'postgres/server.json'), 'other settings');
    const pid = serverPid(home)!;
    const second = await start(home);
    expect(second.said.count).toBe(2);
    expect(serverPid(home)).not.toBe(pid);
    expect(processStart(pid)).toBeNull();
    await stop(second);
  });

  test('killed together with its Pawl, recovers; a pid file that now names a stranger is no obstacle', async () => {
    const home = folder();
    const first = await start(home, { turns: 2, flags: ['durable'] });
    const pid = serverPid(home)!;
    first.child.kill('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await first.exited;
    await gone(pid);
    const file = join(home, 'postgres/data/postmaster.pid');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^\d+/, String(process.pid)));
    const second = await start(home, { flags: ['durable'] });
    expect(second.said.count).toBe(2);
    await stop(second);
  });

  test('left behind under one name of its folder, is known under another; other servers and strangers are not taken for it', async () => {
    const [home, elsewhere] = [folder(), folder()];
    const first = await start(home, { turns: 2 });
    const other = await start(elsewhere);
    const pid = serverPid(home)!;
    first.child.kill('SIGKILL');
    await first.exited;
    const link = join(folder(), 'link');
    symlinkSync(home, link);
    const data = join(link, 'postgres', 'data');
    expect(whose(data, pid)).toBe('ours');
    expect(whose(data, serverPid(elsewhere)!)).toBe('stranger');
    expect(whose(data, process.pid)).toBe('stranger');
    expect(whose(data, first.child.pid!)).toBe('nobody');
    const second = await start(link);
    expect([second.said.count, serverPid(home)]).toEqual([2, pid]);
    await stop(second);
    await stop(other);
  });

  test('belongs to one Pawl: a second says whose it is and exits, unless it only looks on', async () => {
    const home = folder();
    const first = await start(home, { turns: 1 });
    const second = await start(home);
    await second.exited;
    expect(second.child.exitCode).toBe(1);
    expect(second.said.name).toBe('ConfigError');
    expect(second.said.error).toContain(`process ${first.child.pid}`);
    const third = await start(home, { flags: ['join'] });
    expect(third.said.count).toBe(1);
    await stop(third);
    expect(processStart(serverPid(home)!)).not.toBeNull();
    await stop(first);
  });

  test.runIf(isRoot && process.platform === 'linux')(
    'started by root, runs as another user even in a folder only root can enter',
    async () => {
      const home = folder();
      chmodSync(home, 0o700);
      const inner = join(home, 'inner');
      mkdirSync(inner);
      const held = await start(inner, { turns: 1 });
      expect(held.said.count).toBe(1);
      expect(statSync(`/proc/${serverPid(inner)}`).uid).not.toBe(0);
      await stop(held);
    },
  );

  test.runIf(isRoot && process.platform === 'linux')('works for an ordinary user, also a nice one', async () => {
    const home = folder();
    chownSync(home, 65534, 65534);
    const held = await start(home, { turns: 1, uid: 65534, niceness: 12 });
    expect(held.said).toMatchObject({ inserted: 1, count: 1 });
    expect(getPriority(serverPid(home)!)).toBe(17); // it gives way to who answers, who is at 12
    await stop(held);
    // And for root afterwards, on the same folder: the server stays with the folder's owner.
    const asRoot = await start(home);
    expect(asRoot.said.count).toBe(1);
    expect(statSync(`/proc/${serverPid(home)}`).uid).toBe(65534);
    await stop(asRoot);
  });

  test('an initialisation that was cut off is begun anew', async () => {
    const home = folder();
    mkdirSync(join(home, 'postgres/making/data'), { recursive: true });
    writeFileSync(join(home, 'postgres/making/data/PG_VERSION'), '18');
    const held = await start(home);
    expect(held.said.count).toBe(0);
    expect(existsSync(join(home, 'postgres/making'))).toBe(false);
    await stop(held);
  });

  test('refuses data of another major version and says what to do', async () => {
    const home = folder();
    mkdirSync(join(home, 'postgres/data'), { recursive: true });
    writeFileSync(join(home, 'postgres/data/PG_VERSION'), '15\n');
    const held = await start(home);
    expect(held.said.error).toMatch(/made by PostgreSQL 15.*DATABASE_URL/s);
  });
});

describe('the lock', () => {
  test('is free after release and after its owner died, and never held twice', async () => {
    const home = folder();
    const lock = await lockHome(home);
    expect(homeOwner(home)).toBe(process.pid);
    await expect(lockHome(home)).rejects.toThrow(`process ${process.pid}`);
    lock.release();
    expect(homeOwner(home)).toBeNull();
    // The pid lives, but started at another time: the lock of a dead process whose number was given out again.
    writeFileSync(join(home, 'pawl.lock'), JSON.stringify({ pid: process.pid, start: 'long ago', nonce: 'x' }));
    expect(homeOwner(home)).toBeNull();
    const tries = await Promise.allSettled(Array.from({ length: 10 }, () => lockHome(home)));
    const won = tries.filter((result) => result.status === 'fulfilled');
    expect(won).toHaveLength(1);
    for (const result of won) result.value.release();
    writeFileSync(join(home, 'pawl.lock'), 'torn');
    (await lockHome(home)).release();
  });
});

describe('the programs npm brought', () => {
  const installed = () => {
    const made = folder();
    const native = join(made, 'native');
    mkdirSync(join(native, 'bin'), { recursive: true });
    mkdirSync(join(native, 'lib'));
    writeFileSync(join(native, 'bin/postgres'), '', { mode: 0o644 });
    writeFileSync(join(native, 'lib/libpq.so.5.18'), '');
    const links = [
      { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' },
      { source: 'native/lib/libpq.so.5.18', target: '../outside' },
    ];
    writeFileSync(join(native, 'pg-symlinks.json'), JSON.stringify(links));
    return native;
  };

  test('get the links and modes that the install script would have made, once and again', () => {
    const native = installed();
    expect(completeInstall(native)).toBe(true);
    expect(completeInstall(native)).toBe(true);
    expect(readlinkSync(join(native, 'lib/libpq.so.5'))).toBe('libpq.so.5.18');
    expect(lstatSync(join(native, 'bin/postgres')).mode & 0o111).toBe(0o111);
    expect(existsSync(join(native, '../../outside'))).toBe(false);
  });

  test('a read-only folder is fine when the links are there', () => {
    const native = installed();
    completeInstall(native);
    const copy = join(folder(), 'native');
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
    chmodSync(join(copy, 'lib'), 0o555);
    expect(completeInstall(copy)).toBe(true);
    chmodSync(join(copy, 'lib'), 0o755);
  });

  test('whether another user can reach a folder is seen on the whole path', () => {
    const made = folder();
    const inner = join(made, 'inner');
    mkdirSync(inner);
    chmodSync(inner, 0o755);
    chmodSync(made, 0o700);
    const { uid, gid } = statSync(inner);
    const stranger = { uid: uid + 1000, gid: gid + 1000 };
    expect(reachableBy(stranger, inner)).toBe(false);
    expect(reachableBy({ uid, gid }, inner)).toBe(true);
    chmodSync(made, 0o711);
    expect(reachableBy(stranger, inner)).toBe(true);
    chmodSync(inner, 0o750);
    expect(reachableBy(stranger, inner)).toBe(false);
    expect(reachableBy({ uid: uid + 1000, gid }, inner)).toBe(true);
  });
});

describe('who the server runs as under root', () => {
  test('is the owner of what is there, else nobody', () => {
    const passwd = 'root:x:0:0::/:/bin/sh\nnobody:x:99:98::/:/bin/false\n';
    const zero = { uid: 0, gid: 0 };
    expect(chooseUser([zero, { uid: 7, gid: 8 }], passwd)).toMatchObject({ uid: 7, gid: 8 });
    expect(chooseUser([zero], passwd)).toEqual({ uid: 99, gid: 98 });
    expect(chooseUser([], '')).toEqual({ uid: 65534, gid: 65534 });
  });
});
