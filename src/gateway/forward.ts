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
import type { Claim } from './budget.ts';
import { type Coding, codingOf, expandShort } from './coding.ts';
import { type ErrorShape, isErrorBody, sendJson } from './error-shape.ts';
import { callHeaders, one, returnedHeaders } from './headers.ts';
import { afterFailure, type Failure, isRetryable } from './retry.ts';
import { passOn } from './slow-reader.ts';
import type { Upstreams } from './upstreams.ts';

export type Target = {
  /** Name of the upstream. */
  readonly upstream: string;
  readonly body: Uint8Array;
  /** Calls before the next target is asked. */
  readonly attempts: number;
  /** What answers there, as the turn will say. */
  readonly release: string;
  /** How long its first byte is waited for; without it, as long as the upstream's silence. */
  readonly firstByteMs?: number;
  /** The next target may do better, so even a refusal (4xx) goes on to it. */
  readonly replaceable: boolean;
  /** Sent with every answer, e.g. the turn's id. */
  readonly answerHeaders: Readonly<Record<string, string>>;
};

export type Call = {
  /** Path below the upstream's base URL, e.g. `/chat/completions`. */
  readonly route: string;
  /** With its question mark; some clients of Anthropic's say `?beta=true`. */
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  /** Whom to ask, in order. */
  readonly targets: readonly Target[];
  readonly errors: ErrorShape;
  /** What the answer's copy is kept under. */
  readonly claim: Claim;
  /** Called exactly once, after the caller has its answer or is gone. */
  ended(outcome: Outcome): void;
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
  /** By performance.now(): clocks jump. */
  readonly firstByteAt: number | null;
  readonly stream: boolean;
  readonly chunks: readonly Uint8Array[];
  /** What the chunks are coded in, although nobody asked for it. */
  readonly coding: Coding | null;
  readonly cut: boolean;
};

const errorBytes = 64 * 1024;
/** Bytes of one answer that are kept, and what keeping a piece costs besides its bytes. */
const keepPerAnswer = 16 * 1024 * 1024;
const keepOverhead = 128;

export function forward(call: Call, upstreams: Upstreams, response: ServerResponse): void {
  new Forwarding(call, upstreams, response).attempt();
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
  coding: Coding | null = null;
  cut = false;
  readonly call: Call;
  readonly upstreams: Upstreams;
  readonly response: ServerResponse;
  kept = 0;
  tries = 0; // upstream calls at the present upstream
  place = 0; // index in call.targets
  passedOver: string | null = null;
  lastByte = 0;
  lastButOne = 0;
  controller: Dispatcher.DispatchController | null = null;
  timer: NodeJS.Timeout | null = null;
  finished = false;

  constructor(call: Call, upstreams: Upstreams, response: ServerResponse) {
    this.call = call;
    this.upstreams = upstreams;
    this.response = response;
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
    const attempt = new Attempt(this, target);
    pool.dispatch(
      {
        path: path + this.call.route + this.call.query,
        method: 'POST',
        headers: callHeaders(this.call.headers, this.call.route, key),
        body: target.body as Buffer,
        headersTimeout: silenceMs,
        bodyTimeout: silenceMs,
      },
      attempt,
    );
    attempt.watch();
  }

  finish(status: TurnStatus, error: string | null): void {
    if (this.finished) return;
    this.finished = true;
    this.status = status;
    this.error = error;
    this.call.ended(this);
  }

  closed(): void {
    if (this.finished || this.response.writableFinished) return;
    if (this.timer) clearTimeout(this.timer);
    this.finish('disconnected', 'The caller closed the connection before the answer was complete.');
    this.controller?.abort(new Error('the caller went away'));
  }

  keep(chunk: Uint8Array): void {
    const bytes = chunk.length + keepOverhead;
    if (this.cut || this.kept + bytes > keepPerAnswer || !this.call.claim.keep(bytes)) {
      this.cut = true;
      return;
    }
    this.kept += bytes;
    this.chunks.push(chunk);
  }

  /** An error of our own. */
  say(status: number, code: string, message: string): void {
    sendJson(this.response, status, this.call.errors.body(status, code, message), this.target.answerHeaders);
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
  readonly forwarding: Forwarding;
  readonly target: Target;
  /** Set while an error answer is being read that may still be retried or must be put into shape. */
  held: Held | null = null;
  started = false;
  length = -1;
  /** An answer that has begun without a byte of its body, while another upstream could still answer instead. */
  head: { readonly status: number; readonly headers: IncomingHttpHeaders } | null = null;
  late: NodeJS.Timeout | null = null;
  isLate = false;
  isOver = false;

  constructor(forwarding: Forwarding, target: Target) {
    this.forwarding = forwarding;
    this.target = target;
  }

  /** Gives the target its time to the first byte. */
  watch(): void {
    const { firstByteMs } = this.target;
    if (firstByteMs === undefined || this.started || this.held !== null || this.isOver) return;
    this.late = setTimeout(() => {
      this.isLate = true;
      const { controller } = this.forwarding;
      if (controller === null) this.gaveUp();
      else controller.abort(new Error('no first byte in time'));
    }, firstByteMs);
  }

  over(): void {
    this.isOver = true;
    if (this.late !== null) clearTimeout(this.late);
  }

  /** Whatever still comes of this attempt is nobody's. */
  gaveUp(): void {
    if (this.isOver) return;
    this.over();
    const { forwarding, target } = this;
    const reason = `Upstream ${target.upstream}: sent no first byte in ${target.firstByteMs} ms`;
    forwarding.failed({ kind: 'silence' }, reason, () => {
      forwarding.say(504, 'upstream_timeout', reason);
      return { status: 504, error: reason };
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.isLate) {
      controller.abort(new Error('no first byte in time'));
      return;
    }
    this.forwarding.controller = controller;
    if (this.forwarding.finished) controller.abort(new Error('the caller went away'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    if (status >= 400) {
      this.held = { status, headers, chunks: [], bytes: 0 };
      return;
    }
    if (this.late !== null) {
      this.head = { status, headers };
      return;
    }
    this.begin(status, headers);
  }

  begin(status: number, headers: IncomingHttpHeaders): void {
    const { forwarding } = this;
    this.over();
    this.head = null;
    this.started = true;
    forwarding.httpStatus = status;
    forwarding.stream = one(headers['content-type'])?.startsWith('text/event-stream') ?? false;
    forwarding.coding = codingOf(one(headers['content-encoding'])) ?? null;
    this.length = Number(one(headers['content-length']) ?? -1);
    forwarding.response.writeHead(status, returnedHeaders(headers, this.target.answerHeaders));
    if (forwarding.stream) forwarding.response.flushHeaders();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    const { forwarding, held } = this;
    if (held) {
      if (held.bytes < errorBytes && forwarding.call.claim.keep(chunk.length)) held.chunks.push(chunk);
      held.bytes += chunk.length;
      return;
    }
    if (this.head !== null) this.begin(this.head.status, this.head.headers);
    forwarding.firstByteAt ??= performance.now();
    forwarding.keep(chunk);
    if (chunk.length === this.length) {
      endWith(forwarding.response, chunk);
      return;
    }
    forwarding.lastButOne = chunk.length > 1 ? chunk[chunk.length - 2]! : forwarding.lastByte;
    forwarding.lastByte = chunk[chunk.length - 1]!;
    passOn(forwarding.response, chunk, forwarding.controller);
  }

  onResponseEnd(): void {
    const { forwarding } = this;
    forwarding.controller = null;
    this.over();
    if (forwarding.finished) return;
    if (this.held) {
      this.endHeld(this.held);
      return;
    }
    if (this.head !== null) this.begin(this.head.status, this.head.headers);
    forwarding.response.end();
    forwarding.finish('ok', null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { forwarding, target } = this;
    const { response } = forwarding;
    if (this.isLate && this.isOver) return;
    forwarding.controller = null;
    if (this.isLate && !forwarding.finished) {
      this.gaveUp();
      return;
    }
    this.over();
    if (forwarding.finished) return;
    const reason = `Upstream ${target.upstream}: ${describeFailure(error)}`;
    if (this.held) {
      this.endHeld(this.held); // the error answer itself broke off; what came of it is enough
      return;
    }
    if (!this.started) {
      const silent = isTimeout(error);
      forwarding.failed({ kind: silent ? 'silence' : 'connection' }, reason, () => {
        const status = silent ? 504 : 502;
        const code = silent ? 'upstream_timeout' : 'upstream_unreachable';
        forwarding.say(status, code, reason);
        return { status, error: reason };
      });
      return;
    }
    // Bytes are out. A stream that stopped between events can still end with a clean error event; anything else
    // must look broken to the caller, because it is.
    const isBetween =
      forwarding.firstByteAt === null || (forwarding.lastByte === 0x0a && forwarding.lastButOne === 0x0a);
    if (forwarding.stream && forwarding.coding === null && isBetween)
      response.end(forwarding.call.errors.event(502, 'upstream_error', reason));
    else response.destroy();
    forwarding.finish('truncated', reason);
  }

  endHeld({ status, headers, chunks }: Held): void {
    const { forwarding, target } = this;
    const { response } = forwarding;
    const answered = `Upstream ${target.upstream} answered ${status}`;
    const coding = codingOf(one(headers['content-encoding'])) ?? null;
    const whole = Buffer.concat(chunks);
    const bytes = coding === null ? whole : expandShort(whole, coding, errorBytes);
    const text = bytes.toString('utf8');
    const pass = () => {
      forwarding.keep(bytes);
      forwarding.firstByteAt = performance.now();
      if (isErrorBody(text)) {
        const out = returnedHeaders(headers, target.answerHeaders, ['content-encoding', 'content-length']);
        response.writeHead(status, [...out, 'content-length', String(bytes.length)]);
        response.end(bytes);
      } else {
        const message = `${answered}${text.trim() === '' ? '' : `: ${text.trim().slice(0, 300)}`}`;
        forwarding.say(status, 'upstream_error', message);
      }
      return { status, error: text || `status ${status}` }; // make-turn.ts redacts it, then cuts it
    };
    if (isRetryable(status) || target.replaceable)
      forwarding.failed({ kind: 'status', status, retryAfter: one(headers['retry-after']) }, answered, pass);
    else {
      forwarding.httpStatus = status;
      const { error } = pass();
      forwarding.finish('error', error);
    }
  }
}

/** Characters that stand for one byte each are written behind the head in one piece; longer ones would be copied once more for it. */
const SHORT_ANSWER = 16 * 1024;

/** The whole answer in one piece. */
function endWith(response: ServerResponse, body: Uint8Array): void {
  if (body.length > SHORT_ANSWER) response.end(body);
  else response.end(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'), 'latin1');
}

const codeOf = (error: Error): string => ('code' in error ? String(error.code) : '');
export const isTimeout = (error: Error): boolean =>
  /TIMEOUT/.test(codeOf(error)) && codeOf(error) !== 'UND_ERR_CONNECT_TIMEOUT';
export const describeFailure = (error: Error): string => {
  const code = codeOf(error);
  if (isTimeout(error)) return 'sent nothing for too long';
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET') return 'closed the connection in the middle';
  return `${error.message}${code ? ` (${code})` : ''}`;
};
