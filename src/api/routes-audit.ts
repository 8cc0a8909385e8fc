/** The audit log: who did what, and whether the record of it is whole. */
import { createRoute, z } from '@hono/zod-openapi';
import { verifyAudit } from '../audit.ts';
import { readAudit } from '../store/audit.ts';
import type { ApiParts } from './api.ts';
import { createRouter, json, refusals, security } from './declare.ts';
import { agentName, limit, moment, text, time } from './schema.ts';

const rowSchema = z
  .object({
    n: z.int(),
    at: time,
    agent: z.string(),
    actor: z.string(),
    event: z.string(),
    subject: z.string(),
    details: z.unknown(),
    previous: z.string(),
    hash: z.string(),
  })
  .openapi('AuditRow', { description: 'The hash covers the row and the hash before it.' });

const listRoute = createRoute({
  method: 'get',
  path: '/api/audit',
  summary: 'Who did what, newest first',
  security,
  request: {
    query: z.strictObject({
      agent: agentName.optional(),
      who: text(200).optional().openapi({ description: '`pawl` for what happened by itself.' }),
      type: text(100)
        .optional()
        .openapi({ description: 'One event, or with a hyphen at its end all that begin so.', example: 'rollout-' }),
      subject: text(256).optional().openapi({ description: 'Id of what it is about.' }),
      since: moment.optional(),
      until: moment.optional(),
      cursor: z.coerce.number().pipe(z.int().min(1)).optional().openapi({ description: '`next` of the page before.' }),
      limit: limit(50),
    }),
  },
  responses: {
    200: json(
      z.object({ rows: z.array(rowSchema), next: z.int().nullable() }).openapi('AuditPage'),
      'A page of the log.',
    ),
    ...refusals,
  },
});

const verifyRoute = createRoute({
  method: 'get',
  path: '/api/audit/verify',
  summary: 'Whether no row of the audit log was changed or removed; reads all of it',
  security,
  request: {
    query: z.strictObject({
      head: z
        .string()
        .regex(/^[0-9a-f]{64}$/, 'a hash of 64 hexadecimal digits')
        .optional()
        .openapi({ description: 'A hash noted earlier, e.g. on a model card, that must still be there.' }),
    }),
  },
  responses: {
    200: json(
      z
        .object({ rows: z.int(), head: z.string(), problem: z.object({ n: z.int(), problem: z.string() }).nullable() })
        .openapi('AuditVerified'),
      'problem is null where the log is whole.',
    ),
    ...refusals,
  },
});

export const auditRoutes = ({ store }: Pick<ApiParts, 'store'>) =>
  createRouter()
    .openapi(listRoute, async (c) => {
      const { who: actor, type: event, limit: most, cursor: before, ...where } = c.req.valid('query');
      const found = await readAudit(store, { ...where, before, actor, event, limit: most + 1 });
      const rows = found.slice(0, most);
      return c.json(
        {
          rows: rows.map((row) => ({ ...row, at: new Date(row.at).toISOString(), details: JSON.parse(row.details) })),
          next: found.length > most ? rows.at(-1)!.n : null,
        },
        200,
      );
    })
    .openapi(verifyRoute, async (c) => c.json(await verifyAudit(store, c.req.valid('query').head), 200));
