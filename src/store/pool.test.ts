/** Connections that fall silent, a firewall's doing: they stay open and carry nothing, while new ones work. */
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { type SilentProxy, startProxy, through } from '../../test/silent-proxy.ts';
import { StoreError } from '../errors.ts';
import { turn } from './fixtures.ts';
import { createKey, keysChannel, listKeys } from './keys.ts';
import type { Limits } from './limits.ts';
import { lineOf } from './line.ts';
import { listen } from './listen.ts';
import { connectStore, type Store } from './postgres.ts';
import { writeLines } from './record.ts';
import { withStore } from './test-store.ts';

const brief: Limits = { statementMs: 1000, idleTransactionMs: 1000 };

/** A database, reached directly and through a proxy. */
async function proxied(limits: Limits = brief): Promise<{ direct: Store; store: Store; proxy: SilentProxy }> {
  const direct = await withStore();
  const { hostname, port } = new URL(direct.url);
  const proxy = await startProxy({ host: hostname, port: Number(port) });
  const store = await connectStore(through(direct.url, proxy), { limits, poolSize: 3 });
  onTestFinished(async () => {
    await store.close();
    await proxy.close();
  });
  return { direct, store, proxy };
}

test('a query on a silent connection fails, whoever asks, and the next one has a connection that works', async () => {
  const { store, proxy } = await proxied();
  await Promise.all([1, 2, 3].map(() => store.pool.query('select pg_sleep(0.05)'))); // three connections, idle now
  proxy.silence();
  await expect(listKeys(store)).rejects.toThrow(/Listing keys failed: the database did not answer in time/);
  // The neighbours of the silent one are not tried first.
  expect(await listKeys(store)).toEqual([]);
  await Promise.all([1, 2, 3].map(() => store.pool.query('select pg_sleep(0.05)')));
  proxy.silence();
  await expect(store.pool.query('select 1')).rejects.toThrow(/Query read timeout/);
  expect((await store.pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test('a statement that takes too long is ended by the server, and another store may give it longer', async () => {
  const { store } = await proxied();
  const slow = sql`select pg_sleep(1.5)`;
  await expect(slow.execute(store.db)).rejects.toMatchObject({ code: '57014' });
  await slow.execute(store.within({ ...brief, statementMs: 60_000 }).db);
});

test('closes although somebody never gives a connection back', async () => {
  const direct = await withStore();
  const store = await connectStore(direct.url, { poolSize: 2 });
  const client = await store.pool.connect();
  const broken = new Promise((resolve) => client.once('end', resolve));
  await store.close();
  await broken;
});

test('a writer that fell silent in the middle does not keep its locks', async () => {
  const { store, proxy, direct } = await proxied();
  const client = await store.pool.connect();
  await client.query('begin');
  await client.query('lock table pawl.turns in exclusive mode');
  proxy.silence();
  const { refused, inserted } = await writeLines(direct, [lineOf({ kind: 'turn', turn: turn() })]);
  expect([refused, inserted]).toEqual([[], 1]);
  await expect(client.query('select 1')).rejects.toThrow();
  client.release(true);
});

test('silence is an error after which trying again can help', async () => {
  const { store, proxy } = await proxied();
  proxy.silence();
  const failure = await writeLines(store, [lineOf({ kind: 'turn', turn: turn() })]).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(StoreError);
  expect((failure as StoreError).retryable).toBe(true);
});

test('closing does not wait for silent connections, idle or in use', async () => {
  const { store, proxy } = await proxied({ statementMs: 3_600_000, idleTransactionMs: 1000 });
  const asked = store.pool.query('select pg_sleep(3600)').catch((error: Error) => error.message);
  await store.pool.query('select 1');
  proxy.silence();
  await store.close();
  expect(await asked).toMatch(/terminated/);
});

test('a listener whose connection fell silent connects anew and hears again', async () => {
  const { store, proxy, direct } = await proxied();
  let heard = 0;
  const listener = listen(store, [keysChannel], () => heard++);
  await listener.ready;
  const until = async (n: number) => {
    while (heard < n) await new Promise((done) => setTimeout(done, 20));
  };
  await until(1);
  proxy.silence();
  await createKey(direct, { agent: 'desk', name: 'unheard' });
  await until(2); // by connecting again
  await createKey(direct, { agent: 'desk', name: 'heard' });
  await until(3);
  await listener.close();
});
