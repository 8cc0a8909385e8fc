/**
 * Ids that callers choose, made fit to store. Everything that stores or looks up such an id goes through here, so both sides
 * agree.
 *
 * A user's id is always a keyed hash, whatever it looks like: still the same id for the same person, but nobody without the
 * installation's secret can turn it back or find out by guessing, and a recognizer that is added later renames nobody.
 * Trajectories and business keys stay readable unless they are themselves personal data, or too long for a key.
 */
import { createHmac } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { hasPersonalData } from './redact/redact.ts';

export const MAX_ID = 256;

const hashForm = /^u_[\w-]{27}$/;

/** A user, or anything that names one. store/secret.ts has the same in SQL. */
export const hashedId = (raw: string, secret: string): string =>
  `u_${createHmac('sha256', secret).update(raw).digest('base64url').slice(0, 27)}`; // 162 bits

/** A trajectory or a business key. */
export const readableId = (raw: string, secret: string): string =>
  raw.length <= MAX_ID && !hasPersonalData(raw) ? raw : hashedId(raw, secret);

/** Whether it looks like a hash. So may an id: anybody can call themselves what a list shows for somebody else. */
export const isHashForm = (typed: string): boolean => hashForm.test(typed);

/**
 * A user as somebody who looks for one types it: the id the agent sends, whatever it looks like. `hashed` says that it is the hash
 * that a list showed; guessed from its form, one person could give and withdraw another's consent.
 */
export function typedUser(typed: string, secret: string, hashed = false): string {
  if (!hashed) return hashedId(typed, secret);
  if (isHashForm(typed)) return typed;
  throw new RequestError(400, 'invalid_request', 'user: not a hash such as a list shows, which is u_ and 27 letters.');
}
