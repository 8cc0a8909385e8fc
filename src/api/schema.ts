/**
 * The shapes of /api: what it accepts and what it answers. One place for the handlers, the OpenAPI document, the
 * dashboard and the tests. Times are ISO 8601 in UTC, durations milliseconds.
 */
import { z } from '@hono/zod-openapi';
import { signalKinds } from '../collect/signal.ts';
import { consents, origins } from '../collect/trajectory.ts';
import { endpoints, statuses } from '../collect/turn.ts';
import { newKey } from '../gateway/new-key.ts';
import { consentPurposes } from '../privacy/consent.ts';
import { scopes } from '../store/keys.ts';
import { purposes } from '../store/purposes.ts';
import { votes } from '../store/search-trajectories.ts';
import { type ShownField, shownFields, turnColumns } from '../store/turn-columns.ts';

export const maxLimit = 200;

export const time = z.iso.datetime().openapi({ example: '2026-01-31T14:02:11.000Z' });
/** Of figures that are kept (store/figures.ts). */
export const countedAt = time.openapi({
  description: 'When it was counted: now, or up to an hour ago where much is stored.',
});
const count = z.int().min(0);
const data = z.record(z.string(), z.unknown());
const personal =
  'Users are stored, and answered, as a keyed hash; ask with the id that the agent sends, or with the hash and hashed=true.';

/** The database's text cannot hold the character NUL. */
export const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((typed) => !typed.includes('\0'), 'must not hold the character NUL');

/** Who does something; nobody need give a name. */
export const by = (who: string) =>
  text(200)
    .default('api')
    .openapi({ description: `${who}; it stands in the audit log.` });

export const agentName = text(63).openapi({ example: 'support-desk' });
export const userId = text(4096).openapi({ example: 'u-17', description: personal });
/** A moment as people type it: a date, or a date and time with its zone. */
export const moment = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], {
    error: 'a time such as 2026-01-31 or 2026-01-31T14:00:00Z',
  })
  .transform((typed) => new Date(typed))
  .refine((at) => at.getUTCFullYear() >= 1970 && at.getUTCFullYear() < 3000, 'a time between 1970 and 2999')
  .openapi({ type: 'string', format: 'date-time' });

export const limit = (fallback: number) =>
  z.coerce
    .number()
    .pipe(z.int().min(1).max(maxLimit))
    .default(fallback)
    .openapi({ type: 'integer', minimum: 1, maximum: maxLimit, default: fallback });

const yes = z
  .enum(['true', 'false'])
  .transform((typed) => typed === 'true')
  .openapi({ type: 'string', enum: ['true', 'false'] });

const unit = z.coerce.number().pipe(z.number().min(0).max(1)).openapi({ type: 'number', minimum: 0, maximum: 1 });

const hashed = yes.openapi({
  description: 'true: `user` is the hash that an answer showed, not the id that the agent sends.',
});

const cursor = text(1024).openapi({ description: '`next` of the page before.' });

export const problemSchema = z
  .object({ error: z.object({ message: z.string(), code: z.string() }) })
  .openapi('Problem', { description: 'One sentence that says what is wrong and, where there is one, the way out.' });

export const trajectorySchema = z
  .object({
    id: z.string(),
    agent: z.string(),
    user: z.string().nullable(),
    origin: z.enum(origins),
    consent: z.enum(consents),
    startedAt: time,
    endedAt: time,
    turns: count,
    errors: count,
    promptTokens: count,
    completionTokens: count,
    latencyMs: z.number(),
    release: z.string(),
  })
  .openapi('Trajectory', { description: 'One conversation: the sum of its turns.' });

export const trajectoryQuery = z.strictObject({
  agent: agentName.optional(),
  user: userId.optional(),
  hashed: hashed.optional(),
  origin: z.enum(origins).optional(),
  release: text(256).optional(),
  errors: yes.optional().openapi({ description: 'true: only those with a failed turn.' }),
  consent: z.enum(consents).optional(),
  minScore: unit.optional().openapi({ description: 'The newest score is this or above.' }),
  maxScore: unit.optional(),
  vote: z.enum(votes).optional().openapi({ description: 'Mean of its votes: above 0.5, below, or nobody voted.' }),
  taskType: text(64).optional(),
  text: text(200).optional().openapi({
    description:
      'Somewhere in what was asked or answered, in any case. A page looks through 300 conversations (2,000 for score, vote and task type), so it may be short or empty and still have a `next`.',
  }),
  since: moment.optional(),
  until: moment.optional(),
  limit: limit(50),
  cursor: cursor.optional(),
});

export const listedTrajectorySchema = trajectorySchema
  .extend({
    score: z.number().nullable().openapi({ description: 'The newest; null: none, or nothing could be measured.' }),
    vote: z.number().nullable().openapi({ description: 'Mean of the votes on it and its turns; null: nobody voted.' }),
    taskType: z.string().nullable(),
  })
  .openapi('ListedTrajectory');

export const trajectoryPageSchema = z
  .object({ trajectories: z.array(listedTrajectorySchema), next: z.string().nullable() })
  .openapi('TrajectoryPage', { description: 'Newest first. `next` is null on the last page.' });

/** Columns of a turn whose type says too little. */
const narrower = { endpoint: z.enum(endpoints), status: z.enum(statuses), redactions: z.record(z.string(), z.int()) };
const byType = {
  uuid: z.string(),
  text: z.string(),
  'text[]': z.array(z.string()),
  'timestamp with time zone': time,
  'double precision': z.number(),
  integer: count,
  bigint: count,
  boolean: z.boolean(),
  jsonb: data,
};

type Shown = { [Field in ShownField]: (typeof turnColumns)[Field] };
type SchemaOf<Field extends ShownField> = Field extends keyof typeof narrower
  ? (typeof narrower)[Field]
  : (typeof byType)[Shown[Field]['type']];
type ShownShape = {
  [Field in ShownField]: Shown[Field] extends { null: true } ? z.ZodNullable<SchemaOf<Field>> : SchemaOf<Field>;
};
const shownShape = Object.fromEntries(
  shownFields.map((field) => {
    const column = turnColumns[field];
    const schema = field in narrower ? narrower[field as keyof typeof narrower] : byType[column.type];
    return [field, 'null' in column ? schema.nullable() : schema];
  }),
) as ShownShape;

export const turnSchema = z
  .object({
    ...shownShape,
    request: data,
    choices: z.array(z.object({ index: z.int(), message: data, finishReason: z.string().nullable() })),
    /** Whether the upstream's exact token ids are stored; they are not sent here. */
    hasTokenIds: z.boolean(),
    contentLeftOut: z.boolean().openapi({
      description: 'true: request and answer are larger than one answer of this API holds, and empty here.',
    }),
  })
  .openapi('Turn', { description: 'One model call with the redacted request and the answer.' });

export const siblingSchema = z
  .object({
    id: z.string(),
    parent: z.string().openapi({ description: 'Id of the turn whose prompt it answers.' }),
    origin: z.literal('exploration'),
    temperature: z.number(),
    topP: z.number().nullable().openapi({ description: 'null: as the request had it.' }),
    startedAt: time,
    latencyMs: z.number(),
    upstream: z.string(),
    release: z.string(),
    model: z.string(),
    choices: z.array(z.object({ index: z.int(), message: data, finishReason: z.string().nullable() })),
    promptTokens: count.nullable(),
    completionTokens: count.nullable(),
    redactions: z.record(z.string(), z.int()),
  })
  .openapi('Sibling', {
    description: 'Another answer to the prompt of a turn, asked for after the user had theirs and shown to nobody.',
  });

export const signalSchema = z
  .object({
    id: z.string(),
    target: z.object({ kind: z.enum(['turn', 'trajectory', 'key']), id: z.string() }),
    kind: z.enum(signalKinds),
    name: z.string(),
    value: z.number().nullable(),
    unit: z.string().nullable(),
    user: z.string().nullable(),
    comment: z.string().nullable(),
    correction: z.string().nullable(),
    at: time,
    receivedAt: time,
  })
  .openapi('Signal', {
    description: 'Feedback, a measured outcome, what a user did with an answer, or a reviewer’s label.',
  });

export const trajectoryParam = z.object({
  id: z
    .string()
    .min(1)
    .max(4096)
    .openapi({ param: { name: 'id', in: 'path' }, example: 'order-4711' }),
});

export const oneTrajectoryQuery = z.strictObject({
  agent: agentName.optional().openapi({ description: 'Which one, when two agents used the same id; else the newest.' }),
  limit: limit(50),
  cursor: cursor.optional(),
});

export const oneTrajectorySchema = z
  .object({
    trajectory: trajectorySchema,
    turns: z.array(turnSchema),
    siblings: z.array(siblingSchema).openapi({ description: 'Other answers to the prompts of these turns.' }),
    siblingsCut: z.boolean().openapi({ description: 'true: there are more than one answer holds.' }),
    signals: z.array(signalSchema),
    keys: z.array(z.string()),
    money: z.number().nullable().openapi({
      description:
        'What all its turns cost, by the prices that are set today (`upstreams.NAME.price`); null: no upstream of it has a price, or none counted tokens.',
    }),
    signalsCut: z.boolean().openapi({
      description: 'true: there are more signals, keys or comments than one answer holds; the latest are here.',
    }),
    next: z.string().nullable(),
  })
  .openapi('TrajectoryDetail', {
    description:
      'Turns in the order they started, a page of them, ended by `limit` or by 4 MB of content; signals about the whole and about these turns; business keys.',
  });

export const lineageSchema = z
  .object({
    datasets: z.array(z.object({ id: z.string(), position: count, score: z.number() })),
    runs: z.array(z.object({ id: z.string(), status: z.string(), dataset: z.string() })),
    releases: z.array(z.object({ name: z.string(), run: z.string(), serving: z.boolean() })),
  })
  .openapi('Lineage', { description: 'Datasets it is in, runs that learned from those, releases they made.' });
export const lineageQuery = z.strictObject({ agent: agentName.optional() });

export const keySchema = z
  .object({
    id: z.string(),
    name: z.string(),
    agent: z.string(),
    prefix: z.string(),
    origin: z.enum(origins),
    scopes: z.array(z.enum(scopes)).openapi({ description: 'What it may be used for.' }),
    rateLimit: z.int().nullable().openapi({ description: 'Requests per minute; null is no limit.' }),
    region: z.string().nullable().openapi({ description: 'Where its conversations are kept.' }),
    tenant: z.string().nullable().openapi({ description: 'Whose they are.' }),
    createdAt: time,
    revokedAt: time.nullable(),
    lastUsedAt: time.nullable(),
  })
  .openapi('Key');

export const unconfirmedSchema = z
  .object({
    confirmed: z.literal(false),
    message: z.string(),
    gateways: z.array(z.object({ id: z.string(), seenAt: time })),
  })
  .openapi('Unconfirmed', {
    description: 'Gateways that may still accept the key, and when each was last heard from.',
  });
export const keysSchema = z.object({ keys: z.array(keySchema) }).openapi('Keys');
export const keyIdParam = z.object({ id: z.uuid().openapi({ param: { name: 'id', in: 'path' } }) });
export const noQuery = z.strictObject({});
export const byQuery = z.strictObject({ by: by('Who does it') });
export const madeKeyAsked = newKey.extend({ by: by('Who makes it') });

export const madeKeySchema = z
  .object({ key: keySchema, token: z.string().openapi({ description: 'Shown this once; only its hash is stored.' }) })
  .openapi('MadeKey');

export const consentSchema = z
  .object({
    agent: z.string(),
    user: z.string(),
    consent: z.enum(consents),
    givenAt: time.nullable(),
    withdrawnAt: time.nullable(),
    others: z
      .array(
        z.object({
          purpose: z.enum(purposes),
          consent: z.enum(consents),
          givenAt: time.nullable(),
          withdrawnAt: time.nullable(),
        }),
      )
      .optional()
      .openapi({ description: 'Transfer to another region, and learning across tenants; not in lists.' }),
  })
  .openapi('Consent', { description: `Whether a user agreed to training. ${personal}` });

export const userParam = z.object({ user: userId.openapi({ param: { name: 'user', in: 'path' } }) });
export const consentQuery = z.strictObject({ agent: agentName, hashed: hashed.optional() });
export const sayConsentQuery = consentQuery.extend({
  purpose: z.enum(consentPurposes).default('learn').openapi({ description: 'To what.' }),
  by: by('Who says so'),
});
export const consentListQuery = z.strictObject({ agent: agentName, limit: limit(100), cursor: cursor.optional() });
export const consentPageSchema = z
  .object({ consents: z.array(consentSchema), next: z.string().nullable() })
  .openapi('ConsentPage');

export const recordingSchema = z
  .object({
    queueDepth: count,
    queueBytes: count,
    journalBytes: count,
    sinkLagMs: z.number(),
    sinkUp: z.boolean(),
    diskOk: z.boolean(),
    journalled: count,
    recorded: count,
    corrupt: count,
    refused: count,
    restarts: count,
    dropped: z.record(z.string(), z.int()),
    redactions: z.record(z.string(), z.int()),
    tokensDropped: count,
    contentDropped: count,
    found: z.array(z.string()).readonly().openapi({ description: 'What was odd about the journal at the start.' }),
    unfit: count,
  })
  .openapi('Recording', { description: 'Where exchanges are on their way to the database, and what was lost.' });

export const processSchema = z
  .object({
    id: z.string().openapi({ description: 'The machine and the data folder.' }),
    roles: z.array(z.string()).openapi({ description: 'gateway, worker, api' }),
    host: z.string(),
    pid: z.int(),
    version: z.string(),
    address: z.string().nullable(),
    alive: z.boolean().openapi({ description: 'It said so within the last 15 seconds.' }),
    startedAt: z.iso.datetime(),
    seenAt: z.iso.datetime(),
    problems: z.array(z.string()),
    doing: z
      .array(z.object({ agent: z.string(), stage: z.string(), share: z.number(), text: z.string() }))
      .openapi({ description: 'What a worker is at.' }),
  })
  .openapi('Process', { description: 'One process of Pawl on this database.' });

export const statusSchema = z
  .object({
    version: z.string(),
    status: z.enum(['ok', 'degraded']),
    /** Only with the admin token. */
    detail: z
      .object({
        recording: recordingSchema
          .nullable()
          .openapi({ description: 'Of this process; null where it does not record.' }),
        processes: z.array(processSchema).openapi({ description: 'All that work on this database, of the last hour.' }),
        database: z.object({
          kind: z.enum(['embedded', 'external']),
          reachable: z.boolean(),
          problem: z.string().nullable(),
          serverVersion: z.int(),
          sizeBytes: count.nullable(),
          migrations: z.array(z.string()),
          days: z.array(z.string()).openapi({ description: 'Days that have a partition, oldest first.' }),
        }),
      })
      .nullable(),
  })
  .openapi('Status');

export type TrajectoryPage = z.output<typeof trajectoryPageSchema>;
export type TrajectoryDetail = z.output<typeof oneTrajectorySchema>;
export type ApiTrajectory = z.output<typeof trajectorySchema>;
export type ApiTurn = z.output<typeof turnSchema>;
export type ApiSibling = z.output<typeof siblingSchema>;
export type ApiSignal = z.output<typeof signalSchema>;
export type ApiKey = z.output<typeof keySchema>;
export type SayConsent = z.output<typeof sayConsentQuery>;
export type ApiConsent = z.output<typeof consentSchema>;
export type Status = z.output<typeof statusSchema>;
export type Recording = z.output<typeof recordingSchema>;
