import { describe, expect, it } from 'vitest';
import { afterFailure, isRetryable, longestWaitMs, parseRetryAfter } from './retry.ts';

const now = Date.parse('2026-01-01T00:00:00Z');
const status = (code: number, retryAfter?: string) => ({ kind: 'status', status: code, retryAfter }) as const;

describe('afterFailure', () => {
  it('waits longer after each failure, then moves on', () => {
    expect(afterFailure(status(500), 1, 3, now, 0)).toEqual({ kind: 'again', waitMs: 100 });
    expect(afterFailure(status(500), 2, 3, now, 0)).toEqual({ kind: 'again', waitMs: 200 });
    expect(afterFailure(status(500), 3, 3, now, 0)).toEqual({ kind: 'next-upstream' });
  });

  it('spreads the wait between half and all of it', () => {
    expect(afterFailure({ kind: 'connection' }, 1, 3, now, 0.999)).toMatchObject({ waitMs: expect.closeTo(200, 0) });
  });

  it('honours Retry-After, and gives up rather than wait too long', () => {
    expect(afterFailure(status(429, '2'), 1, 3, now, 0)).toEqual({ kind: 'again', waitMs: 2000 });
    expect(afterFailure(status(429, String(longestWaitMs / 1000 + 1)), 1, 3, now, 0)).toEqual({
      kind: 'next-upstream',
    });
  });

  it('does not ask a silent server twice', () => {
    expect(afterFailure({ kind: 'silence' }, 1, 3, now, 0)).toEqual({ kind: 'next-upstream' });
  });
});

describe('parseRetryAfter', () => {
  it('reads seconds and dates', () => {
    expect(parseRetryAfter('1.5', now)).toBe(1500);
    expect(parseRetryAfter('Thu, 01 Jan 2026 00:00:03 GMT', now)).toBe(3000);
    expect(parseRetryAfter('Wed, 31 Dec 2025 00:00:00 GMT', now)).toBe(0);
    expect(parseRetryAfter('soon', now)).toBeNull();
    expect(parseRetryAfter(undefined, now)).toBeNull();
  });
});

it('retries what may pass, not what the caller did wrong', () => {
  expect([408, 429, 500, 502, 503, 504].every(isRetryable)).toBe(true);
  expect([400, 401, 404, 422, 501].some(isRetryable)).toBe(false);
});
