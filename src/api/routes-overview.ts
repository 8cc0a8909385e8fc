/** `GET /api/overview`: an agent's loop at a glance. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Config } from '../config.ts';
import type { Progress } from '../loop/runner.ts';
import { stageNames } from '../loop/turn.ts';
import type { Store } from '../store/postgres.ts';
import { createRouter, json, problem, refusals, security } from './declare.ts';
import { overviewJson, readOverview } from './overview.ts';
import { agentName, time } from './schema.ts';
import { knownAgent } from './window.ts';

const count = z.int().min(0);
const number = z.number().nullable();
const dayAndWeek = z.object({ day: count, week: count });
const overviewSchema = z
  .object({
    agents: z.array(z.string()).openapi({ description: 'Of the settings.' }),
    agent: z.string(),
    loop: z.object({
      turn: z.int().nullable().openapi({ description: 'The newest turn’s number.' }),
      stage: z.enum(stageNames).nullable().openapi({ description: 'The stage it is at; null between turns.' }),
      done: z.array(z.string()),
      next: z.object({ kind: z.string(), reason: z.string() }),
      paused: z.boolean(),
      progress: z.object({ stage: z.enum(stageNames), share: z.number(), text: z.string() }).nullable(),
    }),
    stages: z
      .object({
        most: count.openapi({ description: 'Figures are counted up to here; one that is this large is “or more”.' }),
        conversations: dayAndWeek,
        errors: dayAndWeek,
        traces: count.openapi({ description: 'Conversations of all time, counted up to 10,001.' }),
        signals: z.object({ feedback: count, outcome: count, label: count }),
        scores: z.object({ week: count, mean: number }),
        datasets: z.object({ week: count, newest: z.string().nullable(), rows: count.nullable() }),
        runs: z.object({ week: count, running: count }),
        reports: z.object({ week: count, ended: count, passed: count }),
        rollouts: z.object({ week: count, open: count, promoted: count, rolledBack: count }),
        golden: count.nullable().openapi({ description: 'Cases of the newest evaluation’s suite.' }),
        judgingMoney: z.number(),
      })
      .openapi({ description: 'The last day and week.' }),
    serving: z
      .object({ name: z.string(), model: z.string(), since: time, killed: z.boolean() })
      .nullable()
      .openapi({ description: 'The release that answers; `killed`: by the kill switch.' }),
    waiting: z
      .array(
        z.object({
          kind: z.enum(['loop', 'rollout', 'report', 'review', 'erasure', 'release']),
          id: z.string().nullable(),
          sentence: z.string(),
          command: z.string(),
        }),
      )
      .openapi({ description: 'What needs a person now.' }),
    gains: z
      .array(
        z.object({
          turn: z.int(),
          endedAt: time.nullable(),
          before: z.number(),
          after: z.number(),
          interval: z.array(z.number()).openapi({ description: 'Of the difference, 95%.' }),
          verdict: z.string(),
          promoted: z.boolean(),
          money: z.number(),
        }),
      )
      .openapi({ description: 'Shares of golden cases solved, turn by turn, the oldest first.' }),
    go: z.object({
      verdict: z.enum(['go', 'not yet', 'no-go']),
      checks: z.array(
        z.object({
          name: z.string(),
          value: number,
          threshold: z.number(),
          end: z.enum(['pass', 'fail', 'inconclusive', 'unmeasured']),
          wayOut: z.string().nullable(),
        }),
      ),
      phase: z.object({ name: z.string(), traces: count, money: number, gain: number }),
    }),
    money: z.object({
      cost: z.number(),
      savedPerWeek: number,
      return: number.openapi({ description: 'What twelve weeks bring for each unit spent.' }),
      paybackWeeks: number,
      unmeasured: z.array(z.string()),
      deploymentsSucceeded: number.openapi({ description: 'Share of rollouts that ended promoted.' }),
      evaluationsPassed: number,
    }),
  })
  .openapi('Overview');

const route = createRoute({
  method: 'get',
  path: '/api/overview',
  summary: 'An agent’s loop at a glance: stages, what needs a person, gains, go or no-go, cost and return',
  security,
  request: { query: z.strictObject({ agent: agentName.optional() }) },
  responses: {
    200: json(overviewSchema, 'The overview.'),
    404: problem('There is no such agent in the settings.'),
    ...refusals,
  },
});

export type OverviewParts = {
  readonly store: Store;
  readonly config: Pick<Config, 'agents'>;
  readonly progress?: (agent: string) => Promise<Progress | null>;
};

export const overviewRoutes = ({ store, config, progress }: OverviewParts) =>
  createRouter().openapi(route, async (c) => {
    const agent = knownAgent(config, c.req.valid('query').agent);
    const found = await readOverview(store, agent, new Date(), progress);
    return c.json({ agents: config.agents.map(({ name }) => name), ...overviewJson(found) }, 200);
  });
