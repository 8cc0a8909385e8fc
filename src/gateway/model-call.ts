/**
 * One model call: finds where it goes, has it forwarded, and, once the answer is on its way, hands a copy of both to the
 * recorder. Nothing here waits for recording. Its objects are written out field by field: spread together, they cost several times as
 * much, and there is one of each for every call.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from 'pino';
import type { Exchange } from '../collect/exchange.ts';
import { hashedId } from '../collect/person.ts';
import type { Recorder } from '../collect/recorder.ts';
import type { Endpoint } from '../collect/turn.ts';
import { uuidv7 } from '../collect/uuid.ts';
import type { Config } from '../config.ts';
import type { Held } from '../deploy/first-release.ts';
import type { Picked, Routes } from '../deploy/routes.ts';
import { RequestError } from '../errors.ts';
import { taskTypeOf } from '../store/slices.ts';
import { ComeBackLater, overloaded } from './admit.ts';
import type { AnswerTimes } from './answer-times.ts';
import { type Beginnings, goesOn } from './beginnings.ts';
import type { ReadBody } from './body.ts';
import type { Claim } from './budget.ts';
import { expandKept } from './coding.ts';
import { checkCall, identify, readCall } from './door.ts';
import type { ErrorShape } from './error-shape.ts';
import type { Explorer } from './explorer.ts';
import { type Call, forward, type Outcome, type Target } from './forward.ts';
import type { KnownModels } from './known-models.ts';
import type { Loading } from './loading.ts';
import type { Metrics } from './metrics.ts';
import type { Shadower } from './shadower.ts';
import type { SignalLimits } from './signal-limits.ts';
import { targetsOf } from './targets.ts';
import type { Upstreams } from './upstreams.ts';
import type { Visit } from './visit.ts';

export type CallParts = {
  readonly config: Config;
  readonly upstreams: Upstreams;
  readonly routes: Routes;
  readonly recorder: Recorder;
  readonly limits: SignalLimits;
  readonly metrics: Metrics;
  readonly models: KnownModels;
  readonly explorer: Pick<Explorer, 'offer'>;
  readonly shadower: Pick<Shadower, 'offer'>;
  readonly answerTimes: AnswerTimes;
  readonly beginnings: Beginnings;
  readonly loading: Loading;
  /** By agent: what is to answer it first, and is not let in. */
  readonly held: ReadonlyMap<string, Held>;
  /** What user ids are hashed with. */
  readonly secret: string;
  readonly log: Logger;
};

/**
 * Throws a RequestError while nothing has been sent; from then on the visit's claim is this call's. A promise where something
 * must be loaded first.
 */
export function callModel(
  parts: CallParts,
  endpoint: Endpoint,
  visit: Visit,
  read: ReadBody,
): Promise<void> | undefined {
  const { path, request, key } = visit;
  const startedAt = Date.now();
  const began = performance.now();
  const { body, modelSpans } = readCall(read);
  checkCall(endpoint, body);
  const { trajectory, user, keys } = identify(path, request.headers, body, endpoint);
  const model = body.model as string;
  const id = uuidv7(startedAt);
  const addressed = visit.evaluation?.release ?? null;
  const { bytes } = read;
  const go = (picked: Picked | null): Promise<void> | undefined => {
    const facts = { endpoint, startedAt, began, trajectory, user, keys, model, id, picked, bytes };
    const loading = picked === null ? null : parts.loading.wait(picked);
    if (loading !== null) return loading.then(() => send(parts, visit, facts, body, modelSpans));
    send(parts, visit, facts, body, modelSpans);
    return undefined;
  };
  if (addressed !== null) return go({ release: addressed, fallback: null, alone: true });
  const { routes, loading, beginnings } = parts;
  const caller = {
    agent: key.agent,
    user,
    trajectory,
    key: key.id,
    taskType: taskTypeOf(body),
    hashed: () => (user === null ? null : hashedId(user, parts.secret)),
    continues: () => goesOn(body),
  };
  const picked = routes.pick(model, caller, loading.mayChoose);
  if (picked === null) refuseHeld(parts.held.get(key.agent));
  if (picked?.unsure !== true) return go(picked);
  return beginnings.of(key.agent, trajectory!).then((name) => {
    if (name !== null) routes.began(caller, name);
    return go(routes.pick(model, { ...caller, continues: () => false }, loading.mayChoose));
  });
}

/** Whatever model was asked for: there is no other server, and the engine has it loaded only to ask it. */
function refuseHeld(held: Held | undefined): void {
  if (held === undefined) return;
  if (held.isUnfit) throw new RequestError(503, 'release_unfit', held.sentence);
  throw new ComeBackLater(503, 'release_not_ready', held.sentence, 5_000);
}

function send(
  parts: CallParts,
  visit: Visit,
  facts: Facts,
  body: Readonly<Record<string, unknown>>,
  modelSpans: [number, number][] | null,
): void {
  const { config, upstreams } = parts;
  const { trajectory, model, id, picked, bytes } = facts;
  const answerHeaders: Record<string, string> =
    trajectory === null ? { 'x-pawl-turn': id } : { 'x-pawl-turn': id, 'x-pawl-trajectory': trajectory };
  const targets = targetsOf(
    {
      bytes,
      body,
      modelSpans,
      model,
      attempts: config.gateway.attempts,
      answerHeaders,
      endpoint: facts.endpoint,
      firstByteMs: parts.answerTimes.patience(visit.key.agent, body.stream === true, picked?.firstByteMs ?? null),
    },
    picked,
    upstreams,
  );
  if (!visit.claim.take(rewrittenBytes(targets, bytes)))
    throw overloaded('The memory for requests in flight is used up.');
  forward(new ModelCall(parts, visit, facts, targets), upstreams, visit.response);
}

/** Bodies that were written anew, for another model's name or for more fields. */
function rewrittenBytes(targets: readonly Target[], bytes: Buffer): number {
  let sum = 0;
  for (const { body } of targets) if (body !== bytes) sum += body.length;
  return sum;
}

type Facts = {
  readonly endpoint: Endpoint;
  readonly startedAt: number;
  /** The same moment by performance.now(), from which durations are measured: clocks jump. */
  readonly began: number;
  readonly trajectory: string | null;
  readonly user: string | null;
  readonly keys: readonly string[];
  readonly model: string;
  readonly id: string;
  readonly picked: Picked | null;
  readonly bytes: Buffer;
};

class ModelCall implements Call {
  readonly route: string;
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  readonly targets: readonly Target[];
  readonly errors: ErrorShape;
  readonly claim: Claim;
  readonly #parts: CallParts;
  readonly #visit: Visit;
  readonly #facts: Facts;

  constructor(parts: CallParts, visit: Visit, facts: Facts, targets: readonly Target[]) {
    this.route = visit.path.route;
    this.query = visit.path.query;
    this.headers = visit.request.headers;
    this.errors = visit.errors;
    this.claim = visit.claim;
    this.targets = targets;
    this.#parts = parts;
    this.#visit = visit;
    this.#facts = facts;
  }

  ended(outcome: Outcome): void {
    const latencyMs = Math.round(performance.now() - this.#facts.began);
    const { metrics, models, log } = this.#parts;
    const { endpoint, began, picked, model } = this.#facts;
    const firstByteMs = outcome.firstByteAt === null ? null : Math.round(outcome.firstByteAt - began);
    const { upstream, release } = outcome.target;
    const assigned = picked !== null && picked.release.name !== release ? picked.release.name : null;
    if (picked?.fallback === null && outcome.status === 'ok' && firstByteMs !== null)
      this.#parts.answerTimes.took(this.#visit.key.agent, outcome.stream, firstByteMs);
    if (assigned !== null) sayPassedOver(log, assigned, release, outcome.passedOver);
    metrics.requestEnded({
      agent: this.#visit.key.agent,
      // A model's name comes from the caller and may be anything at all.
      release: picked !== null || models.has(upstream, model) ? release : `${upstream}/other`,
      endpoint,
      status: outcome.status,
      seconds: latencyMs / 1000,
      firstByteSeconds: firstByteMs === null ? null : firstByteMs / 1000,
      attempts: outcome.attempts,
    });
    if (outcome.coding === null)
      this.#record(outcome, assigned, { latencyMs, firstByteMs }, outcome.chunks, outcome.cut);
    else
      void expandKept(outcome.chunks, outcome.coding, (bytes) => this.claim.keep(bytes)).then(({ chunks, cut }) =>
        this.#record(outcome, assigned, { latencyMs, firstByteMs }, chunks, outcome.cut || cut),
      );
  }

  #record(
    outcome: Outcome,
    assigned: string | null,
    took: { readonly latencyMs: number; readonly firstByteMs: number | null },
    responseChunks: readonly Uint8Array[],
    responseTruncated: boolean,
  ): void {
    const { endpoint, startedAt, trajectory, user, keys, model, id, bytes, picked } = this.#facts;
    const { key, evaluation } = this.#visit;
    this.#parts.limits.answered(key.agent, id, trajectory);
    const seen: Exchange = {
      id,
      trajectory,
      agent: key.agent,
      clientKey: key.id,
      user,
      origin: evaluation?.origin ?? key.origin,
      keys,
      endpoint,
      startedAt,
      firstTokenMs: took.firstByteMs,
      latencyMs: took.latencyMs,
      upstream: outcome.target.upstream,
      release: outcome.target.release,
      requestedModel: model,
      status: outcome.status,
      httpStatus: outcome.httpStatus,
      error: outcome.error,
      attempts: outcome.attempts,
      stream: outcome.stream,
      requestBody: bytes,
      responseChunks,
      responseTruncated,
    };
    const exchange = assigned === null ? seen : { ...seen, assigned };
    this.#parts.recorder.record(exchange);
    this.claim.leave();
    const { body } = outcome.target;
    const sent = { path: this.route + this.query, headers: this.headers, body };
    this.#parts.explorer.offer(exchange, sent);
    if (picked?.shadow) this.#parts.shadower.offer(exchange, picked.shadow, sent);
  }
}

let saidAt = 0;
/** Turns record each case; the log needs only to say that it happens. */
function sayPassedOver(log: Logger, assigned: string, release: string, reason: string | null): void {
  if (Date.now() - saidAt < 10_000) return;
  saidAt = Date.now();
  log.warn({ assigned, release, reason }, 'gateway: a release could not answer and the baseline did');
}
