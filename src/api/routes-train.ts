/**
 * Training runs: what there is to learn from, beginning one, which there are, how far each is, and asking one to pause, stop or go
 * on. Training goes on after the answer, in the process that serves.
 */
import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { createRoute, z } from '@hono/zod-openapi';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Config } from '../config.ts';
import { pairSources } from '../curate/pair.ts';
import { conditionNames } from '../curate/prerequisites.ts';
import { ConfigError, ConflictError, EngineError, NotFoundError, RequestError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { adviseStored } from '../train/advise-stored.ts';
import { askRun } from '../train/ask.ts';
import { auditedRuns } from '../train/audited-runs.ts';
import { needDataset } from '../train/begin.ts';
import { modelFolder } from '../train/checkpoints.ts';
import { metricNames } from '../train/metrics.ts';
import { runSettings } from '../train/plan.ts';
import { recipeNames } from '../train/recipe-names.ts';
import { type RunCheckpoint, type RunRecord, runStatuses } from '../train/run-record.ts';
import { lookAtStoredFacts } from '../train/stored-facts.ts';
import type { Trainings } from '../train/trainings.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, countedAt, limit } from './schema.ts';
import { knownAgent } from './window.ts';

export type TrainParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly config: Pick<Config, 'agents'>;
  /** What trains here, if anything does. */
  readonly trainings?: Pick<Trainings, 'begin' | 'resume'> | undefined;
};

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
    internal: z.boolean().openapi({ description: 'It learned from what is confidential: its model stays inside.' }),
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
const { steps, tasksPerStep, attempts, learningRate, kl, credit, lag, moneyPerHour } = runSettings.shape;
const positive = z.number().min(0).max(1e15);
const newRunSchema = z
  .strictObject({
    dataset: z.string().min(1).max(200).openapi({ description: 'Id of what was curated.', example: 'support-desk-v1' }),
    agent: agentName.optional().openapi({ description: 'Whose; without it, the dataset’s.' }),
    base: z
      .string()
      .min(1)
      .max(4096)
      .refine(isAbsolute, 'a whole path, on the machine that serves')
      .optional()
      .openapi({ description: 'Checkpoint to start from; without it the serving release’s, else the agent’s.' }),
    recipe: z
      .enum(['auto', ...recipeNames])
      .optional()
      .openapi({ description: 'auto decides by what there is to learn from; without it, the agent’s.' }),
    lora: z.int().min(1).max(1024).optional().openapi({ description: 'Rank of an adapter instead of all weights.' }),
    ...{ steps, tasksPerStep, attempts, learningRate, kl, credit, lag, moneyPerHour },
    seed: z.int().min(0).max(4_294_967_295).default(1),
    budget: z
      .strictObject({ seconds: positive.optional(), tokens: positive.optional(), money: positive.optional() })
      .optional(),
    without: z.array(z.enum(conditionNames)).optional().openapi({
      description: 'Conditions of GET /api/datasets/{id}/check to go on without; stands in the audit log.',
    }),
    by: z.string().min(1).max(200).default('api').openapi({ description: 'Who says so; stands in the audit log.' }),
    id: z.string().min(1).max(128).optional().openapi({ description: 'Without it, made from recipe and time.' }),
  })
  .openapi('NewRun', { description: 'What is not set is the agent’s; what the recipe does not read is refused.' });
const begunSchema = z
  .object({
    run: runSchema,
    reasons: z.array(z.string()).readonly().openapi({ description: 'Why this recipe, where nobody chose it.' }),
    unused: z.array(z.string()).readonly().openapi({ description: 'What there is and the recipe does not use.' }),
    tooLong: count.openapi({ description: 'Left out: longer than the model’s context.' }),
  })
  .openapi('BegunRun');
const detailSchema = z
  .object({
    run: runSchema,
    model: z.string().nullable().openapi({ description: 'Folder of its model, once the run is finished.' }),
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
    base: z.string().nullable().openapi({ description: 'Checkpoint that a run would start from.' }),
    recipe: z.enum(recipeNames).nullable(),
    reasons: z.array(z.string()).readonly(),
    next: z.string().openapi({ description: 'The command to run next.' }),
    countedAt,
  })
  .openapi('TrainAdvice');

const episodeSchema = z
  .object({
    task: z.string(),
    taskType: z.string(),
    attempt: count,
    reward: z.number(),
    success: z.boolean(),
    outcome: z.string(),
    reasons: z.array(z.string()),
    messages: z.array(
      z.object({
        role: z.enum(['system', 'user', 'assistant', 'tool']),
        text: z.string(),
        reasoning: z.string().optional(),
        calls: z.array(z.object({ name: z.string(), input: z.string() })).optional(),
        reward: z.number().optional().openapi({ description: 'Of the model’s turns: what it earned.' }),
        reasons: z.array(z.string()).optional(),
      }),
    ),
    leftOut: count.openapi({ description: 'Messages that are not here, because there were too many.' }),
  })
  .openapi('Episode', {
    description: 'An attempt at a task, as people read it. Personal data is masked, long texts are cut.',
  });
const episodesSchema = z
  .object({
    run: z.string(),
    steps: z
      .array(z.object({ step: count, task: z.string(), taskType: z.string(), rewards: z.array(z.number()) }))
      .openapi({ description: 'Of which steps episodes are kept, with what each earned, the best first.' }),
    step: count.nullable().openapi({ description: 'Whose episodes these are; null: there are none.' }),
    episodes: z.array(episodeSchema),
  })
  .openapi('RunEpisodes');

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
const conflict = { 409: problem('Another run is under way; the message names it.') };
const beginRoute = createRoute({
  method: 'post',
  path: '/api/runs',
  summary: 'Begin a run on a dataset; it goes on after the answer',
  security,
  request: { body: body(newRunSchema) },
  responses: {
    202: json(begunSchema, 'It trains; ask GET /api/runs/{id} how far it is.'),
    404: problem('There is no such dataset, or no such agent.'),
    ...conflict,
    ...refusals,
  },
});
const resumeRoute = createRoute({
  method: 'post',
  path: '/api/runs/{id}/resume',
  summary: 'Go on with a run that was paused, stopped, interrupted or failed',
  security,
  request: { params: param },
  responses: { 202: json(runSchema, 'It goes on from its newest checkpoint.'), ...noRun, ...conflict, ...refusals },
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
const episodesRoute = createRoute({
  method: 'get',
  path: '/api/runs/{id}/episodes',
  summary: 'Attempts of a step to read side by side: of one task, the best and the worst',
  security,
  request: {
    params: param,
    query: z.strictObject({
      step: z.coerce
        .number()
        .int()
        .min(0)
        .max(1_000_000)
        .optional()
        .openapi({ description: 'Without it, the newest of which there are some.' }),
    }),
  },
  responses: { 200: json(episodesSchema, 'The episodes.'), ...noRun, ...refusals },
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

/** What cannot be trained is the asker's to mend. */
async function asked<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError || (error instanceof EngineError && !error.retryable))
      throw new RequestError(400, 'invalid_request', error.message);
    throw error;
  }
}

export const trainRoutes = ({ store, artifacts, config, trainings }: TrainParts) => {
  const runs = auditedRuns(store, 'api');
  const trains = () => {
    if (trainings !== undefined) return trainings;
    throw new ConflictError(
      'Nothing is trained in this process; ask the one that has the engine, or use `pawl train`.',
    );
  };
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
      const facts = await lookAtStoredFacts(store, artifacts, knownAgent(config, c.req.valid('query').agent));
      return c.json({ ...facts, ...adviseStored(facts), countedAt: facts.countedAt.toISOString() }, 200);
    })
    .openapi(beginRoute, async (c) => {
      const { agent, dataset, base, recipe, lora, seed, budget, without, by, id, ...set } = c.req.valid('json');
      const { name } = knownAgent(config, agent ?? (await needDataset(store, dataset)).agent);
      const overrides = { ...set, ...(recipe === undefined ? {} : { recipe }) };
      const given = { dataset, base, lora, seed, budget, without, by, id, overrides };
      const { run, plan, reasons, unused } = await asked(() => trains().begin(name, given));
      return c.json({ run: wire(run), reasons, unused, tooLong: plan.tooLong }, 202);
    })
    .openapi(resumeRoute, async (c) => {
      const { id } = c.req.valid('param');
      return c.json(wire(await asked(() => trains().resume(id))), 202);
    })
    .openapi(listRoute, async (c) => c.json({ runs: (await runs.list(c.req.valid('query').limit)).map(wire) }, 200))
    .openapi(readRoute, async (c) => {
      const run = await need(c.req.valid('param').id);
      const metrics = await runs.metrics(run.id, Math.max(0, run.step - c.req.valid('query').last));
      const checkpoints = (await runs.checkpoints(run.id)).map(wireCheckpoint);
      const folder = modelFolder(artifacts.home, run.id);
      const model = run.status === 'finished' && existsSync(folder) ? folder : null;
      return c.json({ run: wire(run), model, checkpoints, metrics: [...metrics] }, 200);
    })
    .openapi(episodesRoute, async (c) => {
      const { id } = await need(c.req.valid('param').id);
      const steps = await runs.episodeSteps(id);
      const step = c.req.valid('query').step ?? steps.at(-1)?.step ?? null;
      const episodes = step === null ? [] : await runs.episodes(id, step);
      return c.json(
        {
          ...{ run: id, step },
          steps: steps.map(({ rewards, ...one }) => ({ ...one, rewards: [...rewards] })),
          episodes: episodes.map(({ reasons, messages, ...one }) => ({
            ...{ ...one, reasons: [...reasons] },
            messages: messages.map(({ calls, reasons: why, ...said }) => ({
              ...said,
              ...(calls === undefined ? {} : { calls: [...calls] }),
              ...(why === undefined ? {} : { reasons: [...why] }),
            })),
          })),
        },
        200,
      );
    })
    .openapi(askRoute('pause'), async (c) => c.json(await ask(c.req.valid('param').id, 'pause'), 200))
    .openapi(askRoute('stop'), async (c) => c.json(await ask(c.req.valid('param').id, 'stop'), 200));
};
