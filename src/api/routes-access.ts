/** /api/session: a browser comes in with a token and gets a cookie. /api/access: who besides the admin may come in, and as what. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { audit } from '../audit.ts';
import { NotFoundError } from '../errors.ts';
import {
  type Access,
  accessRoles,
  beginSession,
  endSession,
  findAccess,
  listAccess,
  type Maker,
  sessionDays,
} from '../store/access.ts';
import type { Store } from '../store/postgres.ts';
import { grantAccess, withdrawAccess } from './access.ts';
import { isAdmin } from './admin.ts';
import type { Attempts } from './attempts.ts';
import { body, createRouter, failure, json, problem, refusals, security } from './declare.ts';
import { addressOf, hostOf, tooMany } from './entry.ts';
import { text, time } from './schema.ts';
import { cookieName, cookieOf, type Who } from './who.ts';

export type AccessParts = { readonly store: Store; readonly adminHash: string };

const by = text(200).default('admin').openapi({ description: 'Who does it; stands in the audit log.' });
const role = z.enum(accessRoles);
const sessionSchema = z
  .object({
    role,
    name: z.string().nullable().openapi({ description: 'null: the holder of the admin token.' }),
    expiresAt: time.nullable().openapi({ description: 'null: not by itself.' }),
  })
  .openapi('Session', { description: 'Who asks, and what they may do.' });
const accessSchema = z
  .object({
    ...{ id: z.string(), name: z.string(), role, prefix: z.string() },
    ...{ createdAt: time, revokedAt: time.nullable(), lastUsedAt: time.nullable() },
  })
  .openapi('Access', { description: 'Somebody’s access token; the token itself is stored nowhere.' });

export const wireAccess = ({ createdAt, revokedAt, lastUsedAt, ...access }: Access) => ({
  ...access,
  createdAt: createdAt.toISOString(),
  revokedAt: revokedAt?.toISOString() ?? null,
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
});

const beginRoute = createRoute({
  method: 'post',
  path: '/api/session',
  summary: 'Begin a session with the admin token or an access token; the answer sets a cookie',
  security: [{}],
  request: { body: body(z.strictObject({ token: text(512) })) },
  responses: {
    200: json(sessionSchema, 'Who that is.'),
    429: problem('Too many wrong tokens came from this address.'),
    ...refusals,
  },
});
const readRoute = createRoute({
  method: 'get',
  path: '/api/session',
  summary: 'Who asks, and what they may do',
  security,
  responses: { 200: json(sessionSchema, 'Who that is.'), ...refusals },
});
const endRoute = createRoute({
  method: 'delete',
  path: '/api/session',
  summary: 'End the session of this cookie',
  security,
  responses: { 204: { description: 'It has ended.' }, ...refusals },
});
const listRoute = createRoute({
  method: 'get',
  path: '/api/access',
  summary: 'List who has access besides the admin token, newest first',
  security,
  responses: { 200: json(z.object({ access: z.array(accessSchema) }), 'All, revoked ones included.'), ...refusals },
});
const grantRoute = createRoute({
  method: 'post',
  path: '/api/access',
  summary: 'Give somebody access; the answer is the only time the token is shown',
  security,
  request: { body: body(z.strictObject({ name: text(100), role, by })) },
  responses: { 201: json(z.object({ access: accessSchema, token: z.string() }), 'The token.'), ...refusals },
});
const revokeRoute = createRoute({
  method: 'delete',
  path: '/api/access/{id}',
  summary: 'Take somebody’s access away, and end their sessions; doing it twice is fine',
  security,
  request: {
    params: z.object({ id: z.uuid().openapi({ param: { name: 'id', in: 'path' } }) }),
    query: z.strictObject({ by }),
  },
  responses: { 204: { description: 'It is gone.' }, 404: problem('There is no such access.'), ...refusals },
});

const wireWho = ({ role: is, name, expiresAt }: Pick<Who, 'role' | 'name' | 'expiresAt'>) => ({
  role: is,
  name,
  expiresAt: expiresAt?.toISOString() ?? null,
});

const cookie = (c: Context, value: string, maxAge: number): string => {
  const secure = c.req.header('x-forwarded-proto') === 'https' || c.req.url.startsWith('https:');
  return [
    `${cookieName(hostOf(c))}=${value}`,
    ...['HttpOnly', 'SameSite=Strict', 'Path=/', `Max-Age=${maxAge}`],
    ...(secure ? ['Secure'] : []),
  ].join('; ');
};

export const accessRoutes = ({ store, adminHash }: AccessParts, attempts: Attempts) =>
  createRouter()
    .openapi(beginRoute, async (c) => {
      const address = addressOf(c);
      const now = new Date();
      const wait = attempts.waitFor(address, now.getTime());
      if (wait > 0) return tooMany(c, wait) as never;
      const { token } = c.req.valid('json');
      const access = isAdmin(`Bearer ${token}`, adminHash) ? null : await findAccess(store, token, now);
      const made: Maker | null = access !== null ? { access: access.id } : null;
      if (made === null && !isAdmin(`Bearer ${token}`, adminHash)) {
        attempts.failed(address, now.getTime());
        return c.json(failure('unauthorized', 'There is no such token, or it was revoked.'), 401);
      }
      const session = await beginSession(store, made ?? { admin: adminHash }, now);
      const who = { role: access?.role ?? ('admin' as const), name: access?.name ?? null };
      await audit(store.db, {
        ...{ agent: '*', actor: who.name ?? 'admin', event: 'session-begun', subject: access?.id ?? 'admin' },
        ...{ details: { role: who.role }, at: now.getTime() },
      });
      c.header('set-cookie', cookie(c, session.token, sessionDays * 86_400));
      return c.json(wireWho({ ...who, expiresAt: session.expiresAt }), 200);
    })
    .openapi(readRoute, async (c) => c.json(wireWho(c.get('who')), 200))
    .openapi(endRoute, async (c) => {
      const token = cookieOf(c.req.header('cookie'), cookieName(hostOf(c)));
      if (token !== null) await endSession(store, token);
      c.header('set-cookie', cookie(c, '', 0));
      return c.body(null, 204);
    })
    .openapi(listRoute, async (c) => c.json({ access: (await listAccess(store)).map(wireAccess) }, 200))
    .openapi(grantRoute, async (c) => {
      const { by: actor, ...asked } = c.req.valid('json');
      const { access, token } = await grantAccess(store, asked, actor, Date.now());
      return c.json({ access: wireAccess(access), token }, 201);
    })
    .openapi(revokeRoute, async (c) => {
      const { id } = c.req.valid('param');
      if ((await withdrawAccess(store, id, c.req.valid('query').by, Date.now())) === null)
        throw new NotFoundError(`There is no access ${id}; GET /api/access lists all.`);
      return c.body(null, 204);
    });
