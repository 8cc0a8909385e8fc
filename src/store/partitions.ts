/**
 * The days of `trajectories`, `turns` and `messages`: one partition each, made ahead of time and whenever a turn needs one.
 * A partition is built as a table of its own and then attached, which never blocks readers or writers; dropping detaches
 * it first, concurrently, for the same reason. There is no default partition: it would have to be scanned by every attach.
 */
import { scanning } from './limits.ts';
import type { Store } from './postgres.ts';
import { storeError } from './postgres.ts';
import type { Day } from './tables.ts';

const parents = ['messages', 'trajectories', 'turns'] as const;
const ofParents = `i.inhparent in (${parents.map((parent) => `'pawl.${parent}'::regclass`).join(', ')})`;
const lock = 0x70617765; // beside the one of migrate.ts
const dropLock = 0x70617766;
const dayMs = 86_400_000;

let lastDay: { readonly number: number; readonly name: Day } = { number: Number.NaN, name: '' };
/** Asked several times for each turn, nearly always about the same day. */
export const dayOf = (at: number | Date): Day => {
  const number = Math.floor(Number(at) / dayMs);
  if (number !== lastDay.number) lastDay = { number, name: new Date(at).toISOString().slice(0, 10) };
  return lastDay.name;
};
export const addDays = (day: Day, days: number): Day => dayOf(Date.parse(day) + days * dayMs);

const isDay = (day: Day): boolean => /^\d{4}-\d\d-\d\d$/.test(day) && dayOf(Date.parse(day)) === day;
const partitionName = (parent: string, day: Day): string => `${parent}_${day.replaceAll('-', '')}`;

/** The days from today on that the server should be prepared for. */
export const daysAhead = (now: number, ahead = 7): Day[] =>
  Array.from({ length: ahead + 1 }, (_, i) => dayOf(now + i * dayMs));

/** Makes the partitions of these days where they are missing. Safe to run from many processes at once. */
export const ensurePartitions = async (store: Store, days: Iterable<Day>): Promise<void> => {
  const wanted = [...new Set(days)].filter((day) => !store.knownDays.has(day)).sort();
  if (wanted.length === 0) return;
  for (const day of wanted) if (!isDay(day)) throw new Error(`'${day}' is not a day of the form 2026-01-31.`);
  const client = await store.pool.connect().catch((error) => {
    throw storeError(error, 'Connecting to the database');
  });
  try {
    await client.query(`begin; select pg_advisory_xact_lock(${lock})`);
    const there = await client.query<{ name: string }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where ${ofParents}`,
    );
    const names = new Set(there.rows.map(({ name }) => name));
    for (const day of wanted)
      for (const parent of parents) {
        const name = partitionName(parent, day);
        if (names.has(name)) continue;
        const columns =
          'including defaults including generated including constraints including storage including compression';
        // It may exist, detached by hand or by a drop that was interrupted: then it comes back with what is in it.
        await client.query(`create table if not exists pawl.${name} (like pawl.${parent} ${columns})`);
        await client.query(
          `alter table pawl.${parent} attach partition pawl.${name} for values from ('${day}') to ('${addDays(day, 1)}')`,
        );
      }
    await client.query('commit');
    for (const day of wanted) store.knownDays.add(day);
    client.release();
  } catch (error) {
    await client.query('rollback').catch(() => {});
    client.release(true);
    throw storeError(error, `Making the partitions of ${wanted.join(', ')}`);
  }
};

/** The days that have partitions, oldest first. */
export const partitionDays = async (store: Store): Promise<Day[]> => {
  const found = await store.pool.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'pawl.trajectories'::regclass order by 1`,
  );
  return found.rows.map(({ name }) => name.slice(-8).replace(/(....)(..)(..)/, '$1-$2-$3'));
};

/** Days to forget: every one before a day, and single ones. */
export type OldDays = { readonly before: Day | null; readonly days?: readonly Day[] };

/**
 * Retention: forgets these days, with their siblings and scores, and the signals and business keys of that time or about their
 * conversations. Returns the days dropped. Interrupted at any point it can be run again: a partition half detached is finished first.
 */
export const dropPartitions = async (store: Store, { before, days = [] }: OldDays): Promise<Day[]> => {
  for (const day of [...(before === null ? [] : [before]), ...days])
    if (!isDay(day)) throw new Error(`'${day}' is not a day of the form 2026-01-31.`);
  const patient = store.within(scanning, 1);
  const client = await patient.pool.connect().catch(async (error) => {
    await patient.close();
    throw storeError(error, 'Connecting to the database');
  });
  let broken = true;
  try {
    // A lock of the session, because detaching concurrently is not allowed inside a transaction.
    await client.query('select pg_advisory_lock($1)', [dropLock]);
    const old = [before, [...days]];
    // First, while it can still be told what they are about.
    for (const table of ['signals', 'trajectory_keys'])
      await client.query(
        `delete from pawl.${table} s where
           s.target_kind = 'trajectory' and exists (select 1 from pawl.trajectories t
             where t.id = s.target_id and t.agent = s.agent and t.day = any($1::date[]))
           or s.target_kind = 'turn' and exists (select 1 from pawl.turns x
             where x.id::text = s.target_id and x.agent = s.agent and x.day = any($1::date[]))`,
        [days],
      );
    const found = await client.query<{ parent: string; name: string; pending: boolean }>(
      `select p.relname as parent, c.relname as name, i.inhdetachpending as pending
       from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
       where ${ofParents}
         and (right(c.relname, 8) < $1 or right(c.relname, 8) = any($2)) order by right(c.relname, 8), 1`,
      [before?.replaceAll('-', '') ?? null, days.map((day) => day.replaceAll('-', ''))],
    );
    const dropped = new Set<Day>();
    for (const { parent, name, pending } of found.rows) {
      const of = name.slice(-8).replace(/(....)(..)(..)/, '$1-$2-$3');
      store.knownDays.delete(of);
      await client.query(
        `alter table pawl.${parent} detach partition pawl.${name} ${pending ? 'finalize' : 'concurrently'}`,
      );
      await client.query(`drop table pawl.${name}`);
      dropped.add(of);
    }
    for (const table of ['siblings', 'scores', 'verdicts', 'erased'])
      await client.query(`delete from pawl.${table} where day < $1::date or day = any($2::date[])`, old);
    if (before !== null) {
      await client.query('delete from pawl.signals where received_at < $1', [`${before}T00:00:00Z`]);
      await client.query('delete from pawl.trajectory_keys where at < $1', [`${before}T00:00:00Z`]);
    }
    await client.query('select pg_advisory_unlock($1)', [dropLock]);
    broken = false;
    return [...dropped];
  } catch (error) {
    throw storeError(error, `Dropping what is older than ${before ?? days.join(', ')}`);
  } finally {
    client.release(broken);
    await patient.close();
  }
};
