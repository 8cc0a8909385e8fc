/**
 * Builds the parts of a serving Pawl and hands them to one HTTP server: /v1 gateway, /api control, /metrics, health.
 *
 * First the folder and the port are taken: a start that cannot have them has made nothing. Then the database is opened, and
 * waited for as long as that is worth it; without it the gateway answers with the keys and routes it last knew, and what
 * is recorded waits in the journal. What stands on the database (the API, keys and routes kept fresh, rollouts, upkeep) begins
 * whenever the database is there. Everything stops in the reverse order: first no new requests, then the answers in flight,
 * then what is not yet in the database, then the database itself.
 */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { Logger } from 'pino';
import { ensureAdminToken } from './api/admin.ts';
import { createApi } from './api/api.ts';
import { createListener, createServerUploads } from './api/http.ts';
import { healthOf } from './collect/health.ts';
import { readableId } from './collect/person.ts';
import { recordedBy } from './collect/recorded.ts';
import { type Recorder, startRecorder } from './collect/recorder.ts';
import { startUpkeep } from './collect/upkeep.ts';
import { agentOf, type Config } from './config.ts';
import { serveFirst } from './deploy/first-release.ts';
import { createRoutes, type Routes, watchRoutes } from './deploy/routes.ts';
import { watchRollouts } from './deploy/watch-rollouts.ts';
import { type KeptEngine, keepEngine, type Placed } from './engine/keep.ts';
import { engineUpstream } from './engine/open.ts';
import { ConfigError, StoreError } from './errors.ts';
import { createEvaluations, type Evaluations } from './evaluate/evaluations.ts';
import { createReadyReleases } from './gateway/addressed.ts';
import { makeFirstKey } from './gateway/first-key.ts';
import { createGateway } from './gateway/gateway.ts';
import { createKeyRing, type KeyRing } from './gateway/keys.ts';
import { type LastKnown, openLastKnown } from './gateway/last-known.ts';
import { createLoading } from './gateway/loading.ts';
import { createMetrics } from './gateway/metrics.ts';
import { openPort, type Port } from './gateway/port.ts';
import { createSignalLimits } from './gateway/signal-limits.ts';
import { connectUpstreams } from './gateway/upstreams.ts';
import { watchKeys } from './gateway/watch-keys.ts';
import { startLoops } from './loop/runner.ts';
import { keepAddress, reachable } from './store/address.ts';
import * as limits from './store/limits.ts';
import { lockHome } from './store/lock.ts';
import { type Opening, startOpening } from './store/opening.ts';
import { openOwned, type Store } from './store/postgres.ts';
import { readRelease } from './store/releases.ts';
import type { StoredRoute } from './store/rollouts.ts';
import { postgresRunStore } from './store/runs.ts';
import { cachedSecret, installationSecret } from './store/secret.ts';
import { isThere } from './store/unmatched.ts';
import { scrapeRuns } from './train/scrape.ts';
import { version } from './version.ts';

export type Serving = {
  readonly url: string;
  /** The database, once it has been reached and everything that needs it stands. */
  readonly database: Promise<Store>;
  readonly isConnected: boolean;
  /** The database for those who know that it is connected; a StoreError for those who do not. */
  readonly store: Store;
  readonly recorder: Recorder;
  /** Pawl's own engine, which starts when it is needed. */
  readonly engine: KeptEngine;
  /** What is wrong, in words; answers go on whatever is said here. */
  problems(): string[];
  /** Answers what is in flight, writes what is recorded, stops. */
  close(): Promise<void>;
};

export type ServeOptions = {
  /** Shows a secret that is about to be kept as a hash; it is kept only if this resolves. */
  readonly show: (secret: 'admin token' | 'client key', token: string) => Promise<void>;
  /** Says what a start is waiting for, when that takes more than a moment. */
  readonly say?: (text: string) => void;
  /** Whether rollouts advance and whatever else happens on its own does; a command that needs a gateway says no. */
  readonly background?: boolean; // true
  /** Whether the agents' loops turn by themselves; a demo, which sends the traffic too, turns its own. */
  readonly loops?: boolean; // true
  /** How many lines of the log could not be written. */
  readonly linesLost?: () => number;
  /** Gives up a start that is under way. */
  readonly signal?: AbortSignal;
};

/** How long a start that could answer without its database waits for it. */
const patienceMs = 5_000;
const silentMs = 2_000;
const againMs = 1_000;

/** What the parts are built from. */
type Ground = Pick<Required<ServeOptions>, 'show' | 'linesLost' | 'background' | 'loops'> & {
  readonly config: Config;
  readonly log: Logger;
  readonly instance: string;
  readonly port: Port;
  readonly adminHash: string;
  readonly known: LastKnown;
  readonly keys: KeyRing;
  readonly routes: Routes;
  readonly opening: Opening;
  /** Whether everything that needs the database stands: what it says of keys and routes is what counts. */
  readonly connected: () => boolean;
  /** Why not. */
  readonly problem: () => string | null;
};
/** What answers agents. It needs keys, and no database. */
type Answering = {
  readonly recorder: Recorder;
  readonly engine: KeptEngine;
  problems(): string[];
  close(): Promise<void>;
};
/** What needs the database. */
type Standing = { readonly store: Store; close(): Promise<void> };

export async function serve(config: Config, log: Logger, options: ServeOptions): Promise<Serving> {
  const { show, say, signal, linesLost = () => 0, background = true, loops = true } = options;
  // Little survives a request, so there is little to share out: waking four threads for every collection of young
  // garbage, in each of two heaps, took a twentieth of all processor time at full load.
  setFlagsFromString('--no-parallel-scavenge');
  const lock = await lockHome(config.home, {
    onWait: (pid) => say?.(`Waiting for process ${pid}, a command that works in ${config.home} …`),
  });
  const { instance } = lock;
  const started: {
    port?: Port;
    opening?: Opening;
    answering?: Promise<Answering>;
    standing?: Promise<Standing>;
    evaluations?: Evaluations;
  } = {};
  const closeAll = async () => {
    const { port, opening, answering, standing, evaluations } = started;
    await evaluations?.close(); // they are callers of ours
    await port?.close();
    if (opening?.store === null) await opening.close();
    await standing?.then((parts) => parts.close()).catch(() => {});
    await answering?.then((parts) => parts.close()).catch(() => {});
    await opening?.close();
    lock.release();
  };
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= closeAll();
    return closing;
  };
  signal?.addEventListener('abort', () => void close());
  try {
    let ground: Ground | null = null;
    const port = await openPort(config, () => {
      const problems = ground === null || ground.problem() === null ? [] : databaseProblems(ground);
      return { status: problems.length === 0 ? 'starting' : 'degraded', problems, version, instance };
    });
    started.port = port;
    keepAddress(config.home, { url: port.url, instance });
    const adminHash = await ensureAdminToken(config.home, (token) => show('admin token', token), config.adminToken);

    const known = openLastKnown(config.home, (message) => log.warn(message));
    const keys = createKeyRing();
    const routes = createRoutes();
    keys.replace(known.keys);
    routes.replace(known.routes);

    const opening = startOpening(
      (stop) => openOwned({ home: config.home, databaseUrl: config.databaseUrl, signal: stop }),
      { onProblem: (problem) => log.warn(`the database is away and tried again: ${problem}`) },
    );
    started.opening = opening;
    let connected = false;
    let failure: string | null = null;
    const copy = config.secret ?? (await cachedSecret(config.home));
    const parts: Ground = {
      ...{ config, log, instance, port, adminHash, known, keys, routes, opening, show, linesLost, background, loops },
      connected: () => connected,
      problem: () => failure ?? opening.problem,
    };
    ground = parts;
    let live: Answering | null = null;
    let api: Api | null = null;
    const answering = (secret: string): Promise<Answering> => {
      started.answering ??= startAnswering(parts, secret, () => api).then((answers) => {
        live = answers;
        return answers;
      });
      return started.answering;
    };
    const standing = opening.opened.then(async (store) => {
      const warn = (message: string) => log.warn(message);
      const isClosing = () => closing !== null;
      const secret = await persist(log, isClosing, 'the installation’s secret cannot be read now', () =>
        installationSecret(store, config.home, { given: config.secret, warn }),
      );
      if (copy !== null && copy !== secret && live !== null)
        throw new ConfigError(
          `The database has another secret for user ids than the copy in ${config.home}, with which this gateway began. Start it again.`,
        );
      const { recorder, engine } = await answering(secret);
      const answers = store.within(limits.answering);
      const evaluations = createEvaluations({
        ...{ store: answers, config, url: reachable(port.url) },
        withEngine: async (use) => use((await engine.process()).engine),
      });
      started.evaluations = evaluations;
      api = apiOn(answers, parts, secret, recorder, evaluations);
      const stands = await standOn(store, answers, parts, recorder, engine, isClosing);
      connected = true;
      return stands;
    });
    started.standing = standing;
    standing.catch((error: unknown) => {
      if (opening.store === null || closing !== null) return;
      failure = error instanceof Error ? error.message : String(error);
      log.error({ err: error }, 'what needs the database could not be started');
    });

    // Without a secret there are no keys either: this home has never seen its database.
    const canAnswer = keys.size > 0 && copy !== null;
    await worthWaiting(opening.tried, canAnswer, () => say?.('Waiting for the database …'));
    if (opening.store !== null) await standing;
    else if (canAnswer) await answering(copy);
    signal?.throwIfAborted();
    const database = standing.then(({ store }) => store);
    database.catch(() => {}); // not everybody waits for it
    return {
      url: port.url,
      database,
      get isConnected() {
        return connected;
      },
      get store() {
        return reached(opening.store);
      },
      get recorder() {
        return reached(live).recorder;
      },
      get engine() {
        return reached(live).engine;
      },
      problems: () => live?.problems() ?? databaseProblems(parts),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function reached<T>(part: T | null): T {
  if (part === null) throw new StoreError('The database has not been reached yet.', { retryable: true });
  return part;
}

/** A database that was there a moment ago and is not now is waited for. */
async function persist<T>(log: Logger, stopping: () => boolean, trouble: string, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (stopping() || !(error instanceof StoreError && error.retryable)) throw error;
      log.warn({ err: error }, trouble);
      await sleep(againMs);
    }
  }
}

/** Waits for the first attempt at the database; where there is something to answer with, no longer than is decent. */
async function worthWaiting(tried: Promise<void>, hasKeys: boolean, say: () => void): Promise<void> {
  const slow = setTimeout(say, silentMs);
  const enough = new AbortController();
  try {
    await Promise.race([
      tried,
      ...(hasKeys ? [sleep(patienceMs, undefined, { signal: enough.signal }).catch(() => {})] : []),
    ]);
  } finally {
    clearTimeout(slow);
    enough.abort();
  }
}

type Api = {
  readonly app: ReturnType<typeof createApi>;
  readonly runs: ReturnType<typeof postgresRunStore>;
};

function apiOn(
  store: Store,
  { config, log, adminHash, linesLost }: Ground,
  secret: string,
  recorder: Recorder,
  evaluations: Evaluations,
): Api {
  const app = createApi({
    store,
    config,
    evaluations,
    secret,
    adminHash,
    recorder: () => recorder.stats(),
    linesLost,
    hosts: [config.host, ...config.hosts],
    onError: (error) => log.error({ err: error }, 'api: a request failed in Pawl itself'),
  });
  return { app, runs: postgresRunStore(store) };
}

async function startAnswering(ground: Ground, secret: string, api: () => Api | null): Promise<Answering> {
  const { config, log, port, keys, routes, linesLost } = ground;
  const recorder = await startRecorder({
    home: config.home,
    databaseUrl: config.databaseUrl ?? null,
    secret,
    queueBytes: config.record.queueMb * 1024 * 1024,
    journalBytes: config.record.journalMb * 1024 * 1024,
    log,
  });
  const upstreams = connectUpstreams(config.upstreams);
  const engine = keepEngine({
    settings: config.engine,
    onStart: (url) =>
      upstreams.add(engineUpstream, { baseUrl: `${url}/v1`, models: [], defaults: {}, silenceSeconds: 120 }),
    log: (line) => log.warn(`engine: ${line}`),
  });
  engine.inPlay(placedIn(ground.known.routes));
  const metrics = createMetrics(() => recorder.stats(), linesLost);
  const uploads = createServerUploads();
  const signalLimits = createSignalLimits(async (agent, { kind, id }) =>
    isThere(reached(ground.opening.store), agent, { kind, id: readableId(id, secret) }),
  );
  const gateway = createGateway({
    config,
    keys,
    upstreams,
    routes,
    recorder,
    limits: signalLimits,
    metrics,
    log,
    uploads,
    secret,
    store: () => (ground.connected() ? ground.opening.store : null),
    loading: createLoading(engine),
    releases: createReadyReleases({
      read: (agent, name) => readRelease(reached(ground.opening.store), { agent, name }),
      prepare: async ({ upstream, model, checkpoint }) => {
        if (upstream === engineUpstream && checkpoint !== null) await engine.ready({ model, checkpoint });
      },
    }),
  });
  const problems = () => [...databaseProblems(ground), ...healthOf(recorder.stats(), linesLost()).problems];

  const listener = createListener({
    config,
    instance: ground.instance,
    adminHash: ground.adminHash,
    gateway,
    api: () => api()?.app ?? null,
    uploads,
    metrics,
    recording: () => recorder.stats(),
    problems,
    notReady: () => (port.draining ? 'draining' : keys.size === 0 ? 'no client keys' : null),
    training: async () => {
      const runs = api()?.runs;
      return runs === undefined ? '' : await scrapeRuns(runs, Date.now());
    },
    log,
  });
  port.answer(listener);
  return {
    recorder,
    engine,
    problems,
    async close() {
      // The last answers are out; their copies still have to reach the recorder.
      for (let waited = 0; gateway.inFlight > 0 && waited < 5_000; waited += 10) await sleep(10);
      await gateway.close();
      await upstreams.close();
      await engine.close();
      await recorder.close();
    },
  };
}

async function standOn(
  store: Store,
  answers: Store,
  { config, log, port, known, keys, routes, show, background, loops }: Ground,
  recorder: Recorder,
  engine: KeptEngine,
  stopping: () => boolean,
): Promise<Standing> {
  await persist(log, stopping, 'the first client key cannot be made now', () =>
    makeFirstKey(store, agentOf(config).name, (token) => show('client key', token)),
  );
  const keptKeys = {
    takeUsed: keys.takeUsed,
    replace(news: Parameters<KeyRing['replace']>[0]) {
      keys.replace(news);
      known.keep({ keys: news });
    },
  };
  const keptRoutes = {
    replace(news: Parameters<Routes['replace']>[0]) {
      routes.replace(news);
      known.keep({ routes: news });
      engine.inPlay(placedIn(news));
    },
  };
  // Without any other server, an agent's own model is what there is to answer with.
  if (Object.keys(config.upstreams).length === 0)
    await persist(log, stopping, 'the first releases cannot be made now', () => serveFirst(store, config.agents));
  const watches = store.within(limits.watching, 2);
  const gatewayUrl = reachable(port.url);
  const recorded = () => recordedBy(recorder);
  const trainer = async () => (await engine.process()).engine;
  const parts = [
    await watchKeys(watches, keptKeys, log, `${hostname()}:${resolve(config.home)}`),
    await watchRoutes(watches, keptRoutes, log),
    ...(background ? [watchRollouts(answers, log)] : []),
    startUpkeep(
      answers,
      () => recorder.stats(),
      (error) => log.warn({ err: error }, 'upkeep of the database waits'),
    ),
    ...(background && loops ? [startLoops({ store, config, log, gatewayUrl, recorded, engine: trainer })] : []),
  ];
  return {
    store,
    async close() {
      for (const part of parts.reverse()) await part.close();
    },
  };
}

/** What users may get from our own engine. */
const placedIn = (routes: readonly StoredRoute[]): Placed[] =>
  routes
    .flatMap(({ release, open }) => (open === null ? [release] : [release, open.candidate]))
    .flatMap(({ upstream, model, checkpoint }) =>
      upstream === engineUpstream && checkpoint !== null ? [{ model, checkpoint }] : [],
    );

function databaseProblems({ problem, known, keys, connected }: Ground): string[] {
  if (connected()) return [];
  const reason = problem();
  const why = reason === null ? '' : ` (${reason})`;
  const age = known.asOf === null ? '' : `, as of ${Math.round((Date.now() - known.asOf) / 1000)} s ago`;
  return [
    `the database has not been reached since the start${why}: keys known: ${keys.size}${age}; recordings wait in the journal`,
  ];
}
