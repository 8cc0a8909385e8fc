/**
 * Tells webhooks what the audit log says: each row that a hook asks for is sent to it until it is taken with a 2xx, with longer and longer
 * waits, and given up after twelve attempts. At least once, in whichever worker gets to it; `id` is the same each time. A hook hears
 * of what happens after it was first there, not of the past.
 */
import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { request } from 'undici';
import { claimCalls, endCall, type HookCall, queueCalls } from '../store/hook-calls.ts';
import type { Store } from '../store/postgres.ts';
import type { HookSettings } from './hooks-settings.ts';

const lookEveryMs = 2_000;
const answerMs = 5_000;
const mostAttempts = 12;
const closeMs = 3_000;

export const hookBody = ({ audit, at, agent, actor, event, subject, details }: HookCall): string =>
  JSON.stringify({
    ...{ id: `audit-${audit}`, at: new Date(at).toISOString(), agent, event, subject, by: actor },
    details: JSON.parse(details) as unknown,
  });

export const signature = (body: string, secret: string): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

/** Seconds until the next attempt: 2, 4, 8 … at most an hour. */
export const waitAfter = (attempts: number): number => Math.min(3600, 2 ** attempts);

/** One round over everything that is due. */
export async function tellHooks(store: Store, hooks: Readonly<Record<string, HookSettings>>): Promise<number> {
  for (const [name, { events }] of Object.entries(hooks)) await queueCalls(store, name, events);
  const due = await claimCalls(store, Object.keys(hooks));
  await Promise.all(
    due.map(async (call) => {
      const problem = await send(hooks[call.hook]!, hookBody(call));
      const isOver = problem === null || call.attempts >= mostAttempts;
      await endCall(store, call.n, { problem, isOver, waitSeconds: waitAfter(call.attempts) });
    }),
  );
  return due.length;
}

/** Null where it was taken. */
async function send({ url, secret }: HookSettings, body: string): Promise<string | null> {
  try {
    const response = await request(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(secret === undefined ? {} : { 'x-pawl-signature': signature(body, secret) }),
      },
      body,
      signal: AbortSignal.timeout(answerMs),
    });
    await response.body.dump({ limit: 64 * 1024 });
    return response.statusCode >= 200 && response.statusCode < 300 ? null : `It answered ${response.statusCode}.`;
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, 500) : 'It could not be reached.';
  }
}

export function watchHooks(
  store: Store,
  hooks: Readonly<Record<string, HookSettings>>,
  log: Logger,
): { close(): Promise<void> } {
  const stop = new AbortController();
  const run = async () => {
    if (Object.keys(hooks).length === 0) return;
    for (
      ;
      !stop.signal.aborted;
      await sleep(lookEveryMs, undefined, { signal: stop.signal, ref: false }).catch(() => {})
    )
      await tellHooks(store, hooks).catch((error: unknown) => log.warn({ err: error }, 'webhooks: told later'));
  };
  const running = run();
  return {
    async close() {
      stop.abort();
      await Promise.race([running, sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
