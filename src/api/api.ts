/**
 * /api: what the dashboard, scripts and other machines read and change. Each route is declared once; the declaration
 * parses the request, types the answer, and becomes /api/openapi.json. A handler parses, calls one function of the
 * store, maps the record to its wire shape. Who may ask for what is entry.ts and roles.ts.
 */
import { createRoute } from '@hono/zod-openapi';
import { bodyLimit } from 'hono/body-limit';
import { HTTPException } from 'hono/http-exception';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { makeKey } from '../client-keys.ts';
import { healthOf } from '../collect/health.ts';
import { readableId, typedUser } from '../collect/person.ts';
import { moneyOfAll } from '../collect/price.ts';
import type { Config } from '../config.ts';
import { ArtifactError, ConflictError, NotFoundError, RequestError, StoreError } from '../errors.ts';
import { revokeEverywhere, unconfirmedBy } from '../gateway/revoke.ts';
import type { Progress } from '../loop/runner.ts';
import { sayConsent, wholeConsent } from '../privacy/consent.ts';
import { readMarks } from '../store/changes.ts';
import { listConsents } from '../store/consents.ts';
import { listKeys } from '../store/keys.ts';
import { readTrajectoryLineage } from '../store/lineage.ts';
import type { Store } from '../store/postgres.ts';
import { isSearch, searchTrajectories } from '../store/search-trajectories.ts';
import { readSiblings } from '../store/siblings.ts';
import { findTrajectory, listTrajectories, readTokens, readTrajectory } from '../store/trajectories.ts';
import { readTrajectoryFacts } from '../store/trajectory-facts.ts';
import { version } from '../version.ts';
import { createAttempts } from './attempts.ts';
import { createRouter, failure, json, problem, refusals, security } from './declare.ts';
import { documentOf } from './document.ts';
import { entry, nameActor, withBearer } from './entry.ts';
import { createLive, type Live } from './live.ts';
import { accessRoutes } from './routes-access.ts';
import { artifactRoutes } from './routes-artifacts.ts';
import { auditRoutes } from './routes-audit.ts';
import { curateRoutes } from './routes-curate.ts';
import { deployRoutes } from './routes-deploy.ts';
import { distributionRoutes } from './routes-distribution.ts';
import { type EvaluateParts, evaluateRoutes } from './routes-evaluate.ts';
import { exploreRoutes } from './routes-explore.ts';
import { flagRoutes } from './routes-flags.ts';
import { judgeRoutes } from './routes-judge.ts';
import { isImport, labelRoutes } from './routes-labels.ts';
import { liveRoutes } from './routes-live.ts';
import { lookRoutes } from './routes-look.ts';
import { loopRoutes } from './routes-loop.ts';
import { overviewRoutes } from './routes-overview.ts';
import { piiRoutes } from './routes-pii.ts';
import { privacyRoutes } from './routes-privacy.ts';
import { reviewRoutes } from './routes-review.ts';
import { rewardRoutes } from './routes-reward.ts';
import { scoreRoutes } from './routes-score.ts';
import { standingRoutes } from './routes-standing.ts';
import { type TrainParts, trainRoutes } from './routes-train.ts';
import * as shape from './schema.ts';
import { readDatabase, readProcesses } from './status.ts';
import { createTurnstile } from './turnstile.ts';
import { wireConsent, wireKey, wireSibling, wireSignal, wireTrajectory, wireTurn } from './wire.ts';

export type ApiParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly config: Pick<Config, 'agents' | 'upstreams' | 'engine' | 'retention' | 'pii' | 'alerts' | 'mlflow'>;
  /** What user ids are hashed with (store/secret.ts). */
  readonly secret: string;
  readonly adminHash: string;
  /** Null where this process does not record. */
  readonly recorder: () => shape.Recording | null;
  /** Log lines that could not be written. */
  readonly linesLost?: () => number;
  /** Names by which this server may be addressed besides localhost and IP addresses; `*` is any. */
  readonly hosts?: readonly string[];
  readonly evaluations?: EvaluateParts['evaluations'];
  /** Address of a gateway, without /v1: what begins to serve is asked through it first. Without it, nothing that would have to be asked begins. */
  readonly gatewayUrl?: () => Promise<string>;
  readonly trainings?: TrainParts['trainings'];
  /** How far the stage is that an agent’s loop is at, in whichever process. */
  readonly progress?: (agent: string) => Promise<Progress | null>;
  /** Who answers what this process cannot; null: it can. */
  readonly elsewhere?: (method: string, path: string) => ((request: Request) => Promise<Response>) | null;
  /** Who tells listeners of changes; without it, one of its own. */
  readonly live?: Live;
  /** Told of errors that are nobody's fault but Pawl's. */
  readonly onError?: (error: unknown) => void;
};

/** How long a revocation waits for gateways to confirm it; they hear of it at once unless something is wrong. */
const confirmMs = 3_000;

const listRoute = createRoute({
  method: 'get',
  path: '/api/trajectories',
  summary: 'List conversations, newest first, without their bodies',
  security,
  request: { query: shape.trajectoryQuery },
  responses: { 200: json(shape.trajectoryPageSchema, 'A page of trajectories.'), ...refusals },
});
const readRoute = createRoute({
  method: 'get',
  path: '/api/trajectories/{id}',
  summary: 'One conversation, turn by turn, with its signals',
  security,
  request: { params: shape.trajectoryParam, query: shape.oneTrajectoryQuery },
  responses: {
    200: json(shape.oneTrajectorySchema, 'The trajectory.'),
    404: problem('There is no such trajectory.'),
    ...refusals,
  },
});
const lineageRoute = createRoute({
  method: 'get',
  path: '/api/trajectories/{id}/lineage',
  summary: 'What became of a conversation: datasets, runs, releases',
  security,
  request: { params: shape.trajectoryParam, query: shape.lineageQuery },
  responses: {
    200: json(shape.lineageSchema, 'Where it went.'),
    404: problem('There is no such trajectory.'),
    ...refusals,
  },
});
const keysRoute = createRoute({
  method: 'get',
  path: '/api/keys',
  summary: 'List client keys',
  security,
  request: { query: shape.noQuery },
  responses: { 200: json(shape.keysSchema, 'All keys, newest first.'), ...refusals },
});
const makeKeyRoute = createRoute({
  method: 'post',
  path: '/api/keys',
  summary: 'Make a client key; the answer is the only time its token is shown',
  security,
  request: { body: { required: true, content: { 'application/json': { schema: shape.madeKeyAsked } } } },
  responses: { 201: json(shape.madeKeySchema, 'The key and its token.'), ...refusals },
});
const revokeRoute = createRoute({
  method: 'delete',
  path: '/api/keys/{id}',
  summary: 'Revoke a client key for good; doing it twice is fine',
  security,
  request: { params: shape.keyIdParam, query: shape.byQuery },
  responses: {
    204: { description: 'The key no longer works: every gateway has confirmed it.' },
    202: json(shape.unconfirmedSchema, 'The key is revoked, but not every gateway has confirmed that it knows.'),
    404: problem('There is no such key.'),
    ...refusals,
  },
});
const consentsRoute = createRoute({
  method: 'get',
  path: '/api/consent',
  summary: 'List what users said about training',
  security,
  request: { query: shape.consentListQuery },
  responses: { 200: json(shape.consentPageSchema, 'A page of consents, in the order of user ids.'), ...refusals },
});
const consentRequest = { params: shape.userParam, query: shape.consentQuery };
const readConsentRoute = createRoute({
  method: 'get',
  path: '/api/consent/{user}',
  summary: 'Whether a user agreed to training on an agent’s conversations; `unknown` when nobody said',
  security,
  request: consentRequest,
  responses: { 200: json(shape.consentSchema, 'What stands now.'), ...refusals },
});
const sayRequest = { params: shape.userParam, query: shape.sayConsentQuery };
const giveRoute = createRoute({
  method: 'put',
  path: '/api/consent/{user}',
  summary: 'The user agrees, from now on: to learning, to transfer abroad, or to learning across tenants',
  security,
  request: sayRequest,
  responses: { 200: json(shape.consentSchema, 'What stands now.'), ...refusals },
});
const withdrawRoute = createRoute({
  method: 'delete',
  path: '/api/consent/{user}',
  summary: 'The user no longer agrees',
  security,
  request: sayRequest,
  responses: { 200: json(shape.consentSchema, 'What stands now.'), ...refusals },
});
const statusRoute = createRoute({
  method: 'get',
  path: '/api/status',
  summary: 'How Pawl is; with a token, in detail',
  security: [{}, { admin: [] }],
  responses: { 200: json(shape.statusSchema, 'The status.'), 403: refusals[403] },
});

/** Where a page of turns ended. Opaque to callers. */
const turnCursor = ({ startedAt, id }: { startedAt: number; id: string }): string =>
  Buffer.from(`${startedAt} ${id}`).toString('base64url');

function turnPosition(cursor: string): { startedAt: number; id: string } {
  const parts = /^(\d{1,15}) ([0-9a-f-]{36})$/.exec(Buffer.from(cursor, 'base64url').toString());
  if (parts === null) throw new RequestError(400, 'invalid_cursor', 'cursor: not one that a page of turns gave.');
  return { startedAt: Number(parts[1]), id: parts[2]! };
}

/** Of requests and answers in one answer; a page of turns ends where they would be more. */
const maxBytes = 4 * 1024 * 1024;
/** Readings at once, and how many may wait for their turn. */
const readers = 2;
const waitingReaders = 50;

function routesOf(parts: ApiParts) {
  const { store } = parts;
  const storedUser = (typed: string, hashed?: boolean): string => typedUser(typed, parts.secret, hashed);
  const said = (typed: string, { agent, hashed, purpose, by }: shape.SayConsent, says: 'given' | 'withdrawn') =>
    sayConsent(store, { agent, user: storedUser(typed, hashed), purpose, says, actor: by, at: new Date() });
  const reading = createTurnstile(readers, waitingReaders);

  const app = createRouter();
  const attempts = createAttempts();
  app.use('/api/*', entry(parts, attempts));
  const limited = (maxSize: number, said: string) =>
    bodyLimit({ maxSize, onError: (c) => c.json(failure('too_large', `The body is larger than ${said}.`), 413) });
  const small = limited(64 * 1024, '64 KB');
  const large = limited(64 * 1024 * 1024, '64 MB; send the file in parts, or use `pawl trajectories import`');
  app.use('/api/*', (c, next) => (isImport(c.req.path) ? large : small)(c, next));
  app.use('/api/*', nameActor());
  app.use('/api/*', async (c, next) => {
    const ask = parts.elsewhere?.(c.req.method, c.req.path);
    return ask ? ask(withBearer(c.req.raw, c.get('who'))) : next();
  });

  return app
    .openapi(listRoute, async (c) => {
      const { user, hashed, errors, cursor, ...query } = c.req.valid('query');
      const filter = {
        ...query,
        status: errors ? ('error' as const) : undefined,
        user: user === undefined ? undefined : storedUser(user, hashed),
        cursor: cursor ?? null,
      };
      const list = isSearch(filter) ? searchTrajectories : listTrajectories;
      const page = await reading(() => list(store, filter));
      const facts = await readTrajectoryFacts(store, page.trajectories);
      const trajectories = page.trajectories.map((one, i) => ({ ...wireTrajectory(one), ...facts[i]! }));
      return c.json({ trajectories, next: page.cursor }, 200);
    })
    .openapi(lineageRoute, async (c) => {
      const id = readableId(c.req.valid('param').id, parts.secret);
      const { agent } = c.req.valid('query');
      const found = await findTrajectory(store, id, agent);
      if (found === null) throw new NotFoundError(`There is no trajectory ${id}.`);
      const { datasets, runs, releases } = await readTrajectoryLineage(store, found.agent, id);
      return c.json({ datasets: [...datasets], runs: [...runs], releases: [...releases] }, 200);
    })
    .openapi(readRoute, async (c) => {
      const { id } = c.req.valid('param');
      const { agent, limit, cursor } = c.req.valid('query');
      const afterTurn = cursor === undefined ? undefined : turnPosition(cursor);
      const bounds = { agent, maxTurns: limit, maxBytes, afterTurn };
      const found = await reading(() => readTrajectory(store, readableId(id, parts.secret), bounds));
      if (found === null) return c.json(failure('not_found', `There is no trajectory ${id}.`), 404);
      const turns = found.turns.map((turn) => turn.id);
      const { siblings, cut } = await reading(() =>
        readSiblings(store, { agent: found.trajectory.agent, turns, maxBytes }),
      );
      return c.json(
        {
          trajectory: wireTrajectory(found.trajectory),
          turns: found.turns.map((turn) => wireTurn(turn, found.tooLarge.includes(turn.id))),
          siblings: [...siblings.values()].flat().map(wireSibling),
          siblingsCut: cut,
          signals: found.signals.map(wireSignal),
          keys: found.keys,
          money: moneyOfAll(await reading(() => readTokens(store, found.trajectory)), parts.config.upstreams),
          signalsCut: found.signalsCut,
          next: found.cut ? turnCursor(found.turns.at(-1)!) : null,
        },
        200,
      );
    })
    .openapi(keysRoute, async (c) => c.json({ keys: (await listKeys(store)).map(wireKey) }, 200))
    .openapi(makeKeyRoute, async (c) => {
      const { by, ...asked } = c.req.valid('json');
      const { key, token } = await makeKey(store, asked, by);
      return c.json({ key: wireKey(key), token }, 201);
    })
    .openapi(revokeRoute, async (c) => {
      const { id } = c.req.valid('param');
      const behind = await revokeEverywhere(store, id, c.req.valid('query').by, confirmMs);
      if (behind === null) return c.json(failure('not_found', `There is no key ${id}.`), 404);
      if (behind.length === 0) return c.body(null, 204);
      const gateways = behind.map(({ id: gateway, seenAt }) => ({ id: gateway, seenAt: seenAt.toISOString() }));
      return c.json({ confirmed: false as const, message: unconfirmedBy(behind), gateways }, 202);
    })
    .openapi(consentsRoute, async (c) => {
      const { agent, limit, cursor } = c.req.valid('query');
      const rows = await listConsents(store, {
        agent,
        limit: limit + 1,
        ...(cursor === undefined ? {} : { after: cursor }),
      });
      const page = rows.slice(0, limit);
      return c.json(
        { consents: page.map(wireConsent), next: rows.length > limit ? (page.at(-1)?.user ?? null) : null },
        200,
      );
    })
    .openapi(readConsentRoute, async (c) => {
      const user = storedUser(c.req.valid('param').user, c.req.valid('query').hashed);
      return c.json(wireConsent(await wholeConsent(store, c.req.valid('query').agent, user)), 200);
    })
    .openapi(giveRoute, async (c) => {
      return c.json(wireConsent(await said(c.req.valid('param').user, c.req.valid('query'), 'given')), 200);
    })
    .openapi(withdrawRoute, async (c) => {
      return c.json(wireConsent(await said(c.req.valid('param').user, c.req.valid('query'), 'withdrawn')), 200);
    })
    .openapi(statusRoute, async (c) => {
      const recording = parts.recorder();
      const detail =
        c.get('who') !== undefined
          ? { recording, database: await readDatabase(store), processes: await readProcesses(store) }
          : null;
      const health = recording === null ? ('ok' as const) : healthOf(recording, parts.linesLost?.()).status;
      const others = detail?.processes.some(({ alive, problems }) => alive && problems.length > 0) ?? false;
      return c.json({ version, status: others ? 'degraded' : health, detail }, 200);
    })
    .route('/', accessRoutes(parts, attempts))
    .route('/', overviewRoutes(parts))
    .route('/', standingRoutes(parts))
    .route('/', distributionRoutes(parts))
    .route('/', lookRoutes(parts))
    .route('/', liveRoutes(parts, parts.live ?? createLive({ look: () => readMarks(store, new Date()) })))
    .route('/', labelRoutes(parts))
    .route('/', scoreRoutes(parts))
    .route('/', judgeRoutes(parts))
    .route('/', rewardRoutes(parts))
    .route('/', curateRoutes(parts))
    .route('/', trainRoutes(parts))
    .route('/', evaluateRoutes(parts))
    .route('/', reviewRoutes(parts))
    .route('/', deployRoutes(parts))
    .route('/', auditRoutes(parts))
    .route('/', flagRoutes(parts))
    .route('/', loopRoutes(parts))
    .route('/', exploreRoutes(parts))
    .route('/', privacyRoutes(parts))
    .route('/', piiRoutes(parts))
    .route('/', artifactRoutes(parts));
}

/** For a typed client (`hc<Api>()`) in the dashboard. */
export type Api = ReturnType<typeof routesOf>;

export function createApi(parts: ApiParts): Api {
  const app = routesOf(parts);
  app.openAPIRegistry.registerComponent('securitySchemes', 'admin', { type: 'http', scheme: 'bearer' });
  app.openAPIRegistry.registerComponent('securitySchemes', 'session', {
    ...{ type: 'apiKey', in: 'cookie', name: 'pawl_session_PORT' },
  });
  let document: object | null = null; // the same for everybody, and not small
  app.get('/api/openapi.json', (c) => {
    document ??= documentOf(app);
    return c.json(document);
  });
  app.notFound((c) =>
    c.json(
      failure(
        'not_found',
        `There is nothing at ${c.req.method} ${c.req.path.slice(0, 200)}; /api/openapi.json lists what there is.`,
      ),
      404,
    ),
  );
  app.onError((error, c) => {
    if (error instanceof HTTPException && error.status === 415)
      return c.json(failure('invalid_request', 'Send the body as JSON, with `content-type: application/json`.'), 415);
    if (error instanceof HTTPException) return c.json(failure('invalid_request', error.message), error.status);
    if (error instanceof NotFoundError) return c.json(failure('not_found', error.message), 404);
    if (error instanceof ConflictError) return c.json(failure('conflict', error.message), 409);
    if (error instanceof RequestError && error.status === 503) c.header('retry-after', '1');
    if (error instanceof RequestError) return c.json(failure(error.code, error.message), error.status as 400);
    if (error instanceof StoreError && error.retryable) {
      c.header('retry-after', '5');
      return c.json(
        failure('database_away', 'The database is away; recording goes on in the journal. Try again in a few seconds.'),
        503,
      );
    }
    if (error instanceof ArtifactError) {
      if (error.retryable) c.header('retry-after', '5');
      return c.json(
        failure(error.retryable ? 'artifacts_away' : 'conflict', error.message),
        error.retryable ? 503 : 409,
      );
    }
    // SQLSTATE class 22: the database cannot hold a value, so the request's value is at fault.
    const { code: state } = (error.cause ?? {}) as { code?: unknown };
    if (error instanceof StoreError && typeof state === 'string' && state.startsWith('22'))
      return c.json(failure('invalid_request', 'A value in the request is none that the database can hold.'), 400);
    parts.onError?.(error);
    return c.json(failure('internal_error', 'Pawl failed to handle this request; its log has the reason.'), 500);
  });
  return app;
}
