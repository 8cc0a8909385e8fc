import { once } from 'node:events';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { until } from '../../test/pawl.ts';
import { holds, type Lead, leading } from './lead.ts';
import { withStore } from './test-store.ts';

it('is held by one at a time, and each new holder has a new term', async () => {
  const store = await withStore();
  const terms: number[] = [];
  await leading(store, 'x', 'a', async ({ term }) => {
    terms.push(term);
    expect(await leading(store, 'x', 'b', async () => 'both')).toBeNull();
    expect(await leading(store, 'y', 'b', async () => 'another')).toEqual({ done: 'another' });
  });
  await leading(store, 'x', 'b', async ({ term }) => terms.push(term));
  expect(terms).toEqual([1, 2]);
  const { rows } = await store.pool.query(`select process from pawl.leaders where name = 'x'`);
  expect(rows).toEqual([{ process: 'b' }]);
});

it('is lost with its connection; another may lead, and what the first still writes is refused', async () => {
  const store = await withStore();
  await store.pool.query('create table pawl.written (by text)');
  const write = (lead: Lead) =>
    store.db.transaction().execute(async (transaction) => {
      await holds(transaction, lead);
      await sql`insert into pawl.written values (${lead.process})`.execute(transaction);
    });
  await leading(store, 'x', 'first', async (first) => {
    await write(first);
    await store.pool.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objsubid = 1
       and database = (select oid from pg_database where datname = current_database())
       and (classid::bigint << 32 | objid::bigint) = hashtextextended('x', 0)`,
    );
    if (!first.lost.aborted) await once(first.lost, 'abort'); // the end may be heard before the answer is
    const second = await until(
      () => leading(store, 'x', 'second', async (lead) => write(lead)),
      (held) => held !== null,
    );
    expect(second).not.toBeNull();
    await expect(write(first)).rejects.toThrow(/Another process leads x since; this one \(first\)/);
  });
  expect((await store.pool.query('select by from pawl.written order by by')).rows).toEqual([
    { by: 'first' },
    { by: 'second' },
  ]);
});

it('a new term does not begin while a write of the old one is under way', async () => {
  const store = await withStore();
  const order: string[] = [];
  await leading(store, 'x', 'first', async (first) => {
    let finish = () => {};
    const mayEnd = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let begun = () => {};
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const writing = store.db.transaction().execute(async (transaction) => {
      await holds(transaction, first);
      begun();
      await mayEnd;
      order.push('the old one has written');
    });
    await isBegun;
    const beginning = store.pool
      .query(`update pawl.leaders set term = term + 1 where name = 'x'`)
      .then(() => order.push('the new one leads'));
    await until(
      async () => {
        const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
        return (await store.pool.query(waiting)).rows.length;
      },
      (waiting) => waiting > 0,
    );
    finish();
    await Promise.all([writing, beginning]);
  });
  expect(order).toEqual(['the old one has written', 'the new one leads']);
});
