/** How scores are spread part by part, and how they would be with other weights: of the newest scores, a bounded number. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Config } from '../config.ts';
import { spreadOf } from '../score/distribution.ts';
import {
  mostScores,
  newestScores,
  readWeights,
  type WhatIf,
  weightsHint,
  weightsPattern,
  whatIf,
} from '../score/what-if.ts';
import type { Store } from '../store/postgres.ts';
import { createRouter, json, problem, refusals, security } from './declare.ts';
import { knownAgent, windowOf, windowShape } from './window.ts';

const count = z.int().min(0);
const spread = z.object({
  measured: count,
  mean: z.number().nullable(),
  bins: z.array(count).openapi({ description: 'How many lie in each twentieth of 0–1.' }),
});
const sample = count.openapi({ description: `Conversations it is of: the newest, at most ${mostScores}.` });
const unknown = { 404: problem('There is no such agent in the settings.') };

const distributionRoute = createRoute({
  method: 'get',
  path: '/api/score/distribution',
  summary: 'How scores are spread, all together and part by part',
  security,
  request: { query: z.strictObject(windowShape) },
  responses: {
    200: json(
      z
        .object({
          ...{ agent: z.string(), spec: z.string(), sample, total: spread },
          parts: z.array(spread.extend({ name: z.string(), weight: z.number(), penalty: z.boolean() })),
        })
        .openapi('ScoreDistribution'),
      'The distribution.',
    ),
    ...unknown,
    ...refusals,
  },
});

const weights = z
  .string()
  .max(4096)
  .regex(weightsPattern, { error: weightsHint })
  .transform(readWeights)
  .openapi({ type: 'string', example: 'resolved:0.5,tools:0.3' });

const side = spread.pick({ mean: true, bins: true });
const whatIfRoute = createRoute({
  method: 'get',
  path: '/api/score/what-if',
  summary: 'How scores would be spread with other weights; changes nothing',
  security,
  request: { query: z.strictObject({ ...windowShape, weights }) },
  responses: {
    200: json(
      z
        .object({
          ...{ agent: z.string(), spec: z.string(), sample, current: side, proposed: side },
          minScore: z
            .number()
            .openapi({ description: 'Of the agent’s `curate`: from here a conversation is learned from.' }),
          kept: z.object({ current: count, proposed: count, gained: count, lost: count }),
        })
        .openapi('ScoreWhatIf'),
      'Both distributions.',
    ),
    ...unknown,
    ...refusals,
  },
});

export const distributionRoutes = ({
  store,
  config,
}: {
  readonly store: Store;
  readonly config: Pick<Config, 'agents'>;
}) => {
  return createRouter()
    .openapi(distributionRoute, async (c) => {
      const { agent: name, ...asked } = c.req.valid('query');
      const agent = knownAgent(config, name);
      const scores = await newestScores(store, agent, windowOf(asked, new Date()));
      const wire = ({ bins, ...rest }: ReturnType<typeof spreadOf>) => ({ ...rest, bins: [...bins] });
      return c.json(
        {
          ...{ agent: agent.name, spec: agent.reward.version, sample: scores.length },
          total: wire(spreadOf(scores.map(({ total }) => total))),
          parts: agent.reward.parts.map(({ name: part, weight, penalty }) => ({
            ...{ name: part, weight, penalty: penalty === true },
            ...wire(spreadOf(scores.map(({ parts }) => parts[part]?.value ?? null))),
          })),
        },
        200,
      );
    })
    .openapi(whatIfRoute, async (c) => {
      const { agent: name, weights: given, ...asked } = c.req.valid('query');
      const found = await whatIf(store, knownAgent(config, name), given, windowOf(asked, new Date()));
      const wire = ({ mean, bins }: WhatIf['current']) => ({ mean, bins: [...bins] });
      return c.json({ ...found, current: wire(found.current), proposed: wire(found.proposed) }, 200);
    });
};
