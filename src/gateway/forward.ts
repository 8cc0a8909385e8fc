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
  const chunks: Uint8Array[] = [];
  let kept = 0;
  let cut = false;
  let attempts = 0; // upstream calls in all
  let tries = 0; // upstream calls at the present upstream
  let place = 0; // index in call.targets
  let passedOver: string | null = null;
  let firstByteAt: number | null = null;
  let stream = false;
  let httpStatus = 0;
  let lastByte = 0;
  let lastButOne = 0;
  let controller: Dispatcher.DispatchController | null = null;
  let timer: NodeJS.Timeout | null = null;
  let finished = false;

  const finish = (status: TurnStatus, error: string | null) => {
    if (finished) return;
    finished = true;
    response.off('close', onClose);
    response.off('drain', onDrain);
    done({
      status,
      httpStatus,
      error,
      attempts,
      target: call.targets[place]!,
      passedOver,
      firstByteAt,
      stream,
      chunks,
      cut,
    });
  };

  const onClose = () => {
    if (finished || response.writableFinished) return;
    if (timer) clearTimeout(timer);
    finish('disconnected', 'The caller closed the connection before the answer was complete.');
    controller?.abort(new Error('the caller went away'));
  };
  const onDrain = () => controller?.resume();
  response.on('close', onClose);
  response.on('drain', onDrain);

  const keep = (chunk: Uint8Array) => {
    if (kept + chunk.length > call.keepBytes) {
      cut = true;
      return;
    }
    kept += chunk.length;
    chunks.push(chunk);
  };

  /** The present attempt failed before a byte went out: again, elsewhere, or the end. */
  const failed = (failure: Failure, reason: string, say: () => { status: number; error: string }) => {
    if (finished) return;
    const next = afterFailure(failure, tries, call.targets[place]!.attempts, Date.now(), Math.random());
    if (next.kind === 'again') {
      timer = setTimeout(attempt, next.waitMs);
      return;
    }
    if (place + 1 < call.targets.length) {
      passedOver ??= reason;
      place++;
      tries = 0;
      attempt();
      return;
    }
    const { status, error } = say();
    httpStatus = status;
    finish('error', error);
  };

  const attempt = () => {
    timer = null;
    attempts++;
    tries++;
    const target = call.targets[place]!;
    const name = target.upstream;
    const upstream = upstreams.get(name);
    // Set while an error answer is being read that may still be retried or must be put into shape.
    let held: { status: number; headers: IncomingHttpHeaders; chunks: Uint8Array[]; bytes: number } | null = null;
    let started = false;
    let length = -1;

    const endHeld = () => {
      const { status, headers, chunks: parts } = held!;
      const text = Buffer.concat(parts).toString('utf8');
      const pass = () => {
        for (const part of parts) keep(part);
        firstByteAt = Date.now();
        if (isErrorBody(text)) {
          const out = returnedHeaders(headers, target.answerHeaders);
          out['content-length'] = String(Buffer.byteLength(text));
          response.writeHead(status, out);
          response.end(text);
        } else {
          const message = `Upstream ${name} answered ${status}${text.trim() === '' ? '' : `: ${text.trim().slice(0, 300)}`}`;
          sendError(response, status, 'upstream_error', message, target.answerHeaders);
        }
        return { status, error: text.slice(0, 2000) || `status ${status}` };
      };
      if (isRetryable(status) || target.replaceable)
        failed(
          { kind: 'status', status, retryAfter: one(headers['retry-after']) },
          `Upstream ${name} answered ${status}`,
          pass,
        );
      else {
        httpStatus = status;
        const { error } = pass();
        finish('error', error);
      }
    };

    upstream.pool.dispatch(
      {
        path: upstream.path + call.route,
        method: 'POST',
        headers: forwardedHeaders(call.headers, upstream.key),
        body: target.body as Buffer,
        headersTimeout: upstream.silenceMs,
        bodyTimeout: upstream.silenceMs,
      },
      {
        onRequestStart(c) {
          controller = c;
          if (finished) c.abort(new Error('the caller went away'));
        },
        onResponseStart(_c, status, headers) {
          if (status < 200) return;
          if (status >= 400) {
            held = { status, headers, chunks: [], bytes: 0 };
            return;
          }
          started = true;
          httpStatus = status;
          stream = one(headers['content-type'])?.startsWith('text/event-stream') ?? false;
          length = Number(one(headers['content-length']) ?? -1);
          response.writeHead(status, returnedHeaders(headers, target.answerHeaders));
          if (stream) response.flushHeaders();
        },
        onResponseData(c, chunk) {
          if (held) {
            if (held.bytes < errorBytes) held.chunks.push(chunk);
            held.bytes += chunk.length;
            return;
          }
          firstByteAt ??= Date.now();
          keep(chunk);
          if (chunk.length === length) {
            response.end(chunk); // the whole answer in one piece: one write for head and body
            return;
          }
          lastButOne = chunk.length > 1 ? chunk[chunk.length - 2]! : lastByte;
          lastByte = chunk[chunk.length - 1]!;
          if (!response.write(chunk)) c.pause();
        },
        onResponseEnd() {
          controller = null;
          if (finished) return;
          if (held) {
            endHeld();
            return;
          }
          response.end();
          finish('ok', null);
        },
        onResponseError(_c, error) {
          controller = null;
          if (finished) return;
          const reason = `Upstream ${name}: ${describe(error)}`;
          if (held) {
            endHeld(); // the error answer itself broke off; what came of it is enough
            return;
          }
          if (!started) {
            const silent = isTimeout(error);
            failed({ kind: silent ? 'silence' : 'connection' }, reason, () => {
              const status = silent ? 504 : 502;
              sendError(
                response,
                status,
                silent ? 'upstream_timeout' : 'upstream_unreachable',
                reason,
                target.answerHeaders,
              );
              return { status, error: reason };
            });
            return;
          }
          // Bytes are out. A stream that stopped between events can still end with a clean error event; anything else
          // must look broken to the caller, because it is.
          if (stream && (firstByteAt === null || (lastByte === 0x0a && lastButOne === 0x0a)))
            response.end(`data: ${JSON.stringify(errorBody(502, 'upstream_error', reason))}\n\n`);
          else response.destroy();
          finish('truncated', reason);
        },
      },
    );
  };

  attempt();
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
