/**
 * The port that is listened on: taken before anything is made, so that a start on a taken port has done nothing. Until it is
 * told who answers, callers are asked to come back in a moment.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ConfigError } from '../errors.ts';
import { openaiErrors, sendJson } from './error-shape.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export type Port = {
  readonly url: string;
  readonly draining: boolean;
  /** Who answers from now on. */
  answer(by: Answer): void;
  /** No new requests; resolves when the answers in flight are out, or cut off after `drainMs`. */
  close(): Promise<void>;
};

const drainMs = 30_000;

export async function openPort(
  { host, port }: { readonly host: string; readonly port: number },
  /** What health says while nobody answers yet. */
  starting: () => { readonly status: string },
): Promise<Port> {
  let draining = false;
  let answer: Answer = (request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0]!;
    if (path === '/healthz') sendJson(response, 200, starting());
    else if (path === '/readyz') sendJson(response, 503, { ready: false, reason: 'starting' });
    else
      sendJson(
        response,
        503,
        openaiErrors.body(503, 'starting', 'Pawl is starting: its database has not been reached yet.'),
        { 'retry-after': '1' },
      );
  };
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    if (draining) response.setHeader('connection', 'close');
    answer(request, response);
  };
  // Time for a body is the business of upload.ts: it depends on what the body is for.
  const server = createServer({ keepAliveTimeout: 75_000, headersTimeout: 90_000, requestTimeout: 0 }, listener);
  // Whoever asks before sending is told to go on once the request is let in, not before.
  server.on('checkContinue', listener);
  await listen(server, host, port);
  const taken = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    get draining() {
      return draining;
    },
    answer(by) {
      answer = by;
    },
    async close() {
      draining = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), drainMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

/** The codes of listen(2) and of looking up a name that a person can do something about. */
const wayOut: Record<string, (host: string, port: number) => string> = {
  EADDRINUSE: (host, port) =>
    `Port ${port} on ${host} is taken. Stop what listens there, or set PAWL_PORT (0 takes any free port).`,
  EACCES: (host, port) =>
    `Port ${port} on ${host} may not be used by this user. Set PAWL_PORT to one above 1023, or ask for the right to use it.`,
  EADDRNOTAVAIL: (host) => `${host} is no address of this machine. Set PAWL_HOST to one it has, such as 127.0.0.1.`,
  ENOTFOUND: (host) => `${host} is no address and no name that can be looked up. Set PAWL_HOST, e.g. to 127.0.0.1.`,
};

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const sentence = wayOut[error.code ?? '']?.(host, port);
      reject(sentence === undefined ? error : new ConfigError(sentence, { cause: error }));
    });
    server.listen(port, host, resolve);
  });
}
