/** What pages look closer at: a run's curves, the cases of a report where the two differ, a rollout's comparisons in shadow. */
import { createRoute, z } from '@hono/zod-openapi';
import { NotFoundError, RequestError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { readReport } from '../store/reports.ts';
import { readRollout } from '../store/rollouts.ts';
import { readCurves } from '../store/run-curves.ts';
import { postgresRunStore } from '../store/runs.ts';
import { listComparisons, readShadow } from '../store/shadows.ts';
import { createRouter, json, problem, refusals, security } from './declare.ts';
import { limit, text, time } from './schema.ts';

const count = z.int().min(0);
const id = z.object({ id: text(128).openapi({ param: { name: 'id', in: 'path' } }) });
const whole = (most: number, fallback: number) =>
  z.coerce
    .number()
    .pipe(z.int().min(2).max(most))
    .default(fallback)
    .openapi({ type: 'integer', minimum: 2, maximum: most, default: fallback });

const curvesRoute = createRoute({
  method: 'get',
  path: '/api/runs/{id}/curves',
  summary: 'The figures of a run step by step, thinned out to what a curve can show',
  security,
  request: { params: id, query: z.strictObject({ points: whole(5_000, 500) }) },
  responses: {
    200: json(
      z
        .object({
          run: z.string(),
          steps: z.array(count),
          values: z.record(z.string(), z.array(z.number().nullable())),
        })
        .openapi('Curves', { description: 'By metric, beside `steps`; null: not measured there.' }),
      'The curves.',
    ),
    404: problem('There is no such run.'),
    ...refusals,
  },
});

const number = z.number().nullable();
const casesRoute = createRoute({
  method: 'get',
  path: '/api/reports/{id}/cases',
  summary: 'Cases of a report, those first where the candidate is worse',
  security,
  request: {
    params: id,
    query: z.strictObject({
      differ: z.enum(['true', 'false']).default('false').openapi({ description: 'true: only where the two differ.' }),
      limit: limit(50),
      cursor: z.coerce.number().pipe(z.int().min(1)).optional().openapi({ type: 'integer' }),
    }),
  },
  responses: {
    200: json(
      z
        .object({
          cases: z.array(
            z.object({
              ...{ id: z.string(), taskType: z.string(), baseline: number, candidate: number, difference: number },
              reasons: z.object({ baseline: z.array(z.string()), candidate: z.array(z.string()) }).optional(),
            }),
          ),
          next: z.int().nullable(),
        })
        .openapi('ReportCases'),
      'A page of cases.',
    ),
    404: problem('There is no such report.'),
    ...refusals,
  },
});

const shadowsRoute = createRoute({
  method: 'get',
  path: '/api/rollouts/{id}/shadows',
  summary: 'What a rollout’s candidate answered beside the baseline, newest first; both turns can be read by their ids',
  security,
  request: { params: id, query: z.strictObject({ limit: limit(50), cursor: text(200).optional() }) },
  responses: {
    200: json(
      z
        .object({
          ...{ compared: count, failed: count, agreed: count, similarity: number, slow: count },
          shadows: z.array(
            z.object({
              ...{
                id: z.string(),
                parent: z.string(),
                trajectory: z.string().nullable(),
                at: time,
                failed: z.boolean(),
              },
              ...{
                agreed: z.boolean().nullable(),
                similarity: number,
                baselineMs: z.number(),
                candidateMs: z.number(),
              },
            }),
          ),
          next: z.string().nullable(),
        })
        .openapi('Shadows'),
      'The comparisons.',
    ),
    404: problem('There is no such rollout.'),
    ...refusals,
  },
});

const difference = ({ baseline, candidate }: { baseline: number | null; candidate: number | null }): number | null =>
  baseline === null || candidate === null ? null : candidate - baseline;

const cursorOf = ({ at, id: last }: { at: Date; id: string }): string =>
  Buffer.from(`${at.getTime()} ${last}`).toString('base64url');
function positionOf(cursor: string): { at: Date; id: string } {
  const found = /^(\d{1,15}) ([0-9a-f-]{36})$/.exec(Buffer.from(cursor, 'base64url').toString());
  if (found === null) throw new RequestError(400, 'invalid_cursor', 'cursor: not one that a page of shadows gave.');
  return { at: new Date(Number(found[1])), id: found[2]! };
}

export const lookRoutes = ({ store }: { readonly store: Store }) => {
  const runs = postgresRunStore(store);
  return createRouter()
    .openapi(curvesRoute, async (c) => {
      const { id: run } = c.req.valid('param');
      if ((await runs.get(run)) === null) throw new NotFoundError(`There is no run ${run}.`);
      return c.json({ run, ...(await readCurves(store, run, c.req.valid('query').points)) }, 200);
    })
    .openapi(casesRoute, async (c) => {
      const report = await readReport(store, c.req.valid('param').id);
      if (report === null) throw new NotFoundError(`There is no report ${c.req.valid('param').id}.`);
      const { differ, limit: most, cursor = 0 } = c.req.valid('query');
      const cases = report.tasks
        .map(({ type, ...task }) => ({ ...task, taskType: type, difference: difference(task) }))
        .filter((one) => differ === 'false' || one.difference !== 0)
        .toSorted((a, b) => (a.difference ?? 0) - (b.difference ?? 0) || (a.id < b.id ? -1 : 1));
      const end = cursor + most;
      return c.json({ cases: cases.slice(cursor, end), next: end < cases.length ? end : null }, 200);
    })
    .openapi(shadowsRoute, async (c) => {
      const rollout = await readRollout(store, c.req.valid('param').id);
      if (rollout === null) throw new NotFoundError(`There is no rollout ${c.req.valid('param').id}.`);
      const { limit: most, cursor } = c.req.valid('query');
      const { latencyRatio, latencySlackMs } = rollout.settings;
      const { compared, failed, agreed, similarity, slow } = await readShadow(store, rollout.id, {
        ...{ latencyRatio, latencySlackMs },
      });
      const after = cursor === undefined ? null : positionOf(cursor);
      const rows = await listComparisons(store, rollout.id, { limit: most + 1, after });
      const page = rows.slice(0, most);
      return c.json(
        {
          ...{ compared, failed, agreed, similarity, slow },
          shadows: page.map((row) => ({ ...row, at: row.at.toISOString() })),
          next: rows.length > most ? cursorOf(page.at(-1)!) : null,
        },
        200,
      );
    });
};
