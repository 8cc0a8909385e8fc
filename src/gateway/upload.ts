/**
 * Ends uploads that hardly move. Once a body has had one sweep's time it must bring at least `bytesPerSecond`, and it must be
 * whole within `wholeMs` unless it only passes through. Node's own `requestTimeout` knows one limit for all, which is too long
 * for a call and too short for a file. One timer sweeps them, and only while there are any. A body that arrives with its headers
 * is whole by the end of the event loop's turn, and is not kept: most are.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

type Upload = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly startedAt: number;
  wholeMs: number;
  seen: number;
};

export type Uploads = {
  /** From its headers on. A request without a body is not kept. */
  watch(request: IncomingMessage, response: ServerResponse): void;
  /** It passes through: as long as it moves, it may take as long as it likes. */
  passes(request: IncomingMessage): void;
};

const uploadLimits = { bytesPerSecond: 1024, everyMs: 5_000, wholeMs: 120_000 };

export function createUploads(
  tooSlow: (request: IncomingMessage, response: ServerResponse) => void,
  { bytesPerSecond, everyMs, wholeMs } = uploadLimits,
): Uploads {
  const uploads = new Map<IncomingMessage, Upload>();
  let arrived: Upload[] = []; // in this turn of the event loop
  let timer: NodeJS.Timeout | null = null;

  function keepUnfinished(): void {
    for (const upload of arrived) {
      const { request } = upload;
      if (request.complete || request.destroyed) continue;
      uploads.set(request, upload);
      request.once('close', () => uploads.delete(request));
      timer ??= setInterval(sweep, everyMs).unref();
    }
    arrived = [];
  }

  function sweep(): void {
    const now = performance.now();
    for (const [request, upload] of uploads) {
      const { seen, startedAt } = upload;
      upload.seen = request.socket.bytesRead;
      // What waits in our own buffer waits for us.
      const waitsForUs = request.readableLength >= request.readableHighWaterMark;
      const crawls = now - startedAt >= everyMs && upload.seen - seen < (bytesPerSecond * everyMs) / 1000;
      if (request.complete || ((waitsForUs || !crawls) && now - startedAt <= upload.wholeMs)) continue;
      uploads.delete(request);
      tooSlow(request, upload.response);
    }
    if (uploads.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  }

  return {
    watch(request, response) {
      const { headers } = request;
      if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
      if (arrived.length === 0) setImmediate(keepUnfinished);
      arrived.push({ request, response, startedAt: performance.now(), wholeMs, seen: 0 });
    },
    passes(request) {
      const upload = uploads.get(request) ?? arrived.find((one) => one.request === request);
      if (upload) upload.wholeMs = Number.POSITIVE_INFINITY;
    },
  };
}
