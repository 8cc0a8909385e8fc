/**
 * The one retry policy. Pure: what happened and how often, in; wait, go to the fallback, or give up, out. It is asked only
 * before the first byte of an answer has gone to the caller; after that nothing is retried.
 */
export type Failure =
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter: string | undefined }
  /** Refused, reset, DNS, closed before an answer. */
  | { readonly kind: 'connection' }
  /** No byte in time. Asking the same hung server again would double the caller's wait, so only a fallback helps. */
  | { readonly kind: 'silence' };

export type Next = { readonly kind: 'again'; readonly waitMs: number } | { readonly kind: 'next-upstream' };

/** Waiting longer than this for a server that says when to come back is worse than an honest 429. */
export const longestWaitMs = 10_000;

export const isRetryable = (status: number): boolean =>
  status === 408 || status === 429 || (status >= 500 && status !== 501 && status !== 505);

/** `random` in [0, 1) spreads callers that failed together. */
export function afterFailure(failure: Failure, attempt: number, attempts: number, now: number, random: number): Next {
  if (attempt >= attempts || failure.kind === 'silence') return { kind: 'next-upstream' };
  const asked = failure.kind === 'status' ? parseRetryAfter(failure.retryAfter, now) : null;
  if (asked !== null) return asked > longestWaitMs ? { kind: 'next-upstream' } : { kind: 'again', waitMs: asked };
  const base = Math.min(200 * 2 ** (attempt - 1), 5_000);
  return { kind: 'again', waitMs: base * (0.5 + random / 2) };
}

/** Seconds or an HTTP date; null when absent or unreadable. */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null;
  if (/^\d+(\.\d+)?$/.test(value.trim())) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
