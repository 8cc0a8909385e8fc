/**
 * The part that answers agents: /v1, votes and outcomes, recording. It needs keys, and no database: it begins with the keys and
 * routes that this home last knew (`startGateway`), and follows the database's whenever that is there (`stand`).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createServerUploads } from '../api/http.ts';
import { healthOf } from '../collect/health.ts';
import { keepLosses } from '../collect/keep-losses.ts';
import { readableId } from '../collect/person.ts';
import { tellRecorded } from '../collect/recorded.ts';
import { type Recorder, startRecorder } from '../collect/recorder.ts';
import { piiOfAgents } from '../collect/redact/settings.ts';
import { openClearing } from '../collector.ts';
import { agentOf } from '../config.ts';
import { type Held, serveFirst } from '../deploy/first-release.ts';
import { createRoutes, type Routes, watchRoutes } from '../deploy/routes.ts';
import { createReadyReleases } from '../gateway/addressed.ts';
import { makeFirstKey } from '../gateway/first-key.ts';
import { createGateway, type Gateway } from '../gateway/gateway.ts';
import { createKeyRing, type KeyRing } from '../gateway/keys.ts';
import { type LastKnown, openLastKnown } from '../gateway/last-known.ts';
import { createLoading } from '../gateway/loading.ts';
import { createMetrics, type Metrics } from '../gateway/metrics.ts';
import { createSignalLimits } from '../gateway/signal-limits.ts';
import type { Uploads } from '../gateway/upload.ts';
import { watchKeys } from '../gateway/watch-keys.ts';
import * as limits from '../store/limits.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease } from '../store/releases.ts';
import { isThere } from '../store/unmatched.ts';
import { askFirst, type FirstParts, holdFirst } from './first-releases.ts';
import { type Ground, type Part, persist, reached, together } from './ground.ts';
import { deliverLeft } from './left-journals.ts';
import { type Models, putInPlay } from './models.ts';
import { processId } from './presence.ts';

/** What a gateway goes by. */
export type Known = { readonly last: LastKnown; readonly keys: KeyRing; readonly routes: Routes };

export function lastKnown({ config, log }: Pick<Ground, 'config' | 'log'>): Known {
  const last = openLastKnown(config.home, (message) => log.warn(message));
  const known = { last, keys: createKeyRing(), routes: createRoutes() };
  known.keys.replace(last.keys);
  known.routes.replace(last.routes);
  return known;
}

export type GatewayRole = {
  readonly door: Gateway;
  readonly uploads: Uploads;
  readonly metrics: Metrics;
  readonly recorder: Recorder;
  /** What is wrong with recording, in words. */
  problems(): readonly string[];
  /** Makes what a first start needs, and keeps keys and routes as the database has them. */
  stand(store: Store, answers: Store): Promise<Part>;
  /** Once the last answers are out. */
  close(): Promise<void>;
};

export async function startGateway(ground: Ground, known: Known, secret: string, models: Models): Promise<GatewayRole> {
  const { upstreams, engine, adapters } = models;
  const { config, log, linesLost } = ground;
  const recorder = await startRecorder({
    pii: piiOfAgents(config),
    home: config.home,
    databaseUrl: config.databaseUrl ?? null,
    secret,
    queueBytes: config.record.queueMb * 1024 * 1024,
    journalBytes: config.record.journalMb * 1024 * 1024,
    log,
  });
  putInPlay(models, known.last.routes);
  const loading = createLoading(engine, adapters);
  const metrics = createMetrics(() => recorder.stats(), linesLost);
  const uploads = createServerUploads();
  const held = new Map<string, Held>();
  const store = () => reached(ground.opening.store);
  const door = createGateway({
    config,
    letGo: openClearing(),
    keys: known.keys,
    upstreams,
    routes: known.routes,
    recorder,
    limits: createSignalLimits(async (agent, { kind, id }) =>
      isThere(store(), agent, { kind, id: readableId(id, secret) }),
    ),
    metrics,
    log,
    uploads,
    secret,
    store: () => (ground.connected() ? ground.opening.store : null),
    loading,
    held,
    releases: createReadyReleases({
      read: (agent, name) => readRelease(store(), { agent, name }),
      prepare: loading.ready,
    }),
  });
  return {
    door,
    uploads,
    metrics,
    recorder,
    problems: () => [
      ...healthOf(recorder.stats(), linesLost()).problems,
      ...adapters.problems(),
      ...[...held.values()].map(({ sentence }) => sentence),
    ],
    stand: (whole, answers) =>
      stand(ground, known, models, recorder, secret, whole, answers, { held, load: loading.ready, gateway: door }),
    async close() {
      // The last answers are out; their copies still have to reach the recorder.
      for (let waited = 0; door.inFlight > 0 && waited < 5_000; waited += 10) await sleep(10);
      await door.close();
      await upstreams.close();
      await recorder.close();
    },
  };
}

async function stand(
  ground: Ground,
  known: Known,
  models: Models,
  recorder: Recorder,
  secret: string,
  store: Store,
  answers: Store,
  first: Pick<FirstParts, 'held' | 'load' | 'gateway'>,
): Promise<Part> {
  const { config, artifacts, log, show, passing, child, process } = ground;
  if (!passing)
    await persist(ground, 'the first client key cannot be made now', () =>
      makeFirstKey(store, agentOf(config).name, (token) => show('client key', token)),
    );
  // Without any other server, an agent's own model is what there is to answer with.
  const waiting =
    Object.keys(config.upstreams).length > 0
      ? []
      : await persist(ground, 'the first releases cannot be made now', () =>
          serveFirst(store, artifacts, config.agents),
        );
  holdFirst(first.held, waiting);
  const keys = {
    takeUsed: known.keys.takeUsed,
    replace(news: Parameters<KeyRing['replace']>[0]) {
      known.keys.replace(news);
      known.last.keep({ keys: news });
    },
  };
  const routes = {
    replace(news: Parameters<Routes['replace']>[0]) {
      known.routes.replace(news);
      for (const { agent } of news) first.held.delete(agent);
      known.last.keep({ routes: news });
      putInPlay(models, news);
    },
  };
  const watches = store.within(limits.watching, 2);
  const id = processId(config);
  return together([
    await watchKeys(watches, keys, log, id),
    await watchRoutes(watches, routes, log),
    tellRecorded(watches, recorder, id, (error) => log.warn({ err: error }, 'what is recorded cannot be told')),
    deliverLeft(ground, child, secret),
    // One that stands for a command has no users.
    ...(passing || waiting.length === 0 ? [] : [askFirst({ ...first, store: answers, log, process }, waiting)]),
    keepLosses(
      answers,
      () => recorder.stats(),
      (error) => log.warn({ err: error }, 'losses are written down later'),
    ),
  ]);
}
