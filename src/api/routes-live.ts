/** `GET /api/live`: server-sent events that say what to ask again. */
import { createRoute, z } from '@hono/zod-openapi';
import { streamSSE } from 'hono/streaming';
import type { Store } from '../store/postgres.ts';
import { createRouter, refusals, security } from './declare.ts';
import { hostOf } from './entry.ts';
import type { Live } from './live.ts';
import { whoIs } from './who.ts';

/** A comment this often keeps proxies from closing the line; whoever lost their access is let go then. */
const heartbeatMs = 15_000;

const route = createRoute({
  method: 'get',
  path: '/api/live',
  summary: 'What has changed, as server-sent events: ask again for what an event names',
  security,
  request: { headers: z.object({ 'last-event-id': z.string().max(100).optional() }) },
  responses: {
    200: {
      content: { 'text/event-stream': { schema: z.string() } },
      description: 'Events `{ topic, id, at }`; `Last-Event-ID` gets what was missed.',
    },
    ...refusals,
  },
});

export const liveRoutes = (parts: { readonly store: Store; readonly adminHash: string }, live: Live) =>
  createRouter().openapi(route, (c) => {
    const listener = live.listen(c.req.valid('header')['last-event-id']);
    const credentials = { authorization: c.req.header('authorization'), cookie: c.req.header('cookie') };
    const host = hostOf(c);
    const answer = streamSSE(c, async (stream) => {
      stream.onAbort(listener.close);
      const beat = setInterval(() => {
        void stream.write(': here\n\n').catch(listener.close);
        whoIs(credentials, parts, host, new Date()).then(
          (who) => who === null && listener.close(),
          () => {}, // the database is away: nobody knows better
        );
      }, heartbeatMs);
      try {
        for await (const { id, data } of listener.events) {
          if (stream.aborted) break;
          await stream.writeSSE({ id, data: JSON.stringify(data) });
        }
      } finally {
        clearInterval(beat);
        listener.close();
      }
    });
    answer.headers.set('x-accel-buffering', 'no'); // nginx would wait for more
    return answer as never;
  });
