/**
 * What the upstream serves below /v1 and Pawl does not record (files, audio, images, moderations, tokenize …): any method, any
 * body, passed on byte for byte as it comes, in both directions. Nothing is held but what is on its way, so nothing is
 * asked twice either: there are no retries and no fallback here.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { TurnStatus } from '../collect/turn.ts';
import { RequestError } from '../errors.ts';
import { readBody } from './body.ts';
import { endpoints, leavesV1, parseBody, plainRoute } from './door.ts';
import { sendJson } from './error-shape.ts';
import { describeFailure, isTimeout } from './forward.ts';
import { one, passedHeaders, returnedHeaders } from './headers.ts';
import type { Metrics } from './metrics.ts';
import { passOn } from './slow-reader.ts';
import type { Uploads } from './upload.ts';
import type { Upstreams } from './upstreams.ts';
import type { Visit } from './visit.ts';

/** These change the server itself, which is its owner's business and not an agent's. */
const ofTheOwner = new Set(['/load_lora_adapter', '/unload_lora_adapter']);

export type PassParts = { readonly upstreams: Upstreams; readonly uploads: Uploads; readonly metrics: Metrics };

/** Throws a RequestError while nothing has been sent; from then on the visit's claim is given back here. */
export async function passThrough({ upstreams, uploads, metrics }: PassParts, visit: Visit): Promise<void> {
  const { path, request, response } = visit;
  const { route } = path;
  if (leavesV1(route)) throw new RequestError(400, 'invalid_path', 'A path may not hold . or .. as a part.');
  const plain = plainRoute(route);
  if (ofTheOwner.has(plain))
    throw new RequestError(403, 'not_for_clients', `/v1${plain} changes the model server; ask it directly.`);
  if (endpoints[plain] !== undefined)
    throw new RequestError(400, 'invalid_path', `Write /v1${plain} as it is: otherwise nothing would be recorded.`);
  const body = await readable(visit);
  const upstream = upstreams.chain(modelIn(body))[0];
  if (upstream === undefined)
    throw new RequestError(
      503,
      'no_upstream',
      'No upstream is configured. Set PAWL_UPSTREAM or `upstreams` in pawl.config.ts to an OpenAI-compatible server.',
    );
  uploads.passes(request);
  if (body === null && request.headers.expect !== undefined) response.writeContinue();
  const { pool, path: base, key, silenceMs } = upstreams.get(upstream);
  const streamed = body === null && hasBody(request.headers) ? apart(request) : null;
  pool.dispatch(
    {
      path: base + route + path.query,
      method: request.method as Dispatcher.HttpMethod,
      headers: passedHeaders(request.headers, route, key),
      body: body ?? streamed,
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
    },
    new Passing(visit, upstream, streamed, metrics),
  );
}

const hasBody = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/**
 * The body as a stream of its own. A call that fails ends the stream it was given; with the request itself, that would be the
 * connection on which the caller waits for the reason. What still comes is then read and thrown away.
 */
function apart(request: IncomingMessage): PassThrough {
  const body = new PassThrough();
  body.on('error', () => {});
  body.on('close', () => request.unpipe(body).resume());
  request.on('close', () => {
    if (!request.complete) body.destroy(new Error('the caller went away'));
  });
  return request.pipe(body);
}

/** A larger one is passed on as it comes. */
const parsedBytes = 256 * 1024;

/** A JSON body that is small enough to be looked at; null for any other. */
async function readable({ request, response, claim }: Visit): Promise<Buffer | null> {
  const { 'content-type': type, 'content-length': length, 'content-encoding': encoding } = request.headers;
  if (encoding !== undefined || length === undefined || Number(length) > parsedBytes) return null;
  if (Number(length) === 0 || !/^application\/json\b/i.test(type ?? '')) return null;
  return (await readBody(request, response, parsedBytes, claim, parsedBytes)).bytes;
}

/** Which upstream is meant, if the body says so; whether the body is any good is for the upstream to say. */
function modelIn(body: Buffer | null): string {
  if (body === null) return '';
  try {
    const { model } = parseBody(body);
    return typeof model === 'string' ? model : '';
  } catch {
    return '';
  }
}

class Passing implements Dispatcher.DispatchHandler {
  readonly #visit: Visit;
  readonly #upstream: string;
  readonly #body: PassThrough | null;
  readonly #metrics: Metrics;
  readonly #startedAt = performance.now();
  #controller: Dispatcher.DispatchController | null = null;
  #firstByteAt: number | null = null;
  #isOver = false;

  constructor(visit: Visit, upstream: string, body: PassThrough | null, metrics: Metrics) {
    this.#visit = visit;
    this.#upstream = upstream;
    this.#body = body;
    this.#metrics = metrics;
    visit.response.on('close', () => {
      if (this.#isOver || visit.response.writableFinished) return;
      this.#end('disconnected');
      this.#controller?.abort(new Error('the caller went away'));
    });
  }

  #end(status: TurnStatus): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#body?.destroy();
    this.#visit.claim.leave();
    this.#metrics.requestEnded({
      agent: this.#visit.key.agent,
      release: `${this.#upstream}/other`,
      endpoint: 'other',
      status,
      seconds: (performance.now() - this.#startedAt) / 1000,
      firstByteSeconds: this.#firstByteAt === null ? null : (this.#firstByteAt - this.#startedAt) / 1000,
      attempts: 1,
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('the caller went away'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    const { response } = this.#visit;
    response.writeHead(status, returnedHeaders(headers, {}));
    if (one(headers['content-type'])?.startsWith('text/event-stream')) response.flushHeaders();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#firstByteAt ??= performance.now();
    passOn(this.#visit.response, chunk, controller);
  }

  onResponseEnd(): void {
    this.#controller = null;
    this.#visit.response.end();
    this.#end(this.#visit.response.statusCode < 400 ? 'ok' : 'error');
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#controller = null;
    if (this.#isOver) return;
    const { response, errors } = this.#visit;
    if (response.headersSent) {
      response.destroy();
      this.#end('truncated');
      return;
    }
    const status = isTimeout(error) ? 504 : 502;
    const code = isTimeout(error) ? 'upstream_timeout' : 'upstream_unreachable';
    sendJson(response, status, errors.body(status, code, `Upstream ${this.#upstream}: ${describeFailure(error)}`));
    this.#end('error');
  }
}
