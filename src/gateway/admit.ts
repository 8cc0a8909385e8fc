/** Who may come in now: a known key, within its rate, while there is a place. Decided before any of the body is read. */
import type { IncomingMessage } from 'node:http';
import { RequestError } from '../errors.ts';
import type { Budget, Claim } from './budget.ts';
import { type ClientKey, createRateLimiter, type KeyRing } from './keys.ts';

/** A refusal that says when to come back. */
export class ComeBackLater extends RequestError {
  readonly retryAfterMs: number;
  constructor(status: 429 | 503, code: string, message: string, retryAfterMs: number) {
    super(status, code, message);
    this.retryAfterMs = retryAfterMs;
  }
}

export const overloaded = (message: string) => new ComeBackLater(503, 'overloaded', message, 1000);

export const retryAfter = (error: RequestError): Record<string, string> =>
  error instanceof ComeBackLater ? { 'retry-after': String(Math.max(1, Math.ceil(error.retryAfterMs / 1000))) } : {};

export type Admission = { key(request: IncomingMessage): ClientKey; enter(): Claim };

export function createAdmission(keys: KeyRing, budget: Budget): Admission {
  const limiter = createRateLimiter();
  return {
    key({ headers }) {
      const given = headers['x-api-key'];
      // Anthropic's clients send the key without a scheme.
      const key = keys.check(headers.authorization ?? (typeof given === 'string' ? `Bearer ${given}` : undefined));
      if (key.rateLimit === null) return key;
      const { ok, retryAfterMs } = limiter.take(key.id, key.rateLimit, Date.now());
      if (ok) return key;
      const message = `Key ${key.name} may send ${key.rateLimit} requests a minute.`;
      throw new ComeBackLater(429, 'rate_limit_exceeded', message, retryAfterMs);
    },
    enter() {
      const claim = budget.enter();
      if (claim === null) throw overloaded(`${budget.taken} requests are in flight already.`);
      return claim;
    },
  };
}
