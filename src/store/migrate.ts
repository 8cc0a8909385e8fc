/**
 * Brings the schema `pawl` up to date: plain SQL files in order, forward only, each in its own transaction together with
 * the row that records it. One process at a time does it, under an advisory lock; the others wait and find it done.
 * A file that changed after it ran, or a database made by a newer Pawl, is refused: guessing would be worse.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type pg from 'pg';
import { ConfigError } from '../errors.ts';
import { isBuilt, root } from '../root.ts';
import { givenUpAfter, scanning } from './limits.ts';

export type Migration = { readonly name: string; readonly sql: string; readonly checksum: string };
export type Applied = { readonly name: string; readonly checksum: string };

/** Whoever opens the database, with whatever limits: a migration takes its time, and so does waiting for another's. */
const patiently = { query_timeout: givenUpAfter(scanning) };

/** A number nobody else is likely to use: 'pawl' in ASCII. */
const lock = 0x7061776c;

// Line ends are left out of the sum, so that a checkout on Windows is the same migration.
const checksumOf = (sql: string): string => createHash('sha256').update(sql.replaceAll('\r\n', '\n')).digest('hex');

export const readMigrations = (
  folder: URL = new URL(isBuilt ? 'dist/migrations/' : 'src/store/migrations/', root),
): Migration[] =>
  readdirSync(folder)
    .filter((name) => /^\d{4}-[a-z0-9-]+\.sql$/.test(name))
    .sort()
    .map((name) => {
      const sql = readFileSync(new URL(name, folder), 'utf8');
      return { name: name.slice(0, -'.sql'.length), sql, checksum: checksumOf(sql) };
    });

/** What is left to run, or a ConfigError that says why nothing may be run. */
export const planMigrations = (known: readonly Migration[], applied: readonly Applied[]): Migration[] => {
  const byName = new Map(known.map((migration) => [migration.name, migration]));
  for (const { name, checksum } of applied) {
    const migration = byName.get(name);
    if (!migration)
      throw new ConfigError(
        `The database has migration ${name}, which this Pawl does not know: a newer Pawl made it. Update Pawl, or use another database.`,
      );
    if (migration.checksum !== checksum)
      throw new ConfigError(
        `Migration ${name} is not the one that was run on this database. Put the original file back; changes belong in a new migration.`,
      );
  }
  const done = new Set(applied.map(({ name }) => name));
  const last =
    applied
      .map(({ name }) => name)
      .sort()
      .at(-1) ?? '';
  const pending = known.filter(({ name }) => !done.has(name));
  const late = pending.find(({ name }) => name < last);
  if (late)
    throw new ConfigError(
      `Migration ${late.name} comes before ${last}, which has already run; give it a higher number.`,
    );
  return pending;
};

const readApplied = async (client: pg.PoolClient): Promise<Applied[]> => {
  const there = await client.query(`select to_regclass('pawl.migrations') is not null as there`);
  if (there.rows[0]?.there !== true) return [];
  return (await client.query<Applied>('select name, checksum from pawl.migrations order by name')).rows;
};

/** Runs the next migration, if there is one, and says its name. */
const step = async (client: pg.PoolClient, known: readonly Migration[]): Promise<string | null> => {
  // The lock belongs to the transaction, not to the session, so that it also works behind a connection pooler.
  await client.query({
    ...patiently,
    text: `begin; set local statement_timeout = ${scanning.statementMs}; select pg_advisory_xact_lock(${lock})`,
  });
  let name = '';
  try {
    await client.query(
      `create schema if not exists pawl;
       create table if not exists pawl.migrations (name text primary key, checksum text not null, at timestamptz not null default now())`,
    );
    const next = planMigrations(known, await readApplied(client))[0];
    if (next) {
      name = next.name;
      await client.query({ ...patiently, text: next.sql });
      await client.query('insert into pawl.migrations (name, checksum) values ($1, $2)', [name, next.checksum]);
    }
    await client.query('commit');
    return next?.name ?? null;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    // The code of the database's error decides whether trying again can help.
    if (name !== '') (error as Error).message = `migration ${name}: ${(error as Error).message}`;
    throw error;
  }
};

/** Returns the names of the migrations this call has run. */
export const migrate = async (pool: pg.Pool, known: readonly Migration[] = readMigrations()): Promise<string[]> => {
  const client = await pool.connect();
  let broken = true;
  try {
    const done: string[] = [];
    // The usual case needs no lock: everything is there.
    if (planMigrations(known, await readApplied(client)).length > 0)
      for (let name = await step(client, known); name !== null; name = await step(client, known)) done.push(name);
    broken = false;
    return done;
  } finally {
    client.release(broken);
  }
};
