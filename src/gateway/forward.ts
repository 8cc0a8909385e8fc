/**
 * Takes one call to an upstream and its answer back to the caller, byte for byte. Retries and the fallback happen here,
 * before the first byte only (retry.ts decides). A copy of the bytes is kept for recording, within a bound; whether that
 * copy succeeds makes no difference to the caller.
 *
 * Uses undici's dispatch interface: no streams in between, and backpressure is pausing the upstream's socket.
 */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import type { TurnStatus } from '../collect/turn.ts';
import { errorBody, isErrorBody, sendError } from './openai-error.ts';
import { afterFailure, type Failure, isRetryable } from './retry.ts';
import type { Upstreams } from './upstreams.ts';

export type Target = {
  /** Name of the upstream. */
  readonly upstream: string;
  readonly body: Uint8Array;
  /** Calls before the next target is asked. */
  readonly attempts: number;
  /** What answers there, as the turn will say. */
  readonly release: string;
  /** The next target may do better, so even a refusal (4xx) goes on to it. */
  readonly replaceable: boolean;
  /** Sent with every answer, e.g. the turn's id. */
  readonly answerHeaders: Readonly<Record<string, string>>;
};

export type Call = {
  /** Path below the upstream's base URL, e.g. `/chat/completions`. */
  readonly route: string;
  readonly headers: IncomingHttpHeaders;
  /** Whom to ask, in order. */
  readonly targets: readonly Target[];
  /** Bytes of the answer kept for recording. */
  readonly keepBytes: number;
};

export type Outcome = {
  readonly status: TurnStatus;
  readonly httpStatus: number;
  readonly error: string | null;
  readonly attempts: number;
  /** The target asked last. */
  readonly target: Target;
  /** Why the first target was passed over, if it was. */
  readonly passedOver: string | null;
  readonly firstByteAt: number | null;
  readonly stream: boolean;
  readonly chunks: readonly Uint8Array[];
  readonly cut: boolean;
};

/** Headers that belong to one connection, to Pawl, or to the client's relation with Pawl. */
const notForwarded = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'content-length',
  'authorization',
  'cookie',
  'x-api-key',
  // Answers are recorded as they pass, so they must not be compressed.
  'accept-encoding',
]);
const notReturned = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'trailer',
  'proxy-authenticate',
]);
const errorBytes = 64 * 1024;

export function forwardedHeaders(headers: IncomingHttpHeaders, key: string | undefined): string[] {
  const out: string[] = [];
  for (const name in headers) {
    if (notForwarded.has(name) || name.startsWith('x-pawl-')) continue;
    const value = headers[name];
    if (typeof value === 'string') out.push(name, value);
    else if (value !== undefined) for (const one of value) out.push(name, one);
  }
  if (key !== undefined) out.push('authorization', `Bearer ${key}`);
  return out;
}

function returnedHeaders(headers: IncomingHttpHeaders, extra: Readonly<Record<string, string>>) {
  const out: Record<string, string | string[]> = Object.create(null);
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && !notReturned.has(name)) out[name] = value;
  }
  for (const name in extra) out[name] = extra[name]!;
  return out;
}

/** Calls `done` exactly once, after the caller has its answer or is gone. */
export function forward(call: Call, upstreams: Upstreams, response: ServerResponse, done: (outcome: Outcome) => void) {
  new Forwarding(call, upstreams, response, done).attempt();
}

type Held = { status: number; headers: IncomingHttpHeaders; chunks: Uint8Array[]; bytes: number };

/** One call on its way. A class: tsx wraps every named closure in a call, and seven per request showed in the profile. */
class Forwarding implements Outcome {
  readonly chunks: Uint8Array[] = [];
  status: TurnStatus = 'ok';
  httpStatus = 0;
  error: string | null = null;
  attempts = 0; // upstream calls in all
  firstByteAt: number | null = null;
  stream = false;
  cut = false;
  readonly call: Call;
  readonly upstreams: Upstreams;
  readonly response: ServerResponse;
  readonly done: (outcome: Outcome) => void;
  kept = 0;
  tries = 0; // upstream calls at the present upstream
  place = 0; // index in call.targets
  passedOver: string | null = null;
  lastByte = 0;
  lastButOne = 0;
  controller: Dispatcher.DispatchController | null = null;
  timer: NodeJS.Timeout | null = null;
  finished = false;

  constructor(call: Call, upstreams: Upstreams, response: ServerResponse, done: (outcome: Outcome) => void) {
    this.call = call;
    this.upstreams = upstreams;
    this.response = response;
    this.done = done;
    response.on('close', () => this.closed());
  }

  get target(): Target {
    return this.call.targets[this.place]!;
  }

  attempt(): void {
    this.timer = null;
    this.attempts++;
    this.tries++;
    const { target } = this;
    const { pool, path, key, silenceMs } = this.upstreams.get(target.upstream);
    pool.dispatch(
      {
        path: path + this.call.route,
        method: 'POST',
        headers: forwardedHeaders(this.call.headers, key),
        body: target.body as Buffer,
        headersTimeout: silenceMs,
        bodyTimeout: silenceMs,
      },
      new Attempt(this, target),
    );
  }

  finish(status: TurnStatus, error: string | null): void {
    if (this.finished) return;
    this.finished = true;
    this.status = status;
    this.error = error;
    this.done(this);
  }

  closed(): void {
    if (this.finished || this.response.writableFinished) return;
    if (this.timer) clearTimeout(this.timer);
    this.finish('disconnected', 'The caller closed the connection before the answer was complete.');
    this.controller?.abort(new Error('the caller went away'));
  }

  /** Passes bytes on; while the caller does not take them, the upstream waits. */
  write(chunk: Uint8Array): void {
    if (this.response.write(chunk)) return;
    this.controller?.pause();
    this.response.once('drain', () => this.controller?.resume());
  }

  keep(chunk: Uint8Array): void {
    if (this.kept + chunk.length > this.call.keepBytes) {
      this.cut = true;
      return;
    }
    this.kept += chunk.length;
    this.chunks.push(chunk);
  }

  /** The present attempt failed before a byte went out: again, elsewhere, or the end. */
  failed(failure: Failure, reason: string, say: () => { status: number; error: string }): void {
    if (this.finished) return;
    const next = afterFailure(failure, this.tries, this.target.attempts, Date.now(), Math.random());
    if (next.kind === 'again') {
      this.timer = setTimeout(() => this.attempt(), next.waitMs);
      return;
    }
    if (this.place + 1 < this.call.targets.length) {
      this.passedOver ??= reason;
      this.place++;
      this.tries = 0;
      this.attempt();
      return;
    }
    const { status, error } = say();
    this.httpStatus = status;
    this.finish('error', error);
  }
}

/** One upstream call of a Forwarding, as undici reports it. */
class Attempt implements Dispatcher.DispatchHandler {
  readonly of: Forwarding;
  readonly target: Target;
  /** Set while an error answer is being read that may still be retried or must be put into shape. */
  held: Held | null = null;
  started = false;
  length = -1;

  constructor(of: Forwarding, target: Target) {
    this.of = of;
    this.target = target;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.of.controller = controller;
    if (this.of.finished) controller.abort(new Error('the caller went away'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    if (status >= 400) {
      this.held = { status, headers, chunks: [], bytes: 0 };
      return;
    }
    const { of } = this;
    this.started = true;
    of.httpStatus = status;
    of.stream = one(headers['content-type'])?.startsWith('text/event-stream') ?? false;
    this.length = Number(one(headers['content-length']) ?? -1);
    of.response.writeHead(status, returnedHeaders(headers, this.target.answerHeaders));
    if (of.stream) of.response.flushHeaders();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    const { of, held } = this;
    if (held) {
      if (held.bytes < errorBytes) held.chunks.push(chunk);
      held.bytes += chunk.length;
      return;
    }
    of.firstByteAt ??= Date.now();
    of.keep(chunk);
    if (chunk.length === this.length) {
      of.response.end(chunk); // the whole answer in one piece: one write for head and body
      return;
    }
    of.lastButOne = chunk.length > 1 ? chunk[chunk.length - 2]! : of.lastByte;
    of.lastByte = chunk[chunk.length - 1]!;
    of.write(chunk);
  }

  onResponseEnd(): void {
    const { of } = this;
    of.controller = null;
    if (of.finished) return;
    if (this.held) {
      this.endHeld(this.held);
      return;
    }
    of.response.end();
    of.finish('ok', null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { of, target } = this;
    const { response } = of;
    of.controller = null;
    if (of.finished) return;
    const reason = `Upstream ${target.upstream}: ${describe(error)}`;
    if (this.held) {
      this.endHeld(this.held); // the error answer itself broke off; what came of it is enough
      return;
    }
    if (!this.started) {
      const silent = isTimeout(error);
      of.failed({ kind: silent ? 'silence' : 'connection' }, reason, () => {
        const status = silent ? 504 : 502;
        const code = silent ? 'upstream_timeout' : 'upstream_unreachable';
        sendError(response, status, code, reason, target.answerHeaders);
        return { status, error: reason };
      });
      return;
    }
    // Bytes are out. A stream that stopped between events can still end with a clean error event; anything else
    // must look broken to the caller, because it is.
    if (of.stream && (of.firstByteAt === null || (of.lastByte === 0x0a && of.lastButOne === 0x0a)))
      response.end(`data: ${JSON.stringify(errorBody(502, 'upstream_error', reason))}\n\n`);
    else response.destroy();
    of.finish('truncated', reason);
  }

  endHeld({ status, headers, chunks }: Held): void {
    const { of, target } = this;
    const { response } = of;
    const answered = `Upstream ${target.upstream} answered ${status}`;
    const text = Buffer.concat(chunks).toString('utf8');
    const pass = () => {
      for (const chunk of chunks) of.keep(chunk);
      of.firstByteAt = Date.now();
      if (isErrorBody(text)) {
        const out = returnedHeaders(headers, target.answerHeaders);
        out['content-length'] = String(Buffer.byteLength(text));
        response.writeHead(status, out);
        response.end(text);
      } else {
        const message = `${answered}${text.trim() === '' ? '' : `: ${text.trim().slice(0, 300)}`}`;
        sendError(response, status, 'upstream_error', message, target.answerHeaders);
      }
      return { status, error: text || `status ${status}` }; // make-turn.ts redacts it, then cuts it
    };
    if (isRetryable(status) || target.replaceable)
      of.failed({ kind: 'status', status, retryAfter: one(headers['retry-after']) }, answered, pass);
    else {
      of.httpStatus = status;
      const { error } = pass();
      of.finish('error', error);
    }
  }
}

const one = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

const codeOf = (error: Error): string => ('code' in error ? String(error.code) : '');
const isTimeout = (error: Error): boolean =>
  /TIMEOUT/.test(codeOf(error)) && codeOf(error) !== 'UND_ERR_CONNECT_TIMEOUT';
const describe = (error: Error): string => {
  const code = codeOf(error);
  if (isTimeout(error)) return 'sent nothing for too long';
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET') return 'closed the connection in the middle';
  return `${error.message}${code ? ` (${code})` : ''}`;
};
