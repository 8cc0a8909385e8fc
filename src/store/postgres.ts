/**
 * The way to the database: the embedded server of `<home>`, or the user's own at `DATABASE_URL`.
 * A `Store` is handed down from main.ts; the files beside this one are functions of it. Errors leave as StoreError, which
 * says whether trying again can help.
 */
import { Kysely, PostgresDialect } from 'kysely';
import { ConfigError, StoreError } from '../errors.ts';
import { runningEmbedded, startEmbedded } from './embedded.ts';
import { type Limits, scanning } from './limits.ts';
import { homeOwner, lockHome } from './lock.ts';
import { migrate } from './migrate.ts';
import { isSilence, openPool, type Pool } from './pool.ts';
import type { Day, Tables } from './tables.ts';

export type Store = {
  readonly pool: Pool['pool'];
  readonly db: Kysely<Tables>;
  readonly url: string;
  readonly kind: 'embedded' | 'external';
  readonly serverVersion: number; // e.g. 18, 14
  /** Days whose partitions are known to exist, so that writing does not ask each time. */
  readonly knownDays: Set<Day>;
  /** The same database through connections of its own with other limits; closed with this one. */
  within(limits: Limits, poolSize?: number): Store;
  /** Cuts every connection without a word to the server: they have fallen silent. Queries under way fail. */
  cut(): void;
  /** Within a few seconds, whatever the database does. */
  close(): Promise<void>;
};

export type StoreOptions = {
  readonly home: string;
  readonly databaseUrl?: string | undefined;
  /** Use the server of a Pawl that is already running in `home` instead of refusing; for commands that look on. */
  readonly join?: boolean;
  readonly poolSize?: number;
  /** How long statements may take; without it, as long as whole days of turns need. */
  readonly limits?: Limits;
  /** Tests and benches only: an embedded server without fsync. */
  readonly volatile?: boolean;
  /** Gives up an opening that is under way; what was begun is stopped again. */
  readonly signal?: AbortSignal;
};

const oldest = 14;
const newest = 18;

/** SQLSTATE classes and system errors where the same call may work later: the connection, resources, rollback by conflict. */
const passing = /^(08|53|57|58|40|25006$|25P03$|55P03$|55006$)/;
const systemCodes = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'],
]);

export const isRetryable = (error: unknown): boolean => {
  const { code, message } = error as { code?: string; message?: string };
  if (typeof code === 'string') return passing.test(code) || systemCodes.has(code);
  // pg's own errors carry no code.
  return (
    isSilence(error) ||
    /Connection terminated|timeout exceeded when trying to connect|not queryable|Client was closed/i.test(message ?? '')
  );
};

/** What the database said, without the connection string. */
export const storeError = (error: unknown, doing: string): StoreError => {
  if (error instanceof StoreError) return error;
  if (isSilence(error))
    return new StoreError(`${doing} failed: the database did not answer in time`, { cause: error, retryable: true });
  const said = error instanceof Error ? error.message || (error as { code?: string }).code : String(error);
  return new StoreError(`${doing} failed: ${said}`, { cause: error, retryable: isRetryable(error) });
};

/** The address without its password, fit for logs. */
export const shownUrl = (url: string): string => {
  try {
    const parsed = new URL(url);
    return `${parsed.protocol}//${parsed.username ? `${parsed.username}@` : ''}${parsed.host}${parsed.pathname}`;
  } catch {
    return 'the address in DATABASE_URL';
  }
};

const whereItIs =
  'DATABASE_URL, or `databaseUrl` in the settings, says where it is and as whom; without it Pawl brings a PostgreSQL of its own.';

const checkAddress = (url: string): void => {
  if (!/^postgres(ql)?:\/\//.test(url))
    throw new ConfigError('DATABASE_URL must begin with postgres:// or postgresql://.');
};

/** Opens a pool on a running server, checks its version and brings the schema up to date. */
export const connectStore = async (
  url: string,
  options: {
    kind?: Store['kind'];
    poolSize?: number;
    limits?: Limits;
    /** With the process id of the server's side of each new connection, and of one that is gone. */
    onConnect?: (backend: number) => void;
    onGone?: (backend: number) => void;
    onClose?: () => Promise<void>;
  } = {},
): Promise<Store> => {
  const main = openPool(url, options.poolSize ?? 10, options.limits ?? scanning);
  const { pool } = main;
  const { onConnect, onGone } = options;
  const backendOf = (client: object) => (client as { processID: number }).processID;
  if (onConnect) pool.on('connect', (client) => onConnect(backendOf(client)));
  if (onGone) pool.on('remove', (client) => onGone(backendOf(client)));
  const others: Pool[] = [];
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      await Promise.all([main, ...others].map((one) => one.close()));
      await options.onClose?.();
    })();
    return closing;
  };
  try {
    const answer = await pool.query<{ server_version_num: string }>('show server_version_num');
    const serverVersion = Math.floor(Number(answer.rows[0]?.server_version_num) / 10_000);
    if (!(serverVersion >= oldest && serverVersion <= newest))
      throw new ConfigError(
        `The server at ${shownUrl(url)} is PostgreSQL ${serverVersion}; Pawl works with ${oldest} to ${newest}.`,
      );
    await migrate(pool);
    const about = { url, kind: options.kind ?? 'external', serverVersion, knownDays: new Set<Day>() };
    const storeOn = (of: Pool, end: () => Promise<void>): Store => ({
      ...about,
      pool: of.pool,
      db: new Kysely<Tables>({ dialect: new PostgresDialect({ pool: of.pool }) }).withSchema('pawl'),
      within(limits, poolSize = 10) {
        const other = openPool(url, poolSize, limits);
        others.push(other);
        return storeOn(other, () => other.close());
      },
      cut: () => of.cutAll(),
      close: end,
    });
    return storeOn(main, close);
  } catch (error) {
    await main.close();
    if (error instanceof ConfigError) throw error;
    const failed = storeError(error, `Opening the database at ${shownUrl(url)}`);
    throw options.kind === 'embedded' ? failed : new StoreError(`${failed.message}. ${whereItIs}`, failed);
  }
};

const asked = ({ poolSize, limits }: Pick<StoreOptions, 'poolSize' | 'limits'>) => ({
  ...(poolSize === undefined ? {} : { poolSize }),
  ...(limits === undefined ? {} : { limits }),
});

/** A server that accepts a connection and says nothing must not be waited for by somebody who is leaving. */
const unlessAborted = (connecting: Promise<Store>, signal: AbortSignal | undefined): Promise<Store> => {
  if (signal === undefined) return connecting;
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
      connecting.then((late) => late.close()).catch(() => {});
    });
    connecting.then(resolve, reject);
  });
};

/** The database of a folder whose lock the caller holds. The embedded server stops when the store is closed. */
export const openOwned = async (options: Omit<StoreOptions, 'join'>): Promise<Store> => {
  const { home, databaseUrl, signal } = options;
  if (databaseUrl) {
    checkAddress(databaseUrl);
    return unlessAborted(connectStore(databaseUrl, { kind: 'external', ...asked(options) }), signal);
  }
  const server = await startEmbedded({ home, volatile: options.volatile ?? false, signal });
  try {
    return await connectStore(server.url, { kind: 'embedded', ...asked(options), onClose: () => server.stop() });
  } catch (error) {
    await server.stop();
    throw error;
  }
};

export const openStore = async ({ join = false, ...options }: StoreOptions): Promise<Store> => {
  const { home } = options;
  if (options.databaseUrl) return openOwned(options);
  const holder = join ? homeOwner(home) : null;
  if (holder !== null) {
    const url = runningEmbedded(home);
    if (url === null)
      throw new StoreError(`The database of the Pawl that runs in ${home} (process ${holder}) is not up.`, {
        retryable: true,
      });
    return connectStore(url, { kind: 'embedded', ...asked(options) });
  }
  const lock = await lockHome(home, { brief: join });
  try {
    const store = await openOwned(options);
    const close = async () => {
      await store.close();
      lock.release();
    };
    return { ...store, close };
  } catch (error) {
    lock.release();
    throw error;
  }
};
