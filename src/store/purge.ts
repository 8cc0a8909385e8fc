/**
 * What was removed, out of the server's files. PostgreSQL keeps the bytes of removed rows: in pages until they are written over, in its
 * log until a segment is used again, and short texts in what it knows for planning. The embedded server's files are ours, so there the
 * tables that lost something are written anew, looked at again, and its log is led past every segment that was there. On a
 * server of one's own only the place is freed: its log, copies and backups are not ours to touch.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { scanning } from './limits.ts';
import type { Store } from './postgres.ts';
import { storeError } from './postgres.ts';

/** `rewritten`: no byte of it is left in the database's files. `freed`: its place will be written over. */
export type Purged = 'rewritten' | 'freed';

/** Who waits for a table keeps all waiting who come after; better to try again later. */
const lockLimit = '5s';

export async function purge(store: Store, tables: readonly string[]): Promise<Purged> {
  const patient = store.within(scanning, 1);
  const full = store.kind === 'embedded';
  try {
    const client = await patient.pool.connect();
    try {
      await client.query(`set lock_timeout = '${lockLimit}'`);
      if (full) await awaitReaders(client);
      for (const table of tables)
        await client.query(full ? `vacuum (full, analyze) ${table}` : `vacuum ${table}`).catch(unlessGone);
      if (!full) return 'freed';
      await forgetStatistics(client);
      await leaveLogBehind(client);
      return 'rewritten';
    } finally {
      client.release(true); // with its limit
    }
  } catch (error) {
    throw storeError(error, 'Taking what was removed out of the database’s files');
  } finally {
    await patient.close();
  }
}

const readersMs = 60_000;

/** Whoever still reads what was there before keeps it there: a table that is written anew keeps what they may see. */
async function awaitReaders(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ now: string }>('select pg_current_xact_id()::xid::text as now');
  const older = `select pid, backend_type from pg_stat_activity
    where pid <> pg_backend_pid() and backend_xmin is not null and age(backend_xmin) >= age($1::xid)`;
  for (const until = Date.now() + readersMs; ; await sleep(100)) {
    const [reader] = (await client.query<{ pid: number; backend_type: string }>(older, [rows[0]!.now])).rows;
    if (reader === undefined) return;
    if (Date.now() > until)
      throw new Error(`a ${reader.backend_type} (process ${reader.pid}) still reads what was there before`);
  }
}

/** Retention may have dropped the day meanwhile. */
const unlessGone = (error: { code?: string }): void => {
  if (error.code !== '42P01') throw error;
};

/** Of tables that are only the sum of their partitions nobody looks again by himself. */
async function forgetStatistics(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select distinct s.starelid::regclass::text as name from pg_statistic s join pg_class c on c.oid = s.starelid
     where c.relkind = 'p' and c.relnamespace = 'pawl'::regnamespace`,
  );
  for (const { name } of rows) await client.query(`analyze ${name}`);
  await client.query('vacuum full pg_catalog.pg_statistic');
}

const walNow = `select pg_walfile_name(pg_current_wal_insert_lsn()) as now,
  (select max(name) from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$') as last`;

/** Used segments are otherwise kept under new names, with their bytes, until it is their turn. */
async function leaveLogBehind(client: pg.PoolClient): Promise<void> {
  await client.query('alter system set wal_recycle = off');
  try {
    await client.query('select pg_reload_conf()');
    await client.query('checkpoint'); // what was dropped goes, and no more segments are made for later
    const { last } = (await client.query<{ now: string; last: string }>(walNow)).rows[0]!;
    for (let now = ''; now <= last; now = (await client.query<{ now: string }>(walNow)).rows[0]!.now) {
      // A segment is left only when something is in it; its rest is written with zeros.
      await client.query(`select pg_logical_emit_message(false, 'pawl', 'next')`);
      await client.query('select pg_switch_wal()');
    }
    await client.query('checkpoint');
  } finally {
    await client.query('alter system reset wal_recycle');
    await client.query('select pg_reload_conf()');
  }
}
