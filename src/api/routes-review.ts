/** What waits for a person, and what that person says of it. */
import { createRoute, z } from '@hono/zod-openapi';
import { labelFields } from '../collect/label.ts';
import { hashedId } from '../collect/person.ts';
import { trajectoryId } from '../collect/trajectory.ts';
import type { Config } from '../config.ts';
import { labelConversation, pickWindow, readQueue } from '../review/queue.ts';
import type { Store } from '../store/postgres.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, limit, time } from './schema.ts';
import { knownAgent, windowOf, windowShape } from './window.ts';

export type ReviewParts = {
  readonly store: Store;
  readonly config: Pick<Config, 'agents'>;
  readonly secret: string;
};

const count = z.int().min(0);
const unknown = { 404: problem('There is no such agent in the settings, or no such conversation.') };
const agent = agentName.optional().openapi({ description: 'Whose; without it, the first of the settings.' });

const queueSchema = z
  .object({
    agent: z.string(),
    conversations: z.array(
      z.object({
        trajectory: z.string(),
        why: z.enum(['random', 'disagreement']),
        reward: z.number().nullable(),
        feedback: z.number().nullable(),
        labelled: count.openapi({ description: 'How many people have labelled it.' }),
        pickedAt: time,
      }),
    ),
    waiting: z.array(
      z.object({
        kind: z.enum(['report', 'rollout']),
        id: z.string(),
        reasons: z.array(z.string()),
        since: time,
        command: z.string().openapi({ description: 'How a person goes on at a terminal.' }),
      }),
    ),
    agreement: z.object({ both: count, kappa: z.number().nullable() }).openapi({
      description: 'Cohen’s κ over conversations that two people labelled.',
    }),
  })
  .openapi('ReviewQueue');

const queueRoute = createRoute({
  method: 'get',
  path: '/api/review',
  summary: 'What waits for a person: conversations, evaluations, rollouts',
  security,
  request: {
    query: z.strictObject({
      agent,
      reviewer: z
        .string()
        .min(1)
        .max(256)
        .optional()
        .openapi({ description: 'Without what this person has labelled.' }),
      limit: limit(50),
    }),
  },
  responses: { 200: json(queueSchema, 'The queue.'), ...unknown, ...refusals },
});

const { score, comment, correction } = labelFields;
const labelRoute = createRoute({
  method: 'post',
  path: '/api/review',
  summary: 'Say what a conversation was worth; a correction becomes a demonstration and a pair',
  security,
  request: {
    body: body(
      z.strictObject({
        ...{ agent, trajectory: trajectoryId, score, comment, correction },
        reviewer: z.string().min(1).max(256),
      }),
    ),
  },
  responses: { 204: { description: 'It is written down.' }, ...unknown, ...refusals },
});

const pickRoute = createRoute({
  method: 'post',
  path: '/api/review/pick',
  summary: 'Pick conversations of a window for review, now; once a week it happens by itself',
  security,
  request: { body: body(z.strictObject(windowShape)) },
  responses: {
    200: json(z.object({ agent: z.string(), scored: count, picked: count, added: count }), 'How many.'),
    ...unknown,
    ...refusals,
  },
});

export const reviewRoutes = ({ store, config, secret }: ReviewParts) =>
  createRouter()
    .openapi(queueRoute, async (c) => {
      const { agent: name, reviewer, limit: most } = c.req.valid('query');
      const without = reviewer === undefined ? undefined : hashedId(reviewer, secret);
      const { conversations, waiting, ...rest } = await readQueue(store, knownAgent(config, name), {
        ...{ without, limit: most },
      });
      return c.json(
        {
          ...rest,
          conversations: conversations.map(({ agent: _, pickedAt, ...item }) => ({
            ...item,
            pickedAt: pickedAt.toISOString(),
          })),
          waiting: waiting.map(({ since, reasons, ...one }) => ({
            ...one,
            reasons: [...reasons],
            since: since.toISOString(),
          })),
        },
        200,
      );
    })
    .openapi(labelRoute, async (c) => {
      const { agent: name, ...said } = c.req.valid('json');
      const known = knownAgent(config, name).name;
      await labelConversation(store, { agent: known, secret, now: new Date() }, said);
      return c.body(null, 204);
    })
    .openapi(pickRoute, async (c) => {
      const { agent: name, ...given } = c.req.valid('json');
      const known = knownAgent(config, name);
      const now = new Date();
      return c.json({ agent: known.name, ...(await pickWindow(store, known, windowOf(given, now), now)) }, 200);
    });
