/**
 * Real databases for tests: `withStore()` gives a fresh, migrated database, copied from a template. A run of many test files has
 * one embedded server for all of them (test-server.ts); a file that is run by itself starts its own at the first call and
 * stops it after the last test. With PAWL_TEST_DATABASE, the address of a role that may create databases on a server of one's
 * own, they are made there instead; a few tests need a superuser there.
 */
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { afterAll, inject, onTestFinished } from 'vitest';
import { scanning } from './limits.ts';
import { openPool } from './pool.ts';
import { connectStore, type Store } from './postgres.ts';
import { at, startTestServer } from './test-server.ts';

type Running = {
  /** Of any database on the server; `at` names the one that is meant. */
  readonly url: string;
  /** Migrated, to be copied. */
  readonly template: string;
  readonly admin: pg.Pool;
  readonly kind: Store['kind'];
  readonly stop: () => Promise<void>;
};
let running: Promise<Running> | null = null;
/** No other test file's on the same server. */
const file = randomBytes(4).toString('hex');
let databases = 0;
const open = new Set<Store>();

const ownServer = async (): Promise<Running> => {
  const { url, template, stop } = await startTestServer();
  return { url, template, admin: adminOf(url), kind: 'embedded', stop };
};

const sharedServer = ({ url, template }: { readonly url: string; readonly template: string }): Running => ({
  ...{ url, template, admin: adminOf(url), kind: 'embedded' },
  stop: async () => {},
});

const adminOf = (url: string): pg.Pool => openPool(at(url, 'postgres'), 1, scanning).pool;

const serverAt = async (url: string): Promise<Running> => {
  const admin = adminOf(url);
  const template = `pawl_test_${randomBytes(6).toString('hex')}`;
  await admin.query(`create database ${template}`);
  await (await connectStore(at(url, template))).close(); // migrates
  const stop = async () => {
    const last = adminOf(url);
    await last.query(`drop database ${template} with (force)`);
    await last.end();
  };
  return { url, template, admin, kind: 'external', stop };
};

const start = async (): Promise<Running> => {
  const elsewhere = process.env.PAWL_TEST_DATABASE;
  if (elsewhere) return serverAt(elsewhere);
  const shared = inject('database');
  return shared ? sharedServer(shared) : ownServer();
};

/** A fresh database. Closed and dropped when the test ends, or, outside a test, after the file's last one. */
export const withStore = async (options: { poolSize?: number } = {}): Promise<Store> => {
  running ??= start();
  const { url, template, admin, kind } = await running;
  const name = `${template}_${file}_${++databases}`;
  await admin.query(`create database ${name} template ${template}`);
  const store = await connectStore(at(url, name), {
    kind,
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
