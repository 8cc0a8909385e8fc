/**
 * Builds the parts of a Pawl (roles/) and hands them to one HTTP server: /v1 gateway, /api control, /metrics, health. With all
 * parts in one process that is `pawl serve`; `pawl gateway`, `pawl worker` and `pawl api` are the same with one of them.
 *
 * First the folder and the port are taken: a start that cannot have them has made nothing. Then the database is opened, and
 * waited for as long as that is worth it; without it the gateway answers with the keys and routes it last knew, and what
 * is recorded waits in the journal. What stands on the database (the API, keys and routes kept fresh, rollouts, the loops) begins
 * whenever the database is there. Everything stops in the reverse order: first no new requests, then the answers in flight,
 * then what is not yet in the database, then the database itself.
 */
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { ensureAdminToken, knownAdmin } from './api/admin.ts';
import { createListener } from './api/http.ts';
import type { Artifacts } from './artifacts/artifacts.ts';
import { openArtifacts } from './artifacts/open.ts';
import { startTidying } from './artifacts/tidying.ts';
import { recordedByAll } from './collect/recorded.ts';
import type { Recorder } from './collect/recorder.ts';
import { collectAlone } from './collector.ts';
import type { Config } from './config.ts';
import type { KeptEngine } from './engine/keep.ts';
import { BoundaryError, ConfigError } from './errors.ts';
import { openPort, type Port } from './gateway/port.ts';
import { keepHomeClean } from './privacy/clean-home.ts';
import { type ApiRole, startApi } from './roles/api.ts';
import type { Child } from './roles/child.ts';
import { type GatewayRole, type Known, lastKnown, startGateway } from './roles/gateway.ts';
import { allRoles, type Ground, type Part, persist, type Role, reached } from './roles/ground.ts';
import { type Models, openModels } from './roles/models.ts';
import { findGateway, startPresence } from './roles/presence.ts';
import { isTrainingDoor } from './roles/training-doors.ts';
import { startWorker, type WorkerRole } from './roles/worker.ts';
import { judgeMetrics } from './score/judge-metrics.ts';
import { toolMetrics } from './score/tool-adoption.ts';
import { trustMetrics } from './score/trust-metrics.ts';
import { keepAddress, reachable } from './store/address.ts';
import { readRewardChecks } from './store/judged.ts';
import { sumJudging } from './store/judging.ts';
import * as limits from './store/limits.ts';
import { lockHome } from './store/lock.ts';
import { type Opening, startOpening } from './store/opening.ts';
import { openOwned, type Store } from './store/postgres.ts';
import { postgresRunStore } from './store/runs.ts';
import { cachedSecret, installationSecret } from './store/secret.ts';
import { readAdoptionLooks } from './store/tool-adoption.ts';
import { scrapeRuns } from './train/scrape.ts';
import { version } from './version.ts';

export type Serving = {
  readonly url: string;
  /** The database, once it has been reached and everything that needs it stands. */
  readonly database: Promise<Store>;
  readonly isConnected: boolean;
  /** The database for those who know that it is connected; a StoreError for those who do not. */
  readonly store: Store;
  /** That of its gateway. */
  readonly recorder: Recorder;
  /** Pawl's own engine, which starts when it is needed. */
  readonly engine: KeptEngine;
  /** What is wrong, in words; answers go on whatever is said here. */
  problems(): string[];
  /** Answers what is in flight, writes what is recorded, stops. */
  close(): Promise<void>;
};

export type ServeOptions = Pick<Ground, 'show'> & {
  /** Which parts; all without it. A command that needs a gateway leaves out what happens on its own. */
  readonly roles?: readonly Role[];
  /** Says what a start is waiting for, when that takes more than a moment. */
  readonly say?: (text: string) => void;
  /** How many lines of the log could not be written. */
  readonly linesLost?: () => number;
  /** Gives up a start that is under way. */
  readonly signal?: AbortSignal;
  /** For one command only. */
  readonly passing?: boolean;
  readonly child?: Child | null;
};

/** How long a start that could answer without its database waits for it. */
const patienceMs = 5_000;
const silentMs = 2_000;

/** Everything that was begun and has to be ended. */
type Started = {
  readonly artifacts: Artifacts;
  port?: Port;
  opening?: Opening;
  models?: Models;
  gateway?: Promise<GatewayRole>;
  standing?: Promise<Part>;
  api?: ApiRole;
};

export async function serve(config: Config, log: Logger, options: ServeOptions): Promise<Serving> {
  const { show, say, signal, linesLost = () => 0, passing = false, child = null } = options;
  const roles = new Set<Role>(options.roles ?? allRoles);
  collectAlone();
  const lock = await lockHome(config.home, {
    onWait: (pid) => say?.(`Waiting for process ${pid}, a command that works in ${config.home} …`),
  });
  const { instance } = lock;
  const artifacts = openArtifacts(config);
  const started: Started = { artifacts };
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= closeAll(started).then(() => lock.release());
    return closing;
  };
  signal?.addEventListener('abort', () => void close());
  try {
    let ground: Ground | null = null;
    let known: Known | null = null;
    const port = await openPort(config, () => {
      const problems = ground === null || ground.problem() === null ? [] : databaseProblems(ground, known);
      return { status: problems.length === 0 ? 'starting' : 'degraded', problems, version, instance };
    });
    started.port = port;
    if (roles.has('gateway')) keepAddress(config.home, { url: port.url, instance });
    const adminHash = roles.has('api')
      ? await ensureAdminToken(
          config.home,
          (token) => show('admin token', token, linkTo(port.url, token)),
          config.adminToken,
        )
      : knownAdmin(config.home, config.adminToken);
    known = roles.has('gateway') ? lastKnown({ config, log }) : null;

    const opening = startOpening(
      (stop) => openOwned({ home: config.home, databaseUrl: config.databaseUrl, signal: stop }),
      { onProblem: (problem) => log.warn(`the database is away and tried again: ${problem}`) },
    );
    started.opening = opening;
    let connected = false;
    let failure: string | null = null;
    const parts: Ground = {
      ...{ config, artifacts, log, roles, instance, port, adminHash, opening, show, linesLost, passing, child },
      process: `${hostname()}:${process.pid}:${instance}`,
      connected: () => connected,
      problem: () => failure ?? opening.problem,
      stopping: () => closing !== null,
    };
    ground = parts;
    const models = roles.has('gateway') || roles.has('worker') ? openModels(parts) : null;
    if (models !== null) started.models = models;
    const copy = config.secret ?? (await cachedSecret(config.home));
    let live: GatewayRole | null = null;
    const problems = () => [...databaseProblems(parts, known), ...(live?.problems() ?? [])];
    let listens = false;
    const listen = () => {
      if (listens) return;
      listens = true;
      port.answer(
        createListener({
          ...{ config, instance, roles, adminHash, gateway: live, problems, log, family: child },
          api: () => started.api?.app ?? null,
          opens: (method, path) => roles.has('api') || (roles.has('worker') && isTrainingDoor(method, path)),
          notReady: () => notReady(parts, known),
          training: async () => {
            if (!roles.has('worker')) return '';
            const store = reached(opening.store);
            const runs = await scrapeRuns(postgresRunStore(store), Date.now());
            return (
              runs +
              trustMetrics(await readRewardChecks(store)) +
              judgeMetrics(await sumJudging(store)) +
              toolMetrics(await readAdoptionLooks(store))
            );
          },
        }),
      );
    };
    const answering = (secret: string): Promise<GatewayRole> => {
      started.gateway ??= startGateway(parts, known!, secret, models!).then((gateway) => {
        live = gateway;
        const { recorder, metrics } = gateway;
        child?.tells(async () => ({
          health: { pid: process.pid, problems: problems(), recording: recorder.stats() },
          figures: await metrics.registry.getMetricsAsJSON(),
        }));
        // With no key known, every key would be called unknown: then it begins to answer once it has read them.
        if (known!.keys.size > 0) listen();
        return gateway;
      });
      return started.gateway;
    };
    if (!roles.has('gateway')) listen();

    const standing = opening.opened.then(async (store) => {
      const warn = (message: string) => log.warn(message);
      const secret = await persist(parts, 'the installation’s secret cannot be read now', () =>
        installationSecret(store, config.home, { given: config.secret, warn }),
      );
      if (copy !== null && copy !== secret && live !== null)
        throw new ConfigError(
          `The database has another secret for user ids than the copy in ${config.home}, with which this gateway began. Start it again.`,
        );
      const gateway = roles.has('gateway') ? await answering(secret) : null;
      const stands = await standOn(parts, store, secret, { gateway, models }, (api) => {
        started.api = api;
      });
      connected = true;
      if (roles.has('gateway')) listen();
      return stands;
    });
    started.standing = standing;
    standing.catch((error: unknown) => {
      if (opening.store === null || closing !== null) return;
      failure = error instanceof Error ? error.message : String(error);
      log.error({ err: error }, 'what needs the database could not be started');
    });

    // Without a secret there are no keys either: this home has never seen its database.
    const canAnswer = known !== null && known.keys.size > 0 && copy !== null;
    await worthWaiting(opening.tried, canAnswer, () => say?.('Waiting for the database …'));
    if (opening.store !== null) await standing;
    else if (canAnswer) await answering(copy);
    signal?.throwIfAborted();
    const database = standing.then(() => reached(opening.store));
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
        return reached(models).engine;
      },
      problems,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function closeAll({ artifacts, port, opening, models, gateway, standing, api }: Started): Promise<void> {
  await api?.close();
  await port?.close();
  if (opening?.store === null) await opening.close();
  await standing?.then((parts) => parts.close()).catch(() => {});
  await gateway?.then((part) => part.close()).catch(() => {});
  await models?.engine.close();
  await models?.adapters.close();
  await artifacts.close();
  await opening?.close();
}

/** What needs the database. `api` is told of the API as soon as it could answer. */
async function standOn(
  ground: Ground,
  store: Store,
  secret: string,
  { gateway, models }: { readonly gateway: GatewayRole | null; readonly models: Models | null },
  api: (role: ApiRole) => void,
): Promise<Part> {
  const { config, artifacts, log, roles, port, adminHash } = ground;
  const answers = store.within(limits.answering);
  const here = reachable(port.url);
  const gatewayUrl = async () => (gateway === null ? findGateway(answers) : here);
  let worker: WorkerRole | null = null;
  const presence = await startPresence(ground, store.within(limits.watching, 1), {
    problems: () => gateway?.problems() ?? [],
    doing: () => worker?.doing() ?? [],
  });
  // A worker's own API is what begins runs on its engine.
  if (adminHash !== null && (roles.has('api') || roles.has('worker')))
    api(
      startApi(ground, answers, {
        ...{ secret, adminHash, recorder: gateway?.recorder ?? null, engine: models?.engine ?? null },
        gatewayUrl: async () => (await gatewayUrl()) ?? noGateway(),
        progress: (agent) => worker?.progress(agent) ?? null,
      }),
    );
  const stands = await gateway?.stand(store, answers);
  const cleaning = keepHomeClean(answers, artifacts, config.retention, (error) =>
    log.warn({ err: error }, 'what is to be forgotten in this home waits'),
  );
  if (roles.has('worker'))
    worker = startWorker(ground, store, answers, models!.engine, {
      gatewayUrl,
      recorded: () => recordedByAll(answers),
    });
  const tidying = startTidying(artifacts, (error) => log.warn({ err: error }, 'the artifacts cannot be tidied now'));
  return {
    async close() {
      await worker?.close();
      await tidying.close();
      await cleaning.close();
      await stands?.close();
      await presence.close();
    },
  };
}

/** Behind the #, a token is in no request and no log. */
const linkTo = (url: string, token: string): string => `${reachable(url)}/#token=${token}`;

function noGateway(): never {
  throw new BoundaryError(
    'No gateway of this database can be reached from here: start `pawl gateway`, or set `address` in its settings to where this machine reaches it.',
    { retryable: true },
  );
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

function notReady({ port, connected }: Ground, known: Known | null): string | null {
  if (port.draining) return 'draining';
  if (known === null) return connected() ? null : 'no database';
  return known.keys.size === 0 ? 'no client keys' : null;
}

function databaseProblems({ problem, connected }: Ground, known: Known | null): string[] {
  if (connected()) return [];
  const reason = problem();
  const why = reason === null ? '' : ` (${reason})`;
  if (known?.last.asOf === null)
    return [
      `the database has never been reached from this home${why}: there are no client keys yet, so every call is refused until it is`,
    ];
  const away = `the database has not been reached since the start${why}`;
  if (known === null) return [away];
  const { last, keys } = known;
  const age = `, as of ${Math.round((Date.now() - (last.asOf ?? 0)) / 1000)} s ago`;
  return [`${away}: keys known: ${keys.size}${age}; recordings wait in the journal`];
}
