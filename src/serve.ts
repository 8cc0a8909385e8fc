/**
 * Builds the parts of a serving Pawl and hands them to one HTTP server: /v1 gateway, /api control, /metrics, health.
 * Starts in the order in which parts need each other and stops in the reverse: first no new requests, then the answers in
 * flight, then what is not yet in the database, then the database itself.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { Logger } from 'pino';
import { ensureAdminToken } from './api/admin.ts';
import { createApi } from './api/api.ts';
import { createHttp, createServerUploads } from './api/http.ts';
import { healthOf } from './collect/health.ts';
import { type Recorder, startRecorder } from './collect/recorder.ts';
import { startUpkeep } from './collect/upkeep.ts';
import type { Config } from './config.ts';
import { createRoutes, watchRoutes } from './deploy/routes.ts';
import { watchRollouts } from './deploy/watch-rollouts.ts';
import { createGateway } from './gateway/gateway.ts';
import { createKeyRing } from './gateway/keys.ts';
import { createMetrics } from './gateway/metrics.ts';
import { connectUpstreams } from './gateway/upstreams.ts';
import { watchKeys } from './gateway/watch-keys.ts';
import { createKey, listKeys } from './store/keys.ts';
import { lockHome } from './store/lock.ts';
import { openStore, type Store } from './store/postgres.ts';
import { postgresRunStore } from './store/runs.ts';
import { scrapeRuns } from './train/scrape.ts';

export type Serving = {
  readonly url: string;
  readonly store: Store;
  readonly recorder: Recorder;
  /** Tokens made by this start; each is shown once and stored only as a hash. */
  readonly made: { readonly adminToken: string | null; readonly clientToken: string | null };
  /** Answers what is in flight, writes what is recorded, stops. */
  close(): Promise<void>;
};

const drainMs = 30_000;

/** `linesLost`: how many lines of the log could not be written. */
export async function serve(config: Config, log: Logger, linesLost: () => number = () => 0): Promise<Serving> {
  // Little survives a request, so there is little to share out: waking four threads for every collection of young
  // garbage, in each of two heaps, took a twentieth of all processor time at full load.
  setFlagsFromString('--no-parallel-scavenge');
  // With a database of one's own the folder still holds the journal, which has one writer.
  const lock = config.databaseUrl === undefined ? null : await lockHome(config.home);
  const closers: (() => Promise<void> | void)[] = [() => lock?.release()];
  const store = await openStore({ home: config.home, databaseUrl: config.databaseUrl }).catch((error: unknown) => {
    lock?.release();
    throw error;
  });
  closers.push(() => store.close());
  const closeAll = async () => {
    for (const close of closers.reverse()) await close();
  };
  try {
    const recorder = await startRecorder({
      home: config.home,
      databaseUrl: store.url,
      queueBytes: config.record.queueMb * 1024 * 1024,
      journalBytes: config.record.journalMb * 1024 * 1024,
      log,
    });
    const upkeep = startUpkeep(
      store,
      () => recorder.stats(),
      (error) => log.warn({ err: error }, 'upkeep of the database waits'),
    );
    closers.push(
      () => upkeep.close(),
      () => recorder.close(),
    );

    const admin = await ensureAdminToken(config.home);
    const isFirst = (await listKeys(store)).length === 0;
    const first = isFirst ? await createKey(store, { agent: config.agent, name: 'first' }) : null;

    const keys = createKeyRing();
    const watch = await watchKeys(store, keys, log);
    closers.push(() => watch.close());
    const routes = createRoutes();
    const routesWatch = await watchRoutes(store, routes, log);
    closers.push(() => routesWatch.close());
    const rolloutsWatch = watchRollouts(store, log);
    closers.push(() => rolloutsWatch.close());
    const upstreams = connectUpstreams(config.upstreams);
    closers.push(() => upstreams.close());

    const runs = postgresRunStore(store);
    const metrics = createMetrics(() => recorder.stats(), linesLost);
    const uploads = createServerUploads();
    const gateway = createGateway({ config, keys, upstreams, routes, recorder, metrics, log, uploads });
    const api = createApi({
      store,
      home: config.home,
      adminHash: admin.hash,
      recorder: () => recorder.stats(),
      linesLost,
      hosts: [config.host, ...config.hosts],
      onError: (error) => log.error({ err: error }, 'api: a request failed in Pawl itself'),
    });
    let draining = false;
    const server = createHttp(
      {
        config,
        adminHash: admin.hash,
        gateway,
        api,
        uploads,
        metrics,
        recording: () => recorder.stats(),
        health: () => healthOf(recorder.stats(), linesLost()),
        notReady: () => (draining ? 'draining' : keys.size === 0 ? 'no client keys' : null),
        training: () => scrapeRuns(runs, Date.now()),
        log,
      },
      () => draining,
    );
    await listen(server, config.host, config.port);
    closers.push(async () => {
      draining = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), drainMs);
      await closed;
      clearTimeout(timer);
      // The last answers are out; their copies still have to reach the recorder.
      for (let waited = 0; gateway.inFlight > 0 && waited < 5_000; waited += 10) await sleep(10);
    });

    const { port } = server.address() as AddressInfo;
    const host = config.host.includes(':') ? `[${config.host}]` : config.host;
    return {
      url: `http://${host}:${port}`,
      store,
      recorder,
      made: { adminToken: admin.token ?? null, clientToken: first?.token ?? null },
      close: closeAll,
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(
              `Port ${port} on ${host} is taken. Stop what listens there, or set PAWL_PORT (0 takes any free port).`,
            )
          : error,
      ),
    );
    server.listen(port, host, resolve);
  });
}
