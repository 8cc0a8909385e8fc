/**
 * What a request is, before anything is done with it: which endpoint, whose, part of which trajectory. Pure: bytes and
 * headers in, a value or a RequestError out. Everything that arrives is data: sizes, depth and counts are capped here, so
 * that nothing behind the door needs to defend itself.
 *
 * Identity may stand in the path, so that an agent in any language is captured by its base URL alone:
 *   /v1/…   /t/<trajectory>/v1/…   /u/<user>/v1/…   /t/<trajectory>/u/<user>/v1/…
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { trajectoryId } from '../collect/trajectory.ts';
import type { Endpoint } from '../collect/turn.ts';
import { RequestError } from '../errors.ts';
import type { ReadBody } from './body.ts';
import { maxDepth } from './scan.ts';

export const endpoints: Readonly<Record<string, Endpoint>> = {
  '/chat/completions': 'chat',
  '/completions': 'completions',
  '/embeddings': 'embeddings',
  '/responses': 'responses',
  '/messages': 'messages',
};

export type Identity = {
  /** What follows /v1, e.g. `/chat/completions`. */
  readonly route: string;
  /** With its question mark; empty when there is none. */
  readonly query: string;
  readonly trajectory: string | null;
  readonly user: string | null;
};

const maxMessages = 4096;
const maxTools = 1024;
const maxUser = 256;
const maxKeys = 16;

/** Null when the path is not the gateway's. */
export function parsePath(url: string): Identity | null {
  const end = url.indexOf('?');
  const path = end < 0 ? url : url.slice(0, end);
  const query = end < 0 ? '' : url.slice(end);
  if (path.startsWith('/v1/')) return { route: path.slice(3), query, trajectory: null, user: null };
  if (!path.startsWith('/t/') && !path.startsWith('/u/')) return null;
  const parts = path.split('/');
  let at = 1;
  let trajectory: string | null = null;
  let user: string | null = null;
  while (parts[at] === 't' || parts[at] === 'u') {
    const value = decodeSegment(parts[at + 1] ?? '');
    if (parts[at] === 't') trajectory = parseTrajectory(value);
    else user = parseUser(value);
    at += 2;
  }
  if (parts[at] !== 'v1') return null;
  return { route: `/${parts.slice(at + 1).join('/')}`, query, trajectory, user };
}

/** A path that an upstream's router could read as one outside of /v1. */
export const leavesV1 = (route: string): boolean =>
  route.split('/').some((segment) =>
    decodeSegment(segment)
      .split(/[/\\]/)
      .some((part) => /^\.\.?$/.test(part)),
  );

/** A path as the routers of upstreams may read it: without escapes, and without slashes that say nothing. */
export const plainRoute = (route: string): string =>
  `/${decodeSegment(route)
    .split('/')
    .filter((part) => part !== '')
    .join('/')}`;

export function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new RequestError(400, 'invalid_path', `The path holds a broken percent escape: ${segment.slice(0, 80)}`);
  }
}

function parseTrajectory(value: string): string {
  const parsed = trajectoryId.safeParse(value);
  if (!parsed.success)
    throw new RequestError(
      400,
      'invalid_trajectory_id',
      `Trajectory id ${JSON.stringify(value.slice(0, 80))}: ${parsed.error.issues[0]?.message}.`,
    );
  return value;
}

function parseUser(value: string): string {
  if (value.length === 0 || value.length > maxUser)
    throw new RequestError(
      400,
      'invalid_user',
      `A user id has 1 to ${maxUser} characters; this one has ${value.length}.`,
    );
  return value;
}

const header = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
};

/** OpenAI's `user`, or its newer `safety_identifier`; Anthropic's `metadata.user_id`. */
function userIn(endpoint: Endpoint, { user, safety_identifier, metadata }: Readonly<Record<string, unknown>>): unknown {
  if (endpoint === 'messages') return (metadata as { user_id?: unknown } | null | undefined)?.user_id ?? null;
  return user ?? safety_identifier ?? null;
}

/** Identity from path, then headers, then the body. */
export function identify(
  path: Identity,
  headers: IncomingHttpHeaders,
  body: Readonly<Record<string, unknown>> | null,
  endpoint: Endpoint = 'chat',
): { trajectory: string | null; user: string | null; keys: string[] } {
  const trajectory = path.trajectory ?? header(headers, 'x-pawl-trajectory') ?? null;
  const stated = path.user ?? header(headers, 'x-pawl-user') ?? (body === null ? null : userIn(endpoint, body));
  if (stated !== null && typeof stated !== 'string')
    throw new RequestError(400, 'invalid_user', `\`user\` must be a string, not ${typeof stated}.`);
  const keys = splitKeys(header(headers, 'x-pawl-key'));
  if (keys.length > maxKeys || keys.some((key) => key.length > maxUser))
    throw new RequestError(
      400,
      'invalid_key',
      `x-pawl-key holds at most ${maxKeys} keys of at most ${maxUser} characters.`,
    );
  return {
    trajectory: trajectory === null ? null : parseTrajectory(trajectory),
    user: stated === null || stated === '' ? null : parseUser(stated),
    keys,
  };
}

const splitKeys = (value: string | undefined): string[] =>
  value === undefined
    ? []
    : value
        .split(',')
        .map((key) => key.trim())
        .filter((key) => key !== '');

/** The request body as an object, or a RequestError that says what is wrong with it. */
export function parseBody(bytes: Uint8Array): Record<string, unknown> {
  if (bytes.length === 0) throw new RequestError(400, 'empty_body', 'The request has no body; send a JSON object.');
  if (!isUtf8(bytes)) throw new RequestError(400, 'invalid_utf8', 'The request body is not valid UTF-8.');
  const depth = depthOf(bytes);
  if (depth > maxDepth)
    throw new RequestError(400, 'too_deep', `The request body is nested more than ${maxDepth} levels deep.`);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new RequestError(400, 'invalid_json', `The request body is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RequestError(400, 'invalid_body', 'The request body must be a JSON object.');
  // A key can only be __proto__ if the text spells it or hides its underscores behind an escape.
  if ((text.includes('__proto__') || (text.includes('\\u') && /\\u005f/i.test(text))) && hasProtoKey(value))
    throw new RequestError(400, 'forbidden_key', 'The request body has a key named __proto__, which no API field is.');
  return value as Record<string, unknown>;
}

/** What a model call is known by; a large one only by its top level, and the places of its model's name come with it. */
type ReadCall = {
  readonly body: Readonly<Record<string, unknown>>;
  readonly modelSpans: [number, number][] | null;
};

export function readCall({ bytes, scan }: ReadBody): ReadCall {
  if (scan === null) return { body: parseBody(bytes), modelSpans: null };
  if (!isUtf8(bytes)) throw new RequestError(400, 'invalid_utf8', 'The request body is not valid UTF-8.');
  return scan.read(bytes);
}

/** What only a model call must have. */
export function checkCall(endpoint: Endpoint, body: Readonly<Record<string, unknown>>): void {
  if (typeof body.model !== 'string' || body.model === '' || body.model.length > 256)
    throw new RequestError(400, 'invalid_model', '`model` must be a string of 1 to 256 characters.');
  if ((endpoint === 'chat' || endpoint === 'messages') && !Array.isArray(body.messages))
    throw new RequestError(400, 'invalid_messages', '`messages` must be an array.');
  const [name, said] = endpoint === 'responses' ? ['input', body.input] : ['messages', body.messages];
  if (Array.isArray(said) && said.length > maxMessages)
    throw new RequestError(
      400,
      'too_many_messages',
      `\`${name}\` has ${said.length} entries; at most ${maxMessages} are accepted.`,
    );
  if (Array.isArray(body.tools) && body.tools.length > maxTools)
    throw new RequestError(
      400,
      'too_many_tools',
      `\`tools\` has ${body.tools.length} entries; at most ${maxTools} are accepted.`,
    );
}

/** Deepest nesting of brackets outside strings; looks at bytes, so a hostile body costs no parse. */
export function depthOf(bytes: Uint8Array): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < bytes.length; i++) {
    switch (bytes[i]) {
      case 0x22:
        i = endOfString(bytes, i);
        break;
      case 0x5b:
      case 0x7b:
        if (++depth > deepest) deepest = depth;
        break;
      case 0x5d:
      case 0x7d:
        depth--;
    }
  }
  return deepest;
}

/** Where the string that opens at `start` closes: a quote with an even number of backslashes before it. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let i = start + 1; ; i++) {
    const end = Math.min(bytes.length, i + 16);
    while (i < end && bytes[i] !== 0x22) i++;
    // Most strings are names; the native search pays for itself in the long ones only.
    if (i === end) i = bytes.indexOf(0x22, i);
    if (i < 0) return bytes.length;
    let slashes = i;
    while (bytes[slashes - 1] === 0x5c) slashes--;
    if ((i - slashes) % 2 === 0) return i;
  }
}

function hasProtoKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (!Array.isArray(value) && Object.hasOwn(value, '__proto__')) return true;
  return Object.values(value).some(hasProtoKey);
}
