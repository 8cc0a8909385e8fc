/**
 * Connections to the database that fall silent while new ones would work. Recording goes on over new ones, /healthz says
 * that the database is silent, a revoked key stops working, and SIGTERM ends the process.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey } from '../src/store/keys.ts';
import type { Store } from '../src/store/postgres.ts';
import { withStore } from '../src/store/test-store.ts';
import { isThorough, type PawlProcess, startPawl, until } from './pawl.ts';
import { type SilentProxy, startProxy, through } from './silent-proxy.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

let upstream: TestUpstream;
let store: Store;
let proxy: SilentProxy;
let pawl: PawlProcess;
beforeAll(async () => {
  upstream = await startUpstream();
  store = await withStore();
  const { hostname, port } = new URL(store.url);
  proxy = await startProxy({ host: hostname, port: Number(port) });
  pawl = await startPawl({ PAWL_UPSTREAM: upstream.url, DATABASE_URL: through(store.url, proxy) });
});
afterAll(async () => {
  await pawl?.remove();
  await proxy?.close();
  await upstream?.close();
});

const vote = async (id: string, key = pawl.key) =>
  (
    await fetch(`${pawl.url}/t/${id}/v1/feedback`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ vote: 'up' }),
    })
  ).status;
const stored = async (prefix: string) =>
  (
    await store.pool.query<{ id: string }>(
      `select target_id as id from pawl.signals where target_id like '${prefix}%' order by 1`,
    )
  ).rows.map(({ id }) => id);
const problems = async () =>
  ((await (await fetch(`${pawl.url}/healthz`)).json()) as { problems: string[] }).problems.join('; ');

it('what was acknowledged during the silence is written over new connections, and /healthz tells of it', async () => {
  expect(await vote('silent-00')).toBe(202);
  await until(
    () => stored('silent-'),
    (ids) => ids.length === 1,
  );
  proxy.silence();
  const ids = Array.from({ length: 20 }, (_, i) => `silent-${String(i + 1).padStart(2, '0')}`);
  for (const id of ids) expect(await vote(id)).toBe(202);
  expect(await until(problems, (said) => said !== '')).toMatch(/away or silent/);
  expect(
    await until(
      () => stored('silent-'),
      (found) => found.length === 21,
    ),
  ).toEqual(['silent-00', ...ids]);
  await until(problems, (said) => said === '');
}, 600_000);

it('a revoked key stops working although every connection of the gateway was silent', async () => {
  const { key, token } = await createKey(store, { agent: 'default', name: 'short-lived' });
  await until(
    () => vote('revoked', token),
    (status) => status === 202,
  );
  proxy.silence();
  const revoke = () =>
    fetch(`${pawl.url}/api/keys/${key.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${pawl.adminToken}` },
    });
  // Its own connection may be a silent one too; then it says so and is asked again.
  const answer = await until(revoke, ({ status }) => status < 300);
  if (answer.status === 202) expect(await answer.json()).toMatchObject({ confirmed: false });
  else expect(await vote('revoked', token)).toBe(401);
  await until(
    () => vote('revoked', token),
    (status) => status === 401,
  );
  expect((await until(revoke, ({ status }) => status < 300)).status).toBe(204);
}, 600_000);

it('a revocation that a gateway cannot hear of says which one', async () => {
  await store.pool.query(`insert into pawl.processes (id, keys_read_at) values ('far-away:/home', now())`);
  const { key } = await createKey(store, { agent: 'default', name: 'another' });
  const answer = await fetch(`${pawl.url}/api/keys/${key.id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${pawl.adminToken}` },
  });
  expect(answer.status).toBe(202);
  expect(await answer.json()).toMatchObject({
    confirmed: false,
    message: expect.stringContaining('far-away:/home'),
    gateways: [{ id: 'far-away:/home' }],
  });
}, 600_000);

it.runIf(isThorough)(
  'SIGTERM ends it while all connections are silent, and the next start writes what was left',
  async () => {
    proxy.silence();
    for (let i = 0; i < 5; i++) expect(await vote(`last-${i}`)).toBe(202);
    const told = Date.now();
    await pawl.kill('SIGTERM');
    console.log(JSON.stringify({ sigterm_while_silent_ms: Date.now() - told }));
    pawl = await pawl.restart();
    expect(
      await until(
        () => stored('last-'),
        (ids) => ids.length === 5,
      ),
    ).toHaveLength(5);
  },
  600_000,
);
