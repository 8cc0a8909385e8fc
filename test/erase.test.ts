/**
 * A user is erased as people do it: by the command and by the route, over two homes of one database, with a process killed in the
 * middle, and with a journal that delivers afterwards.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openJournal } from '../src/collect/journal.ts';
import { hashedId } from '../src/collect/person.ts';
import { everythingIn, passTenMinutes } from '../src/privacy/fixtures.ts';
import { readConsent } from '../src/store/consents.ts';
import { readErasure } from '../src/store/erasures.ts';
import { entry, noon } from '../src/store/fixtures.ts';
import { encodeLine } from '../src/store/line.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { cachedSecret, installationSecret } from '../src/store/secret.ts';
import { withStore } from '../src/store/test-store.ts';
import { bareEnvironment } from './bare-environment.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

type Ran = { readonly code: number; readonly out: string; readonly err: string };
const folder = mkdtempSync(join(tmpdir(), 'pawl-erase-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const environment = (home: string, url: string) => ({
  ...bareEnvironment(),
  ...{ PAWL_HOME: home, DATABASE_URL: url, PAWL_PORT: '0' },
});
const bin = join(process.cwd(), 'bin/pawl.js');
const command = (home: string, url: string, ...args: string[]): Promise<Ran> =>
  new Promise((resolve) => {
    execFile(process.execPath, [bin, ...args], { cwd: folder, env: environment(home, url) }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
const begin = (home: string, url: string, ...args: string[]): ChildProcess =>
  spawn(process.execPath, [bin, ...args], { cwd: folder, env: environment(home, url), stdio: 'ignore' });

/** In everything that the user says, and nowhere else; long, so that it is a message of its own. */
const marker = 'ZELDA-4711';
const said = `${marker}, please ${'and so on '.repeat(200)}`;
const filesIn = (home: string): string =>
  readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
    .join('\n');
const body = (text: string) => ({ model: 'small', messages: [{ role: 'user', content: text }] });

describe('without a serving Pawl', () => {
  let store: Store;
  const home = join(folder, 'alone');
  let ann: string;
  beforeAll(async () => {
    store = await withStore();
    ann = hashedId('ann@example.com', await installationSecret(store, home));
    await writeEntries(
      store,
      Array.from({ length: 50 }, (_, i) =>
        entry.turn({
          trajectory: `c${i}`,
          user: i % 2 ? ann : hashedId('bob', 'x'.repeat(32)),
          startedAt: noon + i,
          request: body(i % 2 ? said : 'Bob asks'),
        }),
      ),
    );
    await passTenMinutes(store);
  });

  it('an unknown user is said so, with the way out, and ends with 1', async () => {
    const ran = await command(home, store.url, 'erase', 'nobody', '--yes');
    expect(ran).toMatchObject({ code: 1, out: '' });
    expect(ran.err).toMatch(/Nothing is stored of user u_.*--anyway/);
    expect(ran.err).not.toContain('nobody,');
    const whom = await command(home, store.url, 'erase');
    expect(whom).toMatchObject({ code: 1, err: expect.stringContaining('pawl erase USER') });
    const unasked = await command(home, store.url, 'erase', 'ann@example.com');
    expect(unasked).toMatchObject({ code: 1, err: expect.stringContaining('--yes') });
  });

  it('a dry run says what would go, and nothing has changed', async () => {
    const before = await everythingIn(store);
    const ran = await command(home, store.url, 'erase', 'ann@example.com', '--dry-run', '--json');
    expect(JSON.parse(ran.out)).toMatchObject({
      user: ann,
      agent: null,
      counts: { conversations: 25, shared: 0, turns: 25 },
    });
    const told = await command(home, store.url, 'erase', ann, '--hashed', '--dry-run');
    expect(told).toMatchObject({ code: 0, out: expect.stringMatching(/would remove:\n +25 conversations \(25 turns/) });
    expect(await everythingIn(store)).toBe(before);
  });

  it('killed in the middle it is gone on with, and removes each thing once', async () => {
    // Held before it writes its request down, and again in the middle of removing conversations.
    const held = await store.pool.connect();
    const waitsFor = (statement: string) =>
      until(
        () =>
          store.pool.query(
            `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like $1 and pid <> pg_backend_pid()`,
            [`%${statement}%`],
          ),
        ({ rowCount }) => rowCount === 1,
      );
    await held.query('begin; lock table pawl.erasures in share mode');
    const erasing = begin(home, store.url, 'erase', 'ann@example.com', '--yes');
    await waitsFor('insert into pawl.erasures');
    await held.query('commit; begin; lock table pawl.scores in access exclusive mode');
    await waitsFor('delete from pawl.scores');
    erasing.kill('SIGKILL');
    await once(erasing, 'exit');
    await held.query('rollback');
    held.release();
    const listed = await command(home, store.url, 'erase', '--list', '--json');
    expect(JSON.parse(listed.out)).toMatchObject({ status: 'erasing', user: ann });
    expect(await everythingIn(store)).toContain(marker);

    const again = await command(home, store.url, 'retention', 'run', '--json');
    expect(again).toMatchObject({ code: 0 });
    const done = JSON.parse((await command(home, store.url, 'erase', '--list', '--json')).out);
    expect(done).toMatchObject({ status: 'done', counts: { conversations: 25, turns: 25 } });
    expect(await everythingIn(store)).not.toContain(marker);
    expect((await store.pool.query('select 1 from pawl.turns')).rowCount).toBe(0); // and Bob’s are older than is kept
  });

  it('what is old is dropped by the day, with what hangs on it, and the audit log says so', async () => {
    await writeEntries(store, [
      entry.turn({ trajectory: 'old', startedAt: noon }),
      entry.turn({ trajectory: 'new', startedAt: Date.now() - 86_400_000 }),
      entry.signal({ target: { kind: 'trajectory', id: 'old' } }),
    ]);
    const dry = JSON.parse((await command(home, store.url, 'retention', 'run', '--dry-run', '--json')).out);
    expect(dry).toMatchObject({ days: ['2026-05-20'], conversations: 1, turns: 1, signals: 1 });
    const ran = await command(home, store.url, 'retention', 'run');
    expect(ran.out).toMatch(
      /Conversations are kept for 90 days.*\n.*\nRemoved from before \d{4}-\d\d-\d\d: 1 conversation/,
    );
    const left = await store.pool.query<{ id: string }>('select id from pawl.trajectories');
    expect(left.rows).toEqual([{ id: 'new' }]);
    const audit = await command(home, store.url, 'audit', 'list', '--type', 'retention-run', '--json');
    expect(audit.out.trim().split('\n')).toHaveLength(2);
    const status = await command(home, store.url, 'retention', 'status', '--json');
    expect(JSON.parse(status.out)).toMatchObject({ settings: { days: 90, datasets: 90 }, runs: [{}, {}] });
  });
});

describe('two serving Pawls on one database', () => {
  let upstream: TestUpstream;
  let store: Store;
  let a: PawlProcess;
  let b: PawlProcess;
  beforeAll(async () => {
    upstream = await startUpstream();
    store = await withStore();
    a = await startPawl({ PAWL_UPSTREAM: upstream.url, DATABASE_URL: store.url });
    b = await startPawl({ PAWL_UPSTREAM: upstream.url, DATABASE_URL: store.url });
  });
  afterAll(async () => {
    await a?.remove();
    await b?.remove();
    await upstream?.close();
  });
  const say = async (pawl: PawlProcess, trajectory: string, user: string, text: string) => {
    const response = await fetch(`${pawl.url}/t/${trajectory}/u/${user}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${a.key}` },
      body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: text }] }),
    });
    await response.text();
    expect(response.status).toBe(200);
  };
  const ask = async (method: string, path: string, given?: object) => {
    const response = await fetch(a.url + path, {
      method,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${a.adminToken}` },
      ...(given ? { body: JSON.stringify(given) } : {}),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  it('a user is erased through the route of one, with what the other recorded, and what it delivers later', async () => {
    await say(a, 'with-a', 'zelda', said);
    await say(b, 'with-b', 'zelda', said);
    await say(b, 'of-bob', 'bob', 'Where is my parcel?');
    await until(
      () => store.pool.query('select 1 from pawl.turns'),
      ({ rowCount }) => rowCount === 3,
    );
    // The other is down, and its journal holds what the database has not seen.
    await b.kill();
    const secret = (await cachedSecret(a.home))!;
    const zelda = hashedId('zelda', secret);
    mkdirSync(join(b.home, 'journal'), { recursive: true });
    const journal = await openJournal({ folder: join(b.home, 'journal') });
    const late = { trajectory: 'late', agent: 'support-desk', user: zelda, startedAt: Date.now(), request: body(said) };
    await journal.append(encodeLine(entry.turn(late)));
    await journal.close();

    expect(await ask('POST', '/api/erasures', { user: 'somebody' })).toMatchObject({ status: 404 });
    expect(await ask('POST', '/api/erasures', { user: '' })).toMatchObject({ status: 400 });
    expect(await ask('POST', '/api/erasures', { user: 'zelda', dryRun: true })).toMatchObject({
      status: 200,
      body: { user: zelda, counts: { conversations: 2, turns: 2 } },
    });
    const asked = await ask('POST', '/api/erasures', { user: 'zelda', by: 'pat' });
    expect(asked).toMatchObject({ status: 202, body: { user: zelda, actor: 'pat', status: 'erasing' } });
    const id = asked.body.id as string;
    const removed = await until(
      () => ask('GET', `/api/erasures/${id}`),
      (answer) => answer.body.status !== 'erasing',
      500,
    );
    expect(removed.body).toMatchObject({ counts: { conversations: 2, turns: 2 }, status: 'sweeping' });
    expect(await ask('GET', '/api/erasures/none')).toMatchObject({ status: 404 });

    b = await b.restart();
    await until(
      () => readErasure(store, id),
      (erasure) => erasure?.late === 1,
    );
    await passTenMinutes(store);
    await until(
      () => readErasure(store, id),
      (erasure) => erasure?.status === 'done',
      500,
    );
    await a.kill();
    a = await a.restart(); // what is delivered leaves the journal
    await until(
      () => filesIn(a.home) + filesIn(b.home),
      (files) => !files.includes(marker),
    );
    expect(await everythingIn(store)).not.toContain(marker);
    const left = await store.pool.query<{ id: string }>('select id from pawl.trajectories');
    expect(left.rows).toEqual([{ id: 'of-bob' }]);
    expect(await readConsent(store, 'support-desk', zelda)).toMatchObject({ now: 'withdrawn' });
  });

  it('the route of retention says what is kept, and removes what is older', async () => {
    await writeEntries(store, [entry.turn({ agent: 'support-desk', trajectory: 'old', startedAt: noon })]);
    expect(await ask('GET', '/api/retention')).toMatchObject({
      status: 200,
      body: { settings: { days: 90, datasets: 90 }, next: expect.any(String) },
    });
    expect(await ask('POST', '/api/retention', { dryRun: true })).toMatchObject({ body: { conversations: 1 } });
    expect(await ask('POST', '/api/retention', { by: 'pat' })).toMatchObject({
      status: 200,
      body: { days: ['2026-05-20'] },
    });
    expect(await ask('POST', '/api/retention', {})).toMatchObject({
      status: 200,
      body: { days: [], conversations: 0 },
    });
    expect(await ask('POST', '/api/retention', { older: 1 })).toMatchObject({ status: 400 });
  });
});
