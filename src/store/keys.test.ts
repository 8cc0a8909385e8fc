import { expect, test } from 'vitest';
import { activeKeys, createKey, hashToken, keysChannel, listKeys, revokeKey, touchKeys } from './keys.ts';
import { listen } from './listen.ts';
import { withStore } from './test-store.ts';

test('a token is shown once, starts with pawl_, and only its hash is in the database', async () => {
  const store = await withStore();
  const { key, token } = await createKey(store, { agent: 'desk', name: 'laptop' });
  expect(token).toMatch(/^pawl_[A-Za-z0-9_-]{43}$/);
  expect(key).toMatchObject({ agent: 'desk', name: 'laptop', origin: 'production', rateLimit: null, revokedAt: null });
  expect(token.startsWith(key.prefix)).toBe(true);
  const dump = JSON.stringify((await store.pool.query('select k::text from pawl.keys k')).rows);
  expect(dump).not.toContain(token.slice(10));
  expect(dump).toContain(hashToken(token).toString('hex'));
});

test('revoked keys are listed and not active, and revoking again keeps the date', async () => {
  const store = await withStore();
  const kept = await createKey(store, { agent: 'desk', name: 'kept', origin: 'simulation', rateLimit: 60 });
  const gone = await createKey(store, { agent: 'shop', name: 'gone' });
  expect(await revokeKey(store, gone.key.id)).toMatchObject({ key: { name: 'gone' }, revoked: true });
  const first = (await listKeys(store, { agent: 'shop' }))[0]?.revokedAt;
  expect(first).toBeInstanceOf(Date);
  expect(await revokeKey(store, gone.key.id)).toMatchObject({ revoked: false });
  expect((await listKeys(store, { agent: 'shop' }))[0]?.revokedAt).toEqual(first);
  expect(await revokeKey(store, '00000000-0000-4000-8000-000000000000')).toBeNull();
  expect(await revokeKey(store, 'laptop')).toBeNull();
  expect(await listKeys(store)).toHaveLength(2);
  expect(await activeKeys(store)).toEqual([{ ...kept.key, hash: hashToken(kept.token).toString('hex') }]);
});

test('the last use only moves forward', async () => {
  const store = await withStore();
  const { key } = await createKey(store, { agent: 'desk', name: 'laptop' });
  const later = new Date('2026-05-20T12:00:00Z');
  await touchKeys(store, new Map([[key.id, later]]));
  await touchKeys(store, new Map([[key.id, new Date('2026-05-20T11:00:00Z')]]));
  expect((await listKeys(store))[0]?.lastUsedAt).toEqual(later);
});

test('a listener hears of new and revoked keys, not of their use, and again after its connection was cut', async () => {
  const store = await withStore();
  let heard = 0;
  const next = async (than: number) => {
    while (heard <= than) await new Promise((done) => setTimeout(done, 5));
  };
  const listener = listen(store, [keysChannel], () => heard++);
  await listener.ready;
  await next(0); // what connecting itself says
  const { key } = await createKey(store, { agent: 'desk', name: 'laptop' });
  await next(1);
  await touchKeys(store, new Map([[key.id, new Date()]]));
  await revokeKey(store, key.id);
  await next(2);
  expect(heard).toBe(3);
  await store.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pawl listener' and datname = current_database()`,
  );
  await next(3);
  await createKey(store, { agent: 'desk', name: 'second' });
  await next(4);
  await listener.close();
});
