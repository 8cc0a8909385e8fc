/**
 * A run at an MLflow server, by its REST API (2.0): what it was begun with as params, what it is as tags, the figures of each step as metrics,
 * and how it ended. The database has all of it, so nothing is held here: whoever trains says that there is a step, and a sender of its own
 * reads those that the server does not have yet. Training never waits for it; a server that is away is said once, and asked again with
 * longer and longer waits as long as the run lasts.
 *
 * A run is known there by two tags, its id and when it was begun. So a run that goes on, in whatever process on whatever machine, goes
 * on as the same run of MLflow, from the first step that is missing there.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { z } from 'zod';
import { upTo } from '../up-to.ts';
import type { StepMetrics } from './metrics.ts';
import type { MlflowSettings } from './mlflow-settings.ts';
import type { RunRecord, RunStatus, RunStore } from './run-record.ts';
import { scalarsOf } from './scalars.ts';

/** One run that is logged while it is trained. */
export type Tracking = {
  /** There is another step. Costs nothing. */
  stepped(): void;
  /** Sends the rest and how it ended, in bounded time. */
  end(): Promise<void>;
};
export type Tracker = (run: string, store: RunStore) => Tracking;

/** What the server takes in one batch; and of one text. */
const most = { metrics: 1000, params: 100, key: 250, value: 500, tag: 5000 };
const times = { answerMs: 5_000, gatherMs: 1_000, longestWaitMs: 60_000, endMs: 5_000, endAwayMs: 1_000, againMs: 250 };
export type MlflowTimes = typeof times;
const largestAnswer = 8 * 1024 * 1024;

/** The server said no, and would say so again. */
class Refused extends Error {}

const named = z.object({ key: z.string(), value: z.unknown(), step: z.coerce.number().optional() });
const runSchema = z.object({
  info: z.object({ run_id: z.string().min(1) }),
  data: z
    .object({ metrics: z.array(named).default([]), params: z.array(named).default([]) })
    .default({ metrics: [], params: [] }),
});
const experimentSchema = z.object({ experiment: z.object({ experiment_id: z.string().min(1) }) });

type Server = {
  get(path: string, query: Readonly<Record<string, string>>): Promise<unknown>;
  post(path: string, body: unknown): Promise<unknown>;
};

const serverAt = ({ url, token, user }: MlflowSettings, answerMs: number, signal: () => AbortSignal): Server => {
  const authorization =
    token === undefined
      ? {}
      : {
          authorization:
            user === undefined ? `Bearer ${token}` : `Basic ${Buffer.from(`${user}:${token}`).toString('base64')}`,
        };
  const ask = async (method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> => {
    const { statusCode, body: stream } = await request(`${url}/api/2.0/mlflow/${path}`, {
      method,
      headers: { ...authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.any([signal(), AbortSignal.timeout(answerMs)]),
    });
    const sent = await upTo(largestAnswer, stream);
    if (sent === null) throw new Refused(`it answered with more than ${largestAnswer} bytes`);
    const text = sent.toString('utf8');
    if (statusCode >= 200 && statusCode < 300) return text === '' ? {} : JSON.parse(text);
    const found = `it answered ${statusCode}${reasonIn(text)}`;
    throw statusCode >= 500 || statusCode === 408 || statusCode === 429 ? new Error(found) : new Refused(found);
  };
  return {
    get: (path, query) => ask('GET', `${path}?${new URLSearchParams(query)}`),
    post: (path, body) => ask('POST', path, body),
  };
};

const problemSchema = z.object({ error_code: z.string().optional(), message: z.string().optional() });
function reasonIn(text: string): string {
  try {
    const { error_code: code, message = '' } = problemSchema.parse(JSON.parse(text));
    return `: ${[code, message.slice(0, 300)].filter(Boolean).join(', ')}`;
  } catch {
    return '';
  }
}

/** Why a request failed, in a few words. */
export const problemOf = (error: unknown): string => {
  const { message, code, cause } = error as Error & { code?: string };
  return message || code || (cause === undefined ? String(error) : problemOf(cause));
};

/** Names there are letters, digits and a few signs; a slash makes a group. */
const nameOf = (text: string): string => text.replace(/[^\p{L}\p{N}_\-. /]/gu, '_').slice(0, most.key);

/** Settings as params: `stages.grpo.schedule.peak`. */
export function paramsOf({ recipe, base, seed, steps, budget, settings }: RunRecord): [key: string, value: string][] {
  const flat = (at: string, value: unknown): [string, string][] => {
    if (value === null || value === undefined) return [];
    if (typeof value === 'object' && !Array.isArray(value))
      return Object.entries(value).flatMap(([name, one]) => flat(at === '' ? name : `${at}.${name}`, one));
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    // An empty param would be refused, and says nothing.
    return text === '' ? [] : [[nameOf(at), text.slice(0, most.value)]];
  };
  return [...new Map(flat('', { ...settings, recipe, base, seed, steps, budget }))];
}

const tagsOf = ({ id, agent, recipe, settings, createdAt, internal }: RunRecord): Record<string, string> => ({
  'mlflow.source.name': 'pawl',
  'mlflow.source.type': 'LOCAL',
  'pawl.run': id,
  'pawl.begun': String(createdAt),
  'pawl.agent': agent,
  'pawl.recipe': recipe,
  ...(typeof settings.dataset === 'string' ? { 'pawl.dataset': settings.dataset } : {}),
  'pawl.internal': String(internal),
});

const listed = (all: Readonly<Record<string, string>>) =>
  Object.entries(all).map(([key, value]) => ({ key, value: value.slice(0, most.tag) }));

/** A paused run goes on some time. */
const statusThere = {
  running: 'RUNNING',
  paused: 'SCHEDULED',
  stopped: 'KILLED',
  finished: 'FINISHED',
  failed: 'FAILED',
} as const satisfies Record<RunStatus, string>;

type Metric = {
  readonly key: string;
  readonly value: number | string;
  readonly timestamp: number;
  readonly step: number;
};

/** Of one step; `at`: when it was done, in milliseconds. JSON has no NaN, the protocol has the word. */
const metricsOf = (metrics: StepMetrics, at: number): Metric[] =>
  scalarsOf(metrics).map(([tag, value]) => ({
    ...{ key: nameOf(tag), value: Number.isFinite(value) ? value : String(value) },
    ...{ timestamp: Math.round(at), step: metrics.step },
  }));

/** Whole steps in each, where a step fits: a batch is taken whole or not at all. */
export function* batchesOf(steps: readonly (readonly Metric[])[], size = most.metrics): Generator<Metric[]> {
  let batch: Metric[] = [];
  for (const metrics of steps) {
    if (batch.length > 0 && batch.length + metrics.length > size) {
      yield batch;
      batch = [];
    }
    for (let from = 0; from < metrics.length; from += size) {
      if (batch.length > 0 && metrics.length > size) yield batch;
      batch = metrics.length > size ? metrics.slice(from, from + size) : [...batch, ...metrics];
    }
  }
  if (batch.length > 0) yield batch;
}

/** The run there, and what it lacks. */
type Target = {
  readonly id: string;
  readonly createdAt: number;
  /** The first step that it does not have. */
  next: number;
  /** What the steps before that one took. */
  seconds: number;
};

async function experimentOf(server: Server, name: string): Promise<string> {
  const known = async () =>
    experimentSchema.parse(await server.get('experiments/get-by-name', { experiment_name: name })).experiment
      .experiment_id;
  try {
    return await known();
  } catch (error) {
    if (!(error instanceof Refused) || !error.message.includes('RESOURCE_DOES_NOT_EXIST')) throw error;
  }
  try {
    const made = z
      .object({ experiment_id: z.string().min(1) })
      .parse(await server.post('experiments/create', { name }));
    return made.experiment_id;
  } catch (error) {
    if (error instanceof Refused && error.message.includes('RESOURCE_ALREADY_EXISTS')) return known(); // just now, by another run
    throw error;
  }
}

/** A text between the quotes of the server's filters. */
const quoted = (text: string): string => `'${text.replaceAll("'", '')}'`;

async function findOrMake(server: Server, experiment: string, record: RunRecord): Promise<z.output<typeof runSchema>> {
  const filter = `tags."pawl.run" = ${quoted(record.id)} and tags."pawl.begun" = ${quoted(String(record.createdAt))}`;
  const { runs } = z
    .object({ runs: z.array(runSchema).default([]) })
    .parse(await server.post('runs/search', { experiment_ids: [experiment], filter, max_results: 1 }));
  if (runs[0] !== undefined) return runs[0];
  const { run } = z.object({ run: runSchema }).parse(
    await server.post('runs/create', {
      ...{ experiment_id: experiment, run_name: record.id, start_time: record.createdAt, tags: listed(tagsOf(record)) },
    }),
  );
  return run;
}

async function openTarget(server: Server, experiment: string, record: RunRecord, store: RunStore): Promise<Target> {
  const { info, data } = await findOrMake(server, await experimentOf(server, experiment), record);
  const known = new Set(data.params.map(({ key }) => key));
  const params = paramsOf(record).filter(([key]) => !known.has(key));
  for (let from = 0; from < params.length; from += most.params)
    await server.post('runs/log-batch', {
      ...{ run_id: info.run_id },
      params: params.slice(from, from + most.params).map(([key, value]) => ({ key, value })),
    });
  await server.post('runs/update', { run_id: info.run_id, status: 'RUNNING' });
  const next = data.metrics.reduce((last, { step }) => Math.max(last, (step ?? -1) + 1), 0);
  const done = next === 0 ? [] : (await store.metrics(record.id)).filter(({ step }) => step < next);
  const seconds = done.reduce((sum, { values }) => sum + (values.seconds ?? 0), 0);
  return { id: info.run_id, createdAt: record.createdAt, next, seconds };
}

/** Sends the steps that the server lacks. */
async function catchUp(server: Server, target: Target, run: string, store: RunStore): Promise<void> {
  let { seconds } = target;
  const steps = (await store.metrics(run, target.next)).map((metrics) => {
    seconds += metrics.values.seconds ?? 0;
    return { metrics, seconds, sent: metricsOf(metrics, target.createdAt + seconds * 1000) };
  });
  for (const metrics of batchesOf(steps.map(({ sent }) => sent))) {
    await server.post('runs/log-batch', { run_id: target.id, metrics });
    const last = steps.find(({ metrics: { step } }) => step === metrics.at(-1)!.step)!;
    target.next = last.metrics.step + 1;
    target.seconds = last.seconds;
  }
}

async function close(server: Server, target: Target, record: RunRecord, now: number): Promise<void> {
  const { status, reason, spent } = record;
  const tags = { 'pawl.status': status, 'pawl.reason': reason ?? '', 'pawl.money': String(spent.money) };
  await server.post('runs/log-batch', { run_id: target.id, tags: listed(tags) });
  await server.post('runs/update', {
    ...{ run_id: target.id, status: statusThere[status] },
    // One that goes on has not ended.
    ...(status === 'paused' || status === 'running' ? {} : { end_time: now }),
  });
}

/** All that is known of a run now, in one go: for a run whose server was away. Throws where it is not taken. */
export async function sendRun(settings: MlflowSettings, run: string, store: RunStore): Promise<void> {
  const record = (await store.get(run))!;
  const server = serverAt(settings, times.answerMs * 4, () => new AbortController().signal);
  const target = await openTarget(server, settings.experiment, record, store);
  await catchUp(server, target, run, store);
  await close(server, target, record, record.heartbeatAt);
}

/** `warn` hears at most one sentence of each run. */
export const mlflowTracker =
  (settings: MlflowSettings, warn: (sentence: string) => void, given: Partial<MlflowTimes> = {}): Tracker =>
  (run, store) => {
    const { answerMs, gatherMs, longestWaitMs, endMs, endAwayMs, againMs } = { ...times, ...given };
    const ending = new AbortController();
    /** What ends everything that is still on its way. */
    let limit = new AbortController().signal;
    const server = serverAt(settings, answerMs, () => limit);
    let target: Target | null = null;
    let isNews = true;
    let isSaid = false;
    let isGivenUp = false;
    let wake = () => {};

    const say = (error: unknown) => {
      if (isSaid) return;
      isSaid = true;
      const further = isGivenUp
        ? 'The run goes on without it'
        : 'The run goes on without it, and what is missing there is sent when it answers';
      warn(
        `MLflow at ${settings.url} cannot be told of run ${run} (${problemOf(error)}). ${further}; \`pawl runs mlflow ${run}\` sends it again.`,
      );
    };

    /** One look at what is to be sent. */
    const send = async () => {
      target ??= await openTarget(server, settings.experiment, (await store.get(run))!, store);
      await catchUp(server, target, run, store);
    };

    const attempt = async (work: () => Promise<void>): Promise<boolean> => {
      try {
        await work();
        return true;
      } catch (error) {
        if (error instanceof Refused) isGivenUp = true;
        if (!ending.signal.aborted || isGivenUp) say(error);
        return false;
      }
    };

    const pause = (ms: number) => sleep(ms, undefined, { signal: ending.signal, ref: false }).catch(() => {});
    const sender = async () => {
      for (let failures = 0; !ending.signal.aborted && !isGivenUp; ) {
        if (isNews) {
          isNews = false;
          if (await attempt(send)) failures = 0;
          else {
            failures++;
            isNews = true;
          }
          await pause(failures === 0 ? gatherMs : Math.min(longestWaitMs, gatherMs * 2 ** failures));
        } else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    };
    const sending = sender();

    return {
      stepped() {
        isNews = true;
        wake();
      },
      async end() {
        // Whoever was away a moment ago is not waited for as long.
        const leftMs = isSaid ? endAwayMs : endMs;
        limit = AbortSignal.timeout(leftMs);
        ending.abort();
        wake();
        await Promise.race([sending, sleep(leftMs, undefined, { ref: false })]);
        const conclude = async () => {
          await send();
          await close(server, target!, (await store.get(run))!, Date.now());
        };
        let reason: unknown = new Error('it did not answer in time');
        while (!isGivenUp && !limit.aborted) {
          const done = await conclude().then(
            () => true,
            (error: unknown) => {
              if (error instanceof Refused) isGivenUp = true;
              if (!limit.aborted) reason = error;
              return false;
            },
          );
          if (done) return;
          await sleep(againMs, undefined, { signal: limit, ref: false }).catch(() => {});
        }
        say(reason);
      },
    };
  };
