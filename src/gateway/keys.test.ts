import { describe, expect, it } from 'vitest';
import { hashToken } from '../store/keys.ts';
import { type ClientKey, createKeyRing, createRateLimiter } from './keys.ts';

const key: ClientKey = {
  id: 'k1',
  agent: 'desk',
  name: 'laptop',
  origin: 'production',
  scopes: ['call'],
  rateLimit: null,
};

describe('key ring', () => {
  const ring = createKeyRing();
  ring.replace(new Map([[hashToken('pawl_secret').toString('hex'), key]]));

  it('knows a token by its hash and remembers that it was used', () => {
    expect(ring.check('Bearer pawl_secret')).toBe(key);
    expect(ring.check('bearer pawl_secret')).toBe(key);
    expect([...ring.takeUsed().keys()]).toEqual(['k1']);
    expect(ring.takeUsed().size).toBe(0);
  });

  it('refuses a missing, malformed or unknown token with 401', () => {
    for (const header of [undefined, '', 'pawl_secret', 'Basic pawl_secret', 'Bearer', 'Bearer pawl_secret x'])
      expect(() => ring.check(header)).toThrow(/No client key/);
    expect(() => ring.check('Bearer pawl_other')).toThrow(/unknown or revoked/);
  });

  it('forgets a revoked key at once', () => {
    ring.replace(new Map());
    expect(() => ring.check('Bearer pawl_secret')).toThrow(/unknown or revoked/);
  });
});

describe('rate limiter', () => {
  it('lets 60 a minute through at once, then one a second', () => {
    const limiter = createRateLimiter();
    for (let i = 0; i < 60; i++) expect(limiter.take('k', 60, 0).ok).toBe(true);
    expect(limiter.take('k', 60, 0)).toEqual({ ok: false, retryAfterMs: 1000 });
    expect(limiter.take('k', 60, 1000).ok).toBe(true);
    expect(limiter.take('k', 60, 1000).ok).toBe(false);
    expect(limiter.take('other', 60, 1000).ok).toBe(true);
  });
});
