import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { hashedId } from '../collect/person.ts';
import { piiSettings } from '../collect/redact/settings.ts';
import { parseConfig } from '../config.ts';
import { attachment, entry, noon, signal, turn } from '../store/fixtures.ts';
import { activeKeys } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import type { Tables } from '../store/tables.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, type ApiParts, createApi } from './api.ts';
import * as shape from './schema.ts';

const well: shape.Recording = {
  queueDepth: 0,
  queueBytes: 0,
  journalBytes: 0,
  sinkLagMs: 0,
  sinkUp: true,
  diskOk: true,
  journalled: 7,
  recorded: 7,
  corrupt: 0,
  refused: 0,
  restarts: 0,
  dropped: { 'queue-full': 0 },
  redactions: {},
  tokensDropped: 0,
  contentDropped: 0,
  found: [],
  unfit: 0,
};

const secret = 's'.repeat(32);
let home: string;
let store: Store;
let api: Api;
let token: string;
let recording = well;
let parts: ApiParts;

const call = (path: string, init: RequestInit = {}, of: Api = api) =>
  of.request(path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
const send = (method: string, path: string, body: unknown) =>
  call(path, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
const problem = async (answer: Response) => shape.problemSchema.parse(await answer.json()).error;
const page = async (query: string) =>
  shape.trajectoryPageSchema.strict().parse(await (await call(`/api/trajectories${query}`)).json());
const idsOf = async (query: string) => (await page(query)).trajectories.map(({ id }) => id);

const minute = 60_000;
const local = { baseUrl: 'http://127.0.0.1:1/v1', price: { prompt: 1000, completion: 5000 } };

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'pawl-api-'));
  const adminHash = await ensureAdminToken(home, async (made) => {
    token = made;
  });
  store = await withStore();
  parts = {
    store,
    artifacts: openArtifacts({ home }),
    config: {
      agents: [],
      upstreams: parseConfig({ upstreams: { local } }, {}, '/').upstreams,
      engine: { kind: 'embedded' },
      retention: { days: null, datasets: null, afterTraining: null },
      pii: piiSettings.parse({}),
    },
    secret,
    adminHash,
    recorder: () => recording,
  };
  api = createApi(parts);
  const ann = hashedId('ann@example.com', secret);
  const first = turn({
    trajectory: 'a',
    user: hashedId('u1', secret),
    startedAt: noon,
    request: { model: 'small', messages: [{ role: 'user', content: 'SECRET BODY' }] },
  });
  await writeEntries(store, [
    { kind: 'turn', turn: first },
    entry.turn({
      trajectory: 'a',
      user: hashedId('u1', secret),
      startedAt: noon + 1000,
      status: 'error',
      httpStatus: 502,
      error: 'upstream hung up',
      choices: [],
    }),
    entry.turn({ trajectory: 'b', user: ann, startedAt: noon + minute, release: 'r2' }),
    entry.turn({ trajectory: 'c', agent: 'other', startedAt: noon + 2 * minute }),
    entry.turn({ trajectory: 'd', origin: 'simulation', startedAt: noon + 3 * minute }),
    ...[1, 2, 3].map((n) => entry.turn({ trajectory: `many-${n}`, agent: 'many', startedAt: noon + n * minute })),
    { kind: 'attachment', attachment: attachment({ key: 'order:1', trajectory: 'a' }) },
    {
      kind: 'signal',
      signal: signal({ identity: '1', target: { kind: 'turn', id: first.id }, value: 0, comment: 'late' }),
    },
    {
      kind: 'signal',
      signal: signal({
        identity: '2',
        kind: 'outcome',
        name: 'resolved',
        target: { kind: 'key', id: 'order:1' },
        at: noon + 1,
      }),
    },
  ]);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

describe('the door', () => {
  test('nothing but the document and the bare status is shown without the admin token', async () => {
    for (const path of [
      '/api/trajectories',
      '/api/trajectories/a',
      '/api/keys',
      '/api/consent?agent=desk',
      '/api/nothing',
    ]) {
      const answer = await api.request(path);
      expect(answer.status, path).toBe(401);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      expect((await problem(answer)).message).toContain('pawl_admin_');
    }
    expect((await api.request('/api/keys', { headers: { authorization: 'Bearer pawl_admin_wrong' } })).status).toBe(
      401,
    );
    expect((await api.request('/api/openapi.json')).status).toBe(200);
  });

  test('a page of another site and a rebound name are refused even with the token', async () => {
    expect((await call('/api/keys', { headers: { origin: 'https://evil.example' } })).status).toBe(403);
    expect(
      (await call('/api/keys', { headers: { host: 'evil.example:4700', origin: 'http://evil.example:4700' } })).status,
    ).toBe(403);
    expect(
      (await call('/api/keys', { headers: { host: 'localhost:4700', origin: 'http://localhost:4700' } })).status,
    ).toBe(200);
  });

  test('an unknown path says where the list of paths is', async () => {
    const answer = await call('/api/nothing');
    expect(answer.status).toBe(404);
    expect((await problem(answer)).message).toContain('/api/openapi.json');
  });

  test('answers are not kept by caches', async () => {
    expect((await call('/api/keys')).headers.get('cache-control')).toBe('no-store');
  });
});

describe('GET /api/trajectories', () => {
  test('lists newest first, with sums and without bodies', async () => {
    const answer = await call('/api/trajectories?agent=desk');
    const text = await answer.text();
    const { trajectories, next } = shape.trajectoryPageSchema.strict().parse(JSON.parse(text));
    expect(trajectories.map(({ id }) => id)).toEqual(['d', 'b', 'a']);
    expect(next).toBeNull();
    expect(text).not.toContain('SECRET BODY');
    expect(trajectories[2]).toMatchObject({
      turns: 2,
      errors: 1,
      promptTokens: 24,
      latencyMs: 500,
      consent: 'unknown',
    });
    expect(trajectories[2]?.startedAt).toBe('2026-05-20T12:00:00.000Z');
  });

  test('filters by agent, origin, release, errors and time', async () => {
    expect(await idsOf('?agent=other')).toEqual(['c']);
    expect(await idsOf('?origin=simulation')).toEqual(['d']);
    expect(await idsOf('?release=r2')).toEqual(['b']);
    expect(await idsOf('?errors=true')).toEqual(['a']);
    expect(await idsOf('?agent=desk&since=2026-05-20T12:01:00Z&until=2026-05-20T12:03:00Z')).toEqual(['b']);
    expect(await idsOf('?until=2026-05-20')).toEqual([]);
  });

  test('a user is found by the id the agent sent, also when it was stored as a hash', async () => {
    expect(await idsOf('?user=u1')).toEqual(['a']);
    const [found] = (await page(`?user=${encodeURIComponent('ann@example.com')}`)).trajectories;
    expect(found?.id).toBe('b');
    expect(found?.user).not.toContain('ann');
  });

  test('pages of one give every trajectory once', async () => {
    const seen: string[] = [];
    let next: string | null = '';
    while (next !== null) {
      const got: shape.TrajectoryPage = await page(
        `?agent=many&limit=1${next && `&cursor=${encodeURIComponent(next)}`}`,
      );
      expect(got.trajectories).toHaveLength(1);
      seen.push(got.trajectories[0]!.id);
      next = got.next;
    }
    expect(seen).toEqual(['many-3', 'many-2', 'many-1']);
  });

  test.each([
    ['limit=201', 'limit'],
    ['limit=0', 'limit'],
    ['limit=many', 'limit'],
    ['since=yesterday', 'since'],
    ['origin=mars', 'origin'],
    ['errors=perhaps', 'errors'],
    ['agent=', 'agent'],
    ['agents=desk', 'agents'],
    ['limit=1&limit=2', 'limit'],
    ['cursor=nonsense', 'cursor'],
    ['agent=a%00b', 'agent'],
    ['until=9999-12-31', 'until'],
  ])('%s is refused and the message names %s', async (query, field) => {
    const answer = await call(`/api/trajectories?${query}`);
    expect(answer.status).toBe(400);
    expect((await problem(answer)).message).toContain(field);
  });
});

describe('GET /api/trajectories/{id}', () => {
  test('gives the turns in order with request, answer and error, and every signal about it', async () => {
    const found = shape.oneTrajectorySchema.strict().parse(await (await call('/api/trajectories/a')).json());
    expect(found.turns.map(({ status }) => status)).toEqual(['ok', 'error']);
    expect(JSON.stringify(found.turns[0]?.request)).toContain('SECRET BODY');
    expect(found.turns[0]?.choices[0]?.message).toEqual({ role: 'assistant', content: 'On its way.' });
    expect(found.turns[1]).toMatchObject({ error: 'upstream hung up', httpStatus: 502 });
    expect(found.signals.map(({ name, value }) => [name, value])).toEqual([
      ['vote', 0],
      ['resolved', 1],
    ]);
    expect(found.keys).toEqual(['order:1']);
    // Two turns of 12 and 4 tokens each.
    expect(found.money).toBeCloseTo(0.064, 12);
    expect(found.next).toBeNull();
  });

  test('pages of one turn give every turn once, in order', async () => {
    const seen: string[] = [];
    let next: string | null = '';
    while (next !== null) {
      const answer = await call(`/api/trajectories/a?limit=1${next && `&cursor=${next}`}`);
      const found: shape.TrajectoryDetail = shape.oneTrajectorySchema.parse(await answer.json());
      expect(found.turns).toHaveLength(1);
      seen.push(found.turns[0]!.status);
      expect(found.money).toBeCloseTo(0.064, 12);
      next = found.next;
    }
    expect(seen).toEqual(['ok', 'error']);
    expect((await call('/api/trajectories/a?cursor=nonsense')).status).toBe(400);
  });

  test('a cursor made up to reach beyond the calendar is refused like any other', async () => {
    const far = Buffer.from('999999999999999 0190a6c2-7a1e-7c3d-9f41-2b7d5e6f8a90').toString('base64url');
    expect((await call(`/api/trajectories/a?cursor=${far}`)).status).toBe(400);
    for (const time of [8.64e15, -8.64e15]) {
      const list = Buffer.from(JSON.stringify([time, 'desk', 'a'])).toString('base64url');
      expect((await problem(await call(`/api/trajectories?cursor=${list}`))).code).toBe('invalid_cursor');
    }
  });

  test('an unknown id, or another agent’s, is 404', async () => {
    expect((await call('/api/trajectories/nope')).status).toBe(404);
    expect((await call('/api/trajectories/a?agent=other')).status).toBe(404);
  });
});

describe('keys', () => {
  test('a made key works, its token is shown once, and revoking ends it', async () => {
    const answer = await send('POST', '/api/keys', { name: 'web shop', agent: 'desk', rateLimit: 60 });
    expect(answer.status).toBe(201);
    const made = shape.madeKeySchema.strict().parse(await answer.json());
    expect(made.key).toMatchObject({
      name: 'web shop',
      agent: 'desk',
      origin: 'production',
      rateLimit: 60,
      revokedAt: null,
    });
    expect((await activeKeys(store)).map(({ id }) => id)).toContain(made.key.id);

    const list = await (await call('/api/keys')).text();
    expect(shape.keysSchema.parse(JSON.parse(list)).keys.map(({ id }) => id)).toContain(made.key.id);
    expect(list).not.toContain(made.token);

    expect((await call(`/api/keys/${made.key.id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await call(`/api/keys/${made.key.id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await activeKeys(store)).map(({ id }) => id)).not.toContain(made.key.id);
  });

  test('a key may call and send feedback unless more or less is asked for', async () => {
    const scopesOf = async (body: object) =>
      shape.madeKeySchema.parse(await (await send('POST', '/api/keys', { name: 'x', agent: 'scoped', ...body })).json())
        .key.scopes;
    expect(await scopesOf({})).toEqual(['call', 'feedback']);
    expect(await scopesOf({ scopes: ['outcomes', 'call', 'call'] })).toEqual(['call', 'outcomes']);
  });

  test('a key that does not exist cannot be revoked', async () => {
    expect((await call('/api/keys/00000000-0000-4000-8000-000000000000', { method: 'DELETE' })).status).toBe(404);
    expect((await call('/api/keys/7', { method: 'DELETE' })).status).toBe(400);
  });

  test.each([
    [{ agent: 'desk' }, 'name'],
    [{ name: '  ', agent: 'desk' }, 'name'],
    [{ name: 'a\u0000', agent: 'desk' }, 'name'],
    [{ name: 'x', agent: 'Desk!' }, 'agent'],
    [{ name: 'x', agent: 'desk', rateLimit: 0 }, 'rateLimit'],
    [{ name: 'x', agent: 'desk', origin: 'mars' }, 'origin'],
    [{ name: 'x', agent: 'desk', scopes: ['admin'] }, 'scopes'],
    [{ name: 'x', agent: 'desk', scopes: [] }, 'scopes'],
    [{ name: 'x', agent: 'desk', colour: 'red' }, 'colour'],
    [[], 'body'],
  ])('%j is refused and the message names %s', async (body, field) => {
    const answer = await send('POST', '/api/keys', body);
    expect(answer.status).toBe(400);
    expect((await problem(answer)).message).toContain(field);
  });

  test('a body that is not JSON, has no type, or is huge is refused', async () => {
    const headers = { 'content-type': 'application/json' };
    const broken = await call('/api/keys', { method: 'POST', body: '{"name":', headers });
    expect([broken.status, (await problem(broken)).code]).toEqual([400, 'invalid_request']);
    const untyped = await call('/api/keys', { method: 'POST', body: '{"name":"x","agent":"desk"}' });
    expect(untyped.status).toBe(415);
    expect((await problem(untyped)).message).toMatch(/content-type/i);
    const huge = await call('/api/keys', {
      method: 'POST',
      body: JSON.stringify({ name: 'x'.repeat(70_000) }),
      headers,
    });
    expect(huge.status).toBe(413);
    await problem(huge);
  });
});

describe('consent', () => {
  const consent = async (method: string, user: string) => {
    const answer = await call(`/api/consent/${encodeURIComponent(user)}?agent=desk`, { method });
    expect(answer.status).toBe(200);
    return shape.consentSchema.strict().parse(await answer.json());
  };

  test('is unknown, then given, then withdrawn, then given again', async () => {
    expect((await consent('GET', 'bob')).consent).toBe('unknown');
    expect((await consent('PUT', 'bob')).consent).toBe('given');
    const withdrawn = await consent('DELETE', 'bob');
    expect(withdrawn.consent).toBe('withdrawn');
    expect(withdrawn.withdrawnAt).not.toBeNull();
    expect((await consent('PUT', 'bob')).consent).toBe('given');
    expect((await consent('GET', 'bob')).consent).toBe('given');
  });

  test('a user id that is an e-mail address is stored under the hash that recording uses', async () => {
    const given = await consent('PUT', 'eve@example.com');
    expect(given.user).toBe(hashedId('eve@example.com', secret));
    expect((await consent('GET', 'eve@example.com')).consent).toBe('given');
  });

  test('a user id may hold a slash or any script', async () => {
    for (const user of ['tenant/7', '사용자 7', '100%']) {
      expect((await consent('PUT', user)).user).toBe(hashedId(user, secret));
      expect((await consent('GET', user)).consent).toBe('given');
    }
  });

  test('the list goes by user id, page by page, for one agent', async () => {
    for (const user of ['z3', 'z1', 'z2']) await call(`/api/consent/${user}?agent=lists`, { method: 'PUT' });
    const list = async (query: string) =>
      shape.consentPageSchema.parse(await (await call(`/api/consent?agent=lists&limit=2${query}`)).json());
    const one = await list('');
    const sorted = ['z1', 'z2', 'z3'].map((user) => hashedId(user, secret));
    sorted.sort();
    expect(one.consents.map(({ user }) => user)).toEqual(sorted.slice(0, 2));
    const two = await list(`&cursor=${one.next}`);
    expect(two.consents.map(({ user }) => user)).toEqual(sorted.slice(2));
    expect(two.next).toBeNull();
  });

  test('without an agent it is refused and the message names agent', async () => {
    for (const [method, path] of [
      ['PUT', '/api/consent/bob'],
      ['GET', '/api/consent'],
    ] as const) {
      const answer = await call(path, { method });
      expect(answer.status).toBe(400);
      expect((await problem(answer)).message).toContain('agent');
    }
  });
});

describe('GET /api/status', () => {
  test('says version and state to anybody, and the rest to the admin', async () => {
    const bare = shape.statusSchema.parse(await (await api.request('/api/status')).json());
    expect(bare).toMatchObject({ status: 'ok', detail: null });
    const { detail } = shape.statusSchema.strict().parse(await (await call('/api/status')).json());
    expect(detail?.database).toMatchObject({ reachable: true, kind: 'embedded', serverVersion: store.serverVersion });
    expect(detail?.database.migrations[0]).toBe('0001-collect');
    expect(detail?.database.days).toContain('2026-05-20');
    expect(detail?.recording?.recorded).toBe(7);
  });

  test.each([{ sinkUp: false }, { diskOk: false }, { corrupt: 1 }, { refused: 1 }, { dropped: { disk: 1 } }])(
    '%j is degraded',
    async (trouble) => {
      recording = { ...well, ...trouble };
      try {
        expect(await (await api.request('/api/status')).json()).toMatchObject({ status: 'degraded' });
      } finally {
        recording = well;
      }
    },
  );
});

describe('when the database is away', () => {
  // Nothing listens on port 1.
  const pool = new pg.Pool({ connectionString: 'postgres://pawl@127.0.0.1:1/pawl' });
  const away = (config: Partial<ApiParts['config']> = {}) => {
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) }).withSchema('pawl');
    return createApi({ ...parts, store: { ...store, pool, db }, config: { ...parts.config, ...config } });
  };
  afterAll(() => pool.end());

  test.each([
    ['GET', '/api/trajectories'],
    ['GET', '/api/trajectories/a'],
    ['GET', '/api/keys'],
    ['DELETE', '/api/keys/00000000-0000-4000-8000-000000000000'],
    ['GET', '/api/consent?agent=desk'],
    ['PUT', '/api/consent/bob?agent=desk'],
  ])('%s %s answers 503 and when to come back', async (method, path) => {
    const answer = await call(path, { method }, away());
    expect(answer.status).toBe(503);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await problem(answer)).code).toBe('database_away');
  });

  test('every route that reads says so, whatever it reads', async () => {
    const { paths } = (await (await call('/api/openapi.json')).json()) as {
      paths: Record<string, { get?: { parameters?: { in: string; name: string; required?: boolean }[] } }>;
    };
    const { agents } = parseConfig({ agents: [{ name: 'desk' }] }, {}, home);
    const wrong: string[] = [];
    for (const [path, { get }] of Object.entries(paths)) {
      if (get === undefined || path === '/api/live') continue;
      const needed = (get.parameters ?? []).filter((one) => one.in === 'query' && one.required);
      const query = needed.map(({ name }) => `${name}=desk`).join('&');
      const answer = await call(`${path.replaceAll(/\{\w+\}/g, 'x')}?${query}`, {}, away({ agents }));
      if (answer.status >= 500 && answer.status !== 503) wrong.push(`${path}: ${answer.status}`);
    }
    expect(wrong).toEqual([]);
  });

  test('the status still answers and says so', async () => {
    const { detail } = shape.statusSchema.parse(await (await call('/api/status', {}, away())).json());
    expect(detail?.database.reachable).toBe(false);
    expect(detail?.database.problem).not.toBe('');
  });
});

describe('/api/openapi.json', () => {
  type Operation = {
    summary?: string;
    responses?: Record<string, unknown>;
    parameters?: { name: string; in: string }[];
    security?: object[];
  };
  type Document = {
    openapi: string;
    paths: Record<string, Record<string, Operation>>;
    components: Record<string, Record<string, unknown>>;
  };
  const read = async () => (await (await api.request('/api/openapi.json')).json()) as Document;

  test('lists every route there is, and no other', async () => {
    const { openapi, paths } = await read();
    expect(openapi).toBe('3.1.0');
    const documented = Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const served = api.routes
      .filter(({ method, path }) => method !== 'ALL' && path !== '/api/openapi.json')
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(documented.sort()).toEqual([...new Set(served)].sort());
    expect(documented.length).toBeGreaterThan(9);
  });

  test('every operation has a summary, answers, its path parameters, and says who may call it', async () => {
    const { paths } = await read();
    for (const [path, operations] of Object.entries(paths))
      for (const operation of Object.values(operations)) {
        expect(operation.summary, path).toBeTruthy();
        expect(
          Object.keys(operation.responses ?? {}).some((status) => status.startsWith('2')),
          path,
        ).toBe(true);
        const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        expect((operation.parameters ?? []).filter((p) => p.in === 'path').map((p) => p.name)).toEqual(named);
        expect(operation.security?.length, path).toBeGreaterThan(0);
      }
  });

  test('every reference leads somewhere, and the token’s scheme is defined', async () => {
    const document = await read();
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path!);
    expect(references.length).toBeGreaterThan(5);
    for (const reference of references) {
      const found = reference
        .split('/')
        .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], document);
      expect(found, reference).toBeTypeOf('object');
    }
    expect(document.components.securitySchemes).toMatchObject({ admin: { type: 'http', scheme: 'bearer' } });
  });
});
