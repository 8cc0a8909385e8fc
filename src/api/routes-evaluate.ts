/** Evaluations: begin one, see how far it is, and read the reports of all. */
import { createRoute, z } from '@hono/zod-openapi';
import { isReference } from '../artifacts/artifact.ts';
import { ConfigError } from '../errors.ts';
import { compatibilitySchema } from '../evaluate/compatibility.ts';
import type { Evaluations } from '../evaluate/evaluations.ts';
import type { Job } from '../evaluate/jobs.ts';
import { reportSchema } from '../evaluate/report.ts';
import { readCompatibility } from '../store/compatibility.ts';
import type { Store } from '../store/postgres.ts';
import { listReports, readReport } from '../store/reports.ts';
import { createRouter, failure, json, problem, refusals, security } from './declare.ts';
import { agentName, by, limit } from './schema.ts';

export type EvaluateParts = {
  readonly store: Store;
  /** What evaluates here, if anything does. */
  readonly evaluations?: Pick<Evaluations, 'start' | 'get'> | undefined;
};

const releaseName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/, 'letters, digits and _ . : - only, at most 128');

const askedSchema = z
  .strictObject({
    agent: agentName,
    candidate: releaseName.openapi({ description: 'Name of the release to be judged.' }),
    baseline: releaseName.optional().openapi({ description: 'Name of another; without it, what serves.' }),
    attempts: z.int().min(1).max(64).optional(),
    seed: z.int().min(0).max(2_147_483_647).optional(),
    suite: z
      .string()
      .refine(isReference, 'the reference of an artifact: artifact: and 64 hexadecimal digits')
      .optional()
      .openapi({ description: 'Another suite: its artifact, as `pawl artifacts list` shows it.' }),
    cases: z
      .array(z.record(z.string(), z.unknown()))
      .min(1)
      .max(1000)
      .optional()
      .openapi({ description: 'Another suite: its cases themselves, as docs/evaluate.md has them.' }),
    by: by('Who asks'),
  })
  .refine(({ suite, cases }) => suite === undefined || cases === undefined, {
    path: ['cases'],
    message: 'leave it away where suite is given: one of the two is played',
  })
  .openapi('NewEvaluation', { description: 'Played on the golden file of the agent, unless it brings its suite.' });

const jobSchema = z
  .object({
    id: z.string(),
    agent: z.string(),
    status: z.enum(['running', 'done', 'failed']),
    played: z.int().openapi({ description: 'Attempts played so far, by both releases.' }),
    total: z.int().openapi({ description: 'Attempts in all; 0 until that is known.' }),
    report: z.string().nullable().openapi({ description: 'Id of the report, once it is done.' }),
    error: z.string().nullable().openapi({ description: 'Why it failed, once it has.' }),
    startedAt: z.iso.datetime(),
    endedAt: z.iso.datetime().nullable(),
  })
  .openapi('Evaluation');

const wireJob = ({ startedAt, endedAt, ...job }: Job): z.output<typeof jobSchema> => ({
  ...job,
  startedAt: new Date(startedAt).toISOString(),
  endedAt: endedAt === null ? null : new Date(endedAt).toISOString(),
});

const { tasks: _, ...withoutTasks } = reportSchema.shape;
const listedReport = z
  .object(withoutTasks)
  .openapi('ListedReport', { description: 'A report without its single cases.' });

const idParam = (what: string) =>
  z.object({
    id: z
      .string()
      .min(1)
      .max(128)
      .openapi({ param: { name: 'id', in: 'path' }, description: what }),
  });

const startRoute = createRoute({
  method: 'post',
  path: '/api/evaluations',
  summary: 'Evaluate a release against another; it goes on after the answer',
  security,
  request: { body: { required: true, content: { 'application/json': { schema: askedSchema } } } },
  responses: {
    202: json(jobSchema, 'It runs; ask GET /api/evaluations/{id} how far it is.'),
    404: problem('There is no such release.'),
    409: problem('One of this agent runs already.'),
    ...refusals,
  },
});
const readJobRoute = createRoute({
  method: 'get',
  path: '/api/evaluations/{id}',
  summary: 'How far an evaluation is, and the id of its report once it is done',
  security,
  request: { params: idParam('Id of the evaluation.') },
  responses: {
    200: json(jobSchema, 'The evaluation.'),
    404: problem('There is no such evaluation in this process.'),
    ...refusals,
  },
});
const listRoute = createRoute({
  method: 'get',
  path: '/api/reports',
  summary: 'List reports of evaluations, newest first, without their single cases',
  security,
  request: { query: z.strictObject({ agent: agentName.optional(), limit: limit(50) }) },
  responses: { 200: json(z.object({ reports: z.array(listedReport) }), 'The reports.'), ...refusals },
});
const readRoute = createRoute({
  method: 'get',
  path: '/api/reports/{id}',
  summary: 'One report, case by case',
  security,
  request: { params: idParam('Id of the report.') },
  responses: { 200: json(reportSchema, 'The report.'), 404: problem('There is no such report.'), ...refusals },
});

const compatibilityRoute = createRoute({
  method: 'get',
  path: '/api/compatibility',
  summary: 'Whether a release fits where it is to serve, as it was last checked',
  security,
  request: { query: z.strictObject({ agent: agentName, release: releaseName }) },
  responses: {
    200: json(compatibilitySchema, 'What was found.'),
    404: problem('Nobody has checked that.'),
    ...refusals,
  },
});

export const evaluateRoutes = ({ store, evaluations }: EvaluateParts) =>
  createRouter()
    .openapi(startRoute, async (c) => {
      const { agent, ...asked } = c.req.valid('json');
      try {
        if (evaluations === undefined) throw new ConfigError('Nothing is evaluated in this process.');
        const job = await evaluations.start(agent, asked);
        if (job === null)
          return c.json(
            failure('already_running', `An evaluation of agent ${agent} is running; wait for it to end.`),
            409,
          );
        return c.json(wireJob(job), 202);
      } catch (error) {
        if (error instanceof ConfigError) return c.json(failure('invalid_request', error.message), 400);
        throw error;
      }
    })
    .openapi(readJobRoute, (c) => {
      const { id } = c.req.valid('param');
      const job = evaluations?.get(id) ?? null;
      if (job !== null) return c.json(wireJob(job), 200);
      const message = `There is no evaluation ${id} in this process; GET /api/reports lists what earlier ones found.`;
      return c.json(failure('not_found', message), 404);
    })
    .openapi(listRoute, async (c) => {
      const reports = await listReports(store, c.req.valid('query'));
      return c.json({ reports: reports.map(({ tasks: __, ...rest }) => rest) }, 200);
    })
    .openapi(compatibilityRoute, async (c) => {
      const of = c.req.valid('query');
      const found = await readCompatibility(store, of);
      if (found !== null) return c.json(compatibilitySchema.parse(found), 200);
      const how = `pawl evaluate compat ${of.release} --agent ${of.agent}`;
      return c.json(failure('not_found', `Release ${of.release} has not been checked: \`${how}\`.`), 404);
    })
    .openapi(readRoute, async (c) => {
      const { id } = c.req.valid('param');
      const found = await readReport(store, id);
      if (found === null) return c.json(failure('not_found', `There is no report ${id}.`), 404);
      return c.json(reportSchema.parse(found), 200);
    });
