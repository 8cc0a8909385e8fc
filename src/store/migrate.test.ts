import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Turn } from '../collect/turn.ts';
import { ConfigError } from '../errors.ts';
import { entry, noon, turn } from './fixtures.ts';
import { scanning } from './limits.ts';
import { migrate, planMigrations, readMigrations } from './migrate.ts';
import { openPool } from './pool.ts';
import { connectStore, shownUrl } from './postgres.ts';
import { writeEntries } from './record.ts';
import { withStore } from './test-store.ts';
import { readTrajectory } from './trajectories.ts';
import { readTurn } from './turns.ts';

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

test('migrations cut off at any statement are gone on with, and end in the schema of undisturbed ones', async () => {
  const store = await withStore();
  const schema = async () =>
    (
      await store.pool.query(
        `select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns
         where table_schema = 'pawl' order by 1, 2`,
      )
    ).rows;
  const undisturbed = await schema();
  await store.pool.query('drop schema pawl cascade');
  let cuts = 0;
  for (let at = 1, done = false; !done; at++) {
    const { pool } = openPool(store.url, 1, scanning);
    pool.on('connect', (client) => {
      client.on('error', () => {});
      let n = 0;
      const query = client.query.bind(client) as (...given: unknown[]) => unknown;
      Object.assign(client, {
        query(...given: unknown[]) {
          const { stream } = (client as unknown as { connection: { stream: { destroy(): void; destroySoon(): void } } })
            .connection;
          n++;
          if (n === at && at % 2 === 0) stream.destroy();
          const answer = query(...given);
          // Sent, and nobody reads what became of it.
          if (n === at && at % 2 === 1) stream.destroySoon();
          return answer;
        },
      });
    });
    try {
      await migrate(pool);
      done = true;
    } catch {
      cuts++;
    }
    await pool.end();
  }
  expect(cuts).toBeGreaterThan(10);
  expect(await schema()).toEqual(undisturbed);
  const { rows } = await store.pool.query('select name from pawl.migrations order by name');
  expect(rows.map(({ name }) => name)).toEqual(readMigrations().map(({ name }) => name));
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

const oldPartitions = `
  create table pawl.turns_20260520 partition of pawl.turns for values from ('2026-05-20') to ('2026-05-21');
  create table pawl.trajectories_20260520 partition of pawl.trajectories for values from ('2026-05-20') to ('2026-05-21')`;

test('a database from before scopes, everybody’s consent and bounded times is brought along', async () => {
  const store = await withStore();
  await store.pool.query('drop schema pawl cascade');
  await migrate(
    store.pool,
    readMigrations().filter(({ name }) => name < '0008'),
  );
  await store.pool.query(oldPartitions);
  const turn = (trajectory: string, user: string | null, minute: number) =>
    `(gen_random_uuid(), '2026-05-20', 'desk', '${trajectory}', ${user === null ? 'null' : `'${user}'`}, '2026-05-20 12:0${minute}Z')`;
  await store.pool.query(
    `insert into pawl.turns (id, day, agent, trajectory, user_id, started_at, origin, endpoint, keys, latency_ms, upstream, release,
       model, status, http_status, attempts, stream, request, choices, redactions)
     select id::uuid, day::date, agent, trajectory, user_id, at::timestamptz, 'production', 'chat', '{}', 1, 'u', 'r', 'm', 'ok', 200, 1,
       false, '{}', '[]', '{}'
     from (values ${[
       turn('alone', 'ann', 0),
       turn('with bob', 'ann', 0),
       turn('with bob', 'bob', 1),
       turn('with nobody', 'ann', 0),
       turn('with nobody', null, 1),
     ].join(', ')}) as x(id, day, agent, trajectory, user_id, at);
     insert into pawl.trajectories select trajectory, 'desk', '2026-05-20', 'ann', 'production', 'given', min(started_at), max(started_at),
       count(*), 0, 0, 0, 0, 'r', max(started_at) from pawl.turns group by trajectory;
     insert into pawl.consent values ('desk', 'ann', '2026-05-01', null), ('desk', 'bob', null, '2026-05-01');
     insert into pawl.keys (id, agent, name, hash, prefix) values (gen_random_uuid(), 'desk', 'old', 'x', 'pawl_');
     insert into pawl.signals (agent, identity, id, target_kind, target_id, kind, name, at, received_at)
     select 'desk', at, gen_random_uuid(), 'trajectory', 'alone', 'outcome', 'resolved', at::timestamptz, '2026-05-20'
     from unnest(array['9999-12-31', '1970-01-01', '2026-05-19', '2026-05-20 23:00Z']) as at`,
  );
  await migrate(store.pool);
  const read = async (sql: string) => (await store.pool.query({ text: sql, rowMode: 'array' })).rows;
  expect(await read('select id, consent from pawl.trajectories order by id')).toEqual([
    ['alone', 'given'],
    ['with bob', 'withdrawn'],
    ['with nobody', 'unknown'],
  ]);
  expect(await read('select scopes from pawl.keys')).toEqual([[['call', 'feedback', 'outcomes', 'read']]]);
  expect(await read('select identity, at = received_at from pawl.signals order by identity')).toEqual([
    ['1970-01-01', true],
    ['2026-05-19', false],
    ['2026-05-20 23:00Z', false],
    ['9999-12-31', true],
  ]);
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
  await store.pool.query(oldPartitions);
  await store.pool.query(
    `insert into pawl.turns (id, day, agent, trajectory, started_at, origin, endpoint, keys, latency_ms, upstream, release,
       model, status, http_status, attempts, stream, choices, redactions, request)
     select gen_random_uuid(), '2026-05-20', 'desk', 't', '2026-05-20', 'production', 'chat', '{}', 1, 'u', 'r', 'm', 'ok', 200, 1,
       false, '[]', redactions, request
     from (values
       ('{"email": 1}'::jsonb, '{"messages": [{"role": "user", "content": "I am [email]."}], "metadata": {"task_type": "refund"}}'::jsonb),
       ('{}', '{"messages": "no list", "metadata": ["no object"]}')) as x(redactions, request)`,
  );
  await migrate(store.pool, all);
  const { rows } = await store.pool.query('select task_type, personal from pawl.turns order by personal desc');
  expect(rows).toEqual([
    { task_type: 'refund', personal: true },
    { task_type: null, personal: false },
  ]);
  expect(await writeEntries(store, [entry.turn({ trajectory: 'later' })])).toMatchObject({ inserted: 1 });
});

test('a database from before each message was stored once reads the same, and goes on', async () => {
  const store = await withStore();
  await store.pool.query('drop schema pawl cascade');
  const all = readMigrations();
  await migrate(
    store.pool,
    all.filter(({ name }) => name < '0015'),
  );
  const recorded = (file: string) => readFileSync(new URL(`./fixtures/${file}`, import.meta.url), 'utf8');
  await store.pool.query(recorded('before-messages.sql'));
  const slices = 'select id, task_type, personal from pawl.turns order by id';
  const before = (await store.pool.query(slices)).rows;
  await migrate(store.pool, all);
  expect((await store.pool.query(slices)).rows).toEqual(before);
  const now = new Date(noon + 2 * 86_400_000);
  const read = JSON.parse(recorded('before-messages.json')) as Record<string, { turns: Turn[] }>;
  for (const [id, expected] of Object.entries(read)) {
    const found = (await readTrajectory(store, id, { now }))!;
    expect({ turns: found.turns, signals: found.signals.length, keys: found.keys }).toEqual(expected);
    for (const turn of expected.turns) expect(await readTurn(store, turn.id)).toEqual(turn);
  }
  // One conversation, half of it from before.
  const next = turn({ trajectory: 'chat', startedAt: noon + 9000 });
  expect(await writeEntries(store, [{ kind: 'turn', turn: next }])).toMatchObject({ inserted: 1 });
  expect((await readTrajectory(store, 'chat', { now }))?.turns).toEqual([...read.chat!.turns, next]);
  const little = (await readTrajectory(store, 'chat', { now, maxBytes: 1000 }))!;
  expect(little.tooLarge).toEqual(read.chat!.turns.map(({ id }) => id));
});
