/**
 * Keeps a copy of something in the database equal to it: `refresh` runs once before this returns, at every change that is
 * announced on the channel, and every few seconds besides. While the database is away the last copy stands.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { listen } from './listen.ts';
import type { Store } from './postgres.ts';

const everyMs = 5_000;
/** How long a refresh under way is waited for when closing. */
const closeMs = 2_000;

export async function follow(
  store: Store,
  about: { readonly channel: string; readonly name: string; readonly refresh: () => Promise<void> },
  log: Logger,
): Promise<{ close(): Promise<void> }> {
  let closed = false;
  let up = true;
  let running: Promise<void> = Promise.resolve();

  const refresh = async () => {
    try {
      await about.refresh();
      if (!up) log.info(`gateway: ${about.name} are read from the database again`);
      up = true;
    } catch (error) {
      if (up && !closed)
        log.warn({ err: error }, `gateway: the database is away; the last known ${about.name} go on working`);
      up = false;
    }
  };
  const soon = () => {
    running = running.then(() => (closed ? undefined : refresh()));
  };

  await refresh();
  const listener = listen(store, [about.channel], soon);
  const timer = setInterval(soon, everyMs);
  return {
    async close() {
      closed = true;
      clearInterval(timer);
      await Promise.race([Promise.all([listener.close(), running]), sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
