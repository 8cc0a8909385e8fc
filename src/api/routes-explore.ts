/** What is asked of releases beyond what users ask. */
import { createRoute, z } from '@hono/zod-openapi';
import { exploreStatus } from '../gateway/explore-status.ts';
import type { ApiParts } from './api.ts';
import { createRouter, json, refusals, security } from './declare.ts';
import { noQuery } from './schema.ts';

const statusSchema = z
  .object({
    agent: z.string(),
    share: z.number().openapi({ description: 'Of chat requests to which further answers are asked for.' }),
    askedThisHour: z.int(),
    perHour: z.int(),
    askedToday: z.int(),
    moneyToday: z.number(),
    moneyPerDay: z.number().nullable().openapi({ description: 'null: no price is set, so nothing counts as cost.' }),
  })
  .openapi('Exploration', {
    description: 'What an agent may explore, and what it has taken of that. Hours and days are UTC.',
  });

const exploreRoute = createRoute({
  method: 'get',
  path: '/api/explore',
  summary: 'How many further answers were asked for after users had theirs, and what they cost',
  security,
  request: { query: noQuery },
  responses: {
    200: json(z.object({ agents: z.array(statusSchema) }), 'Every agent’s, in the order of the settings.'),
    ...refusals,
  },
});

export const exploreRoutes = ({ store, config }: Pick<ApiParts, 'store' | 'config'>) =>
  createRouter().openapi(exploreRoute, async (c) => {
    const agents: z.output<typeof statusSchema>[] = [];
    for (const agent of config.agents) agents.push(await exploreStatus(store, agent));
    return c.json({ agents }, 200);
  });
