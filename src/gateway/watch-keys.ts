/** Keeps the key ring equal to the database: at every change it announces, and every few seconds besides. */
import type { Logger } from 'pino';
import { activeKeys, touchKeys } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import type { KeyRing } from './keys.ts';

const everyMs = 5_000;

export async function watchKeys(store: Store, ring: KeyRing, log: Logger): Promise<{ close(): Promise<void> }> {
  let closed = false;
  let up = true;
  let running: Promise<void> = Promise.resolve();

  const refresh = async () => {
    try {
      ring.replace(await activeKeys(store));
      const used = ring.takeUsed();
      if (used.length > 0) await touchKeys(store, used);
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

  // A connection of its own hears of changes at once. When it breaks, the timer below makes a new one.
  let listener: Awaited<ReturnType<typeof store.pool.connect>> | null = null;
  const listen = async () => {
    try {
      const client = await store.pool.connect();
      const drop = () => {
        if (listener === client) listener = null;
        client.release(true);
      };
      client.once('error', drop);
      client.on('notification', soon);
      await client.query('listen pawl_keys');
      listener = client;
    } catch {
      listener = null;
    }
  };

  await refresh();
  await listen();
  const timer = setInterval(() => {
    soon();
    if (listener === null && !closed) running = running.then(listen);
  }, everyMs);
  return {
    async close() {
      closed = true;
      clearInterval(timer);
      await running;
      listener?.release(true);
    },
  };
}
