/** Datasets: make one of a window, look at them, compare two, and read one in the format of another trainer. */

import { createRoute, z } from '@hono/zod-openapi';
import { stream } from 'hono/streaming';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { settledPii } from '../collect/redact/settings.ts';
import type { Config } from '../config.ts';
import { datasetFacts, findShifts, lookAtShifts } from '../curate/check.ts';
import { type Dataset, type DatasetDraft, dataset as datasetSchema } from '../curate/dataset.ts';
import { contentsOf, type DatasetDiff, datasetDiff, diffDatasets } from '../curate/diff.ts';
import { exportFormats } from '../curate/export.ts';
import { exportLines, refuseInternal } from '../curate/export-run.ts';
import { readLines } from '../curate/files.ts';
import { NothingKept } from '../curate/nothing-kept.ts';
import { conditionNames, conditionsOf, type DatasetFacts, unready } from '../curate/prerequisites.ts';
import { needKey, releaseShift } from '../curate/release-shift.ts';
import { curateWindow, previewWindow } from '../curate/run.ts';
import { NotFoundError, RequestError } from '../errors.ts';
import { openJudge } from '../score/ask-open.ts';
import { lendEngine, openRewardModels } from '../score/reward-models.ts';
import { scoreWindow } from '../score/run.ts';
import { listDatasets, readDataset } from '../store/datasets.ts';
import { listKeys } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { recentLooks } from './recent-looks.ts';
import { agentName, by, countedAt, limit } from './schema.ts';
import { knownAgent, oneAtATime, windowOf, windowShape } from './window.ts';

export type CurateParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly config: Pick<Config, 'agents' | 'engine'>;
};

const moments = { createdAt: z.iso.datetime(), since: z.iso.datetime(), until: z.iso.datetime() };
const gone = z
  .object({ at: z.iso.datetime(), because: z.string(), replacedBy: z.string().nullable() })
  .nullable()
  .openapi({ description: 'null: it is there. Otherwise why not, and which dataset has its other rows.' });
const wireSchema = z.object({ ...datasetSchema.shape, ...moments, gone }).openapi('Dataset');
const draftSchema = wireSchema.omit({ id: true, version: true, gone: true }).openapi('DatasetDraft');

const wire = <D extends DatasetDraft>({ createdAt, since, until, ...rest }: D) => ({
  ...rest,
  createdAt: new Date(createdAt).toISOString(),
  since: new Date(since).toISOString(),
  until: new Date(until).toISOString(),
});

const wireWhole = ({ gone: went, ...dataset }: Dataset) => ({
  ...wire(dataset),
  gone: went && { ...went, at: new Date(went.at).toISOString() },
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
        by: by('Who makes it'),
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
  request: {
    params: param,
    query: z.strictObject({ format: z.enum(exportFormats), internal: z.enum(['true', 'false']).optional() }),
  },
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

const conditionSchema = z
  .object({
    name: z.enum(conditionNames),
    met: z.boolean(),
    found: z.string(),
    needed: z.string(),
    way: z.string().openapi({ description: 'What to do; empty where it holds.' }),
  })
  .openapi('Condition');
const checkRoute = createRoute({
  method: 'get',
  path: '/api/datasets/{id}/check',
  summary: 'What must hold before a dataset is trained on, and whether it does',
  security,
  request: { params: param },
  responses: {
    200: json(
      z.object({
        dataset: z.string(),
        ready: z.boolean(),
        without: z.array(z.string()),
        conditions: z.array(conditionSchema),
        countedAt,
      }),
      '`ready`: every condition holds, or the agent’s file names it in train.without.',
    ),
    ...noDataset,
    ...refusals,
  },
});
const word = z.string().min(1).max(200);
const shiftsRoute = createRoute({
  method: 'get',
  path: '/api/shifts',
  summary:
    'Keys whose scores of a kind of task jumped while those of others did not: held until a person releases them',
  security,
  request: { query: z.strictObject(windowShape) },
  responses: {
    200: json(
      z.object({
        agent: z.string(),
        countedAt,
        shifts: z.array(
          z
            .object({
              key: z.string().openapi({ description: 'Id of the client key.' }),
              name: z.string().nullable().openapi({ description: 'Its name; null: the key is gone.' }),
              ...{ taskType: z.string(), before: z.number(), now: z.number() },
              conversations: z.int().min(0),
              releasedAt: z.iso
                .datetime()
                .nullable()
                .openapi({ description: 'What came until then may be learned from.' }),
            })
            .openapi('Shift', { description: 'Mean scores in the window before and in this one.' }),
        ),
      }),
      'The shifts of the window.',
    ),
    404: problem('There is no such agent in the settings.'),
    ...refusals,
  },
});
const releaseRoute = createRoute({
  method: 'post',
  path: '/api/shifts/release',
  summary: 'Let what came until now with a key be learned from, although its scores of a kind of task jumped',
  security,
  request: {
    body: body(
      z.strictObject({
        agent: agentName,
        key: word,
        taskType: word,
        by: word.default('api').openapi({ description: 'Who looked at it; stands in the audit log.' }),
        reason: z.string().max(2000).nullable().default(null),
      }),
    ),
  },
  responses: { 200: json(z.object({ released: z.literal(true) }), 'It may be learned from.'), ...refusals },
});

/** All of a dataset is read for these looks: a large one not at every look. */
const isLarge = ({ rows }: Pick<Dataset, 'rows'>): boolean => rows >= 1_000;
const fresh = <T>(value: T) => ({ value, at: new Date() });

export const curateRoutes = ({ store, artifacts, config }: CurateParts) => {
  const once = oneAtATime('Curating');
  const recentFacts = recentLooks<DatasetFacts>();
  const recentDiffs = recentLooks<DatasetDiff>();
  const rewardModels = openRewardModels({ store, artifacts }, lendEngine(config.engine));
  const need = async (which: string): Promise<Dataset> => {
    const found = await readDataset(store, { id: which });
    if (found === null) throw new NotFoundError(`There is no dataset ${which}.`);
    return found;
  };
  return createRouter()
    .openapi(makeRoute, async (c) => {
      const { agent: name, seed, dryRun, by: who, ...asked } = c.req.valid('json');
      const now = new Date();
      const whose = knownAgent(config, name);
      const { name: agent, reward: spec, curate: settings } = whose;
      const window = { agent, spec, ...windowOf(asked, now), now };
      const select = { ...window, settings, seed, refuseEmpty: true, pii: settledPii(whose.pii), by: who };
      try {
        const made = await once(agent, async () => {
          const services = { judge: openJudge(store, whose), rewardModels };
          await scoreWindow(store, { ...window, services, origin: settings.on, signal: c.req.raw.signal });
          return dryRun ? previewWindow(store, artifacts, select) : curateWindow(store, artifacts, select);
        });
        if (!('id' in made)) return c.json(wire(made as DatasetDraft), 200);
        const saved = wireWhole(made as Dataset);
        return made.createdAt === now.getTime() ? c.json(saved, 201) : c.json(saved, 200);
      } catch (error) {
        if (error instanceof NothingKept) throw new RequestError(409, 'nothing_kept', error.message);
        throw error;
      }
    })
    .openapi(listRoute, async (c) => {
      const datasets = await listDatasets(store, c.req.valid('query'));
      return c.json({ datasets: datasets.map(wireWhole) }, 200);
    })
    .openapi(readRoute, async (c) => c.json(wireWhole(await need(c.req.valid('param').id)), 200))
    .openapi(exportRoute, async (c) => {
      const found = await need(c.req.valid('param').id);
      refuseInternal(found, c.req.valid('query').internal === 'true');
      const as = { format: c.req.valid('query').format, by: c.get('who')?.name ?? 'api' };
      const lines = exportLines(store, artifacts, found, as);
      // The first line is made before the answer begins, so that a file that is gone is an error and not an empty answer.
      const first = await lines.next();
      c.header('content-type', 'application/jsonl');
      return stream(c, async (out) => {
        for (let next = first; !next.done && !out.aborted; next = await lines.next()) await out.writeln(next.value);
      }) as never;
    })
    .openapi(checkRoute, async (c) => {
      const dataset = await need(c.req.valid('param').id);
      const agent = knownAgent(config, dataset.agent);
      const { curate: settings, train } = agent;
      const look = () => datasetFacts(store, artifacts, dataset, agent);
      const { value: facts, at } = isLarge(dataset) ? await recentFacts(dataset.id, look) : fresh(await look());
      const conditions = conditionsOf(facts, settings.require);
      const ready = unready(dataset.id, conditions, train.without) === null;
      return c.json(
        { dataset: dataset.id, ready, without: [...train.without], conditions, countedAt: at.toISOString() },
        200,
      );
    })
    .openapi(shiftsRoute, async (c) => {
      const { agent: name, ...asked } = c.req.valid('query');
      const { name: agent, reward, curate } = knownAgent(config, name);
      const window = { agent, spec: reward.version, origin: curate.on, ...windowOf(asked, new Date()) };
      const names = new Map((await listKeys(store)).map((key) => [key.id, key.name]));
      const isNow = asked.since === undefined && asked.until === undefined;
      const found = isNow
        ? await lookAtShifts(store, window)
        : { shifts: await findShifts(store, window), countedAt: new Date() };
      const shifts = found.shifts.map(({ releasedAt, ...shift }) => ({
        ...shift,
        name: names.get(shift.key) ?? null,
        releasedAt: releasedAt?.toISOString() ?? null,
      }));
      return c.json({ agent, countedAt: found.countedAt.toISOString(), shifts }, 200);
    })
    .openapi(releaseRoute, async (c) => {
      const { agent, key, taskType, by: actor, reason } = c.req.valid('json');
      await needKey(store, { agent, key });
      await releaseShift(store, { agent, key, taskType }, { actor, reason, at: new Date() });
      return c.json({ released: true as const }, 200);
    })
    .openapi(diffRoute, async (c) => {
      const [first, second] = [await need(c.req.valid('param').id), await need(c.req.valid('query').with)];
      const look = async () => {
        const contents = await contentsOf(readLines(artifacts, first));
        return diffDatasets(first, second, contents, await contentsOf(readLines(artifacts, second)));
      };
      // Neither changes; who had to go is not in the one that took its place, which has another id.
      const isHeld = (isLarge(first) || isLarge(second)) && first.gone === null && second.gone === null;
      const { value } = isHeld ? await recentDiffs(`${first.id} ${second.id}`, look) : fresh(await look());
      return c.json(value, 200);
    });
};
