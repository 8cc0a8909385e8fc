import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { accessRoles } from '../store/access.ts';
import { readAudit } from '../store/audit.ts';
import type { Store } from '../store/postgres.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';
import { listedRoutes, needOf, needOfRoute } from './roles.ts';

let home: string;
let store: Store;
let api: Api;
let opened: () => Api;
let token: string;
const host = 'localhost:4700';
type Answer = { status: number; body: Record<string, never>; cookie: string };

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'pawl-access-'));
  const adminHash = await ensureAdminToken(home, async (made) => {
    token = made;
  });
  store = await withStore();
  const config = parseConfig({ agents: [{ name: 'desk' }] }, {}, home);
  const artifacts = openArtifacts(config);
  opened = () => createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => null });
  api = opened();
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const call = async (method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<Answer> => {
  const answer = await api.request(`http://${host}${path}`, {
    method,
    headers: { host, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const body_ = text.startsWith('{') ? JSON.parse(text) : {};
  return { status: answer.status, body: body_, cookie: answer.headers.get('set-cookie') ?? '' };
};
const asAdmin = () => ({ authorization: `Bearer ${token}` });
const grant = async (name: string, role: string) =>
  (await call('POST', '/api/access', asAdmin(), { name, role })).body as unknown as {
    access: { id: string };
    token: string;
  };
const login = async (given: string) => {
  const { status, body, cookie } = await call('POST', '/api/session', {}, { token: given });
  return { status, body, cookie: cookie.split(';')[0]!, whole: cookie };
};
const csrf = { 'x-pawl-csrf': '1' };

test('every route says which role it needs, and no role is given to a route that is not there', () => {
  const document = api.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'x', version: '1' } });
  const routes = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.keys(item as object).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(routes.filter((route) => needOfRoute(route) === undefined)).toEqual([]);
  expect(listedRoutes().filter((route) => !routes.includes(route))).toEqual(['GET /api/openapi.json']);
});

test('a route whose request names who does it says where, so that nobody can give another name', () => {
  type Schema = { $ref?: string; properties?: Record<string, unknown> };
  type Operation = {
    parameters?: { in: string; name: string }[];
    requestBody?: { content?: { 'application/json'?: { schema?: Schema } } };
  };
  const document = api.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'x', version: '1' } });
  const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>;
  for (const [path, item] of Object.entries(document.paths ?? {}))
    for (const [method, { parameters = [], requestBody }] of Object.entries(item as Record<string, Operation>)) {
      if (method === 'get') continue;
      const given = requestBody?.content?.['application/json']?.schema;
      const schema = given?.$ref === undefined ? given : schemas[given.$ref.split('/').at(-1)!];
      const fields = Object.keys(schema?.properties ?? {});
      const need = needOfRoute(`${method.toUpperCase()} ${path}`);
      expect({ route: `${method} ${path}`, body: need?.body, query: need?.query }).toEqual({
        route: `${method} ${path}`,
        body: fields.find((field) => field === 'by' || field === 'reviewer'),
        query: parameters.find((one) => one.in === 'query' && one.name === 'by')?.name,
      });
    }
});

test('words in a path come before parameters, and an unknown path is the admin’s', () => {
  expect(needOf('POST', '/api/erasures/verify')?.role).toBe('admin');
  expect(needOf('GET', '/api/runs/x')?.role).toBe('viewer');
  expect(needOf('HEAD', '/api/runs/x')?.role).toBe('viewer');
  expect(needOf('GET', '/api/nothing/there')?.role).toBe('admin');
});

test('a token becomes a session in a cookie that no script reads, and the session ends', async () => {
  const { status, body, cookie, whole } = await login(token);
  expect({ status, body }).toMatchObject({ status: 200, body: { role: 'admin', name: null } });
  expect(whole).toMatch(
    /^pawl_session_4700=pawl_session_[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=2592000$/,
  );
  expect((await call('GET', '/api/session', { cookie })).body).toMatchObject({ role: 'admin' });
  expect((await call('GET', '/api/keys', { cookie })).status).toBe(200);
  const kept = await store.pool.query('select encode(hash, $1) as hash from pawl.sessions', ['hex']);
  expect(JSON.stringify(kept.rows)).not.toContain(cookie.slice(-20));
  expect((await call('DELETE', '/api/session', { cookie, ...csrf })).status).toBe(204);
  expect((await call('GET', '/api/session', { cookie })).status).toBe(401);
});

test('the cookie goes over https alone where the page came that way', async () => {
  const { cookie } = await call('POST', '/api/session', { 'x-forwarded-proto': 'https' }, { token });
  expect(cookie).toMatch(/; Secure$/);
});

test('with a cookie a change needs the header that other sites cannot send; with a bearer token it does not', async () => {
  const { cookie } = await login(token);
  const make = { name: 'k', agent: 'desk' };
  expect((await call('POST', '/api/keys', { cookie }, make)).body).toMatchObject({ error: { code: 'csrf' } });
  expect((await call('POST', '/api/keys', { cookie, ...csrf }, make)).status).toBe(201);
  expect((await call('POST', '/api/keys', asAdmin(), make)).status).toBe(201);
  const elsewhere = { cookie, ...csrf, origin: 'https://evil.example' };
  expect((await call('POST', '/api/keys', elsewhere, make)).body).toMatchObject({ error: { code: 'other_origin' } });
});

test('a cookie of another port is not taken', async () => {
  const { cookie } = await login(token);
  const answer = await api.request('http://localhost:4800/api/session', {
    headers: { host: 'localhost:4800', cookie },
  });
  expect(answer.status).toBe(401);
});

test('each role may do what those before it may, and nothing more', async () => {
  const tries = [
    ['GET', '/api/trajectories'],
    ['POST', '/api/review'],
    ['POST', '/api/loop/pause'],
    ['GET', '/api/keys'],
  ] as const;
  for (const [i, role] of accessRoles.entries()) {
    const { token: own } = await grant(`a ${role}`, role);
    const refused = [];
    for (const [method, path] of tries) {
      const answer = await call(method, path, { authorization: `Bearer ${own}` }, method === 'POST' ? {} : undefined);
      refused.push(answer.status === 403);
    }
    expect(refused).toEqual([false, i < 1, i < 2, i < 3]);
  }
});

test('what somebody does stands in the audit log under their own name, whatever they send', async () => {
  const { token: own } = await grant('ann', 'operator');
  const { cookie } = await login(own);
  const paused = await call('POST', '/api/loop/pause', { cookie, ...csrf }, { agent: 'desk', by: 'bob' });
  expect(paused.body).toMatchObject({ paused: { by: 'ann' } });
  const asked = await call('POST', '/api/loop/resume', { ...asAdmin() }, { agent: 'desk', by: 'bob' });
  expect(asked.status).toBe(200); // the admin token belongs to nobody in particular
  const events = (await readAudit(store, { actor: 'ann' })).map(({ event }) => event);
  expect(events).toContain('session-begun');
});

test('access that is taken away ends with its sessions, and both stand in the audit log', async () => {
  const { token: own, access } = await grant('eve', 'viewer');
  const { cookie } = await login(own);
  expect((await call('GET', '/api/runs', { cookie })).status).toBe(200);
  expect((await call('DELETE', `/api/access/${access.id}`, asAdmin())).status).toBe(204);
  expect((await call('DELETE', `/api/access/${access.id}`, asAdmin())).status).toBe(204);
  expect((await call('GET', '/api/runs', { cookie })).status).toBe(401);
  expect((await call('GET', '/api/runs', { authorization: `Bearer ${own}` })).status).toBe(401);
  const rows = await readAudit(store, { subject: access.id });
  expect(rows.map(({ event }) => event)).toEqual(['access-revoked', 'session-begun', 'access-created']);
});

test('the commands make a link for somebody with a role, list it without its token, and take it away', async () => {
  const pawl = async (...args: string[]) => {
    const env = { ...process.env, DATABASE_URL: store.url, PAWL_HOME: home };
    return (await promisify(execFile)(process.execPath, ['bin/pawl.js', 'access', ...args], { env })).stdout;
  };
  expect(await pawl('create', 'cy', '--role', 'reviewer')).toMatch(
    /^Access for cy as reviewer:[\s\S]*#token=pawl_access_/,
  );
  const made = JSON.parse(await pawl('create', 'dee', '--role', 'reviewer', '--json'));
  const { token: own, link, access } = made as { token: string; link: string; access: { id: string } };
  expect(link).toBe(`http://127.0.0.1:4700/#token=${own}`);
  const as = { authorization: `Bearer ${own}` };
  expect((await call('GET', '/api/runs', as)).status).toBe(200);
  expect((await call('POST', '/api/loop/pause', as, { agent: 'desk' })).status).toBe(403);
  expect((await call('GET', '/api/access', as)).status).toBe(403);
  const listed = await pawl('list');
  expect(listed).toMatch(new RegExp(`${access.id} +dee +reviewer +pawl_access_\\S+… +\\S.* active`));
  expect(listed).not.toContain(own);
  expect(await pawl('revoke', access.id)).toBe('dee (reviewer) has no access any more.\n');
  expect((await call('GET', '/api/runs', as)).status).toBe(401);
  expect(await pawl('list')).toMatch(/dee .* revoked/);
  await expect(pawl('revoke', '0190a6c2-7a1e-7c3d-9f41-2b7d5e6f8a90')).rejects.toThrow(/There is no access 0190a6c2/);
  await expect(pawl('create', 'eve', '--role', 'king')).rejects.toThrow(/viewer/);
});

test('another admin token ends the sessions of the one before', async () => {
  const { cookie } = await login(token);
  await store.pool.query("update pawl.sessions set admin = 'older' where admin is not null");
  expect((await call('GET', '/api/session', { cookie })).status).toBe(401);
});

test('a session that nobody used for a week has ended', async () => {
  const { cookie } = await login(token);
  await store.pool.query("update pawl.sessions set last_used_at = now() - interval '8 days'");
  expect((await call('GET', '/api/session', { cookie })).status).toBe(401);
});

test('ten wrong tokens from one address are enough for a minute', async () => {
  api = opened(); // remembers nobody
  const statuses = [];
  for (let i = 0; i < 11; i++) statuses.push((await login(`pawl_access_wrong${i}`)).status);
  expect(statuses).toEqual([...Array(10).fill(401), 429]);
  expect((await login(token)).status).toBe(429); // guessing is not told from trying
  expect((await call('GET', '/api/runs', asAdmin())).status).toBe(200);
});
