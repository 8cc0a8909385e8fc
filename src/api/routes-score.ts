/** Scores: give them to a window of conversations, and read those of one. */
import { createRoute, z } from '@hono/zod-openapi';
import { readableId } from '../collect/person.ts';
import { origins } from '../collect/trajectory.ts';
import type { Config } from '../config.ts';
import { scoreWindow } from '../score/run.ts';
import { score } from '../score/score.ts';
import type { Store } from '../store/postgres.ts';
import { listScores } from '../store/scores.ts';
import { body, createRouter, failure, json, problem, refusals, security } from './declare.ts';
import { agentName, trajectoryParam } from './schema.ts';
import { knownAgent, oneAtATime, windowOf, windowShape } from './window.ts';

export type ScoreParts = {
  readonly store: Store;
  readonly config: Pick<Config, 'agents'>;
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

const readRoute = createRoute({
  method: 'get',
  path: '/api/trajectories/{id}/scores',
  summary: 'The scores of one conversation, part by part, the latest first',
  security,
  request: { params: trajectoryParam, query: z.strictObject({ agent: agentName.optional() }) },
  responses: {
    200: json(z.object({ scores: z.array(scoreSchema) }), 'The scores.'),
    404: problem('It has no score.'),
    ...refusals,
  },
});

export const scoreRoutes = ({ store, config, secret }: ScoreParts) => {
  const once = oneAtATime('Scoring');
  return createRouter()
    .openapi(runRoute, async (c) => {
      const { agent: name, origin, ...asked } = c.req.valid('json');
      const now = new Date();
      const { name: agent, reward: spec, curate } = knownAgent(config, name);
      const window = { agent, spec, ...windowOf(asked, now), origin: origin ?? curate.on, now };
      const counts = await once(agent, () => scoreWindow(store, { ...window, signal: c.req.raw.signal }));
      return c.json({ agent, spec: spec.version, ...counts }, 200);
    })
    .openapi(readRoute, async (c) => {
      const { id } = c.req.valid('param');
      const scores = await listScores(store, readableId(id, secret), c.req.valid('query').agent);
      if (scores.length > 0) return c.json({ scores }, 200);
      return c.json(failure('not_found', `Trajectory ${id} has no score; POST /api/score/runs gives it one.`), 404);
    });
};
