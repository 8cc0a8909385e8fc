/**
 * Requests to a Tinker server, one at a time or many at once: the key in its header, the same idempotency key for every try of a
 * request, a limit on each wait and on the size of each answer, redirects not followed. What may pass (no connection, 408, 429,
 * 5xx) is tried again until the patience is at its end; a server that asks callers to wait (429) makes all of them wait. What will not
 * pass is a `Refusal` with the server's own words. The key is never part of an error.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { z } from 'zod';
import { EngineError } from '../../errors.ts';
import { upTo } from '../../up-to.ts';
import { protoType } from './proto.ts';
import { refusal } from './wire.ts';

/** The server will not do what it was asked. */
export class Refusal extends EngineError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type TransportOptions = {
  /** Address up to, and without, /api/v1. */
  readonly url: string;
  /** What goes into X-API-Key; asked before every request. */
  readonly key?: () => Promise<string | undefined>;
  /** How long a server that cannot be reached, or asks to wait, is waited for. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  /** Most requests under way. */
  readonly concurrency?: number; // 256
};

/** `proto` where the answer is protobuf; else `json`. */
export type Answered = { readonly status: number; readonly json: unknown; readonly proto?: Buffer };

export type Transport = {
  /** Tries until there is an answer that stands; throws a Refusal for 4xx. */
  post<T>(path: string, body: object | Buffer, schema: z.ZodType<T>, options?: PostOptions): Promise<T>;
  /** One try, whatever comes of it. Throws an EngineError, retryable, where nothing came. */
  once(path: string, body: object, options: OnceOptions): Promise<Answered>;
  get(
    path: string,
    options: { readonly maxBytes: number },
  ): Promise<{ status: number; location: string | null; bytes: Buffer }>;
  remove(path: string): Promise<void>;
};

export type OnceOptions = {
  readonly timeoutMs: number;
  /** What is understood besides JSON. */
  readonly accept?: string | undefined;
  /** The server may hold it for as long. */
  readonly isPoll?: boolean;
  readonly signal?: AbortSignal | undefined;
};

export type PostOptions = {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called before each try but the first. */
  readonly onRetry?: () => void;
};

const timeoutMs = 60_000;
const maxAnswerBytes = 256 * 2 ** 20;

export function createTransport(options: TransportOptions): Transport {
  const { url, key, patienceMs, signal: ending, concurrency = 256 } = options;
  const base = url.replace(/\/+$/, '');
  // Polls wait at the server for most of a minute each: they must not keep what they wait for from being sent.
  const slots = { request: createSlots(concurrency), poll: createSlots(concurrency) };
  /** Nobody sends before this moment: a server said that it has too much to do. */
  let notBefore = 0;

  async function send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    init: {
      readonly body?: string | Buffer;
      readonly accept?: string | undefined;
      readonly headers?: Readonly<Record<string, string>>;
      readonly timeoutMs: number;
      readonly signal?: AbortSignal | undefined;
      readonly maxBytes?: number;
      readonly isPoll?: boolean;
    },
  ): Promise<{ status: number; headers: Headers; bytes: Buffer }> {
    const stopping = init.signal ? AbortSignal.any([ending, init.signal]) : ending;
    // An address that the server names is another server's, which has no business with the key.
    const isOwn = !/^https?:/.test(path);
    const credential = isOwn ? await key?.() : undefined;
    const free = await slots[init.isPoll ? 'poll' : 'request'].take(stopping);
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(init.timeoutMs)]);
    try {
      const response = await fetch(isOwn ? `${base}${path}` : path, {
        method,
        redirect: 'manual',
        signal,
        headers: {
          accept: init.accept ?? 'application/json',
          ...(init.body === undefined
            ? {}
            : { 'content-type': Buffer.isBuffer(init.body) ? protoType : 'application/json' }),
          ...(credential === undefined ? {} : { 'x-api-key': credential }),
          ...init.headers,
        },
        ...(init.body === undefined ? {} : { body: init.body as NonNullable<RequestInit['body']> }),
      });
      const most = init.maxBytes ?? maxAnswerBytes;
      const bytes = await upTo(most, response.body);
      if (bytes === null) throw new EngineError(`The server's answer has more than ${most} bytes and is not read.`);
      return { status: response.status, headers: response.headers, bytes };
    } catch (cause) {
      stopping.throwIfAborted();
      if (cause instanceof EngineError) throw cause;
      throw new EngineError(`${base} gave no answer to ${path}: ${reasonOf(cause)}.`, { cause, retryable: true });
    } finally {
      free();
    }
  }

  return {
    async post(path, body, schema, { signal, headers, onRetry } = {}) {
      const content = Buffer.isBuffer(body) ? body : JSON.stringify(body);
      const idempotency = { 'x-idempotency-key': `stainless-retry-${randomUUID()}`, ...headers };
      const until = Date.now() + patienceMs;
      for (let attempt = 0; ; attempt++) {
        const pause = notBefore - Date.now();
        if (pause > 0) await waitUnless(pause, ending, signal);
        if (attempt > 0) onRetry?.();
        const sent = await send('POST', path, { body: content, headers: idempotency, timeoutMs, signal }).catch(
          (error: unknown) => {
            if (error instanceof EngineError && error.retryable) return error;
            throw error;
          },
        );
        let problem: EngineError;
        let least = 0;
        if (sent instanceof EngineError) problem = sent;
        else {
          if (sent.status >= 200 && sent.status < 300) return parsed(schema, jsonOf(sent.bytes, path), path);
          problem = refusalOf(sent.status, path, sent.bytes);
          if (!mayPass(sent)) throw problem;
          least = askedToWait(sent.headers);
          if (sent.status === 429) notBefore = Math.max(notBefore, Date.now() + Math.max(least, delay(attempt)));
        }
        const pauseMs = Math.max(least, delay(attempt));
        if (Date.now() + pauseMs > until)
          throw new EngineError(
            `${problem.message} It was asked again for ${Math.round(patienceMs / 1000)} seconds (engine.patienceSeconds).`,
            { cause: problem, retryable: true },
          );
        await waitUnless(pauseMs, ending, signal);
      }
    },

    async once(path, body, init) {
      const { status, headers, bytes } = await send('POST', path, { body: JSON.stringify(body), ...init });
      const isProto = headers.get('content-type')?.startsWith(protoType) === true;
      return isProto ? { status, json: undefined, proto: bytes } : { status, json: jsonOf(bytes, path) };
    },

    async get(path, { maxBytes }) {
      const { status, headers, bytes } = await send('GET', path, { timeoutMs, maxBytes });
      return { status, location: headers.get('location'), bytes };
    },

    async remove(path) {
      await send('DELETE', path, { timeoutMs: 10_000 });
    },
  };
}

export function parsed<T>(schema: z.ZodType<T>, json: unknown, path: string): T {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const { place, message } = firstProblem(result.error.issues);
  throw new EngineError(
    `The server's answer to ${path} cannot be used: ${place.join('.') || 'the whole'}: ${message}.`,
  );
}

/** Where a value may have several forms, the last of them is JSON's, and what is wrong with that is told. */
function firstProblem([issue]: readonly z.core.$ZodIssue[]): { place: PropertyKey[]; message: string } {
  const inner = issue!.code === 'invalid_union' ? issue!.errors.at(-1) : undefined;
  if (inner === undefined || inner.length === 0) return { place: issue!.path, message: issue!.message };
  const { place, message } = firstProblem(inner);
  return { place: [...issue!.path, ...place], message };
}

/** What FastAPI says of a refusal, or the beginning of whatever else was said. */
export function refusalOf(status: number, path: string, answer: Buffer | unknown): Refusal {
  const json = Buffer.isBuffer(answer) ? tryJson(answer) : answer;
  const found = refusal.safeParse(json);
  const detail = found.success ? found.data.detail : json;
  const words = typeof detail === 'string' ? detail : (JSON.stringify(detail) ?? '');
  return new Refusal(status, `The server refused ${path} (${status}): ${words.slice(0, 600) || 'no reason given'}`);
}

function tryJson(bytes: Buffer): unknown {
  const text = bytes.toString('utf8', 0, 10_000_000);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function jsonOf(bytes: Buffer, path: string): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    const shown = JSON.stringify(bytes.toString('utf8', 0, 80));
    throw new EngineError(`The server's answer to ${path} is not JSON: ${shown}.`, { cause });
  }
}

const mayPass = ({ status, headers }: { readonly status: number; readonly headers: Headers }): boolean => {
  const told = headers.get('x-should-retry');
  if (told === 'true') return true;
  if (told === 'false') return false;
  return status === 408 || status === 429 || status >= 500;
};

/** 0.1 s, doubled up to 10 s, a quarter of it by chance: many clients must not come back in step. */
const delay = (attempt: number): number => Math.min(100 * 2 ** attempt, 10_000) * (1 - 0.25 * Math.random());

function askedToWait(headers: Headers): number {
  const ms = Number(headers.get('retry-after-ms') ?? Number.NaN);
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const asked = Number.isFinite(ms) ? ms : 1000 * seconds;
  return asked > 0 && asked <= 60_000 ? asked : 0;
}

async function waitUnless(ms: number, ending: AbortSignal, signal?: AbortSignal): Promise<void> {
  const both = signal ? AbortSignal.any([ending, signal]) : ending;
  try {
    await wait(ms, undefined, { signal: both });
  } catch {
    both.throwIfAborted();
  }
}

/** fetch says what happened only in the cause of its error. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'it took too long';
  const { cause } = error;
  return cause instanceof Error ? ((cause as NodeJS.ErrnoException).code ?? cause.message) : error.message;
}

/** At most `count` at a time; the others wait in order. */
function createSlots(count: number) {
  let free = count;
  const waiting: (() => void)[] = [];
  const release = () => {
    const next = waiting.shift();
    if (next) next();
    else free++;
  };
  return {
    async take(signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted();
      if (free > 0) free--;
      else
        await new Promise<void>((done, fail) => {
          const abort = () => {
            waiting.splice(waiting.indexOf(go), 1);
            fail(signal.reason);
          };
          const go = () => {
            signal.removeEventListener('abort', abort);
            done();
          };
          signal.addEventListener('abort', abort, { once: true });
          waiting.push(go);
        });
      let given = false;
      return () => {
        if (given) return;
        given = true;
        release();
      };
    },
  };
}
