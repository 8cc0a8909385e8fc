/**
 * Pawl stopped and started again and again, with traffic in some lives and none in others, and then with a journal that
 * somebody has been at. Every answer and every acknowledged vote is in the database, and /healthz says what was found.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Store } from '../src/store/postgres.ts';
import { withStore } from '../src/store/test-store.ts';
import { isThorough, type PawlProcess, startPawl, until } from './pawl.ts';
import { startProxy, through } from './silent-proxy.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

let upstream: TestUpstream;
let store: Store;
let pawl: PawlProcess;
beforeAll(async () => {
  upstream = await startUpstream();
  store = await withStore();
  pawl = await startPawl({ PAWL_UPSTREAM: upstream.url, DATABASE_URL: store.url });
});
afterAll(async () => {
  await pawl?.remove();
  await upstream?.close();
});

const post = async (path: string, body: object): Promise<number> => {
  const response = await fetch(pawl.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${pawl.key}` },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.status;
};
const vote = async (id: string) => expect(await post(`/t/${id}/v1/feedback`, { vote: 'up' })).toBe(202);
const talk = async (id: string) => {
  const messages = [{ role: 'user', content: `This is ${id}` }];
  expect(await post(`/t/${id}/v1/chat/completions`, { model: 'echo', messages })).toBe(200);
  await vote(id);
};
const idsOf = async (prefix: string) => {
  const of = async (sql: string) => (await store.pool.query<{ id: string }>(sql)).rows.map(({ id }) => id).sort();
  return {
    turns: await of(`select trajectory as id from pawl.turns where trajectory like '${prefix}%'`),
    votes: await of(`select target_id as id from pawl.signals where target_id like '${prefix}%'`),
  };
};
type Health = { status: string; problems: string[] };
const health = async () => (await (await fetch(`${pawl.url}/healthz`)).json()) as Health;

it('idle restarts with traffic in between lose nothing', async () => {
  const expected: string[] = [];
  for (let i = 0; i < (isThorough ? 10 : 2); i++) {
    for (let n = 0; n < 5; n++) {
      expected.push(`life${i}-${n}`);
      await talk(`life${i}-${n}`);
    }
    await pawl.kill('SIGTERM');
    pawl = await pawl.restart();
    await pawl.kill('SIGTERM'); // nothing happened in this one
    pawl = await pawl.restart();
  }
  const found = await until(
    () => idsOf('life'),
    ({ turns, votes }) => turns.length >= expected.length && votes.length >= expected.length,
  );
  expect(found).toEqual({ turns: expected.toSorted(), votes: expected.toSorted() });
  expect(await health()).toMatchObject({ status: 'ok', problems: [] });
}, 900_000); // up to twenty starts, on a machine that may be busy

type Spoilt = [string, (path: string, cursor: { segment: number; offset: number; id: string }) => void, boolean];
const spoilt: Spoilt[] = [
  ['past the end', (path, c) => writeFileSync(path, JSON.stringify({ ...c, offset: 1e9 })), true],
  ['in the middle of a record', (path, c) => writeFileSync(path, JSON.stringify({ ...c, offset: c.offset + 5 })), true],
  ['of a segment to come', (path, c) => writeFileSync(path, JSON.stringify({ ...c, segment: c.segment + 50 })), false],
  ['that is a folder', (path) => mkdirSync(path), true],
];
// cursor.test.ts has them all without a process.
it.each(isThorough ? spoilt : spoilt.slice(0, 1))(
  'a cursor %s loses nothing, and /healthz says what was found',
  async (name, spoil, isSaid) => {
    const prefix = `spoilt-${name.replaceAll(' ', '-')}-`;
    const ids = Array.from({ length: 10 }, (_, i) => `${prefix}${i}`);
    const path = join(pawl.home, 'journal', 'cursor.json');
    const { hostname, port } = new URL(store.url);
    const proxy = await startProxy({ host: hostname, port: Number(port) });
    await pawl.kill('SIGTERM');
    pawl = await pawl.restart({ DATABASE_URL: through(store.url, proxy) });
    const written = readFileSync(path, 'utf8');
    await vote(`${prefix}first`);
    await until(
      () => readFileSync(path, 'utf8'),
      (text) => text !== written,
    );
    await proxy.close(); // the database is away, and the votes stay in the journal
    for (const id of ids) await vote(id);
    await pawl.kill('SIGKILL');
    const cursor = JSON.parse(readFileSync(path, 'utf8'));
    rmSync(path);
    spoil(path, cursor);
    pawl = await pawl.restart({ DATABASE_URL: store.url });
    if (isSaid)
      await until(
        async () => (await health()).problems.join(),
        (said) => said.includes('read again'),
      );
    const { votes } = await until(
      () => idsOf(prefix),
      (found) => found.votes.length >= ids.length + 1,
    );
    expect(votes).toEqual([...ids, `${prefix}first`].toSorted());
    // A cursor again for the next one.
    rmSync(path, { recursive: true, force: true });
    await vote(`after-${name.replaceAll(' ', '-')}`);
    await until(
      () => existsSync(path),
      (there) => there,
    );
  },
  300_000,
);
