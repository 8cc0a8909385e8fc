/**
 * Who may talk to /api. Pure decisions about headers; api.ts carries them out.
 *
 * The admin token is not a cookie, so another site cannot borrow it; these checks stand in front of that. A page of
 * another site shows by its Origin. A DNS name that an attacker points at 127.0.0.1 makes Origin and Host agree, so the
 * Host must also be a name that means this machine: an address, localhost, or a name the owner listed.
 */
import { isIP } from 'node:net';

export type Refusal = { readonly code: string; readonly message: string };

const hostnameOf = (host: string): string | null => {
  try {
    return new URL(`http://${host}`).hostname.toLowerCase();
  } catch {
    return null;
  }
};

/** Whether only this machine can reach a server that listens there. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' ||
  host.endsWith('.localhost') ||
  host === '::1' ||
  (isIP(host) === 4 && host.startsWith('127.'));

/** What whoever starts a server there should know; null when nobody else can reach it. */
export const exposure = (host: string): string | null =>
  isLoopback(host)
    ? null
    : `other machines can reach ${host}; keys and conversations travel readable unless something in front speaks TLS`;

/** `hosts`: further names by which this server is known, e.g. behind a proxy; `*` accepts any. */
export function refuseHost(host: string | undefined, hosts: readonly string[]): Refusal | null {
  const name = host === undefined ? null : hostnameOf(host);
  if (name === null) return { code: 'invalid_host', message: 'The request names no host.' };
  const bare = name.replace(/^\[|\]$/g, '');
  const known = isIP(bare) !== 0 || bare === 'localhost' || bare.endsWith('.localhost') || hosts.includes('*');
  if (known || hosts.some((other) => other.toLowerCase() === bare)) return null;
  return {
    code: 'unknown_host',
    message: `This Pawl is not known as ${bare.slice(0, 100)}. Use its address or localhost, or add the name to \`hosts\` in pawl.config.ts.`,
  };
}

/** `site` is the Sec-Fetch-Site header, which pages cannot forge. */
export function refuseOrigin(
  origin: string | undefined,
  site: string | undefined,
  host: string | undefined,
): Refusal | null {
  const other = { code: 'other_origin', message: 'Requests from pages of other sites are refused.' };
  if (site === 'cross-site' || site === 'same-site') return other;
  if (origin === undefined) return null;
  try {
    return new URL(origin).host === new URL(`http://${host}`).host ? null : other;
  } catch {
    // `Origin: null` is what sandboxed frames and local files send.
    return other;
  }
}
