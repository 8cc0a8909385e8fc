/**
 * Builds the parts of a serving Pawl and hands them to one HTTP server: /v1 gateway, /api control, /metrics, health.
 * Starts in the order in which parts need each other and stops in the reverse: first no new requests, then the answers in
 * flight, then what is not yet in the database, then the database itself.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { getRequestListener } from '@hono/node-server';
import type { Logger } from 'pino';
import { ensureAdminToken } from './api/admin.ts';
import { createApi } from './api/api.ts';
import { type Recorder, startRecorder } from './collect/recorder.ts';
import { recordingProblems } from './collect/recording-problems.ts';
import { startUpkeep } from './collect/upkeep.ts';
import type { Config } from './config.ts';
import { createRoutes, watchRoutes } from './deploy/routes.ts';
import { watchRollouts } from './deploy/watch-rollouts.ts';
import { createGateway } from './gateway/gateway.ts';
import { createKeyRing } from './gateway/keys.ts';
import { createMetrics } from './gateway/metrics.ts';
import { sendJson } from './gateway/openai-error.ts';
import { connectUpstreams } from './gateway/upstreams.ts';
import { watchKeys } from './gateway/watch-keys.ts';
import { createKey, listKeys } from './store/keys.ts';
import { answering, watching } from './store/limits.ts';
import { lockHome } from './store/lock.ts';
import { openStore, type Store } from './store/postgres.ts';
import { postgresRunStore } from './store/runs.ts';
import { scrapeRuns } from './train/scrape.ts';
import { version } from './version.ts';

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

export async function serve(config: Config, log: Logger): Promise<Serving> {
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
  const answers = store.within(answering);
  const watches = store.within(watching, 2);
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
      answers,
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
    const watch = await watchKeys(watches, keys, log, `${hostname()}:${resolve(config.home)}`);
    closers.push(() => watch.close());
    const routes = createRoutes();
    const routesWatch = await watchRoutes(watches, routes, log);
    closers.push(() => routesWatch.close());
    const rolloutsWatch = watchRollouts(answers, log);
    closers.push(() => rolloutsWatch.close());
    const upstreams = connectUpstreams(config.upstreams);
    closers.push(() => upstreams.close());

    const runs = postgresRunStore(answers);
    const metrics = createMetrics(() => recorder.stats());
    const gateway = createGateway({ config, keys, upstreams, routes, recorder, metrics, log });
    const api = createApi({
      store: answers,
      home: config.home,
      adminHash: admin.hash,
      recorder: () => recorder.stats(),
      hosts: [config.host, ...config.hosts],
      onError: (error) => log.error({ err: error }, 'api: a request failed in Pawl itself'),
    });
    const apiListener = getRequestListener(api.fetch);

    let draining = false;
    const other = async (request: IncomingMessage, response: ServerResponse) => {
      const path = (request.url ?? '/').split('?', 1)[0]!;
      if (path === '/healthz') sendJson(response, 200, health(recorder));
      else if (path === '/readyz') {
        const ready = !draining && keys.size > 0;
        sendJson(response, ready ? 200 : 503, {
          ready,
          reason: draining ? 'draining' : ready ? null : 'no client keys',
        });
      } else if (path === '/metrics') {
        response.writeHead(200, { 'content-type': metrics.registry.contentType });
        // A database that is away takes the figures of training with it, not those of serving.
        const training = await Promise.race([scrapeRuns(runs, Date.now()).catch(() => ''), sleep(1000, '')]);
        response.end(`${await metrics.registry.metrics()}${training}`);
      } else if (path === '/api' || path.startsWith('/api/')) await apiListener(request, response);
      else if (path === '/') {
        response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
        response.end(
          `Pawl ${version}\n\n/v1/…             gateway\n/api/openapi.json  control API\n/metrics           Prometheus\n/healthz /readyz\n`,
        );
      } else
        sendJson(response, 404, {
          error: { message: `There is nothing at ${path.slice(0, 100)}.`, code: 'not_found' },
        });
    };
    const server = createServer(
      { keepAliveTimeout: 75_000, headersTimeout: 90_000, requestTimeout: 120_000 },
      (request, response) => {
        if (draining) response.setHeader('connection', 'close');
        if (gateway.handle(request, response)) return;
        other(request, response).catch((error: unknown) => {
          log.error({ err: error }, 'a request failed');
          sendJson(response, 500, {
            error: { message: 'Pawl failed to handle this request; its log has the reason.', code: 'internal_error' },
          });
        });
      },
    );
    await listen(server, config.host, config.port);
    closers.push(async () => {
      draining = true;
      const closed = new Promise<void>((done) => server.close(() => done()));
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

function health(recorder: Recorder) {
  const stats = recorder.stats();
  const problems = recordingProblems(stats);
  return { status: problems.length === 0 ? 'ok' : 'degraded', problems, recording: stats, version };
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
