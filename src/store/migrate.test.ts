import { expect, test } from 'vitest';
import { ConfigError } from '../errors.ts';
import { entry } from './fixtures.ts';
import { scanning } from './limits.ts';
import { migrate, planMigrations, readMigrations } from './migrate.ts';
import { openPool } from './pool.ts';
import { connectStore, shownUrl } from './postgres.ts';
import { writeEntries } from './record.ts';
import { withStore } from './test-store.ts';

const one = { name: '0001-one', sql: 'create table pawl.one (n integer)', checksum: 'a' };
const two = { name: '0002-two', sql: 'create table pawl.two (n integer)', checksum: 'b' };

test('only what has not run is run', () => {
  expect(planMigrations([one, two], [])).toEqual([one, two]);
  expect(planMigrations([one, two], [one])).toEqual([two]);
  expect(planMigrations([one, two], [one, two])).toEqual([]);
});

test('a changed file, a newer database and a number that comes too late are refused', () => {
  expect(() => planMigrations([one], [{ name: '0001-one', checksum: 'other' }])).toThrow(/not the one that was run/);
  expect(() => planMigrations([one], [one, two])).toThrow(/a newer Pawl made it/);
  expect(() => planMigrations([one, two], [two])).toThrow(/give it a higher number/);
  expect(() => planMigrations([one], [two])).toThrow(ConfigError);
});

test('many processes that start at once migrate once', async () => {
  const store = await withStore();
  await store.pool.query('drop schema pawl cascade');
  const pools = Array.from({ length: 6 }, () => openPool(store.url, 1, scanning).pool);
  const done = await Promise.all(pools.map((pool) => migrate(pool)));
  await Promise.all(pools.map((pool) => pool.end()));
  expect(done.flat().sort()).toEqual(readMigrations().map(({ name }) => name));
});

test('a migration that fails leaves nothing of itself and can be run again', async () => {
  const store = await withStore();
  await store.pool.query('drop schema pawl cascade');
  const broken = { ...two, sql: `${two.sql}; select 1 / 0` };
  await expect(migrate(store.pool, [one, broken])).rejects.toThrow(/0002-two: division by zero/);
  const there = await store.pool.query(
    `select to_regclass('pawl.one') is not null as one, to_regclass('pawl.two') is not null as two`,
  );
  expect(there.rows).toEqual([{ one: true, two: false }]);
  expect(await migrate(store.pool, [one, two])).toEqual(['0002-two']);
});

test('an ordinary owner of a database, without other rights, is enough', async () => {
  const store = await withStore();
  const name = new URL(store.url).pathname.slice(1);
  const tenant = `${name}_tenant`;
  await store.pool.query(
    `drop schema pawl cascade; create role ${tenant} login password 'secret'; alter database ${name} owner to ${tenant}`,
  );
  const url = new URL(store.url);
  url.username = tenant;
  url.password = 'secret';
  const own = await connectStore(url.href);
  expect(await writeEntries(own, [entry.turn({ keys: ['order:1'] }), entry.signal()])).toMatchObject({ inserted: 2 });
  await own.close();
  await store.pool.query(
    `drop schema pawl cascade; alter database ${name} owner to current_user; drop owned by ${tenant}; drop role ${tenant}`,
  );
});

test('addresses are shown without their password', () => {
  expect(shownUrl('postgres://pawl:secret@db.example:5432/x?sslmode=require')).toBe(
    'postgres://pawl@db.example:5432/x',
  );
  expect(shownUrl('no address')).toBe('the address in DATABASE_URL');
});

test('turns that were there before slices were told apart get theirs', async () => {
  const store = await withStore();
  await store.pool.query('drop schema pawl cascade');
  const all = readMigrations();
  await migrate(
    store.pool,
    all.filter(({ name }) => name < '0011'),
  );
  const messages = [{ role: 'user', content: 'I am [email].' }];
  await writeEntries(store, [
    entry.turn({ redactions: { email: 1 }, request: { messages, metadata: { task_type: 'refund' } } }),
    entry.turn({ request: { messages: 'no list', metadata: ['no object'] } }),
  ]);
  await migrate(store.pool, all);
  const { rows } = await store.pool.query('select task_type, personal from pawl.turns order by personal desc');
  expect(rows).toEqual([
    { task_type: 'refund', personal: true },
    { task_type: null, personal: false },
  ]);
  expect(await writeEntries(store, [entry.turn({ trajectory: 'later' })])).toMatchObject({ inserted: 1 });
});
