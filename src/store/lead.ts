/**
 * One at a time over all processes of a database. The leader holds an advisory lock on a connection of its own for as long as its
 * work takes; the server lets it go when that process, its connection or its machine is gone, and another may lead.
 *
 * A leader asks its connection every three seconds whether it is still there. Without an answer it is told to end, seconds before
 * the server would give the lock to another. And should it have been held still meanwhile and go on as if nothing had happened,
 * its writes are refused: each new leader begins a term, and a write is made in the transaction of `holds`, which finds only
 * the term that stands and keeps it standing until the write is done.
 */
import { type Kysely, sql } from 'kysely';
import type pg from 'pg';
import { StoreError } from '../errors.ts';
import { cut } from './pool.ts';
import { type Store, storeError } from './postgres.ts';

export type Lead = {
  readonly name: string;
  readonly term: number;
  /** The process that leads: `host:pid:instance`. */
  readonly process: string;
  /** Aborted when the lock is lost, or may be. */
  readonly lost: AbortSignal;
};

const askEveryMs = 3_000;
const answerMs = 3_000;

/** Null: somebody else is at it. `work` must come to an end when it is told that the lead is lost. */
export async function leading<T>(
  store: Store,
  name: string,
  process: string,
  work: (lead: Lead) => Promise<T>,
): Promise<{ readonly done: T } | null> {
  const failed = (error: unknown) => {
    throw storeError(error, `Taking the lock ${name}`);
  };
  const client = (await store.pool.connect().catch(failed)) as pg.PoolClient;
  const lost = new AbortController();
  const onEnd = () => lost.abort(new Error(`The connection that held the lock ${name} broke.`));
  client.on('end', onEnd);
  client.on('error', onEnd);
  let broken = true;
  let asking: NodeJS.Timeout | undefined;
  try {
    const taken = await client
      .query<{ taken: boolean }>('select pg_try_advisory_lock(hashtextextended($1, 0)) as taken', [name])
      .catch(failed);
    if (taken?.rows[0]?.taken !== true) {
      broken = false;
      return null;
    }
    const begun = await client
      .query<{ term: number }>(
        `insert into pawl.leaders as l (name, term, process) values ($1, 1, $2)
         on conflict (name) do update set term = l.term + 1, process = excluded.process, since = now() returning term`,
        [name, process],
      )
      .catch(failed);
    asking = setInterval(() => {
      client.query({ text: 'select 1', query_timeout: answerMs } as pg.QueryConfig).catch(() => {
        onEnd();
        cut(client);
      });
    }, askEveryMs);
    try {
      return { done: await work({ name, term: begun!.rows[0]!.term, process, lost: lost.signal }) };
    } finally {
      clearInterval(asking);
      if (!lost.signal.aborted)
        await client.query('select pg_advisory_unlock(hashtextextended($1, 0))', [name]).then(
          () => {
            broken = false;
          },
          () => {}, // the connection is closed below, and the lock goes with it
        );
    }
  } finally {
    clearInterval(asking);
    client.off('end', onEnd);
    client.off('error', onEnd);
    client.release(broken);
  }
}

/** In the transaction of a write: refuses it unless the lead stands, and lets no other begin before the transaction has ended. */
export async function holds(transaction: Kysely<never> | Store['db'], lead: Lead): Promise<void> {
  const { rows } = await sql`
    select 1 from pawl.leaders where name = ${lead.name} and term = ${lead.term} for share`.execute(transaction);
  if (rows.length === 0) throw lostLead(lead);
}

export const lostLead = ({ name, process }: Lead): StoreError =>
  new StoreError(`Another process leads ${name} since; this one (${process}) has written nothing.`, {
    retryable: true,
  });
