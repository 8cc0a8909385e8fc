/** `GET /api/privacy`: how privacy stands. `GET /api/settings`: what is set, without a secret. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Config } from '../config.ts';
import { dueAt } from '../privacy/erasure.ts';
import { listErasures } from '../store/erasures.ts';
import type { Store } from '../store/postgres.ts';
import { countPrivacy } from '../store/privacy-counts.ts';
import { version } from '../version.ts';
import { createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, time } from './schema.ts';
import { shownSettings } from './shown-settings.ts';
import { knownAgent } from './window.ts';

const count = z.int().min(0);
const said = z.object({ given: count, withdrawn: count });
const privacyRoute = createRoute({
  method: 'get',
  path: '/api/privacy',
  summary: 'How privacy stands: consent by purpose, what was masked, what must be forgotten by when',
  security,
  request: { query: z.strictObject({ agent: agentName.optional() }) },
  responses: {
    200: json(
      z
        .object({
          agent: z.string(),
          consent: z.object({ learn: said, transfer: said, tenants: said }).openapi({ description: 'Users.' }),
          masked: z.array(z.object({ type: z.string(), count })).openapi({
            description: 'Personal data masked before it was stored, in the turns that were looked at.',
          }),
          turns: count.openapi({ description: 'Turns looked at: of the last seven days, at most 2,000 of each.' }),
          erasures: z.object({ open: count, overdue: count, next: time.nullable() }),
          holds: count,
        })
        .openapi('Privacy'),
      'How it stands.',
    ),
    404: problem('There is no such agent in the settings.'),
    ...refusals,
  },
});

const settingsRoute = createRoute({
  method: 'get',
  path: '/api/settings',
  summary: 'What is set, without a secret',
  security,
  responses: {
    200: json(
      z.object({ version: z.string(), settings: z.record(z.string(), z.unknown()) }).openapi('ShownSettings', {
        description: 'Secrets are `set` or left out; functions are left out.',
      }),
      'The settings.',
    ),
    ...refusals,
  },
});

export type StandingParts = {
  readonly store: Store;
  readonly config: Pick<Config, 'agents' | 'upstreams' | 'engine' | 'retention' | 'pii' | 'alerts' | 'mlflow'>;
};

export const standingRoutes = ({ store, config }: StandingParts) =>
  createRouter()
    .openapi(privacyRoute, async (c) => {
      const { name } = knownAgent(config, c.req.valid('query').agent);
      const now = new Date();
      const [counts, erasures] = await Promise.all([
        countPrivacy(store, name, now),
        listErasures(store, { limit: 1000 }),
      ]);
      const { learn, transfer, tenants, masked, turns, holds } = counts;
      const due = erasures.filter(({ status }) => status !== 'done').map(dueAt);
      return c.json(
        {
          ...{ agent: name, consent: { learn, transfer, tenants }, masked: [...masked], turns, holds },
          erasures: {
            open: due.length,
            overdue: due.filter((at) => at < now.getTime()).length,
            next: due.length === 0 ? null : new Date(Math.min(...due)).toISOString(),
          },
        },
        200,
      );
    })
    .openapi(settingsRoute, async (c) => c.json({ version, settings: shownSettings(config) }, 200));
