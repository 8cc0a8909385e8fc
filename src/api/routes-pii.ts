/** /api/pii: what personal data is stored, by kind and with where. Never the value. */
import { createRoute, z } from '@hono/zod-openapi';
import { settledPii } from '../collect/redact/settings.ts';
import type { Config } from '../config.ts';
import { surveyPii } from '../privacy/pii.ts';
import { scanning } from '../store/limits.ts';
import type { Store } from '../store/postgres.ts';
import { createRouter, json, refusals, security } from './declare.ts';
import { knownAgent, windowOf, windowShape } from './window.ts';

const count = z.int().min(0);
const found = z
  .record(
    z.string(),
    z.object({
      count,
      in: count.openapi({ description: 'Conversations, and comments or corrections.' }),
      where: z.record(z.string(), count).openapi({
        description: 'By whose words: user, assistant, tool, system, tools, answer, explored answer, feedback …',
      }),
      first: z.array(z.string()).openapi({ description: 'The first ten of them.' }),
    }),
  )
  .openapi('PiiFound', { description: 'By kind.' });

const surveyRoute = createRoute({
  method: 'get',
  path: '/api/pii',
  summary: 'What personal data was masked in what is stored, and what is still found in it',
  security,
  request: {
    query: z.strictObject({
      ...windowShape,
      scan: z
        .enum(['true', 'false'])
        .default('false')
        .openapi({ description: 'Also looks for what would be replaced if it became a dataset today.' }),
    }),
  },
  responses: {
    200: json(
      z.object({
        agent: z.string(),
        since: z.iso.datetime(),
        until: z.iso.datetime(),
        conversations: count,
        turns: count,
        unread: count.openapi({ description: 'Conversations too large to look through.' }),
        masked: found,
        found: found.nullable().openapi({ description: 'null: it was not looked for.' }),
      }),
      'By kind; values are never shown.',
    ),
    ...refusals,
  },
});

export const piiRoutes = ({ store, config }: { readonly store: Store; readonly config: Pick<Config, 'agents'> }) =>
  createRouter().openapi(surveyRoute, async (c) => {
    const { agent: name, scan, ...asked } = c.req.valid('query');
    const agent = knownAgent(config, name);
    const patient = store.within(scanning, 3);
    try {
      const { since, until, ...survey } = await surveyPii(patient, {
        ...{ agent: agent.name, ...windowOf(asked, new Date()) },
        pii: scan === 'true' ? settledPii(agent.pii) : null,
      });
      return c.json({ ...survey, since: new Date(since).toISOString(), until: new Date(until).toISOString() }, 200);
    } finally {
      await patient.close();
    }
  });
