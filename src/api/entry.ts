/**
 * The way into /api, in order: where the request comes from (guard.ts), who asks (who.ts), whether they may (roles.ts). Whoever
 * has a name of their own does things under that name, whatever the request says.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import { accessPrefix } from '../store/access.ts';
import type { Store } from '../store/postgres.ts';
import type { Attempts } from './attempts.ts';
import { type ApiEnv, failure } from './declare.ts';
import { refuseHost, refuseOrigin } from './guard.ts';
import { may, needOf } from './roles.ts';
import { bearerOf, csrfHeader, type Who, whoIs } from './who.ts';

export type EntryParts = {
  readonly store: Store;
  readonly adminHash: string;
  readonly config: { readonly alerts?: { readonly token?: string | undefined } | undefined };
  readonly hosts?: readonly string[];
};

export const hostOf = (c: Context): string => c.req.header('host') ?? new URL(c.req.url).host;

type NodeEnv = { readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } } } | undefined;

/** The address of whoever asks, as the socket has it: what a proxy says of others is not believed. */
export const addressOf = (c: Context): string => (c.env as NodeEnv)?.incoming?.socket?.remoteAddress ?? 'unknown';

export function tooMany(c: Context, wait: number): Response {
  c.header('retry-after', String(wait));
  return c.json(
    failure('too_many_attempts', `Too many wrong tokens came from this address; try again in ${wait} s.`),
    429,
  );
}

/** Whether a request carries this token; compared in the same time whatever is wrong with it. */
function isBearer(authorization: string | undefined, token: string | undefined): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return token !== undefined && timingSafeEqual(hash(authorization ?? ''), hash(`Bearer ${token}`));
}

const unknown =
  'Open the dashboard’s link, or send `Authorization: Bearer pawl_admin_…` with the token that the first start printed. `pawl access create NAME --role viewer` makes another; to have a new admin token made, remove admin.json from Pawl’s home folder and start it again.';

export function entry(parts: EntryParts, attempts: Attempts): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const host = hostOf(c);
    const site = c.req.header('sec-fetch-site');
    const refusal = refuseHost(host, parts.hosts ?? []) ?? refuseOrigin(c.req.header('origin'), site, host);
    if (refusal !== null) return c.json(failure(refusal.code, refusal.message), 403);
    c.header('cache-control', 'no-store');
    c.header('x-content-type-options', 'nosniff');
    const need = needOf(c.req.method, c.req.path);
    if (need === null) return next();
    const authorization = c.req.header('authorization');
    if (c.req.path === '/api/alerts' && isBearer(authorization, parts.config.alerts?.token)) return next();

    const isGuess = bearerOf(authorization)?.startsWith(accessPrefix) ?? false;
    const wait = isGuess ? attempts.waitFor(addressOf(c), Date.now()) : 0;
    if (wait > 0) return tooMany(c, wait);
    const who = await whoIs({ authorization, cookie: c.req.header('cookie') }, parts, host, new Date());
    if (who === null) {
      if (isGuess) attempts.failed(addressOf(c), Date.now());
      if (c.req.path === '/api/status') return next(); // says the little that anybody may know
      c.header('www-authenticate', 'Bearer');
      return c.json(failure('unauthorized', unknown), 401);
    }
    if (who.session !== null && !['GET', 'HEAD'].includes(c.req.method) && c.req.header(csrfHeader) === undefined)
      return c.json(failure('csrf', `With a session, send the header \`${csrfHeader}: 1\`.`), 403);
    if (!may(who.role, need.role))
      return c.json(failure('forbidden', `This needs the role ${need.role}; yours is ${who.role}.`), 403);
    c.set('who', who);
    return next();
  };
}

const rebuilt = (c: Context, url: string, body: string | null): void => {
  const headers = new Headers(c.req.raw.headers);
  headers.delete('content-length');
  c.req.raw = new Request(url, { method: c.req.method, headers, body });
  c.req.bodyCache = {};
};

/** Puts the name of whoever has one into the request, where it says who does it. Behind the limit on bodies. */
export function nameActor(): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const name = c.get('who')?.name ?? null;
    const need = name === null ? null : needOf(c.req.method, c.req.path);
    if (name === null || need === null) return next();
    if (need.query !== undefined) {
      const url = new URL(c.req.url);
      url.searchParams.set(need.query, name);
      rebuilt(c, url.href, null);
    } else if (need.body !== undefined) {
      const text = await c.req.text();
      rebuilt(c, c.req.url, withField(text, need.body, name));
    }
    return next();
  };
}

/** What is no JSON object stays as it is: the route says what is wrong with it. */
function withField(text: string, field: string, value: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return text;
    return JSON.stringify({ ...parsed, [field]: value });
  } catch {
    return text;
  }
}

/** For another process of this database, which knows no cookie of this one. */
export function withBearer(request: Request, who: Who | undefined): Request {
  if (who?.session == null) return request;
  const headers = new Headers(request.headers);
  headers.set('authorization', `Bearer ${who.session}`);
  return new Request(request, { headers });
}
