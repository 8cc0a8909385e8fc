/** A gateway that is started while its database is away answers as it did before, and loses nothing. Real processes. */
import { appendFileSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { withdrawConsent } from '../src/store/consents.ts';
import { createKey, listKeys, revokeKey } from '../src/store/keys.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { withStore } from '../src/store/test-store.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { isThorough, type PawlProcess, startPawl, until } from './pawl.ts';
import { type Relay, startRelay } from './relay.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

let upstream: TestUpstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream?.close());

const through = (url: string, relay: Relay, login: { user: string; password: string } | null = null): string => {
  const address = new URL(url);
  address.port = String(relay.port);
  if (login) Object.assign(address, { username: login.user, password: login.password });
  return address.href;
};

async function relayed(): Promise<{ store: Store; relay: Relay }> {
  const store = await withStore();
  const { hostname, port } = new URL(store.url);
  const relay = await startRelay({ host: hostname, port: Number(port) });
  onTestFinished(() => relay.become('away'));
  return { store, relay };
}

const started = async (env: Record<string, string>): Promise<PawlProcess> => {
  const pawl = await startPawl({ PAWL_UPSTREAM: upstream.url, ...env });
  onTestFinished(() => pawl.remove());
  return pawl;
};

const call = (pawl: PawlProcess, id: string, { key = pawl.key, user = `user-${id}` } = {}) =>
  fetch(`${pawl.url}/t/${id}/u/${user}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'Hello' }] }),
  });
const vote = (pawl: PawlProcess, id: string) =>
  fetch(`${pawl.url}/t/${id}/u/user-${id}/v1/feedback`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ vote: 'up' }),
  });
const read = async (pawl: PawlProcess, path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(pawl.url + path, { headers });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};
const problemsOf = async (pawl: PawlProcess) => (await read(pawl, '/healthz')).body.problems as string[];
const reachedAgain = (pawl: PawlProcess) =>
  until(
    () => problemsOf(pawl),
    (problems) => problems.length === 0,
  );

const fifty = Array.from({ length: 50 }, (_, i) => `away-${i}`);
async function fiftyCallsAndVotes(pawl: PawlProcess): Promise<void> {
  for (const id of fifty) {
    expect((await call(pawl, id)).status).toBe(200);
    expect((await vote(pawl, id)).status).toBe(202);
  }
}
const recorded = (store: Store) =>
  until(
    async () => {
      const { rows } = await store.pool.query<{ trajectories: number; turns: number; votes: number }>(
        `select (select count(*) from pawl.trajectories where id like 'away-%') as trajectories,
                (select count(*) from pawl.turns where trajectory like 'away-%') as turns,
                (select count(*) from pawl.signals where target_id like 'away-%') as votes`,
      );
      return rows[0]!;
    },
    ({ turns, votes }) => turns >= fifty.length && votes >= fifty.length,
  );
const eachOnce = { trajectories: fifty.length, turns: fifty.length, votes: fifty.length };

describe('started again while its own database refuses', () => {
  it('answers and records with the keys it knew, and learns the rest when the database is back', async () => {
    const { store, relay } = await relayed();
    const pawl = await started({ DATABASE_URL: through(store.url, relay) });
    const { agent } = (await listKeys(store))[0]!;
    const leaver = await createKey(store, { agent, name: 'leaver' });
    await until(
      () => call(pawl, 'before', { key: leaver.token }),
      ({ status }) => status === 200,
    );
    const agree = async (user: string) => {
      const given = await fetch(`${pawl.url}/api/consent/${user}?agent=${agent}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${pawl.adminToken}` },
      });
      return ((await given.json()) as { user: string }).user;
    };
    await agree('ann');
    const bob = await agree('bob');
    const file = join(pawl.home, 'last-known.json');
    await until(
      () => readFileSync(file, 'utf8'),
      (text) => text.includes(leaver.key.id),
    );
    expect(statSync(file).mode & 0o777).toBe(0o600);
    for (const token of [pawl.key, leaver.token]) expect(readFileSync(file, 'utf8')).not.toContain(token);
    await pawl.kill();

    await relay.become('away');
    // What others do with the database meanwhile.
    await revokeKey(store, leaver.key.id);
    await withdrawConsent(store, agent, bob, new Date());
    const again = await pawl.restart();
    onTestFinished(() => again.kill());
    expect(again.output()).toContain('has not been reached');
    expect(await read(again, '/readyz')).toMatchObject({ status: 200, body: { ready: true } });
    expect(await read(again, '/healthz')).toMatchObject({ status: 200, body: { status: 'degraded' } });
    expect((await problemsOf(again))[0]).toMatch(
      /not been reached since the start \(.*ECONNREFUSED.*\): keys known: 2, as of \d+ s ago/,
    );
    const refused = await read(again, '/api/keys', { authorization: `Bearer ${again.adminToken}` });
    expect(refused).toMatchObject({ status: 503, body: { error: { code: 'database_away' } } });
    await fiftyCallsAndVotes(again);
    expect((await call(again, 'by-leaver', { key: leaver.token })).status).toBe(200);
    for (const user of ['ann', 'bob']) expect((await call(again, `of-${user}`, { user })).status).toBe(200);

    await relay.become('up');
    await reachedAgain(again);
    expect((await call(again, 'too-late', { key: leaver.token })).status).toBe(401);
    expect(await recorded(store)).toEqual(eachOnce);
    const api = await read(again, '/api/keys', { authorization: `Bearer ${again.adminToken}` });
    expect(api.status).toBe(200);
    // What was recorded meanwhile is judged by what the database knows, not by what the gateway knew.
    expect((await readTrajectory(store, 'of-ann'))?.trajectory.consent).toBe('given');
    expect((await readTrajectory(store, 'of-bob'))?.trajectory.consent).not.toBe('given');
    await again.kill();
    expect(again.process.exitCode).toBe(0);
  });
});

describe('started again while its own database says nothing', () => {
  it.runIf(isThorough)('answers, and ends on SIGTERM without having lost anything', async () => {
    const { store, relay } = await relayed();
    const pawl = await started({ DATABASE_URL: through(store.url, relay) });
    await pawl.kill();
    await relay.become('silent');
    const again = await pawl.restart();
    await fiftyCallsAndVotes(again);
    await again.kill();
    expect(again.process.exitCode, again.output()).toBe(0);
    await relay.become('up');
    const third = await again.restart();
    onTestFinished(() => third.kill());
    expect(await recorded(store)).toEqual(eachOnce);
  });
});

describe('what a gateway journalled while it could not know', () => {
  it('is no training data where its key had been revoked or its user’s consent was withdrawn', async () => {
    const { store, relay } = await relayed();
    const home = mkdtempSync(join(tmpdir(), 'pawl-away-'));
    const settings = join(home, 'pawl.config.ts');
    writeFileSync(
      settings,
      `import { outcome, weighted } from 'pawl';
const reward = weighted({ resolved: [1, outcome('resolved')] });
export default { agents: [{ name: 'desk', reward, curate: { kAnonymity: 1 } }] };\n`,
    );
    const env = { DATABASE_URL: through(store.url, relay), PAWL_UPSTREAM: upstream.url };
    const pawl = await startPawl(env, home, undefined, ['--config', settings]);
    onTestFinished(() => pawl.remove());
    const { key: revoked, token } = await createKey(store, { agent: 'desk', name: 'leaver' });
    await until(
      () => call(pawl, 'before', { key: token }),
      ({ status }) => status === 200,
    );
    const admin = { authorization: `Bearer ${pawl.adminToken}`, 'content-type': 'application/json' };
    const users: Record<string, string> = {};
    for (const user of ['ann', 'bob', 'cat']) {
      const given = await fetch(`${pawl.url}/api/consent/${user}?agent=desk`, { method: 'PUT', headers: admin });
      users[user] = ((await given.json()) as { user: string }).user;
    }
    await until(
      () => readFileSync(join(home, 'last-known.json'), 'utf8'),
      (text) => text.includes(revoked.id),
    );
    await pawl.kill();

    await relay.become('away');
    await revokeKey(store, revoked.id);
    await withdrawConsent(store, 'desk', users.bob!, new Date());
    const again = await pawl.restart();
    onTestFinished(() => again.kill());
    for (const user of ['ann', 'bob', 'cat']) expect((await call(again, `of-${user}`, { user })).status).toBe(200);
    // Somebody who has the revoked key speaks in the name of a user who agreed, and has a say about the others.
    expect((await call(again, 'by-leaver', { key: token, user: 'ann' })).status).toBe(200);
    const send = (path: string, body: object, key = again.key) =>
      fetch(again.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    expect((await send('/t/of-ann/v1/feedback', { vote: 'down', user: 'eve' }, token)).status).toBe(202);
    expect((await send('/t/of-ann/v1/attach', { keys: ['order:9'] }, token)).status).toBe(202);
    for (const id of ['of-ann', 'of-bob', 'of-cat', 'by-leaver'])
      expect((await send(`/t/${id}/v1/outcomes`, { name: 'resolved', value: true })).status).toBe(202);
    await withdrawConsent(store, 'desk', users.cat!, new Date());

    await relay.become('up');
    await until(
      () => store.pool.query(`select from pawl.signals where target_id = 'by-leaver'`),
      ({ rowCount }) => rowCount === 1,
    );
    await until(
      () => problemsOf(again),
      (problems) => problems.every((problem) => !problem.includes('reached')),
    );
    const made = await fetch(`${again.url}/api/datasets`, {
      method: 'POST',
      headers: admin,
      body: '{"agent": "desk"}',
    });
    const dataset = (await made.json()) as { rows: number; funnel: { gate: string; left: object }[] };
    expect(dataset.rows).toBe(1);
    expect(dataset.funnel.find(({ gate }) => gate === 'consent')!.left).toEqual({
      'not given': 1, // before
      'withdrawn before': 2, // of-bob, by-leaver
      'withdrawn since': 1, // of-cat
    });
    const ann = (await readTrajectory(store, 'of-ann'))!;
    expect(ann.signals.map(({ kind }) => kind)).toEqual(['outcome']);
    expect(ann.keys).toEqual([]);
    const kept = readFileSync(join(home, 'journal', 'rejected.jsonl'), 'utf8')
      .trim()
      .split('\n');
    expect(kept.map((line) => JSON.parse(line))).toMatchObject([
      { kind: 'signal', reason: expect.stringMatching(/^Its key .* had been revoked at /) },
      { kind: 'attachment', reason: expect.stringMatching(/^Its key .* had been revoked at /) },
    ]);
  });
});

describe('started for the first time while its own database refuses the password', () => {
  it('says so to everybody, and shows the first key when the password is right', async () => {
    const { store, relay } = await relayed();
    await store.pool.query(`create role late login password 'right'; grant create on database
      ${new URL(store.url).pathname.slice(1)} to late; drop schema pawl cascade`);
    onTestFinished(async () => void (await store.pool.query('drop owned by late cascade; drop role late')));
    const login = { user: 'late', password: 'wrong' };
    const pawl = await started({ DATABASE_URL: through(store.url, relay, login) });
    expect(pawl.key).toBe('');
    expect(pawl.adminToken).not.toBe('');
    expect(await read(pawl, '/readyz')).toMatchObject({ status: 503 });
    expect((await problemsOf(pawl))[0]).toMatch(
      /never been reached from this home \(.*password authentication failed.*\): there are no client keys yet/,
    );
    const answer = await call(pawl, 'early', { key: 'pawl_anything' });
    expect(answer.status).toBe(503);
    expect(await answer.text()).toContain('database');
    expect(pawl.output()).not.toContain('wrong');

    await store.pool.query(`alter role late password 'wrong'`);
    const key = await until(
      () => /client key +(\S+)/.exec(pawl.output())?.[1],
      (found) => found !== undefined,
    );
    // Nobody is told that this key is unknown while it is being read.
    const first = await until(
      () => call(pawl, 'first', { key: key! }),
      ({ status }) => status !== 503,
    );
    expect(first.status).toBe(200);
    expect(await listKeys(store)).toHaveLength(1);
  });
});

describe('started again while the embedded database does not come up', () => {
  it.runIf(isThorough)('answers and records, and has everything once the database is mended', async () => {
    const pawl = await started({});
    await pawl.kill();
    const settings = join(pawl.home, 'postgres', 'data', 'postgresql.auto.conf');
    const good = readFileSync(settings, 'utf8');
    appendFileSync(settings, 'no_such_setting = 1\n');
    const again = await pawl.restart();
    onTestFinished(() => again.kill());
    expect((await problemsOf(again))[0]).toContain('did not start');
    await fiftyCallsAndVotes(again);
    writeFileSync(settings, good);
    await reachedAgain(again);
    const store = await openStore({ home: pawl.home, join: true });
    expect(await recorded(store)).toEqual(eachOnce);
    await store.close();
    await again.kill();
    expect(again.process.exitCode).toBe(0);
  });
});
