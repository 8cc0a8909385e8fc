/**
 * Real databases for tests. Importing this file gives the test file one embedded server, started at the first call and
 * stopped after the last test; `withStore()` gives a fresh, migrated database on it, copied from a template. With
 * PAWL_TEST_DATABASE, the address of a superuser on a server of one's own, the databases are made there instead.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, onTestFinished } from 'vitest';
import { startEmbedded } from './embedded.ts';
import { scanning } from './limits.ts';
import { openPool } from './pool.ts';
import { connectStore, type Store } from './postgres.ts';

type Running = {
  /** Of any database on the server; `at` names the one that is meant. */
  readonly url: string;
  /** Migrated, to be copied. */
  readonly template: string;
  readonly admin: pg.Pool;
  readonly stop: () => Promise<void>;
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

const startServer = async (): Promise<Running> => {
  const home = mkdtempSync(join(tmpdir(), 'pawl-test-'));
  const server = await startEmbedded({ home, volatile: true }).catch((error: unknown) => {
    rmSync(home, { recursive: true, force: true });
    throw error;
  });
  const guard = watch(server.pid, home);
  const stop = async () => {
    await server.stop();
    guard.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true });
  };
  return { url: server.url, template: 'pawl', admin: openPool(at(server.url, 'postgres'), 1, scanning).pool, stop };
};

const useServer = async (url: string): Promise<Running> => {
  const admin = openPool(at(url, 'postgres'), 1, scanning).pool;
  const template = `pawl_test_${randomBytes(6).toString('hex')}`;
  await admin.query(`create database ${template}`);
  const stop = async () => {
    const last = openPool(at(url, 'postgres'), 1, scanning).pool;
    await last.query(`drop database ${template} with (force)`);
    await last.end();
  };
  return { url, template, admin, stop };
};

const start = async (): Promise<Running> => {
  const elsewhere = process.env.PAWL_TEST_DATABASE;
  const started = await (elsewhere ? useServer(elsewhere) : startServer());
  await (await connectStore(at(started.url, started.template))).close(); // migrates
  return started;
};

/** A fresh database. Closed and dropped when the test ends, or, outside a test, after the file's last one. */
export const withStore = async (options: { poolSize?: number } = {}): Promise<Store> => {
  running ??= start();
  const { url, template, admin } = await running;
  const name = `${template}_${++databases}`;
  await admin.query(`create database ${name} template ${template}`);
  const store = await connectStore(at(url, name), {
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
  const { admin, stop } = await running;
  running = null;
  try {
    for (const store of open) await store.close();
    await admin.end();
  } finally {
    await stop();
  }
});
