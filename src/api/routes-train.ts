/**
 * Training runs: what there is to learn from, which runs there are, how far each is, and asking one to pause or stop. Beginning one
 * needs an engine and hours: `pawl train` does that in a process of its own, and the loop.
 */
import { createRoute, z } from '@hono/zod-openapi';
import type { Config } from '../config.ts';
import { pairSources } from '../curate/pair.ts';
import { NotFoundError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { postgresRunStore } from '../store/runs.ts';
import { adviseStored } from '../train/advise-stored.ts';
import { askRun } from '../train/ask.ts';
import { metricNames } from '../train/metrics.ts';
import { recipeNames } from '../train/recipe-names.ts';
import { type RunCheckpoint, type RunRecord, runStatuses } from '../train/run-record.ts';
import { readStoredFacts } from '../train/stored-facts.ts';
import { createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, limit } from './schema.ts';
import { knownAgent } from './window.ts';

export type TrainParts = { readonly store: Store; readonly config: Pick<Config, 'agents' | 'home'> };

const time = z.iso.datetime();
const count = z.int().min(0);
const runSchema = z
  .object({
    id: z.string(),
    agent: z.string(),
    recipe: z.string(),
    settings: z.record(z.string(), z.unknown()),
    base: z.string(),
    seed: count,
    steps: count,
    step: count,
    status: z.enum(runStatuses),
    reason: z.string().nullable(),
    budget: z.object({ seconds: z.number().optional(), tokens: z.number().optional(), money: z.number().optional() }),
    spent: z.object({ seconds: z.number(), tokens: z.number(), money: z.number() }),
    request: z.enum(['pause', 'stop']).nullable(),
    heartbeatAt: time,
    createdAt: time,
  })
  .openapi('Run');
const stepSchema = z
  .object({
    step: count,
    stage: z.string(),
    stageStep: count,
    values: z.partialRecord(z.enum(metricNames), z.number()),
    taskTypes: z
      .record(z.string(), z.object({ reward: z.number(), success: z.number(), attempts: z.number() }))
      .optional(),
  })
  .openapi('RunStep');
const detailSchema = z
  .object({
    run: runSchema,
    checkpoints: z.array(
      z.object({
        step: count,
        kind: z.enum(['stage', 'step']),
        stage: count,
        folder: z.string(),
        validation: z.number().nullable(),
      }),
    ),
    metrics: z.array(stepSchema),
  })
  .openapi('RunDetail', { description: 'With its checkpoints and the figures of its latest steps.' });
const adviceSchema = z
  .object({
    agent: z.string(),
    stored: z.object({
      trajectories: count,
      consenting: count,
      scored: count,
      good: count,
      votes: count,
      corrections: count,
    }),
    dataset: z
      .object({ id: z.string(), examples: count, pairs: z.partialRecord(z.enum(pairSources), count) })
      .nullable(),
    environment: z.boolean(),
    recipe: z.enum(recipeNames).nullable(),
    reasons: z.array(z.string()).readonly(),
    next: z.string().openapi({ description: 'The command to run next.' }),
  })
  .openapi('TrainAdvice');

const param = z.object({
  id: z
    .string()
    .min(1)
    .max(128)
    .openapi({ param: { name: 'id', in: 'path' }, example: 'sft-20260131T140211' }),
});
const noRun = { 404: problem('There is no such run.') };

const adviseRoute = createRoute({
  method: 'get',
  path: '/api/train/advice',
  summary: 'What there is to learn from, which recipe that is enough for, and why',
  security,
  request: { query: z.strictObject({ agent: agentName.optional() }) },
  responses: {
    200: json(adviceSchema, 'The advice.'),
    404: problem('There is no such agent in the settings.'),
    ...refusals,
  },
});
const listRoute = createRoute({
  method: 'get',
  path: '/api/runs',
  summary: 'List training runs, newest first',
  security,
  request: { query: z.strictObject({ limit: limit(50) }) },
  responses: { 200: json(z.object({ runs: z.array(runSchema) }), 'The runs.'), ...refusals },
});
const readRoute = createRoute({
  method: 'get',
  path: '/api/runs/{id}',
  summary: 'One run: progress, checkpoints, figures',
  security,
  request: { params: param, query: z.strictObject({ last: limit(100) }) },
  responses: { 200: json(detailSchema, 'The run.'), ...noRun, ...refusals },
});
const askedSchema = z.object({ kind: z.enum(['already', 'asked', 'done']), message: z.string() }).openapi('RunAsked', {
  description: 'asked: whoever trains it will after the step it is in; done: nobody trained it.',
});
const askRoute = <R extends 'pause' | 'stop'>(request: R) =>
  createRoute({
    method: 'post',
    path: `/api/runs/{id}/${request}`,
    summary: `${request === 'pause' ? 'Pause' : 'Stop'} a run after the step it is in`,
    security,
    request: { params: param },
    responses: { 200: json(askedSchema, 'What becomes of it.'), ...noRun, ...refusals },
  });

const wire = ({ folder: _, owner: __, heartbeatAt, createdAt, ...run }: RunRecord) => ({
  ...run,
  settings: { ...run.settings },
  heartbeatAt: new Date(heartbeatAt).toISOString(),
  createdAt: new Date(createdAt).toISOString(),
});
const wireCheckpoint = ({ step, kind, stage, folder, validation }: RunCheckpoint) => ({
  step,
  kind,
  stage,
  folder,
  validation,
});

export const trainRoutes = ({ store, config }: TrainParts) => {
  const runs = postgresRunStore(store);
  const need = async (id: string): Promise<RunRecord> => {
    const run = await runs.get(id);
    if (run === null) throw new NotFoundError(`There is no run ${id}.`);
    return run;
  };
  const ask = async (id: string, request: 'pause' | 'stop') => {
    const { kind, sentence } = await askRun(runs, await need(id), request, Date.now());
    return { kind, message: sentence };
  };
  return createRouter()
    .openapi(adviseRoute, async (c) => {
      const facts = await readStoredFacts(store, config.home, knownAgent(config, c.req.valid('query').agent));
      return c.json({ ...facts, ...adviseStored(facts) }, 200);
    })
    .openapi(listRoute, async (c) => c.json({ runs: (await runs.list(c.req.valid('query').limit)).map(wire) }, 200))
    .openapi(readRoute, async (c) => {
      const run = await need(c.req.valid('param').id);
      const metrics = await runs.metrics(run.id, Math.max(0, run.step - c.req.valid('query').last));
      const checkpoints = (await runs.checkpoints(run.id)).map(wireCheckpoint);
      return c.json({ run: wire(run), checkpoints, metrics: [...metrics] }, 200);
    })
    .openapi(askRoute('pause'), async (c) => c.json(await ask(c.req.valid('param').id, 'pause'), 200))
    .openapi(askRoute('stop'), async (c) => c.json(await ask(c.req.valid('param').id, 'stop'), 200));
};
