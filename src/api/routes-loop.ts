/** /api/loop: what an agent's loop does next and why, its turns with what each cost and gained, and what a person can say to it. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Agent } from '../agent.ts';
import { agentOf } from '../config.ts';
import { weightOf } from '../deploy/rollout.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import { readFacts } from '../loop/facts.ts';
import { nextStep } from '../loop/next-step.ts';
import { pauseLoop, resumeLoop, wantTurn, windowOf } from '../loop/people.ts';
import { stageLines } from '../loop/show.ts';
import { type LoopTurn, stageNames, summaryOf } from '../loop/turn.ts';
import { listLoopTurns } from '../store/loop-turns.ts';
import type { Loop } from '../store/loops.ts';
import { listRollouts } from '../store/rollouts.ts';
import type { ApiParts } from './api.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, limit } from './schema.ts';

const moment = z.iso.datetime();
const time = (at: number): string => new Date(at).toISOString();
const at = (moment: string | undefined): number | undefined => (moment === undefined ? undefined : Date.parse(moment));
const by = z
  .string()
  .min(1)
  .max(200)
  .default('api')
  .openapi({ description: 'Who says so; it stands in the audit log.' });

const spentSchema = z.object({ seconds: z.number(), tokens: z.number(), money: z.number() });
const turnSchema = z
  .object({
    number: z.int(),
    seed: z.int(),
    done: z.array(z.enum(stageNames)),
    trigger: z.string().nullable().openapi({ description: 'schedule, evidence or person.' }),
    startedAt: moment,
    endedAt: moment.nullable(),
    ended: z.string().nullable().openapi({ description: 'How it ended; null while it is under way.' }),
    spent: spentSchema.nullable().openapi({ description: 'What it cost.' }),
    gain: z
      .object({ before: z.number(), after: z.number(), interval: z.array(z.number()), verdict: z.string() })
      .nullable()
      .openapi({ description: 'Shares of golden cases; the interval is that of the difference, 95%.' }),
    told: z.array(z.object({ stage: z.enum(stageNames), lines: z.array(z.string()) })).openapi({
      description: 'What each stage that is done has to say, as `pawl loop status` does.',
    }),
    summary: z.record(z.string(), z.unknown()).nullable().openapi({
      description:
        'Before, after, verdict and funnel in short; null before the end, and of a turn without a candidate.',
    }),
    state: z.record(z.string(), z.unknown()).openapi({ description: 'What each stage left for the next.' }),
  })
  .openapi('LoopTurn');

const wireTurn = (turn: LoopTurn): z.output<typeof turnSchema> => {
  const { number, seed, done, state, startedAt, endedAt } = turn;
  const { evaluate, deploy, ended, begun, spent } = state;
  return {
    ...{ number, seed, done: [...done], trigger: begun?.trigger ?? null, startedAt: time(startedAt) },
    endedAt: endedAt === null ? null : time(endedAt),
    ended: endedAt === null ? null : (deploy?.phase ?? ended ?? null),
    spent: spent ?? null,
    gain: evaluate === undefined ? null : { ...pick(evaluate), interval: [...evaluate.interval] },
    told: done.map((stage) => ({ stage, lines: stageLines(stage, state) })),
    summary: summaryOf(turn),
    state: { ...state },
  };
};
const pick = ({ before, after, verdict }: NonNullable<LoopTurn['state']['evaluate']>) => ({ before, after, verdict });

const nextSchema = z
  .object({
    kind: z.enum(['wait', 'run', 'ask', 'begin', 'end']),
    reason: z.string(),
    until: moment.nullable().optional().openapi({ description: 'wait: until then; null: until something happens.' }),
    stage: z.enum(stageNames).optional(),
    trigger: z.string().optional(),
    question: z.string().optional(),
    command: z.string().optional().openapi({ description: 'ask: what answers the question.' }),
  })
  .openapi('LoopNext');

const loopSchema = z
  .object({
    agent: z.string(),
    next: nextSchema,
    paused: z.object({ at: moment, by: z.string() }).nullable(),
    evidence: z.object({ trajectories: z.int(), scored: z.int() }).openapi({
      description: 'New since the last turn’s window; counted up to what begins a turn.',
    }),
    turn: turnSchema.nullable().openapi({ description: 'The newest.' }),
    progress: z
      .object({ stage: z.enum(stageNames), share: z.number(), text: z.string() })
      .nullable()
      .openapi({ description: 'Of the stage under way, in whichever process it runs.' }),
    rollout: z
      .object({ id: z.string(), phase: z.string(), share: z.number() })
      .nullable()
      .openapi({ description: 'The agent’s rollout that has not ended, and the share of users on its candidate.' }),
  })
  .openapi('Loop');
const saidSchema = z
  .object({ agent: z.string(), paused: z.object({ at: moment, by: z.string() }).nullable(), wanted: z.boolean() })
  .openapi('LoopSaid');

const wireSaid = ({ agent, paused, wanted }: Loop): z.output<typeof saidSchema> => ({
  agent,
  paused: paused && { at: time(paused.at), by: paused.by },
  wanted: wanted !== null,
});

const query = z.strictObject({ agent: agentName });
const missing = problem('There is no such agent in the settings.');
const conflict = problem('It cannot be done as things stand; the message says what stands in the way.');

const loopRoute = createRoute({
  method: 'get',
  path: '/api/loop',
  summary: 'What an agent’s loop does next and why, and its newest turn',
  security,
  request: { query },
  responses: { 200: json(loopSchema, 'The loop.'), 404: missing, ...refusals },
});
const turnsRoute = createRoute({
  method: 'get',
  path: '/api/loop/turns',
  summary: 'Turns of an agent’s loop, newest first: what each cost and gained',
  security,
  request: { query: query.extend({ limit: limit(50) }) },
  responses: { 200: json(z.object({ turns: z.array(turnSchema) }), 'The turns.'), 404: missing, ...refusals },
});
const saying = <P extends string, B extends z.ZodType>(path: P, summary: string, schema: B) =>
  createRoute({
    ...{ method: 'post' as const, path, summary, security, request: { body: body(schema) } },
    responses: { 200: json(saidSchema, 'What stands now.'), 404: missing, 409: conflict, ...refusals },
  });
const said = z.strictObject({ agent: agentName, by });
const runRoute = saying(
  '/api/loop/run',
  'Turn now, or go on with a turn that failed; a Pawl that serves does it',
  said.extend({
    seed: z
      .int()
      .min(0)
      .max(2 ** 31 - 1)
      .optional(),
    since: moment
      .optional()
      .openapi({ description: 'Learn from what began then or later; default: the last window’s end.' }),
    until: moment.optional().openapi({ description: 'And before then; default: now.' }),
  }),
);
const pauseRoute = saying('/api/loop/pause', 'Begin nothing and go on with nothing; users stay where they are', said);
const resumeRoute = saying('/api/loop/resume', 'Go on: after a pause, a failure, or with a run that was paused', said);

export const loopRoutes = ({ store, config, progress = async () => null }: ApiParts) => {
  const known = (name: string): Agent => {
    try {
      return agentOf(config, name);
    } catch (error) {
      if (error instanceof ConfigError) throw new NotFoundError(error.message);
      throw error;
    }
  };
  return createRouter()
    .openapi(loopRoute, async (c) => {
      const agent = known(c.req.valid('query').agent);
      const now = Date.now();
      const { turn, facts } = await readFacts(store, agent, now);
      const next = nextStep(turn, facts, now);
      const until = next.kind === 'wait' ? { until: next.until === null ? null : time(next.until) } : {};
      const { trajectories, scored } = facts.evidence;
      const [open] = await listRollouts(store, { agent: agent.name, open: true, limit: 1 });
      return c.json(
        {
          agent: agent.name,
          next: { ...next, ...until } as z.output<typeof nextSchema>,
          paused: facts.paused && { at: time(facts.paused.at), by: facts.paused.by },
          evidence: { trajectories, scored },
          turn: turn && wireTurn(turn),
          progress: await progress(agent.name),
          rollout: open ? { id: open.id, phase: open.phase, share: weightOf(open) } : null,
        },
        200,
      );
    })
    .openapi(turnsRoute, async (c) => {
      const { agent, limit: most } = c.req.valid('query');
      return c.json({ turns: (await listLoopTurns(store, known(agent).name, most)).map(wireTurn) }, 200);
    })
    .openapi(runRoute, async (c) => {
      const { agent, by: who, seed, since, until } = c.req.valid('json');
      const now = Date.now();
      const window = windowOf(at(since), at(until), now);
      return c.json(wireSaid(await wantTurn(store, { agent: known(agent).name, by: who, now, seed, window })), 200);
    })
    .openapi(pauseRoute, async (c) => {
      const { agent, by: who } = c.req.valid('json');
      return c.json(wireSaid(await pauseLoop(store, { agent: known(agent).name, by: who, now: Date.now() })), 200);
    })
    .openapi(resumeRoute, async (c) => {
      const { agent, by: who } = c.req.valid('json');
      return c.json(wireSaid(await resumeLoop(store, { agent: known(agent).name, by: who, now: Date.now() })), 200);
    });
};
