/** Flags of an agent, and which types of task go to another release than the one that serves. */
import { createRoute, z } from '@hono/zod-openapi';
import { flagNames, listFlags, turnFlag } from '../deploy/flag.ts';
import { standingRouting } from '../deploy/task-routing.ts';
import { readRelease } from '../store/releases.ts';
import type { ApiParts } from './api.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, by, text, time } from './schema.ts';
import { knownAgent } from './window.ts';

const whose = agentName.optional().openapi({ description: 'Whose; without it, the first of the settings.' });
const noAgent = problem('There is no such agent in the settings.');

const flagSchema = z
  .object({
    name: z.enum(flagNames),
    governs: z.string().openapi({ description: 'What goes on while it is on.' }),
    on: z.boolean(),
    by: z.string().nullable(),
    reason: z.string().nullable(),
    at: time.nullable(),
  })
  .openapi('Flag', { description: '`by`, `reason` and `at` are null where nobody ever turned it: it is on.' });

const listRoute = createRoute({
  method: 'get',
  path: '/api/flags',
  summary: 'Switches of an agent for what happens by itself',
  security,
  request: { query: z.strictObject({ agent: whose }) },
  responses: {
    200: json(z.object({ agent: z.string(), flags: z.array(flagSchema) }).openapi('Flags'), 'All of them.'),
    404: noAgent,
    ...refusals,
  },
});
const turnRoute = createRoute({
  method: 'post',
  path: '/api/flags/{name}',
  summary: 'Turn a flag; every process follows within 2 s',
  security,
  request: {
    params: z.object({ name: z.enum(flagNames) }),
    body: body(
      z.strictObject({
        agent: whose,
        on: z.boolean(),
        by: by('Who turns it'),
        reason: text(2000).default('No reason was given.'),
      }),
    ),
  },
  responses: {
    200: json(
      z.object({ agent: z.string(), name: z.string(), on: z.boolean(), changed: z.boolean() }).openapi('FlagTurned'),
      '`changed` is false where it stood so already.',
    ),
    404: noAgent,
    ...refusals,
  },
});

const routingRoute = createRoute({
  method: 'get',
  path: '/api/routing',
  summary:
    'Types of task that another release answers than the one that serves, and what showed that it is better at them',
  security,
  request: { query: z.strictObject({ agent: whose }) },
  responses: {
    200: json(
      z
        .object({
          agent: z.string(),
          inForce: z.boolean().openapi({
            description: 'False where something else serves by now, the flag is off or the kill switch is pulled.',
          }),
          why: z.string().nullable().openapi({ description: 'Why it is not in force, where something was found.' }),
          rollout: z.string().nullable(),
          release: z.string().nullable().openapi({ description: 'Name of the release that answers them.' }),
          types: z.array(
            z.object({
              type: z.string(),
              users: z.object({ baseline: z.int(), candidate: z.int() }),
              difference: z.number(),
              z: z.number(),
              bound: z.number(),
            }),
          ),
        })
        .openapi('TaskRouting'),
      'What the newest rollout showed.',
    ),
    404: noAgent,
    ...refusals,
  },
});

export const flagRoutes = ({ store, config }: Pick<ApiParts, 'store' | 'config'>) =>
  createRouter()
    .openapi(listRoute, async (c) => {
      const { name: agent } = knownAgent(config, c.req.valid('query').agent);
      const flags = (await listFlags(store, agent)).map(({ isOn, at, by: who = null, reason = null, ...flag }) => ({
        ...{ ...flag, on: isOn, by: who, reason },
        at: at === undefined ? null : new Date(at).toISOString(),
      }));
      return c.json({ agent, flags }, 200);
    })
    .openapi(turnRoute, async (c) => {
      const { name } = c.req.valid('param');
      const { agent: asked, on, by: who, reason } = c.req.valid('json');
      const { name: agent } = knownAgent(config, asked);
      const changed = await turnFlag(store, { agent, name, isOn: on, by: who, reason, at: Date.now() });
      return c.json({ agent, name, on, changed }, 200);
    })
    .openapi(routingRoute, async (c) => {
      const { name: agent } = knownAgent(config, c.req.valid('query').agent);
      const standing = await standingRouting(store, agent);
      if (standing === null)
        return c.json({ agent, inForce: false, why: null, rollout: null, release: null, types: [] }, 200);
      const { routing: found, notInForce: why } = standing;
      const inForce = why === null && found.types.length > 0;
      const release = (await readRelease(store, { id: found.other }))?.name ?? null;
      return c.json({ agent, inForce, why, rollout: found.rollout, release, types: [...found.types] }, 200);
    });
