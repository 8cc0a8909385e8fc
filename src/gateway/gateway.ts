/**
 * The door that agents come through. Each request is admitted (admit.ts) before any of its body is read, and then is one of four
 * things: the list of models, a signal (receive-signal.ts), a model call (model-call.ts), or something else that the
 * upstream serves (pass.ts).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestError } from '../errors.ts';
import { addressed, askedEvaluation, type ReadyReleases } from './addressed.ts';
import { createAdmission, retryAfter } from './admit.ts';
import { createAnswerTimes } from './answer-times.ts';
import { createBeginnings } from './beginnings.ts';
import { type ReadBody, readBody, whenRead } from './body.ts';
import { Budget, type Claim } from './budget.ts';
import { endpoints, type Identity, parsePath } from './door.ts';
import { type ErrorShape, errorShapeOf, openaiErrors, sendJson } from './error-shape.ts';
import { createExplorer, type ExplorerParts } from './explorer.ts';
import type { KeyRing } from './keys.ts';
import { createKnownModels } from './known-models.ts';
import { type CallParts, callModel } from './model-call.ts';
import { listModels } from './models.ts';
import { passThrough } from './pass.ts';
import { isSignalRoute, receiveSignal } from './receive-signal.ts';
import { checkScope } from './scopes.ts';
import { createShadower } from './shadower.ts';
import type { Uploads } from './upload.ts';
import type { Visit } from './visit.ts';

export type Gateway = {
  /** False when the path is not the gateway's. */
  handle(request: IncomingMessage, response: ServerResponse): boolean;
  readonly inFlight: number;
  /** Ends what is asked beyond users' requests; those are the port's to end. */
  close(): Promise<void>;
};

export function createGateway(
  given: Omit<CallParts, 'models' | 'explorer' | 'shadower' | 'answerTimes' | 'beginnings'> &
    Pick<ExplorerParts, 'store' | 'secret'> & {
      readonly keys: KeyRing;
      readonly uploads: Uploads;
      readonly releases: ReadyReleases;
      /** Told of the bytes of bodies that nobody holds any more. */
      readonly letGo: (bytes: number) => void;
    },
): Gateway {
  const { config, upstreams, metrics, log } = given;
  const maxBody = config.gateway.maxBodyMb * 1024 * 1024;
  const budget = new Budget(config.gateway.memoryMb * 1024 * 1024, config.gateway.maxInFlight, given.letGo);
  const explorer = createExplorer({
    ...given,
    load: () => ({ requests: budget.taken, isFull: 2 * budget.used > budget.bytes }),
  });
  const shadower = createShadower({ ...given, load: () => ({ isFull: 2 * budget.used > budget.bytes }) });
  const parts = {
    ...given,
    explorer,
    shadower,
    answerTimes: createAnswerTimes(),
    beginnings: createBeginnings(given.store),
    models: createKnownModels(config.upstreams, upstreams),
  };
  const admission = createAdmission(given.keys, budget);
  metrics.holds(() => ({ requests: budget.taken, bytes: budget.used }));

  function refuse(response: ServerResponse, errors: ErrorShape, error: unknown): void {
    if (error instanceof RequestError) {
      const { status, code, message } = error;
      metrics.requestRefused(code);
      sendJson(response, status, errors.body(status, code, message), retryAfter(error));
      return;
    }
    log.error({ err: error }, 'gateway: a request failed in Pawl itself');
    const message = 'Pawl failed to handle this request; its log has the reason.';
    sendJson(response, 500, errors.body(500, 'internal_error', message));
  }

  /** All but model calls. The claim is given back by then, or by what goes on after. */
  async function serveOther(visit: Visit): Promise<void> {
    const { path, request, response, claim } = visit;
    const { route } = path;
    const isSignal = isSignalRoute(route);
    if (request.method === 'GET' && isModelRoute(route)) {
      await listModels(route, upstreams, response);
      claim.leave();
    } else if (request.method === 'POST' && isSignal) {
      await receiveSignal(parts, visit, (await readBody(request, response, maxSignal, claim)).bytes);
      claim.leave();
    } else if (isSignal || isModelRoute(route) || endpoints[route] !== undefined)
      throw new RequestError(
        405,
        'method_not_allowed',
        `Use ${isModelRoute(route) ? 'GET' : 'POST'} for /v1${route.slice(0, 100)}.`,
      );
    else await passThrough(parts, visit);
  }

  function answer(path: Identity, request: IncomingMessage, response: ServerResponse): void {
    const errors = errorShapeOf(path.route);
    let claim: Claim | null = null;
    const refused = (error: unknown): void => {
      claim?.leave();
      refuse(response, errors, error);
    };
    try {
      const key = admission.key(request);
      checkScope(key, path.route);
      const asked = askedEvaluation(request.headers, key);
      claim = admission.enter();
      const visit = { path, request, response, key, claim, errors, evaluation: null };
      if (asked === null) serve(visit, refused);
      else
        addressed(asked, key, given.releases)
          .then((evaluation) => serve({ ...visit, evaluation }, refused))
          .catch(refused);
    } catch (error) {
      refused(error);
    }
  }

  /** Nothing is awaited on a call's way: each wait is a turn of the event loop's queue. */
  function serve(visit: Visit, refused: (error: unknown) => void): void {
    const { path, request, response, claim } = visit;
    const endpoint = endpoints[path.route];
    if (endpoint === undefined || request.method !== 'POST') {
      serveOther(visit).catch(refused);
      return;
    }
    const whole = (body: ReadBody): void => {
      try {
        callModel(parts, endpoint, visit, body)?.catch(refused);
      } catch (error) {
        refused(error);
      }
    };
    whenRead(request, response, maxBody, claim, { whole, refused });
  }

  return {
    handle(request, response) {
      let path: Identity | null;
      try {
        path = parsePath(request.url ?? '/');
      } catch (error) {
        refuse(response, openaiErrors, error);
        return true;
      }
      if (path === null) return false;
      answer(path, request, response);
      return true;
    },
    get inFlight() {
      return budget.taken;
    },
    close: async () => {
      await Promise.all([explorer.close(), shadower.close()]);
    },
  };
}

/** A correction of tens of thousands of words fits. */
const maxSignal = 1024 * 1024;

const isModelRoute = (route: string): boolean => route === '/models' || route.startsWith('/models/');
