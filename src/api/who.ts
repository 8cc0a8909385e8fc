/**
 * Who asks: the holder of the admin token, somebody with an access token, or a browser with the cookie of a session. A bearer
 * token is sent on purpose; a cookie is sent by the browser, whoever wrote the page, so with a cookie everything that changes something needs a
 * header that pages of other sites cannot send.
 */
import { type AccessRole, accessPrefix, findAccess, findSession, sessionPrefix } from '../store/access.ts';
import type { Store } from '../store/postgres.ts';
import { isAdmin } from './admin.ts';

export type Who = {
  readonly role: AccessRole;
  /** As the audit log names them; null: the holder of the admin token, who may say another name. */
  readonly name: string | null;
  /** null: a token that does not end by itself. */
  readonly expiresAt: Date | null;
  /** What the cookie holds, where one was the way in. */
  readonly session: string | null;
};

export type Credentials = {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
};

export const csrfHeader = 'x-pawl-csrf';

/** Cookies know no ports: two Pawls on one machine must not take each other's. */
export const cookieName = (host: string | undefined): string =>
  `${sessionPrefix}${/:(\d{1,5})$/.exec(host ?? '')?.[1] ?? '0'}`;

const most = 8192;

export function cookieOf(header: string | undefined, name: string): string | null {
  if (header === undefined || header.length > most) return null;
  for (const pair of header.split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
}

export const bearerOf = (authorization: string | undefined): string | null =>
  /^Bearer +(\S{1,512})$/i.exec(authorization ?? '')?.[1] ?? null;

const ofToken = async (store: Store, token: string, adminHash: string, now: Date): Promise<Who | null> => {
  if (token.startsWith(accessPrefix)) {
    const access = await findAccess(store, token, now);
    return access && { role: access.role, name: access.name, expiresAt: null, session: null };
  }
  if (!token.startsWith(sessionPrefix) || token.length > 200) return null;
  const session = await findSession(store, token, adminHash, now);
  if (session === null) return null;
  const { access, expiresAt } = session;
  return { role: access?.role ?? 'admin', name: access?.name ?? null, expiresAt, session: token };
};

/** null: nobody who is known. A bearer token that is sent counts alone, right or wrong. */
export async function whoIs(
  { authorization, cookie }: Credentials,
  { store, adminHash }: { readonly store: Store; readonly adminHash: string },
  host: string | undefined,
  now: Date,
): Promise<Who | null> {
  if (authorization !== undefined) {
    if (isAdmin(authorization, adminHash)) return { role: 'admin', name: null, expiresAt: null, session: null };
    const token = bearerOf(authorization);
    const found = token === null ? null : await ofToken(store, token, adminHash, now);
    return found && { ...found, session: null };
  }
  const session = cookieOf(cookie, cookieName(host));
  return session === null ? null : ofToken(store, session, adminHash, now);
}
