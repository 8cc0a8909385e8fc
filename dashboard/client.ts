/**
 * The API as the page asks it. Paths, parameters, bodies and answers have the types of the routes themselves; nothing of the
 * server comes along. `ask('get', '/api/runs/:id', { param: { id } })` is the whole of it.
 */
import type { ExtractSchema } from 'hono/types';
import type { Api } from '../src/api/api.ts';

type Named<T> = { [P in keyof T as string extends P ? never : P]: T[P] };
type Routes = Named<ExtractSchema<Api>>;
export type Method = 'get' | 'post' | 'put' | 'delete';
/** Paths that have the method. */
export type Path<M extends Method> = {
  [P in keyof Routes]: Routes[P] extends { [K in `$${M}`]: unknown } ? P : never;
}[keyof Routes];
type Route<M extends Method, P> = P extends keyof Routes
  ? Routes[P] extends { [K in `$${M}`]: infer R }
    ? R
    : never
  : never;
type Good = 200 | 201 | 202;
export type AnswerOf<M extends Method, P> =
  Extract<Route<M, P>, { status: Good }> extends { output: infer O } ? O : undefined;
/** A path's body, query and parameters, as the route parses them. */
type Input<M extends Method, P> = Route<M, P> extends { input: infer I } ? I : never;
type Given<M extends Method, P> =
  Input<M, P> extends infer I
    ? { [K in keyof I as K extends 'param' | 'json' ? K : never]: I[K] } & {
        [K in keyof I as K extends 'query' ? K : never]?: Loose<I[K]>;
      }
    : never;
/** In an address everything is text; what is undefined or empty is left out. */
type Loose<Q> = { [K in keyof Q]?: Q[K] | string | number | boolean | null | undefined };

/** What Pawl said when it did not do as asked. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Told when nobody is signed in (any more). */
let signedOut: () => void = () => {};
export const onSignedOut = (tell: () => void): void => {
  signedOut = tell;
};

type Parts = {
  readonly param?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly json?: unknown;
};

export function addressOf(path: string, { param = {}, query = {} }: Parts): string {
  const filled = path.replaceAll(/:([a-zA-Z]+)(\{[^}]*\})?/g, (_, name: string) =>
    encodeURIComponent(param[name] ?? ''),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  return search.size === 0 ? filled : `${filled}?${search}`;
}

/** How long an answer is waited for; scoring a window by hand takes the longest. */
const patienceMs = 120_000;

async function request(method: Method, path: string, parts: Parts, signal?: AbortSignal): Promise<unknown> {
  const limits = [AbortSignal.timeout(patienceMs), ...(signal === undefined ? [] : [signal])];
  const response = await fetch(addressOf(path, parts), {
    method: method.toUpperCase(),
    headers: {
      accept: 'application/json',
      'x-pawl-csrf': '1',
      ...(parts.json === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(parts.json === undefined ? {} : { body: JSON.stringify(parts.json) }),
    signal: AbortSignal.any(limits),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    const late = error instanceof DOMException && error.name === 'TimeoutError';
    throw new Problem(0, 'unreachable', late ? 'Pawl did not answer in time.' : 'Pawl cannot be reached.');
  });
  const text = await response.text();
  const body: unknown = text === '' ? undefined : parsed(text);
  if (response.ok) return body;
  if (response.status === 401 && path !== '/api/session') signedOut();
  const said = (body as { error?: { code?: string; message?: string } } | undefined)?.error;
  throw new Problem(response.status, said?.code ?? 'failed', said?.message ?? `Pawl answered ${response.status}.`);
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

export function ask<M extends Method, P extends Path<M>>(
  method: M,
  path: P,
  ...[given, signal]: Record<never, never> extends Given<M, P>
    ? [given?: Given<M, P>, signal?: AbortSignal]
    : [given: Given<M, P>, signal?: AbortSignal]
): Promise<AnswerOf<M, P>> {
  return request(method, path as string, (given ?? {}) as Parts, signal) as Promise<AnswerOf<M, P>>;
}
