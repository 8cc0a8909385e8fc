/** One more answer of an upstream to a request that has had its own: whole, not streamed, and of bounded size. */
import type { IncomingHttpHeaders } from 'node:http';
import { upTo } from '../up-to.ts';
import { callHeaders } from './headers.ts';
import type { Upstreams } from './upstreams.ts';

export type Asking = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
};

/** A longer answer is no answer to learn from. */
const mostAnswerBytes = 1024 * 1024;

/** Null unless it is a whole answer. */
export async function fetchAnswer(
  { pool, path, key, silenceMs }: ReturnType<Upstreams['get']>,
  { path: route, headers, body }: Asking,
  signal: AbortSignal,
): Promise<{ readonly bytes: Uint8Array; readonly json: unknown } | null> {
  // The caller's name for its own attempts would make a server give its first answer again.
  const { 'idempotency-key': _, ...rest } = headers;
  const response = await pool.request({
    path: path + route,
    method: 'POST',
    headers: callHeaders(rest, route, key),
    body: JSON.stringify(body),
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    signal,
  });
  const bytes = await upTo(mostAnswerBytes, response.body);
  if (bytes === null || response.statusCode !== 200) return null;
  const json: unknown = JSON.parse(bytes.toString('utf8'));
  return Array.isArray((json as { choices?: unknown } | null)?.choices) ? { bytes, json } : null;
}
