/** Scores: give them to a window of conversations, and read those of one. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { readableId } from '../collect/person.ts';
import { origins } from '../collect/trajectory.ts';
import type { Config } from '../config.ts';
import { openJudge } from '../score/ask-open.ts';
import { explain } from '../score/explain.ts';
import { lendEngine, openRewardModels } from '../score/reward-models.ts';
import { planScoring, scoreWindow } from '../score/run.ts';
import { score } from '../score/score.ts';
import { adoptionIn } from '../score/tool-adoption.ts';
import type { Store } from '../store/postgres.ts';
import { listScores } from '../store/scores.ts';
import { readTrajectory } from '../store/trajectories.ts';
import { body, createRouter, failure, json, problem, refusals, security } from './declare.ts';
import { agentName, trajectoryParam } from './schema.ts';
import { knownAgent, oneAtATime, windowOf, windowShape } from './window.ts';

export type ScoreParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly config: Pick<Config, 'agents' | 'engine'>;
  readonly secret: string;
};

const count = z.int().min(0);
const countsSchema = z
  .object({
    agent: z.string(),
    spec: z.string().openapi({ description: 'Version of the reward.' }),
    trajectories: count,
    scored: count,
    rescored: count,
    unchanged: count,
    tooLong: count,
    tooLarge: count,
    unmeasured: count,
    broken: count.openapi({ description: 'A scorer failed for these; the next run asks it again.' }),
    judge: z
      .object({
        calls: count,
        promptTokens: count,
        completionTokens: count,
        money: z.number(),
        known: count,
        asked: count,
        withheld: count.openapi({ description: 'Not asked, because what it would be shown must not leave.' }),
      })
      .nullable()
      .openapi({ description: 'What asking the judge took; null where none is configured.' }),
    answers: count.openapi({ description: 'Single answers scored, where a turn was explored.' }),
  })
  .openapi('ScoreCounts');

const runRoute = createRoute({
  method: 'post',
  path: '/api/score/runs',
  summary: 'Score the conversations of a window; the answer comes when it is done',
  security,
  request: { body: body(z.strictObject({ ...windowShape, origin: z.enum(origins).optional() })) },
  responses: {
    200: json(countsSchema, 'What was scored.'),
    404: problem('There is no such agent in the settings.'),
    409: problem('One of this agent runs already.'),
    ...refusals,
  },
});
// The record's own schema may be older than zod-openapi in this process, and then has no `openapi`.
const scoreSchema = z.strictObject(score.shape).openapi('Score');

const explanationSchema = z
  .object({
    summary: z.string(),
    parts: z.array(
      z.object({
        name: z.string(),
        adds: z.number().nullable().openapi({ description: 'To the total; below 0 for a penalty.' }),
        most: z.number(),
        sentence: z.string(),
      }),
    ),
  })
  .openapi('ScoreExplanation');

const planRoute = createRoute({
  method: 'post',
  path: '/api/score/plans',
  summary: 'What scoring a window would take: conversations, calls to a judge, money. Asks nobody',
  security,
  request: { body: body(z.strictObject({ ...windowShape, origin: z.enum(origins).optional() })) },
  responses: {
    200: json(
      z
        .object({
          agent: z.string(),
          spec: z.string(),
          trajectories: count,
          pending: count,
          answers: count.openapi({ description: 'Single answers, where a turn was explored.' }),
          calls: count,
          money: z.number(),
          unpriced: count.openapi({ description: 'Of the calls, those without a price.' }),
        })
        .openapi('ScorePlan'),
      'What it would take.',
    ),
    404: problem('There is no such agent in the settings.'),
    409: problem('One of this agent runs already.'),
    ...refusals,
  },
});

const usedSchema = z.object({ offered: count, used: count });
const toolsRoute = createRoute({
  method: 'get',
  path: '/api/score/tools',
  summary:
    'In how many conversations that were offered tools one was used, by kind of task, and in as long a time before',
  security,
  request: { query: z.strictObject({ ...windowShape, origin: z.enum(origins).optional() }) },
  responses: {
    200: json(
      z.object({
        agent: z.string(),
        taskTypes: z.array(
          usedSchema
            .extend({
              taskType: z.string(),
              before: usedSchema.nullable().openapi({ description: 'null: there was no such conversation.' }),
              tools: z.array(z.object({ name: z.string(), conversations: count })),
            })
            .openapi('ToolAdoption'),
        ),
      }),
      'Those with most conversations first.',
    ),
    404: problem('There is no such agent in the settings.'),
    ...refusals,
  },
});

const readRoute = createRoute({
  method: 'get',
  path: '/api/trajectories/{id}/scores',
  summary: 'The scores of one conversation, part by part, the latest first; none where nobody has scored it yet',
  security,
  request: { params: trajectoryParam, query: z.strictObject({ agent: agentName.optional() }) },
  responses: {
    200: json(
      z.object({
        scores: z.array(scoreSchema),
        explanations: z
          .array(explanationSchema)
          .openapi({ description: 'Of each score, in the same order: what it is made of, in words.' }),
      }),
      'The scores.',
    ),
    404: problem('There is no such conversation.'),
    ...refusals,
  },
});

export const scoreRoutes = ({ store, artifacts, config, secret }: ScoreParts) => {
  const once = oneAtATime('Scoring');
  const rewardModels = openRewardModels({ store, artifacts }, lendEngine(config.engine));
  return createRouter()
    .openapi(runRoute, async (c) => {
      const { agent: name, origin, ...asked } = c.req.valid('json');
      const now = new Date();
      const whose = knownAgent(config, name);
      const { name: agent, reward: spec, curate } = whose;
      const judge = openJudge(store, whose);
      const window = {
        agent,
        spec,
        ...windowOf(asked, now),
        origin: origin ?? curate.on,
        now,
        services: { judge, rewardModels },
      };
      const counts = await once(agent, () => scoreWindow(store, { ...window, signal: c.req.raw.signal }));
      return c.json({ agent, spec: spec.version, ...counts, judge: judge?.counts() ?? null }, 200);
    })
    .openapi(planRoute, async (c) => {
      const { agent: name, origin, ...asked } = c.req.valid('json');
      const now = new Date();
      const whose = knownAgent(config, name);
      const { name: agent, reward: spec, curate } = whose;
      const services = { judge: openJudge(store, whose) };
      const window = { agent, spec, ...windowOf(asked, now), origin: origin ?? curate.on, now, services };
      const plan = await once(agent, () => planScoring(store, { ...window, signal: c.req.raw.signal }));
      return c.json({ agent, spec: spec.version, ...plan }, 200);
    })
    .openapi(toolsRoute, async (c) => {
      const { agent: name, origin, ...asked } = c.req.valid('query');
      const { name: agent, curate } = knownAgent(config, name);
      const window = { agent, ...windowOf(asked, new Date()), origin: origin ?? curate.on };
      const found = await adoptionIn(store, window);
      return c.json({ agent, taskTypes: found.map((one) => ({ ...one, tools: [...one.tools] })) }, 200);
    })
    .openapi(readRoute, async (c) => {
      const { id } = c.req.valid('param');
      const { agent } = c.req.valid('query');
      const read = readableId(id, secret);
      const scores = await listScores(store, read, agent);
      if (scores.length === 0 && (await readTrajectory(store, read, { agent, maxTurns: 1, maxBytes: 1 })) === null)
        return c.json(failure('not_found', `There is no trajectory ${id}, so it has no score.`), 404);
      const explanations = scores.map((one) => {
        const { summary, parts } = explain(one);
        return { summary, parts: [...parts] };
      });
      return c.json({ scores, explanations }, 200);
    });
};
