/**
 * Which processes of Pawl work on this database: their parts, where they are and how they are, by the database's own clock. Each says
 * so every few seconds; one that ends in order takes its row away, and one that was killed is forgotten after an hour.
 *
 * Gateways also say how new the keys are that they know, and up to when all they answered is in the database: a revocation is
 * in force, and a window of traffic whole, once each of them has said so since.
 */
import type pg from 'pg';
import { type Store, storeError } from './postgres.ts';

export type ProcessRecord = {
  /** The machine and the data folder, so that one that starts again is the same. */
  readonly id: string;
  readonly roles: readonly string[];
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** Where others reach it. */
  readonly address: string | null;
  readonly problems: readonly string[];
  /** What a worker is at. */
  readonly doing: readonly Doing[];
  readonly startedAt: Date;
  readonly seenAt: Date;
  /** It has said so within the last seconds. */
  readonly isAlive: boolean;
};

export type Doing = { readonly agent: string; readonly stage: string; readonly share: number; readonly text: string };

export type Presence = Pick<
  ProcessRecord,
  'id' | 'roles' | 'host' | 'pid' | 'version' | 'address' | 'problems' | 'doing' | 'startedAt'
>;

/** `id` as above. */
export type Gateway = Pick<ProcessRecord, 'id' | 'seenAt'>;

/** A process says that it is there this often, and counts as gone after some such times without a word. */
export const sayEveryMs = 5_000;
const aliveSeconds = 15;
const forgotten = `seen_at < now() - interval '1 hour'`;

/** Gateways hear on it that somebody waits for what they have not written yet. */
export const drainChannel = 'pawl_drain';

type Queried = Pick<pg.ClientBase, 'query'>;

const failed = (doing: string) => (error: unknown) => {
  throw storeError(error, doing);
};

/** Microseconds matter: a Date would cut them off. */
export const databaseTime = async (store: Store): Promise<string> => {
  const answer = await store.pool
    .query<{ at: string }>('select clock_timestamp()::text as at')
    .catch(failed('Reading the database’s clock'));
  return answer!.rows[0]!.at;
};

export const sayPresent = async (store: Store, presence: Presence): Promise<void> => {
  const { id, roles, host, pid, version, address, problems, doing, startedAt } = presence;
  await store.pool
    .query(
      `insert into pawl.processes (id, roles, host, pid, version, address, problems, doing, started_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       on conflict (id) do update set roles = excluded.roles, host = excluded.host, pid = excluded.pid,
         version = excluded.version, address = excluded.address, problems = excluded.problems, doing = excluded.doing,
         started_at = excluded.started_at, seen_at = now()`,
      [id, roles, host, pid, version, address, problems, JSON.stringify(doing), startedAt],
    )
    .catch(failed('Saying that this process is there'));
};

export const removeProcess = async (store: Store, id: string): Promise<void> => {
  await store.pool
    .query(`delete from pawl.processes where id = $1 or ${forgotten}`, [id])
    .catch(failed('Taking this process off the list'));
};

/** Those of the last hour, in the order of their ids. */
export const listProcesses = async (database: Queried): Promise<ProcessRecord[]> => {
  const answer = await database
    .query<ProcessRecord>(
      `select id, roles, host, pid, version, address, problems, doing, started_at as "startedAt", seen_at as "seenAt",
         seen_at > now() - interval '${aliveSeconds} seconds' as "isAlive"
       from pawl.processes where not ${forgotten} order by id`,
    )
    .catch(failed('Listing the processes of this installation'));
  return answer!.rows;
};

/** Says that `id` knows all keys as they were at `at`, or has written all it had answered by then. */
export const reportGateway = async (
  store: Store,
  id: string,
  what: 'keys_read_at' | 'recorded_at',
  at: string,
): Promise<void> => {
  await store.pool
    .query(
      `insert into pawl.processes as p (id, ${what}) values ($1, $2::timestamptz)
       on conflict (id) do update set ${what} = greatest(p.${what}, excluded.${what}), seen_at = now()`,
      [id, at],
    )
    .catch(failed('Reporting this gateway'));
};

/** Gateways that have not read the keys since, as far as anybody knows. */
export const gatewaysBehind = async (store: Store, since: string): Promise<Gateway[]> => {
  const answer = await store.pool
    .query<Gateway>(
      `select id, seen_at as "seenAt" from pawl.processes
       where keys_read_at < $1::timestamptz and not ${forgotten} order by id`,
      [since],
    )
    .catch(failed('Asking which gateways know the keys'));
  return answer!.rows;
};

/** Gateways that live and may still have something from before `since` that is not in the database. */
export const gatewaysUnwritten = async (store: Store, since: string): Promise<Gateway[]> => {
  const answer = await store.pool
    .query<Gateway>(
      `select id, seen_at as "seenAt" from pawl.processes
       where 'gateway' = any(roles) and (recorded_at is null or recorded_at < $1::timestamptz)
         and seen_at > now() - interval '${aliveSeconds} seconds' order by id`,
      [since],
    )
    .catch(failed('Asking which gateways have written everything'));
  return answer!.rows;
};
