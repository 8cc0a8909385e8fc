/**
 * Which headers cross the gateway. Those of one connection (RFC 9110, 7.6.1) end here, in both directions, with those that a
 * message's own `Connection` names; so do the client's credentials, which are for Pawl, and everything named x-pawl-.
 */
import type { IncomingHttpHeaders } from 'node:http';

const ofConnection = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** `content-length` is written by whoever writes the body. */
const notForwarded = new Set([
  ...ofConnection,
  'host',
  'expect',
  'content-length',
  'authorization',
  'cookie',
  'x-api-key',
]);
const notReturned = new Set(ofConnection);
/** A call's body is sent as plain JSON, and its answer is read as it passes. */
const notOfCall = new Set([...notForwarded, 'content-encoding', 'accept-encoding']);

const none: ReadonlySet<string> = new Set();

/** The headers that `Connection` declares to be of this connection only. */
function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return none;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}

export const one = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

function forwarded(headers: IncomingHttpHeaders, left: ReadonlySet<string>): string[] {
  const out: string[] = [];
  const named = namedByConnection(headers.connection);
  for (const name in headers) {
    if (left.has(name) || named.has(name) || name.startsWith('x-pawl-')) continue;
    const value = headers[name];
    if (typeof value === 'string') out.push(name, value);
    else if (value !== undefined) for (const single of value) out.push(name, single);
  }
  return out;
}

/** How the upstream learns our key: as a bearer token, and below /messages also as Anthropic's servers want it. */
function withKey(out: string[], route: string, key: string | undefined): string[] {
  if (key === undefined) return out;
  out.push('authorization', `Bearer ${key}`);
  if (route.startsWith('/messages')) out.push('x-api-key', key);
  return out;
}

/** Of a call that is recorded. */
export function callHeaders(headers: IncomingHttpHeaders, route: string, key: string | undefined): string[] {
  const out = forwarded(headers, notOfCall);
  out.push('accept-encoding', 'identity');
  return withKey(out, route, key);
}

/** Of a request that passes untouched: the body is the caller's, so its length and coding are too. */
export function passedHeaders(headers: IncomingHttpHeaders, route: string, key: string | undefined): string[] {
  const out = forwarded(headers, notForwarded);
  const length = headers['content-length'];
  if (length !== undefined) out.push('content-length', length);
  return withKey(out, route, key);
}

/** Names and values in turn, which is what Node writes fastest. `replaced`: names that the caller writes itself. */
export function returnedHeaders(
  headers: IncomingHttpHeaders,
  extra: Readonly<Record<string, string>>,
  replaced: readonly string[] = [],
): (string | string[])[] {
  const out: (string | string[])[] = [];
  const named = namedByConnection(one(headers.connection));
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || notReturned.has(name) || named.has(name) || name.startsWith('x-pawl-')) continue;
    if (!replaced.includes(name)) out.push(name, value);
  }
  for (const name in extra) out.push(name, extra[name]!);
  return out;
}
