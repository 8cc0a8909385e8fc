/**
 * What the one HTTP server answers: /v1 gateway, /api control, the dashboard, /metrics, health. What it says about itself without a token depends on who
 * can hear it: on a loopback address everything, on any other only whether it lives, unless the settings open it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { RecorderStats } from '../collect/recorder.ts';
import type { Config } from '../config.ts';
import { errorShapeOf, sendJson } from '../gateway/error-shape.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Metrics } from '../gateway/metrics.ts';
import { createUploads, type Uploads } from '../gateway/upload.ts';
import { version } from '../version.ts';
import { isAdmin } from './admin.ts';
import type { Api } from './api.ts';
import { isLoopback, refuseHost } from './guard.ts';
import { openSite } from './site.ts';

export type HttpParts = {
  readonly config: Pick<Config, 'host' | 'hosts' | 'openDetails'>;
  /** Tells this process from another Pawl on the same port. */
  readonly instance: string;
  readonly roles: ReadonlySet<string>;
  /** null: nobody is known as admin here. */
  readonly adminHash: string | null;
  /** What only a gateway has. */
  readonly gateway: {
    readonly door: Gateway;
    readonly uploads: Uploads;
    readonly metrics: Metrics;
    readonly recorder: { stats(): RecorderStats };
  } | null;
  /** Of all processes on this port, where this is one of several. */
  readonly family: {
    health(): Promise<{ readonly problems: readonly string[]; readonly recording: RecorderStats | null }>;
    figures(): Promise<string>;
  } | null;
  /** Null until the database has been reached. */
  readonly api: () => Api | null;
  /** Whether a path below /api is answered here. */
  readonly opens: (method: string | undefined, path: string) => boolean;
  /** What is wrong, in words. */
  readonly problems: () => readonly string[];
  /** Why no agent should be sent here now; null: it may. */
  readonly notReady: () => string | null;
  /** Figures of training runs, as Prometheus text. */
  readonly training: () => Promise<string>;
  readonly log: Logger;
};

const failure = (code: string, message: string) => ({ error: { message, code } });

const databaseAway = () =>
  Response.json(
    failure(
      'database_away',
      'The database has not been reached yet; calls of agents are answered and recorded meanwhile.',
    ),
    { status: 503, headers: { 'retry-after': '5' } },
  );

/** Ends an upload that crawls: with an answer, if there is none yet. */
export const createServerUploads = (): Uploads =>
  createUploads((request, response) => {
    const message = 'The request body arrived too slowly.';
    const body = errorShapeOf((request.url ?? '').replace(/^.*\/v1(?=\/)/, '')).body(408, 'upload_too_slow', message);
    sendJson(response, 408, body, { connection: 'close' });
    response.once('finish', () => request.destroy());
    if (response.writableFinished) request.destroy();
  });

export function createListener(parts: HttpParts): (request: IncomingMessage, response: ServerResponse) => void {
  const { config, gateway, roles, log } = parts;
  const uploads = gateway?.uploads ?? createServerUploads();
  const hosts = [config.host, ...config.hosts];
  const site = roles.has('api') ? openSite() : null;
  const isOpen = isLoopback(config.host) || config.openDetails;
  const apiListener = getRequestListener((request, env) => parts.api()?.fetch(request, env) ?? databaseAway());
  const maySeeDetails = (request: IncomingMessage) =>
    isOpen || (parts.adminHash !== null && isAdmin(request.headers.authorization, parts.adminHash));

  const ownHealth = () => ({ problems: parts.problems(), recording: gateway?.recorder.stats() ?? null });

  async function aboutItself(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = refuseHost(request.headers.host, hosts);
    if (refusal !== null) sendJson(response, 403, failure(refusal.code, refusal.message));
    else if (path === '/healthz') {
      const { instance } = parts;
      const { problems, recording, ...family } = (await parts.family?.health()) ?? ownHealth();
      const about = { problems, recording, version, instance, roles: [...roles], ...family };
      const detail = maySeeDetails(request) ? about : {};
      sendJson(response, 200, { status: problems.length === 0 ? 'ok' : 'degraded', ...detail });
    } else if (path === '/readyz') {
      const reason = parts.notReady();
      sendJson(response, reason === null ? 200 : 503, { ready: reason === null, reason });
    } else if (!maySeeDetails(request)) {
      const message =
        'Send the admin token as `Authorization: Bearer pawl_admin_…`, or set `openDetails: true` in pawl.config.ts.';
      sendJson(response, 401, failure('unauthorized', message), { 'www-authenticate': 'Bearer' });
    } else {
      // A database that is away takes the figures of training with it, not those of serving.
      const training = await Promise.race([parts.training().catch(() => ''), sleep(1000, '')]);
      // Before the head is sent: behind it nobody could be told any more that this failed.
      const figures = (await parts.family?.figures()) ?? (await gateway?.metrics.registry.metrics()) ?? '';
      response.writeHead(200, { 'content-type': Registry.PROMETHEUS_CONTENT_TYPE });
      response.end(`${figures}${training}`);
    }
  }

  async function other(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?', 1)[0]!;
    if (path === '/healthz' || path === '/readyz' || path === '/metrics') await aboutItself(path, request, response);
    else if ((path === '/api' || path.startsWith('/api/')) && parts.opens(request.method, path))
      await apiListener(request, response);
    else if (site?.answer(path, request, response)) return;
    else if (path === '/') {
      response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(
        [
          `Pawl ${version}\n`,
          ...(roles.has('gateway') ? ['/v1/…             gateway'] : []),
          '/metrics           Prometheus',
          '/healthz /readyz\n',
        ].join('\n'),
      );
    } else sendJson(response, 404, failure('not_found', `There is nothing at ${path.slice(0, 100)}.`));
  }

  return (request, response) => {
    uploads.watch(request, response);
    if (gateway?.door.handle(request, response)) return;
    if (request.headers.expect !== undefined) response.writeContinue();
    other(request, response).catch((error: unknown) => {
      log.error({ err: error }, 'a request failed');
      sendJson(response, 500, failure('internal_error', 'Pawl failed to handle this request; its log has the reason.'));
    });
  };
}
