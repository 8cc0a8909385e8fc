/**
 * Access tokens of people, and the sessions that browsers make with them or with the admin token. Of both only the SHA-256 is kept;
 * with 256 random bits behind it a slow hash would add nothing.
 */
import { randomBytes } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import { hashToken } from './keys.ts';
import { type Store, storeError } from './postgres.ts';

/** Each may do what those before it may. */
export const accessRoles = ['viewer', 'reviewer', 'operator', 'admin'] as const;
export type AccessRole = (typeof accessRoles)[number];

export type Access = {
  readonly id: string;
  readonly name: string;
  readonly role: AccessRole;
  /** The first characters of the token, for people. */
  readonly prefix: string;
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
};

type AccessTables = {
  access: {
    id: string;
    name: string;
    role: AccessRole;
    hash: Buffer;
    prefix: string;
    created_at: Date;
    revoked_at: Date | null;
    last_used_at: Date | null;
  };
  sessions: { hash: Buffer; access: string | null; admin: string | null; created_at: Date; last_used_at: Date };
};

export const accessPrefix = 'pawl_access_';
export const sessionPrefix = 'pawl_session_';
/** A session ends so long after it was made, and so long after its last request. */
export const sessionDays = 30;
export const idleDays = 7;
/** Uses are noted no more often than this. */
const noteMs = 60_000;
const dayMs = 86_400_000;
/** Sessions that one token or the admin may have at once; the oldest end. */
const mostSessions = 100;

const random = (): string => randomBytes(32).toString('base64url');

const accessOf = (row: Selectable<AccessTables['access']>): Access => ({
  id: row.id,
  name: row.name,
  role: row.role,
  prefix: row.prefix,
  createdAt: row.created_at,
  revokedAt: row.revoked_at,
  lastUsedAt: row.last_used_at,
});

/** Makes an access token. The token is in this answer and nowhere else. */
export const createAccess = async (
  db: Store['db'],
  { name, role }: Pick<Access, 'name' | 'role'>,
): Promise<{ readonly access: Access; readonly token: string }> => {
  const token = `${accessPrefix}${random()}`;
  const row = await db
    .withTables<AccessTables>()
    .insertInto('access')
    .values({
      ...{ id: sql<string>`gen_random_uuid()`, name, role, hash: hashToken(token) },
      ...{ prefix: token.slice(0, accessPrefix.length + 4), created_at: sql<Date>`now()` },
    })
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch((error) => {
      throw storeError(error, `Making access for '${name}'`);
    });
  return { access: accessOf(row), token };
};

/** All, revoked ones included, newest first. */
export const listAccess = async (store: Store): Promise<Access[]> => {
  const rows = await store.db
    .withTables<AccessTables>()
    .selectFrom('access')
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(1000)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Listing who has access');
    });
  return rows.map(accessOf);
};

/** The one that is revoked, its sessions with it, and whether it was not before; null: there is no such one. */
export const revokeAccess = async (
  db: Store['db'],
  id: string,
): Promise<{ readonly access: Access; readonly changed: boolean } | null> => {
  const tables = db.withTables<AccessTables>();
  try {
    const before = await tables.selectFrom('access').selectAll().where('id', '=', id).forUpdate().executeTakeFirst();
    if (before === undefined) return null;
    if (before.revoked_at !== null) return { access: accessOf(before), changed: false };
    const row = await tables
      .updateTable('access')
      .set({ revoked_at: sql<Date>`now()` })
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirstOrThrow();
    await tables.deleteFrom('sessions').where('access', '=', id).execute();
    return { access: accessOf(row), changed: true };
  } catch (error) {
    throw storeError(error, `Revoking access ${id}`);
  }
};

/** Whose token this is, if it works. */
export const findAccess = async (store: Store, token: string, now: Date): Promise<Access | null> => {
  const tables = store.db.withTables<AccessTables>();
  try {
    const row = await tables
      .selectFrom('access')
      .selectAll()
      .where('hash', '=', hashToken(token))
      .where('revoked_at', 'is', null)
      .executeTakeFirst();
    if (row === undefined) return null;
    if (now.getTime() - (row.last_used_at?.getTime() ?? 0) > noteMs)
      await tables.updateTable('access').set({ last_used_at: now }).where('id', '=', row.id).execute();
    return accessOf(row);
  } catch (error) {
    throw storeError(error, 'Looking up an access token');
  }
};

/** What a session was made with: somebody's access, or the admin token with this hash. */
export type Maker = { readonly access: string } | { readonly admin: string };

/** Begins a session; what the cookie is to hold is in this answer and nowhere else. Forgets those that have ended. */
export const beginSession = async (
  store: Store,
  made: Maker,
  now: Date,
): Promise<{ readonly token: string; readonly expiresAt: Date }> => {
  const token = `${sessionPrefix}${random()}`;
  const access = 'access' in made ? made.access : null;
  const admin = 'admin' in made ? made.admin : null;
  const tables = store.db.withTables<AccessTables>();
  try {
    await sql`delete from pawl.sessions where created_at < ${new Date(now.getTime() - sessionDays * dayMs)}
      or last_used_at < ${new Date(now.getTime() - idleDays * dayMs)}`.execute(store.db);
    await sql`delete from pawl.sessions where hash in (select hash from pawl.sessions
      where access is not distinct from ${access}::uuid and admin is not distinct from ${admin}::text
      order by last_used_at desc offset ${mostSessions - 1})`.execute(store.db);
    await tables
      .insertInto('sessions')
      .values({ hash: hashToken(token), access, admin, created_at: now, last_used_at: now })
      .execute();
  } catch (error) {
    throw storeError(error, 'Beginning a session');
  }
  return { token, expiresAt: new Date(now.getTime() + sessionDays * dayMs) };
};

export type Session = {
  readonly expiresAt: Date;
  /** null: made with the admin token. */
  readonly access: Access | null;
};

/** The session of this cookie, if it has not ended. `admin`: the hash of today's admin token. */
export const findSession = async (store: Store, token: string, admin: string, now: Date): Promise<Session | null> => {
  const tables = store.db.withTables<AccessTables>();
  const hash = hashToken(token);
  try {
    const session = await tables
      .selectFrom('sessions')
      .selectAll()
      .where('hash', '=', hash)
      .where('created_at', '>', new Date(now.getTime() - sessionDays * dayMs))
      .where('last_used_at', '>', new Date(now.getTime() - idleDays * dayMs))
      .executeTakeFirst();
    if (session === undefined || (session.admin !== null && session.admin !== admin)) return null;
    const row =
      session.access === null
        ? null
        : await tables
            .selectFrom('access')
            .selectAll()
            .where('id', '=', session.access)
            .where('revoked_at', 'is', null)
            .executeTakeFirst();
    if (row === undefined) return null;
    if (now.getTime() - session.last_used_at.getTime() > noteMs)
      await tables.updateTable('sessions').set({ last_used_at: now }).where('hash', '=', hash).execute();
    const expiresAt = new Date(session.created_at.getTime() + sessionDays * dayMs);
    return { expiresAt, access: row === null ? null : accessOf(row) };
  } catch (error) {
    throw storeError(error, 'Looking up a session');
  }
};

export const endSession = async (store: Store, token: string): Promise<void> => {
  await store.db
    .withTables<AccessTables>()
    .deleteFrom('sessions')
    .where('hash', '=', hashToken(token))
    .execute()
    .catch((error) => {
      throw storeError(error, 'Ending a session');
    });
};
