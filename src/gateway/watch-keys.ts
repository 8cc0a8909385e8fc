/** Keeps the key ring equal to the database: at every change it announces, and every few seconds besides. */
import type { Logger } from 'pino';
import { activeKeys, keysChannel, touchKeys } from '../store/keys.ts';
import { listen } from '../store/listen.ts';
import type { Store } from '../store/postgres.ts';
import type { KeyRing } from './keys.ts';

const everyMs = 5_000;

export async function watchKeys(store: Store, ring: KeyRing, log: Logger): Promise<{ close(): Promise<void> }> {
  let closed = false;
  let up = true;
  let running: Promise<void> = Promise.resolve();

  const refresh = async () => {
    try {
      const keys = await activeKeys(store);
      ring.replace(new Map(keys.map((key) => [key.hash, key])));
      await touchKeys(store, ring.takeUsed());
      if (!up) log.info('gateway: keys are read from the database again');
      up = true;
    } catch (error) {
      if (up && !closed) log.warn({ err: error }, 'gateway: the database is away; the last known keys go on working');
      up = false;
    }
  };
  const soon = () => {
    running = running.then(() => (closed ? undefined : refresh()));
  };

  await refresh();
  const listener = listen(store, [keysChannel], soon);
  const timer = setInterval(soon, everyMs);
  return {
    async close() {
      closed = true;
      clearInterval(timer);
      await listener.close();
      await running;
    },
  };
}
