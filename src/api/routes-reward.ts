/** Whether a reward can be trusted, what weights would be better, and two versions side by side. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Config } from '../config.ts';
import { NotFoundError } from '../errors.ts';
import { compareStored, fitReward, lookAtReward } from '../score/check-reward.ts';
import type { Comparison } from '../score/compare-rewards.ts';
import { keepsFigures } from '../store/figures.ts';
import { hasScores, lookAtSpecs } from '../store/judged.ts';
import type { Store } from '../store/postgres.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { recentLooks } from './recent-looks.ts';
import { agentName, countedAt, moment, text } from './schema.ts';
import { knownAgent, oneAtATime, windowOf, windowShape } from './window.ts';

export type RewardParts = { readonly store: Store; readonly config: Pick<Config, 'agents'> };

const count = z.int().min(0);
const unknown = { 404: problem('There is no such agent in the settings, or no such version.') };
const agent = agentName.optional().openapi({ description: 'Whose; without it, the first of the settings.' });

const agreement = z
  .object({
    part: z.string().nullable().openapi({ description: 'null: the total.' }),
    labels: count,
    spearman: z.number().nullable(),
    low: z.number().nullable(),
    high: z.number().nullable(),
    state: z.enum(['ok', 'alarm', 'unmeasured']).openapi({ description: '`alarm`: below 0.7.' }),
  })
  .openapi('Agreement', { description: 'How alike a score and people order conversations; 95% interval.' });

const drift = z
  .object({
    part: z.string().nullable(),
    means: z.array(z.number().nullable()).openapi({ description: 'By week of seven days, the latest first.' }),
    measured: z.array(z.number()),
    ...{ change: z.number().nullable(), low: z.number().nullable(), high: z.number().nullable() },
    state: z.enum(['steady', 'moved', 'unmeasured']),
  })
  .openapi('RewardDrift');

const statusRoute = createRoute({
  method: 'get',
  path: '/api/reward',
  summary: 'How well the reward agrees with labels, part by part, and how its parts moved from week to week',
  security,
  request: { query: z.strictObject({ agent }) },
  responses: {
    200: json(
      z
        .object({
          ...{ agent: z.string(), spec: z.string(), total: agreement, parts: z.array(agreement) },
          drift: z.array(drift),
          countedAt,
        })
        .openapi('RewardStatus'),
      'The agreement.',
    ),
    ...unknown,
    ...refusals,
  },
});

const figure = z.object({ value: z.number().nullable(), low: z.number().nullable(), high: z.number().nullable() });
const compared = z.object({ current: figure, proposed: figure, difference: figure });
const fitRoute = createRoute({
  method: 'post',
  path: '/api/reward/fit',
  summary: 'Propose weights from labels or from a measured outcome; changes nothing',
  security,
  request: { body: body(z.strictObject({ agent, outcome: text(64).optional() })) },
  responses: {
    200: json(
      z
        .object({
          ...{ agent: z.string(), spec: z.string(), samples: count, groups: count },
          parts: z.array(
            z.object({ name: z.string(), current: z.number(), proposed: z.number().nullable(), kept: z.boolean() }),
          ),
          leftOut: z.array(z.string()),
          ...{ spearman: compared, auc: compared.nullable() },
          verdict: z.enum(['better', 'not shown', 'worse', 'none', 'too few']),
          ...{ gained: count, lost: count },
        })
        .openapi('RewardProposal', { description: 'Figures of `proposed` are of conversations the fit had not seen.' }),
      'The proposal.',
    ),
    409: problem('One of this agent runs already.'),
    ...unknown,
    ...refusals,
  },
});

const versionsRoute = createRoute({
  method: 'get',
  path: '/api/reward/versions',
  summary: 'Versions of the reward under which conversations have scores, the latest first',
  security,
  request: { query: z.strictObject({ agent }) },
  responses: {
    200: json(
      z.object({
        countedAt,
        versions: z.array(z.object({ version: z.string(), scores: count, at: z.iso.datetime(), current: z.boolean() })),
      }),
      'The versions.',
    ),
    ...unknown,
    ...refusals,
  },
});

const swap = z.object({
  ...{ trajectory: z.string(), a: z.number(), b: z.number(), placeA: z.number(), placeB: z.number() },
  because: z.string().nullable().openapi({ description: 'The part whose share of the total changed most.' }),
});
const nullable = z.number().nullable();
const compareRoute = createRoute({
  method: 'get',
  path: '/api/reward/compare',
  summary: 'Two versions of the reward over the conversations that have scores under both',
  security,
  request: {
    query: z.strictObject({
      agent,
      a: text(64),
      b: text(64),
      since: moment.optional(),
      until: windowShape.until,
    }),
  },
  responses: {
    200: json(
      z
        .object({
          ...{ agent: z.string(), a: z.string(), b: z.string(), spearman: nullable },
          conversations: count.openapi({ description: 'The newest, at most 2,000.' }),
          ...{
            meanA: nullable,
            meanB: nullable,
            reordered: nullable,
            gained: count,
            lost: count,
            swaps: z.array(swap),
          },
          countedAt,
          labels: z.object({ count, a: nullable, b: nullable, low: nullable, high: nullable }),
        })
        .openapi('RewardComparison'),
      'The comparison.',
    ),
    ...unknown,
    ...refusals,
  },
});

/** The newest that have scores under both: enough for a correlation, and few enough for a page. */
const mostCompared = 2_000;
const month = 30 * 86_400_000;

export const rewardRoutes = ({ store, config }: RewardParts) => {
  const once = oneAtATime('Fitting the reward');
  // Labels are resampled for their intervals, and scores are ordered twice: work of this process, and not for every look at much.
  const recentChecks = recentLooks<Awaited<ReturnType<typeof lookAtReward>>>();
  const recentComparisons = recentLooks<Comparison>();
  return createRouter()
    .openapi(statusRoute, async (c) => {
      const whose = knownAgent(config, c.req.valid('query').agent);
      const look = () => lookAtReward(store, whose, new Date());
      const found = (await keepsFigures(store))
        ? (await recentChecks(`${whose.name} ${whose.reward.version}`, look)).value
        : await look();
      const { total, parts, drift: moved, spec, agent: name, countedAt: counted } = found;
      const weeks = moved.map(({ means, measured, ...rest }) => ({
        ...rest,
        means: [...means],
        measured: [...measured],
      }));
      return c.json(
        { agent: name, spec, total, parts: [...parts], drift: weeks, countedAt: counted.toISOString() },
        200,
      );
    })
    .openapi(fitRoute, async (c) => {
      const { agent: name, outcome } = c.req.valid('json');
      const whose = knownAgent(config, name);
      const found = await once(whose.name, () => fitReward(store, whose, outcome));
      const lists = { parts: [...found.parts], leftOut: [...found.leftOut] };
      return c.json({ agent: whose.name, spec: whose.reward.version, ...found, ...lists }, 200);
    })
    .openapi(versionsRoute, async (c) => {
      const { name, reward } = knownAgent(config, c.req.valid('query').agent);
      const { specs, countedAt: counted } = await lookAtSpecs(store, name);
      const versions = specs.map(({ at, ...one }) => ({
        ...one,
        at: at.toISOString(),
        current: one.version === reward.version,
      }));
      return c.json({ countedAt: counted.toISOString(), versions }, 200);
    })
    .openapi(compareRoute, async (c) => {
      const { agent: name, a, b, since, until } = c.req.valid('query');
      const whose = knownAgent(config, name);
      const now = new Date();
      for (const version of [a, b])
        if (!(await hasScores(store, whose.name, version)))
          throw new NotFoundError(`${whose.name} has no scores under ${version}.`);
      const window = windowOf({ since: since ?? new Date(now.getTime() - month), until }, now);
      const look = () => compareStored(store, whose, { a, b, ...window, most: mostCompared });
      const isUsual = since === undefined && until === undefined && (await keepsFigures(store));
      const { value: found, at } = isUsual
        ? await recentComparisons(`${whose.name} ${a} ${b}`, look)
        : { value: await look(), at: now };
      return c.json({ agent: whose.name, a, b, ...found, swaps: [...found.swaps], countedAt: at.toISOString() }, 200);
    });
};
