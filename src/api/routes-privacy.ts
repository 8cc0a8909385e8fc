/** /api/erasures and /api/retention: forgetting a user, and what is older than is kept. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { typedUser } from '../collect/person.ts';
import type { Config } from '../config.ts';
import { ConflictError, NotFoundError } from '../errors.ts';
import { askErasure } from '../privacy/erase.ts';
import { dueAt, type Erasure, erasedCounts, erasureStatuses, isUnknown } from '../privacy/erasure.ts';
import { hold, releaseHold } from '../privacy/legal-hold.ts';
import { nextRetention, type RetentionRun, runRetention, surveyRetention } from '../privacy/retention.ts';
import { verifyErasure } from '../privacy/verify-erasure.ts';
import { listErasures, readErasure, surveyUser } from '../store/erasures.ts';
import { type LegalHold, listHolds } from '../store/legal-holds.ts';
import { scanning } from '../store/limits.ts';
import type { Store } from '../store/postgres.ts';
import { listRetention } from '../store/retention.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, limit, text, userId } from './schema.ts';

export type PrivacyParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly config: Pick<Config, 'retention'>;
  readonly secret: string;
};

const moment = z.iso.datetime();
const time = (at: number): string => new Date(at).toISOString();
const count = z.int().min(0);
const by = text(200).default('api').openapi({ description: 'Who says so; it stands in the audit log.' });

const counts = z.object(erasedCounts.shape).openapi('ErasedCounts', {
  description: '`conversations` go whole; in `shared` of them other people took part too.',
});
const learned = z.object({ runs: z.array(z.string()), releases: z.array(z.string()) }).openapi({
  description: 'What has learned from it. Weights cannot be made to forget.',
});
const rewardModels = z
  .array(z.string())
  .openapi({ description: 'Reward models that have learned from the user, each by name and version.' });
const heldSchema = z.object({ id: z.string(), rows: count, learned });
const surveySchema = z
  .object({
    user: z.string(),
    agent: z.string().nullable(),
    counts,
    datasets: z.array(heldSchema),
    rewardModels,
    consents: count,
  })
  .openapi('ErasureSurvey');
const erasureSchema = z
  .object({
    id: z.string(),
    user: z.string().openapi({ description: 'Hash.' }),
    agent: z.string().nullable().openapi({ description: 'null: every agent’s.' }),
    at: moment.openapi({ description: 'What began before is forgotten, also if it arrives later.' }),
    actor: z.string(),
    status: z.enum(erasureStatuses),
    counts,
    late: count.openapi({ description: 'Dropped on arrival since.' }),
    datasets: z.array(
      heldSchema.extend({
        replacedBy: z.string().nullable().openapi({ description: 'The same dataset without the user’s rows.' }),
      }),
    ),
    rewardModels,
    dueAt: moment.openapi({ description: 'By when it must be done: seven days after it was asked for.' }),
    problem: z.string().nullable().openapi({ description: 'Why it waits.' }),
    finishedAt: moment.nullable(),
  })
  .openapi('Erasure');

const wireErasure = (erasure: Erasure): z.output<typeof erasureSchema> => {
  const { at, finishedAt, datasets, rewardModels: models, ...rest } = erasure;
  return {
    ...rest,
    datasets: [...datasets],
    rewardModels: [...models],
    dueAt: time(dueAt({ at })),
    at: time(at),
    finishedAt: finishedAt === null ? null : time(finishedAt),
  };
};

const eraseRoute = createRoute({
  method: 'post',
  path: '/api/erasures',
  summary: 'Forget a user: everything stored of them goes, and what gateways still deliver of their past is dropped',
  security,
  request: {
    body: body(
      z.strictObject({
        user: userId,
        hashed: z.boolean().default(false).openapi({ description: '`user` is the hash that a list shows.' }),
        agent: agentName.optional().openapi({ description: 'Only what is this agent’s; else every agent’s.' }),
        by,
        dryRun: z.boolean().default(false).openapi({ description: 'Only says what would go.' }),
        anyway: z
          .boolean()
          .default(false)
          .openapi({ description: 'Also where nothing is stored: what gateways still hold is dropped.' }),
      }),
    ),
  },
  responses: {
    200: json(surveySchema, 'What would go.'),
    202: json(erasureSchema, 'It stands and is carried out by a serving Pawl; ask for it by its id.'),
    404: problem('Nothing is stored of this user.'),
    ...refusals,
  },
});
const listRoute = createRoute({
  method: 'get',
  path: '/api/erasures',
  summary: 'List erasures, newest first',
  security,
  request: { query: z.strictObject({ limit: limit(50) }) },
  responses: { 200: json(z.object({ erasures: z.array(erasureSchema) }), 'The erasures.'), ...refusals },
});
const readRoute = createRoute({
  method: 'get',
  path: '/api/erasures/{id}',
  summary: 'One erasure: how far it is and what it removed',
  security,
  request: { params: z.object({ id: text(100).openapi({ param: { name: 'id', in: 'path' } }) }) },
  responses: { 200: json(erasureSchema, 'The erasure.'), 404: problem('There is no such erasure.'), ...refusals },
});

const proofRoute = createRoute({
  method: 'post',
  path: '/api/erasures/verify',
  summary: 'The proof that a user was forgotten: lines of the audit log, its chain, and a fresh look at every table',
  security,
  request: { body: body(z.strictObject({ user: userId, hashed: z.boolean().default(false) })) },
  responses: {
    200: json(
      z
        .object({
          user: z.string(),
          erasures: z.array(
            erasureSchema.extend({
              audit: z.array(z.object({ n: z.int(), event: z.string(), at: moment, hash: z.string() })),
            }),
          ),
          chain: z.object({ rows: count, head: z.string(), problem: z.string().nullable() }),
          stored: counts,
          datasets: z.array(z.string()),
          verified: z.boolean(),
        })
        .openapi('ErasureProof'),
      'The proof.',
    ),
    ...refusals,
  },
});
const holdSchema = z
  .object({
    ...{ id: z.string(), user: z.string(), agent: z.string().nullable(), reason: z.string(), actor: z.string() },
    ...{ at: moment, releasedAt: moment.nullable() },
  })
  .openapi('LegalHold', { description: 'While it stands nothing of the user is erased or forgotten by its age.' });
const wireHold = ({ at, releasedAt, ...rest }: LegalHold) => ({
  ...{ ...rest, at: at.toISOString(), releasedAt: releasedAt?.toISOString() ?? null },
});
const holdRoute = createRoute({
  method: 'post',
  path: '/api/holds',
  summary: 'Place a legal hold on what is stored of a user',
  security,
  request: {
    body: body(
      z.strictObject({
        ...{ user: userId, hashed: z.boolean().default(false), agent: agentName.optional() },
        ...{ reason: text(2000), by },
      }),
    ),
  },
  responses: { 201: json(holdSchema, 'It stands.'), ...refusals },
});
const holdsRoute = createRoute({
  method: 'get',
  path: '/api/holds',
  summary: 'List legal holds, newest first',
  security,
  responses: { 200: json(z.object({ holds: z.array(holdSchema) }), 'The holds.'), ...refusals },
});
const endHoldRoute = createRoute({
  method: 'delete',
  path: '/api/holds/{id}',
  summary: 'Release a legal hold',
  security,
  request: {
    params: z.object({ id: text(100).openapi({ param: { name: 'id', in: 'path' } }) }),
    query: z.strictObject({ by }),
  },
  responses: { 200: json(holdSchema, 'It is released.'), 404: problem('There is no such hold.'), ...refusals },
});

const settingsSchema = z
  .object({ days: z.int().nullable(), datasets: z.int().nullable(), afterTraining: z.int().nullable().default(null) })
  .openapi({
    description:
      'Days that conversations and datasets are kept, and how long after they were first trained on; null: for good.',
  });
const resultSchema = z
  .object({
    before: z.object({ day: z.string().nullable(), datasets: moment.nullable(), trained: moment.nullable() }),
    days: z.array(z.string()),
    conversations: count,
    turns: count,
    siblings: count,
    signals: count,
    keys: count,
    scores: count,
    datasets: z.array(z.string()),
  })
  .openapi('RetentionResult');
const runSchema = z
  .object({
    id: z.int(),
    at: moment,
    actor: z.string(),
    settings: settingsSchema,
    result: resultSchema.nullable().openapi({ description: 'null: under way, or interrupted.' }),
    finishedAt: moment.nullable(),
  })
  .openapi('RetentionRun');

const wireResult = ({ before, days, datasets, ...rest }: NonNullable<RetentionRun['result']>) => ({
  ...rest,
  days: [...days],
  datasets: [...datasets],
  before: {
    day: before.day,
    datasets: before.datasets === null ? null : time(before.datasets),
    // Runs of before there was such a limit do not say.
    trained: before.trained == null ? null : time(before.trained),
  },
});
const wireRun = ({ at, finishedAt, result, ...rest }: RetentionRun): z.output<typeof runSchema> => ({
  ...rest,
  at: time(at),
  result: result && wireResult(result),
  finishedAt: finishedAt === null ? null : time(finishedAt),
});

const statusRoute = createRoute({
  method: 'get',
  path: '/api/retention',
  summary: 'What is kept for how long, the last runs, and when the next is due',
  security,
  request: { query: z.strictObject({ limit: limit(10) }) },
  responses: {
    200: json(
      z.object({ settings: settingsSchema, next: moment.nullable(), runs: z.array(runSchema) }),
      '`next`: a serving Pawl does it from then on.',
    ),
    ...refusals,
  },
});
const runRoute = createRoute({
  method: 'post',
  path: '/api/retention',
  summary: 'Remove what is older than is kept; the answer comes when it is done',
  security,
  request: {
    body: body(
      z.strictObject({
        by,
        dryRun: z.boolean().default(false).openapi({ description: 'Only says what would go.' }),
      }),
    ),
  },
  responses: {
    200: json(resultSchema, 'What went, or would.'),
    409: problem('Another process is at it.'),
    ...refusals,
  },
});

export const privacyRoutes = ({ store, artifacts, config, secret }: PrivacyParts) => {
  /** Whole days are read: longer than an answer otherwise takes. */
  const patiently = async <T>(work: (patient: Store) => Promise<T>): Promise<T> => {
    const patient = store.within(scanning, 3);
    return work(patient).finally(() => patient.close());
  };
  return createRouter()
    .openapi(eraseRoute, async (c) => {
      const { user: typed, hashed, agent = null, by: actor, dryRun, anyway } = c.req.valid('json');
      const user = typedUser(typed, secret, hashed);
      const survey = await patiently((patient) => surveyUser(patient, user, agent));
      if (isUnknown(survey) && !anyway)
        throw new NotFoundError(
          `Nothing is stored of user ${user}. Check the id: it is the one the agent sends, letter by letter, or the hash that a list shows together with "hashed": true. If it is right and a gateway may still hold something of theirs, send "anyway": true.`,
        );
      if (dryRun)
        return c.json({ ...survey, datasets: [...survey.datasets], rewardModels: [...survey.rewardModels] }, 200);
      return c.json(wireErasure(await askErasure(store, { user, agent, actor })), 202);
    })
    .openapi(listRoute, async (c) =>
      c.json({ erasures: (await listErasures(store, c.req.valid('query'))).map(wireErasure) }, 200),
    )
    .openapi(readRoute, async (c) => {
      const { id } = c.req.valid('param');
      const found = await readErasure(store, id);
      if (found === null) throw new NotFoundError(`There is no erasure ${id}.`);
      return c.json(wireErasure(found), 200);
    })
    .openapi(proofRoute, async (c) => {
      const { user, hashed } = c.req.valid('json');
      const proof = await patiently((patient) => verifyErasure(patient, typedUser(user, secret, hashed)));
      const erasures = proof.erasures.map(({ audit, ...one }) => ({
        ...wireErasure(one),
        audit: audit.map((row) => ({ ...row, at: time(row.at) })),
      }));
      return c.json({ ...proof, datasets: [...proof.datasets], erasures }, 200);
    })
    .openapi(holdRoute, async (c) => {
      const { user, hashed, agent = null, reason, by: actor } = c.req.valid('json');
      const given = { user: typedUser(user, secret, hashed), agent, reason, actor, at: new Date() };
      return c.json(wireHold(await hold(store, given)), 201);
    })
    .openapi(holdsRoute, async (c) => c.json({ holds: (await listHolds(store)).map(wireHold) }, 200))
    .openapi(endHoldRoute, async (c) => {
      const ended = await releaseHold(store, c.req.valid('param').id, c.req.valid('query').by, new Date());
      return c.json(wireHold(ended), 200);
    })
    .openapi(statusRoute, async (c) => {
      const runs = await listRetention(store, c.req.valid('query').limit);
      const next = await nextRetention(store);
      const answer = { settings: config.retention, runs: runs.map(wireRun) };
      return c.json({ ...answer, next: next === null ? null : time(next) }, 200);
    })
    .openapi(runRoute, async (c) => {
      const { by: actor, dryRun } = c.req.valid('json');
      const options = { artifacts, settings: config.retention, now: Date.now(), actor };
      const result = await patiently(async (patient) =>
        dryRun
          ? surveyRetention(patient, options.settings, options.now)
          : ((await runRetention(patient, options))?.result ?? null),
      );
      if (result === null) throw new ConflictError('Another process of this database is removing what is old.');
      return c.json(wireResult(result), 200);
    });
};
