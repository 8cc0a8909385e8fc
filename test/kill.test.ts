/**
 * Pawl killed with SIGKILL at random moments under load, again and again over one data folder. Afterwards everything the
 * journal acknowledged is in the database exactly once: every vote that got its 202, and at least as many entries as each
 * life of the process had counted as journalled when it was last asked.
 */
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startLoad } from './load.ts';
import { holdDatabase, isThorough, type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

/** Twenty in `npm test`, fifty in `npm run test:all` (vitest.config.ts). */
const kills = isThorough ? 50 : 5;
let upstream: TestUpstream;
let pawl: PawlProcess;
beforeAll(async () => {
  upstream = await startUpstream();
  pawl = await startPawl({ PAWL_UPSTREAM: upstream.url });
});
afterAll(async () => {
  await pawl?.remove();
  await upstream?.close();
});

/** A fixed sequence of moments, so that a failure can be repeated. */
const random = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296;
  return seed / 4_294_967_296;
};

const metric = async (url: string, name: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text();
  const found = new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1];
  if (found === undefined) throw new Error(`There is no ${name} in /metrics.`);
  return Number(found);
};

it('loses nothing that was acknowledged and writes nothing twice', async () => {
  const next = random(7);
  const load = startLoad({ url: () => pawl.url, key: pawl.key, callers: 12, prefix: 'kill', feedback: true });
  let counted = 0;
  for (let i = 0; i < kills; i++) {
    const end = Date.now() + 50 + next() * 900;
    // Every other life lasts until it has acknowledged something, however slow the machine; the rest may end before.
    const wanted = load.acknowledged.size + (i % 2 === 0 ? 0 : 3);
    let seen = 0;
    while (Date.now() < end || load.acknowledged.size < wanted) {
      seen = Math.max(seen, await metric(pawl.url, 'pawl_journalled_total').catch(() => 0));
      await new Promise((resolve) => setTimeout(resolve, next() * 60));
    }
    counted += seen;
    await pawl.kill('SIGKILL');
    pawl = await pawl.restart();
  }
  await load.stop();
  const store = await pawl.store();
  const count = async (sql: string) => (await store.pool.query<{ n: number }>(sql)).rows[0]!.n;
  // Counting rows would not do: votes whose 202 was cut off are stored too.
  await new Promise((resolve) => setTimeout(resolve, 1000)); // figures are a quarter of a second old at most
  for (const waiting of ['pawl_record_queue_depth', 'pawl_record_lag_seconds'])
    await until(
      () => metric(pawl.url, waiting),
      (n) => n === 0,
    );
  const rows = await store.pool.query<{ target_id: string }>(`select target_id from pawl.signals`);
  const votes = rows.rows.map((row) => row.target_id);
  const stored = new Set(votes);
  expect(votes.length).toBe(stored.size);
  expect([...load.acknowledged].filter((id) => !stored.has(id))).toEqual([]);
  expect(load.acknowledged.size).toBeGreaterThan(kills);

  const turns = await count(`select count(*) as n from pawl.turns`);
  expect(turns + votes.length).toBeGreaterThanOrEqual(counted);
  expect(
    await count(`select count(*) as n from (select trajectory from pawl.turns group by 1 having count(*) > 1) x`),
  ).toBe(0);
  expect(await count(`select count(*) as n from pawl.trajectories where turns <> 1`)).toBe(0);
  expect(await count(`select count(*) as n from pawl.trajectories`)).toBe(turns);
  await store.close();
}, 900_000);

it('skips a torn tail and a flipped bit, loses no other record, and says so', async () => {
  // With the database held, votes stay in the journal.
  const held = holdDatabase(pawl.home);
  const vote = async (id: string) => {
    const response = await fetch(`${pawl.url}/t/${id}/v1/feedback`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pawl.key}` },
      body: JSON.stringify({ vote: 'up' }),
    });
    expect(response.status).toBe(202);
  };
  const acknowledged = Array.from({ length: 20 }, (_, i) => `torn-${i}`);
  for (const id of acknowledged) await vote(id);
  await pawl.kill('SIGKILL');
  await held.kill(); // and not released: votes that were already on their way to it are not to arrive

  const folder = join(pawl.home, 'journal');
  const segments = readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes('torn-10'));
  expect(segments).toHaveLength(1);
  const path = join(folder, segments[0]!);
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.from('X'), 0, 1, readFileSync(path).indexOf('torn-10')); // a flipped bit in the middle
  const { size } = statSync(path);
  writeSync(file, Buffer.from([0x50, 0x41, 0x57]), 0, 3, size); // half a header at the end
  closeSync(file);

  pawl = await pawl.restart();
  const store = await pawl.store();
  const found = await until(
    async () =>
      (
        await store.pool.query<{ target_id: string }>(
          `select target_id from pawl.signals where target_id like 'torn-%'`,
        )
      ).rows.map((row) => row.target_id),
    (ids) => ids.length >= 19,
  );
  expect(found.toSorted()).toEqual(acknowledged.filter((id) => id !== 'torn-10').toSorted());
  const health = await until(
    async () => (await (await fetch(`${pawl.url}/healthz`)).json()) as { status: string; problems: string[] },
    ({ problems }) => problems.join().includes('damaged journal records'),
  );
  expect(health.status).toBe('degraded');
  await store.close();
});
