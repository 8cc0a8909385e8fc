/**
 * Real databases for tests. Importing this file gives the test file one embedded server, started at the first call and
 * stopped after the last test; `withStore()` gives a fresh, migrated database on it, copied from a template.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, onTestFinished } from 'vitest';
import { type EmbeddedServer, startEmbedded } from './embedded.ts';
import { connectStore, openPool, type Store } from './postgres.ts';

type Running = {
  readonly guard: ChildProcess;
  readonly home: string;
  readonly server: EmbeddedServer;
  readonly admin: pg.Pool;
};
let running: Promise<Running> | null = null;
let databases = 0;
const open = new Set<Store>();

const at = (url: string, database: string): string => {
  const parsed = new URL(url);
  parsed.pathname = `/${database}`;
  return parsed.href;
};

/** A test run that is killed must not leave a server behind: the shell's `read` returns when this process is gone. */
const watch = (pid: number, home: string): ChildProcess => {
  const script = 'read _; kill -QUIT "$1"; sleep 2; rm -rf "$2"';
  const guard = spawn('sh', ['-c', script, 'sh', String(pid), home], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.on('error', () => {});
  guard.unref();
  return guard;
};

const start = async (): Promise<Running> => {
  const home = mkdtempSync(join(tmpdir(), 'pawl-test-'));
  const server = await startEmbedded({ home, volatile: true }).catch((error: unknown) => {
    rmSync(home, { recursive: true, force: true });
    throw error;
  });
  const guard = watch(server.pid, home);
  // Migrates the database `pawl`, which is the template from then on.
  await (await connectStore(server.url)).close();
  const admin = openPool(at(server.url, 'postgres'), 1);
  return { guard, home, server, admin };
};

/** A fresh database. Closed and dropped when the test ends, or, outside a test, after the file's last one. */
export const withStore = async (options: { poolSize?: number } = {}): Promise<Store> => {
  running ??= start();
  const { server, admin } = await running;
  const name = `test_${++databases}`;
  await admin.query(`create database ${name} template pawl`);
  const store = await connectStore(at(server.url, name), {
    kind: 'embedded',
    poolSize: options.poolSize ?? 5,
    onClose: async () => {
      open.delete(store);
      await admin.query(`drop database if exists ${name} with (force)`);
    },
  });
  open.add(store);
  try {
    onTestFinished(() => store.close());
  } catch {
    // Called from beforeAll: afterAll below closes it.
  }
  return store;
};

afterAll(async () => {
  if (running === null) return;
  const { guard, server, admin, home } = await running;
  running = null;
  try {
    for (const store of open) await store.close();
    await admin.end();
  } finally {
    await server.stop();
    guard.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true });
  }
});
