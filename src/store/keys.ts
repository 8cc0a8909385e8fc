/**
 * Client keys: what an agent sends as its API key. Only the SHA-256 of the token is kept; with 256 random bits behind it a
 * slow hash would add nothing. Changes are announced on `pawl_keys`, so gateways can keep the active ones in memory.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import type { Origin } from '../collect/trajectory.ts';
import { type Store, storeError } from './postgres.ts';
import type { KeysTable } from './tables.ts';

/**
 * What a key may be used for: model calls; votes and comments of users; measured outcomes, which decide what a model learns;
 * reading what a client may see; and evaluations, which choose the release that answers.
 */
export const scopes = ['call', 'feedback', 'outcomes', 'read', 'evaluate'] as const;
export type Scope = (typeof scopes)[number];
/** What an agent needs that talks to users. */
export const usualScopes: readonly Scope[] = ['call', 'feedback'];

export type Key = {
  readonly id: string;
  readonly agent: string;
  readonly name: string;
  /** The first characters of the token, for people. */
  readonly prefix: string;
  /** What traffic with this key is; a caller cannot choose it per call. */
  readonly origin: Origin;
  readonly scopes: readonly Scope[];
  readonly rateLimit: number | null; // requests per minute
  /** Where its conversations are kept, and whose they are: walls that curating does not mix. */
  readonly region: string | null;
  readonly tenant: string | null;
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
};

/** A key a gateway may accept, found by its hash in hex. */
export type ActiveKey = Key & { readonly hash: string };

export const keysChannel = 'pawl_keys';

export const newToken = (): string => `pawl_${randomBytes(32).toString('base64url')}`;
export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest();

const keyOf = (row: Selectable<KeysTable>): Key => ({
  id: row.id,
  agent: row.agent,
  name: row.name,
  prefix: row.prefix,
  origin: row.origin,
  scopes: row.scopes,
  rateLimit: row.rate_limit,
  region: row.region,
  tenant: row.tenant,
  createdAt: row.created_at,
  revokedAt: row.revoked_at,
  lastUsedAt: row.last_used_at,
});

export type NewKey = {
  readonly agent: string;
  readonly name: string;
  readonly origin?: Origin;
  readonly scopes?: readonly Scope[];
  readonly rateLimit?: number | null;
  readonly region?: string | null;
  readonly tenant?: string | null;
};

/** Makes a key. The token is in this answer and nowhere else. */
export const createKey = async (
  store: Store,
  { agent, name, origin = 'production', scopes: may = usualScopes, rateLimit = null, region, tenant }: NewKey,
  token: string = newToken(),
): Promise<{ key: Key; token: string }> => {
  const row = await store.db
    .insertInto('keys')
    .values({
      id: sql<string>`gen_random_uuid()`,
      agent,
      name,
      hash: hashToken(token),
      prefix: token.slice(0, 10),
      origin,
      scopes: [...may],
      rate_limit: rateLimit,
      region: region ?? null,
      tenant: tenant ?? null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch((error) => {
      throw storeError(error, `Making the key '${name}'`);
    });
  return { key: keyOf(row), token };
};

/** All keys, revoked ones included, newest first. */
export const listKeys = async (store: Store, filter: { readonly agent?: string } = {}): Promise<Key[]> => {
  let query = store.db.selectFrom('keys').selectAll();
  if (filter.agent !== undefined) query = query.where('agent', '=', filter.agent);
  const rows = await query
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute()
    .catch((error) => {
      throw storeError(error, 'Listing keys');
    });
  return rows.map(keyOf);
};

/** null: there is no such key. `revoked`: it worked until now; revoking twice keeps the first date. */
export const revokeKey = async (
  store: Store,
  id: string,
): Promise<{ readonly key: Key; readonly revoked: boolean } | null> => {
  if (!/^[0-9a-f-]{36}$/i.test(id)) return null;
  try {
    const row = await store.db
      .updateTable('keys')
      .set({ revoked_at: sql<Date>`now()` })
      .where('id', '=', id)
      .where('revoked_at', 'is', null)
      .returningAll()
      .executeTakeFirst();
    if (row) return { key: keyOf(row), revoked: true };
    const before = await store.db.selectFrom('keys').selectAll().where('id', '=', id).executeTakeFirst();
    return before ? { key: keyOf(before), revoked: false } : null;
  } catch (error) {
    throw storeError(error, `Revoking key ${id}`);
  }
};

/** What a gateway loads into memory at start and whenever `pawl_keys` is announced. */
export const activeKeys = async (store: Store): Promise<ActiveKey[]> => {
  const rows = await store.db
    .selectFrom('keys')
    .selectAll()
    .where('revoked_at', 'is', null)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Loading keys');
    });
  return rows.map((row) => ({ ...keyOf(row), hash: row.hash.toString('hex') }));
};

/** Notes when keys were last used; the gateway gathers uses and calls this now and then. Does not announce anything. */
export const touchKeys = async (store: Store, uses: ReadonlyMap<string, Date>): Promise<void> => {
  if (uses.size === 0) return;
  // Sorted: two gateways that touch the same keys lock the rows in the same order.
  const ids = [...uses.keys()].sort();
  await store.pool
    .query(
      `update pawl.keys k set last_used_at = greatest(k.last_used_at, u.at)
       from (select k.id, u.at from unnest($1::uuid[], $2::timestamptz[]) as u(id, at) join pawl.keys k on k.id = u.id
             order by k.id for update of k) u
       where k.id = u.id`,
      [ids, ids.map((id) => uses.get(id)?.toISOString())],
    )
    .catch((error) => {
      throw storeError(error, 'Noting the use of keys');
    });
};
