/** Who judges, what that took, and what was said of one conversation. */
import { createRoute, z } from '@hono/zod-openapi';
import { readableId } from '../collect/person.ts';
import { judgeStatus } from '../score/judge-status.ts';
import { listVerdicts } from '../store/verdicts.ts';
import type { ApiParts } from './api.ts';
import { createRouter, failure, json, problem, refusals, security } from './declare.ts';
import { agentName, countedAt, trajectoryParam } from './schema.ts';

const count = z.int().min(0);
const statusSchema = z
  .object({
    agents: z.array(
      z.object({
        agent: z.string(),
        judge: z
          .object({ upstream: z.string(), model: z.string(), embeddingModel: z.string().nullable() })
          .nullable()
          .openapi({ description: 'null: none is configured, and scorers that ask one measure nothing.' }),
      }),
    ),
    verdicts: count.openapi({ description: 'Kept; what they are about is not asked again.' }),
    failed: count.openapi({ description: 'Asked for in vain so far.' }),
    countedAt,
    budget: z.object({ run: z.number().nullable(), day: z.number().nullable() }),
    moneyToday: z.number(),
    spending: z.array(
      z.object({
        ...{ day: z.iso.date(), agent: z.string(), upstream: z.string(), model: z.string() },
        ...{ calls: count, promptTokens: count, completionTokens: count, money: z.number() },
      }),
    ),
  })
  .openapi('Judging', { description: 'Days are UTC, the newest first.' });

const verdictSchema = z
  .object({
    agent: z.string(),
    prompt: z.string().openapi({ description: 'What was asked, and in which version.' }),
    model: z.string(),
    value: z.number().min(0).max(1).nullable(),
    reason: z.string(),
    details: z.array(z.object({ name: z.string(), value: z.number(), reason: z.string() })),
    failures: count.openapi({ description: 'Above 0: there is no verdict, and this is how often it was asked for.' }),
    at: z.iso.datetime(),
  })
  .openapi('Verdict');

const statusRoute = createRoute({
  method: 'get',
  path: '/api/judge',
  summary: 'Who judges which agent’s conversations, and what that took',
  security,
  request: { query: z.strictObject({ days: z.coerce.number().int().min(1).max(366).default(7) }) },
  responses: { 200: json(statusSchema, 'As of now.'), ...refusals },
});
const verdictsRoute = createRoute({
  method: 'get',
  path: '/api/trajectories/{id}/verdicts',
  summary: 'What judges said of one conversation, the newest first',
  security,
  request: { params: trajectoryParam, query: z.strictObject({ agent: agentName.optional() }) },
  responses: {
    200: json(z.object({ verdicts: z.array(verdictSchema) }), 'The verdicts.'),
    404: problem('No judge was asked about it.'),
    ...refusals,
  },
});

export const judgeRoutes = ({ store, config, secret }: Pick<ApiParts, 'store' | 'config' | 'secret'>) =>
  createRouter()
    .openapi(statusRoute, async (c) => {
      const {
        agents,
        spending,
        countedAt: counted,
        ...rest
      } = await judgeStatus(store, config.agents, c.req.valid('query').days);
      return c.json({ ...rest, countedAt: counted.toISOString(), agents: [...agents], spending: [...spending] }, 200);
    })
    .openapi(verdictsRoute, async (c) => {
      const { id } = c.req.valid('param');
      const found = await listVerdicts(store, readableId(id, secret), c.req.valid('query').agent);
      if (found.length === 0) return c.json(failure('not_found', `No judge was asked about trajectory ${id}.`), 404);
      const verdicts = found.map(({ details = [], at, ...one }) => ({
        ...one,
        details: [...details],
        at: new Date(at).toISOString(),
      }));
      return c.json({ verdicts }, 200);
    });
