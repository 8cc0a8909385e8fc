/**
 * Connections that cannot hang. A query that is not answered within its limit fails, and its connection is closed by force:
 * what it still owes would be taken for the answer to the next query. Whatever silenced one connection silenced its
 * neighbours, so those that lie idle are closed with it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { CopyIn } from './copy.ts';
import { givenUpAfter, type Limits, sessionSettings } from './limits.ts';

// bigint as number: counts and token sums stay far below 2^53. Days stay text: a JS Date would shift them by time zone.
const parsers: Record<number, (text: string) => unknown> = { 20: Number, 1082: (text) => text };
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' && parsers[oid]) || pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

const connectMs = 10_000;
/** Idle connections are the ones that firewalls forget; making one costs milliseconds. */
const idleMs = 10_000;
/** How long the goodbyes of closing may take. */
const goodbyeMs = 2_000;

/** pg's own words; its error has no code. */
export const isSilence = (error: unknown): boolean => /^Query read timeout/.test((error as Error)?.message ?? '');

type Socketed = { readonly connection?: { readonly stream?: { destroy(): void } } };
/** Without a goodbye, which a silent connection would never answer. */
export const cut = (client: unknown): void => (client as Socketed).connection?.stream?.destroy();

/** What every connection of Pawl has in common. */
export const connectionSettings = (url: string, limits: Limits) =>
  ({
    connectionString: url,
    connectionTimeoutMillis: Math.min(connectMs, givenUpAfter(limits)),
    query_timeout: givenUpAfter(limits),
    keepAlive: true,
    keepAliveInitialDelayMillis: 15_000,
  }) satisfies pg.ClientConfig;

export type Pool = {
  readonly pool: pg.Pool;
  /** Waits for queries under way, and for connections that somebody has taken, but not for long. */
  close(): Promise<void>;
  /** Cuts every connection; queries under way fail. The pool goes on with new ones. */
  cutAll(): void;
};

export const openPool = (url: string, size: number, limits: Limits): Pool => {
  const open = new Set<pg.PoolClient>();
  const idle = new Set<pg.PoolClient>();
  const cutIdle = () => {
    for (const client of [...idle]) {
      client.emit('error', new Error('The connection was closed because its neighbour fell silent.')); // the pool lets go of it
      cut(client);
    }
  };
  /** A client whose silence is noticed whoever asks it: a caller may hand it back without a word. */
  class Connection extends pg.Client {
    override query(...args: unknown[]): never {
      const answer = (super.query as (...given: unknown[]) => unknown).apply(this, args);
      const heard = (error: unknown) => {
        if (isSilence(error)) {
          void this.end(); // by force, since a query is under way
          cutIdle();
        }
        throw error;
      };
      if (answer instanceof CopyIn) answer.done.catch(heard).catch(() => {});
      return (answer instanceof Promise ? answer.catch(heard) : answer) as never;
    }
  }
  const settings = {
    ...connectionSettings(url, limits),
    max: size,
    idleTimeoutMillis: idleMs,
    application_name: 'pawl',
    types,
    Client: Connection,
    onConnect: (client: pg.ClientBase) => client.query(sessionSettings(limits)) as unknown as undefined,
  };
  const pool = new pg.Pool(settings);
  // A connection that breaks is replaced at the next use, and whoever was using it gets the error from the query. Without
  // listeners it would end the process; the pool takes its own away from connections in use and on their way out.
  pool.on('error', () => {});
  pool.on('connect', (client) => {
    client.on('error', () => {});
    open.add(client);
  });
  pool.on('acquire', (client) => idle.delete(client));
  pool.on('release', (error, client) => {
    if (isSilence(error)) cutIdle();
    idle.add(client);
  });
  pool.on('remove', (client) => {
    open.delete(client);
    idle.delete(client);
  });
  const cutAll = () => {
    for (const client of open) cut(client);
  };
  let closing: Promise<void> | null = null;
  const end = async () => {
    const gone = pool.end();
    const limit = setTimeout(cutAll, goodbyeMs);
    // Whoever took a connection and waits for something else never gives it back; the pool would wait for that.
    const enough = new AbortController();
    await Promise.race([gone, sleep(2 * goodbyeMs, undefined, { signal: enough.signal }).catch(() => {})]);
    enough.abort();
    clearTimeout(limit);
    // The pool does not wait for its idle connections to be closed, and a silent one would keep the process.
    setTimeout(cutAll, goodbyeMs).unref();
  };
  return {
    pool,
    close: () => {
      closing ??= end();
      return closing;
    },
    cutAll,
  };
};
