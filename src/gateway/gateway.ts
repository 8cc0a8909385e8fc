/**
 * The door that agents come through: checks the key, reads the body within bounds, picks the upstream, forwards, and,
 * once the answer is on its way, hands a copy of both to the recorder. Nothing here waits for recording.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Recorder } from '../collect/recorder.ts';
import type { Endpoint } from '../collect/turn.ts';
import { uuidv7 } from '../collect/uuid.ts';
import type { Config } from '../config.ts';
import type { Routes } from '../deploy/routes.ts';
import { RequestError } from '../errors.ts';
import { checkCall, endpoints, type Identity, identify, parseBody, parsePath } from './door.ts';
import { forward } from './forward.ts';
import { type ClientKey, createRateLimiter, type KeyRing } from './keys.ts';
import type { Metrics } from './metrics.ts';
import { listModels } from './models.ts';
import { sendError, sendJson } from './openai-error.ts';
import { checkScope } from './scopes.ts';
import type { SignalLimits } from './signal-limits.ts';
import { attachments, feedbackSignal, outcomeSignal } from './signals.ts';
import { targetsOf } from './targets.ts';
import { TooMany } from './too-many.ts';
import type { Upstreams } from './upstreams.ts';

/** Bytes of one answer that are kept for recording, and of all answers in flight together. */
const keepPerAnswer = 16 * 1024 * 1024;
const keepInFlight = 256 * 1024 * 1024;

export type Gateway = {
  /** False when the path is not the gateway's. */
  handle(request: IncomingMessage, response: ServerResponse): boolean;
  readonly inFlight: number;
};

export function createGateway(parts: {
  config: Config;
  keys: KeyRing;
  upstreams: Upstreams;
  routes: Routes;
  recorder: Recorder;
  limits: SignalLimits;
  metrics: Metrics;
  log: Logger;
}): Gateway {
  const { config, keys, upstreams, routes, recorder, limits, metrics, log } = parts;
  const limiter = createRateLimiter();
  const maxBody = config.gateway.maxBodyMb * 1024 * 1024;
  let inFlight = 0;
  metrics.requestsInFlight(() => inFlight);
  let keptInFlight = 0;

  function refuse(response: ServerResponse, error: unknown): void {
    if (error instanceof RequestError) {
      metrics.requestRefused(error.code);
      sendError(response, error.status, error.code, error.message, retryAfter(error));
      return;
    }
    log.error({ err: error }, 'gateway: a request failed in Pawl itself');
    sendError(response, 500, 'internal_error', 'Pawl failed to handle this request; its log has the reason.');
  }

  function admit(request: IncomingMessage): ClientKey {
    const key = keys.check(request.headers.authorization);
    if (key.rateLimit !== null) {
      const { ok, retryAfterMs } = limiter.take(key.id, key.rateLimit, Date.now());
      if (!ok)
        throw new TooMany(
          429,
          'rate_limit_exceeded',
          `Key ${key.name} may send ${key.rateLimit} requests a minute.`,
          retryAfterMs,
        );
    }
    return key;
  }

  let saidAt = 0;
  /** Turns record each case; the log needs only to say that it happens. */
  function sayPassedOver(assigned: string, release: string, reason: string | null): void {
    if (Date.now() - saidAt < 10_000) return;
    saidAt = Date.now();
    log.warn({ assigned, release, reason }, 'gateway: a release could not answer and the baseline did');
  }

  function call(
    endpoint: Endpoint,
    key: ClientKey,
    path: Identity,
    bytes: Buffer,
    request: IncomingMessage,
    response: ServerResponse,
  ) {
    const startedAt = Date.now();
    const body = parseBody(bytes);
    checkCall(endpoint, body);
    const { trajectory, user, keys: businessKeys } = identify(path, request.headers, body);
    const model = body.model as string;
    const id = uuidv7(startedAt);
    const picked = routes.pick(model, { agent: key.agent, user, trajectory });
    const answerHeaders: Record<string, string> =
      trajectory === null ? { 'x-pawl-turn': id } : { 'x-pawl-turn': id, 'x-pawl-trajectory': trajectory };
    const targets = targetsOf(
      { bytes, body, model, attempts: config.gateway.attempts, answerHeaders },
      picked,
      upstreams,
    );
    if (inFlight >= config.gateway.maxInFlight)
      throw new TooMany(503, 'overloaded', `${inFlight} requests are in flight already.`, 1000);

    const keepBytes = Math.max(0, Math.min(keepPerAnswer, keepInFlight - keptInFlight));
    keptInFlight += bytes.length;
    inFlight++;
    forward(
      {
        route: path.route,
        headers: request.headers,
        targets,
        keepBytes,
      },
      upstreams,
      response,
      (outcome) => {
        const endedAt = Date.now();
        inFlight--;
        keptInFlight -= bytes.length;
        const { upstream, release } = outcome.target;
        const assigned = picked !== null && picked.release.name !== release ? picked.release.name : null;
        if (assigned !== null) sayPassedOver(assigned, release, outcome.passedOver);
        metrics.requestEnded({
          agent: key.agent,
          // A model's name that its upstream refused may be anything at all; it does not become a label.
          release: picked === null && outcome.httpStatus >= 400 && outcome.httpStatus < 500 ? upstream : release,
          endpoint,
          status: outcome.status,
          seconds: (endedAt - startedAt) / 1000,
          firstByteSeconds: outcome.firstByteAt === null ? null : (outcome.firstByteAt - startedAt) / 1000,
          attempts: outcome.attempts,
        });
        limits.answered(key.agent, id, trajectory);
        recorder.record({
          id,
          trajectory,
          agent: key.agent,
          user,
          origin: key.origin,
          keys: businessKeys,
          endpoint,
          startedAt,
          firstTokenMs: outcome.firstByteAt === null ? null : outcome.firstByteAt - startedAt,
          latencyMs: endedAt - startedAt,
          upstream,
          release,
          ...(assigned === null ? {} : { assigned }),
          requestedModel: model,
          status: outcome.status,
          httpStatus: outcome.httpStatus,
          error: outcome.error,
          attempts: outcome.attempts,
          stream: outcome.stream,
          requestBody: bytes,
          responseChunks: outcome.chunks,
          responseTruncated: outcome.cut,
        });
      },
    );
  }

  async function signal(
    route: string,
    key: ClientKey,
    path: Identity,
    bytes: Buffer,
    request: IncomingMessage,
    response: ServerResponse,
  ) {
    const body = parseBody(bytes);
    const now = Date.now();
    const { trajectory, user } = identify(path, request.headers, null);
    const context = { id: uuidv7(now), agent: key.agent, key: key.id, user, trajectory, now };
    const entries =
      route === '/attach'
        ? attachments(body, context).map((attachment) => ({ kind: 'attachment' as const, attachment }))
        : [
            {
              kind: 'signal' as const,
              signal: route === '/feedback' ? feedbackSignal(body, context) : outcomeSignal(body, context),
            },
          ];
    for (const entry of entries) await limits.check(key, entry, now);
    for (const entry of entries) {
      if ((await recorder.signal(entry)) !== 'journalled')
        throw new TooMany(
          503,
          'not_recorded',
          'This cannot be made durable now (journal full or disk full); send it again.',
          5000,
        );
      if (entry.kind === 'signal') metrics.signalReceived(key.agent, entry.signal.kind, entry.signal.name);
    }
    sendJson(response, 202, { id: context.id, status: 'accepted' });
  }

  async function answer(path: Identity, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = admit(request);
    checkScope(key, path.route);
    if (request.method === 'GET' && (path.route === '/models' || path.route.startsWith('/models/'))) {
      await listModels(path.route, upstreams, response);
      return;
    }
    const endpoint = endpoints[path.route];
    const isSignal = path.route === '/feedback' || path.route === '/outcomes' || path.route === '/attach';
    if (endpoint === undefined && !isSignal)
      throw new RequestError(404, 'unknown_route', `There is no /v1${path.route.slice(0, 100)} here.`);
    if (request.method !== 'POST') throw new RequestError(405, 'method_not_allowed', `Use POST for /v1${path.route}.`);
    const bytes = await readBody(request, maxBody);
    if (endpoint === undefined) await signal(path.route, key, path, bytes, request, response);
    else call(endpoint, key, path, bytes, request, response);
  }

  return {
    handle(request, response) {
      let path: Identity | null;
      try {
        path = parsePath(request.url ?? '/');
      } catch (error) {
        refuse(response, error);
        return true;
      }
      if (path === null) return false;
      answer(path, request, response).catch((error: unknown) => refuse(response, error));
      return true;
    },
    get inFlight() {
      return inFlight;
    },
  };
}

const retryAfter = (error: RequestError): Record<string, string> =>
  error instanceof TooMany ? { 'retry-after': String(Math.max(1, Math.ceil(error.retryAfterMs / 1000))) } : {};

const tooLarge = (size: string, max: number) =>
  new RequestError(413, 'body_too_large', `The request body is ${size}; at most ${max / 1048576} MB are accepted.`);

/** Reads at most `max` bytes; a larger body is refused as soon as it is known to be one, and never held in memory. */
function readBody(request: IncomingMessage, max: number): Promise<Buffer> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    return Promise.reject(
      new RequestError(
        415,
        'unsupported_encoding',
        `Content-Encoding ${encoding.slice(0, 40)} is not accepted; send plain JSON.`,
      ),
    );
  const stated = Number(request.headers['content-length'] ?? 0);
  // What is too much is read and thrown away, so that the caller gets to see the answer instead of a reset connection
  // (which "connection: close" would be). The server's requestTimeout ends a body that never does.
  if (stated > max) {
    request.resume();
    return Promise.reject(tooLarge(`${(stated / 1048576).toFixed(1)} MB`, max));
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > max) {
        request.removeAllListeners('data');
        request.resume();
        reject(tooLarge(`more than ${max / 1048576} MB`, max));
      } else chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('close', () => {
      // Every request closes; making an error for each cost more than anything else in this file.
      if (!request.readableEnded)
        reject(new RequestError(400, 'incomplete_body', 'The connection closed before the body was complete.'));
    });
  });
}
