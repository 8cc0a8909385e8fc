/** Datasets: make one of a window, look at them, compare two, and read one in the format of another trainer. */
import { createRoute, z } from '@hono/zod-openapi';
import { stream } from 'hono/streaming';
import type { Config } from '../config.ts';
import { type Dataset, type DatasetDraft, dataset as datasetSchema } from '../curate/dataset.ts';
import { contentsOf, datasetDiff, diffDatasets } from '../curate/diff.ts';
import { exportFormats } from '../curate/export.ts';
import { exportLines } from '../curate/export-run.ts';
import { readLines } from '../curate/files.ts';
import { NothingKept } from '../curate/nothing-kept.ts';
import { curateWindow, previewWindow } from '../curate/run.ts';
import { RequestError } from '../errors.ts';
import { scoreWindow } from '../score/run.ts';
import { listDatasets, readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, limit } from './schema.ts';
import { knownAgent, oneAtATime, windowOf, windowShape } from './window.ts';

export type CurateParts = { readonly store: Store; readonly config: Pick<Config, 'agents' | 'home'> };

const moments = { createdAt: z.iso.datetime(), since: z.iso.datetime(), until: z.iso.datetime() };
const wireSchema = z.object({ ...datasetSchema.shape, ...moments }).openapi('Dataset');
const draftSchema = wireSchema.omit({ id: true, version: true }).openapi('DatasetDraft');

const wire = <D extends DatasetDraft>({ createdAt, since, until, ...rest }: D) => ({
  ...rest,
  createdAt: new Date(createdAt).toISOString(),
  since: new Date(since).toISOString(),
  until: new Date(until).toISOString(),
});

const id = z.string().min(1).max(200);
const param = z.object({ id: id.openapi({ param: { name: 'id', in: 'path' }, example: 'support-desk-v3' }) });
const noDataset = { 404: problem('There is no such dataset.') };
const makeRoute = createRoute({
  method: 'post',
  path: '/api/datasets',
  summary: 'Score a window and make a dataset of what passes the gates; the answer comes when it is done',
  security,
  request: {
    body: body(
      z.strictObject({
        ...windowShape,
        seed: z.int().min(0).max(2_147_483_647).default(0).openapi({ description: 'Draws among equals.' }),
        dryRun: z.boolean().default(false).openapi({ description: 'Only says what would be chosen.' }),
      }),
    ),
  },
  responses: {
    200: json(
      z.union([wireSchema, draftSchema]),
      'What would be chosen, or the dataset of the same selection from before.',
    ),
    201: json(wireSchema, 'The dataset.'),
    404: problem('There is no such agent in the settings.'),
    409: problem('Nothing passed every gate, or one of this agent is being made already.'),
    ...refusals,
  },
});
const listRoute = createRoute({
  method: 'get',
  path: '/api/datasets',
  summary: 'List datasets, newest first',
  security,
  request: { query: z.strictObject({ agent: agentName.optional(), limit: limit(50) }) },
  responses: { 200: json(z.object({ datasets: z.array(wireSchema) }), 'The datasets.'), ...refusals },
});
const readRoute = createRoute({
  method: 'get',
  path: '/api/datasets/{id}',
  summary: 'One dataset: what came in, what was left out at which gate, and why',
  security,
  request: { params: param },
  responses: { 200: json(wireSchema, 'The dataset.'), ...noDataset, ...refusals },
});
const exportRoute = createRoute({
  method: 'get',
  path: '/api/datasets/{id}/export',
  summary: 'A dataset in the format of another trainer, without what users have withdrawn since',
  security,
  request: { params: param, query: z.strictObject({ format: z.enum(exportFormats) }) },
  responses: {
    200: { content: { 'application/jsonl': { schema: z.string() } }, description: 'JSON objects, one a line.' },
    ...noDataset,
    ...refusals,
  },
});
const diffRoute = createRoute({
  method: 'get',
  path: '/api/datasets/{id}/diff',
  summary: 'What two datasets do not share',
  security,
  request: { params: param, query: z.strictObject({ with: id }) },
  responses: {
    200: json(z.object(datasetDiff.shape).openapi('DatasetDiff'), 'Conversations are named by day and id.'),
    ...noDataset,
    ...refusals,
  },
});

export const curateRoutes = ({ store, config }: CurateParts) => {
  const once = oneAtATime('Curating');
  const need = async (which: string): Promise<Dataset> => {
    const found = await readDataset(store, { id: which });
    if (found === null) throw new RequestError(404, 'not_found', `There is no dataset ${which}.`);
    return found;
  };
  return createRouter()
    .openapi(makeRoute, async (c) => {
      const { agent: name, seed, dryRun, ...asked } = c.req.valid('json');
      const now = new Date();
      const { name: agent, reward: spec, curate: settings } = knownAgent(config, name);
      const window = { agent, spec, ...windowOf(asked, now), now };
      const select = { ...window, settings, seed, refuseEmpty: true };
      try {
        const made = await once(agent, async () => {
          await scoreWindow(store, { ...window, origin: settings.on, signal: c.req.raw.signal });
          return dryRun ? previewWindow(store, config.home, select) : curateWindow(store, config.home, select);
        });
        if (!('id' in made)) return c.json(wire(made as DatasetDraft), 200);
        const saved = wire(made as Dataset);
        return made.createdAt === now.getTime() ? c.json(saved, 201) : c.json(saved, 200);
      } catch (error) {
        if (error instanceof NothingKept) throw new RequestError(409, 'nothing_kept', error.message);
        throw error;
      }
    })
    .openapi(listRoute, async (c) => {
      const datasets = await listDatasets(store, c.req.valid('query'));
      return c.json({ datasets: datasets.map(wire) }, 200);
    })
    .openapi(readRoute, async (c) => c.json(wire(await need(c.req.valid('param').id)), 200))
    .openapi(exportRoute, async (c) => {
      const found = await need(c.req.valid('param').id);
      const lines = exportLines(store, config.home, found, c.req.valid('query').format);
      // The first line is made before the answer begins, so that a file that is gone is an error and not an empty answer.
      const first = await lines.next();
      c.header('content-type', 'application/jsonl');
      return stream(c, async (out) => {
        for (let next = first; !next.done && !out.aborted; next = await lines.next()) await out.writeln(next.value);
      }) as never;
    })
    .openapi(diffRoute, async (c) => {
      const [first, second] = [await need(c.req.valid('param').id), await need(c.req.valid('query').with)];
      const contents = await contentsOf(readLines(config.home, first));
      const diff = diffDatasets(first, second, contents, await contentsOf(readLines(config.home, second)));
      return c.json(diff, 200);
    });
};
