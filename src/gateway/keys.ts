/**
 * Client keys as the gateway sees them: a map from the hash of a token to its key, kept in memory so that no request
 * waits for the database. It is refreshed when the database says that keys changed, and every few seconds besides; when
 * the database is away, the last known keys go on working.
 *
 * Tokens are random, so the plain SHA-256 of one is a safe name for it: looking a hash up tells an attacker nothing about
 * the tokens that exist.
 */
import { RequestError } from '../errors.ts';
import { hashToken, type Key } from '../store/keys.ts';

/** What the gateway needs of a key. */
export type ClientKey = Pick<Key, 'id' | 'agent' | 'name' | 'origin' | 'scopes' | 'rateLimit'>;

export type KeyRing = {
  /** Throws a RequestError with 401 when the token is missing, unknown or revoked. */
  check(authorization: string | undefined): ClientKey;
  /** Keys used since the last call, and when, for `last used` in the list of keys. */
  takeUsed(): ReadonlyMap<string, Date>;
  /** By the token's hash in hex. */
  replace(keys: ReadonlyMap<string, ClientKey>): void;
  readonly size: number;
};

export function createKeyRing(): KeyRing {
  let known: ReadonlyMap<string, ClientKey> = new Map();
  // Tokens that were good, so that each is hashed once: no larger than `known`, and as old as `known` is.
  let checked = new Map<string, ClientKey>();
  let used = new Map<string, number>();
  return {
    check(authorization) {
      const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1];
      if (token === undefined)
        throw new RequestError(
          401,
          'missing_api_key',
          'No client key. Send `Authorization: Bearer pawl_…`; `pawl keys create` makes one.',
        );
      const key = checked.get(token) ?? known.get(hashToken(token).toString('hex'));
      if (key === undefined)
        throw new RequestError(
          401,
          'invalid_api_key',
          'This client key is unknown or revoked. `pawl keys list` shows the keys.',
        );
      checked.set(token, key);
      used.set(key.id, Date.now());
      return key;
    },
    takeUsed() {
      const taken = new Map([...used].map(([id, at]) => [id, new Date(at)]));
      used = new Map();
      return taken;
    },
    replace(keys) {
      known = keys;
      checked = new Map();
    },
    get size() {
      return known.size;
    },
  };
}

/** A bucket per key that refills evenly: `perMinute` requests a minute, as many at once after a quiet minute. */
export type RateLimiter = { take(key: string, perMinute: number, now: number): { ok: boolean; retryAfterMs: number } };

export function createRateLimiter(): RateLimiter {
  const buckets = new Map<string, { tokens: number; at: number }>();
  return {
    take(key, perMinute, now) {
      const bucket = buckets.get(key) ?? { tokens: perMinute, at: now };
      const tokens = Math.min(perMinute, bucket.tokens + ((now - bucket.at) * perMinute) / 60_000);
      const ok = tokens >= 1;
      buckets.set(key, { tokens: ok ? tokens - 1 : tokens, at: now });
      return { ok, retryAfterMs: ok ? 0 : Math.ceil(((1 - tokens) * 60_000) / perMinute) };
    },
  };
}
