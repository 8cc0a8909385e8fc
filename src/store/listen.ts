/**
 * Hears what the database announces (`pawl_keys`, `pawl_routes`), on a connection of its own that is made again when it
 * breaks or falls silent: it says nothing for hours when nothing changes, so it is asked every few seconds whether it still
 * hears. `onChange` also runs after every connect, because announcements made while nobody listened are gone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { sessionSettings, watching } from './limits.ts';
import { connectionSettings, cut } from './pool.ts';
import type { Store } from './postgres.ts';

export type Listener = {
  /** Resolves after the first connect. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
};

/** What was announced meanwhile holds as soon as this is back, so it does not wait long. */
const longestWaitMs = 1_000;
const askEveryMs = 5_000;

export const listen = (store: Store, channels: readonly string[], onChange: (channel: string) => void): Listener => {
  const stop = new AbortController();
  let current: pg.Client | null = null;
  let connected = () => {};
  const ready = new Promise<void>((done) => {
    connected = done;
  });

  const session = async (): Promise<void> => {
    const client = new pg.Client({ ...connectionSettings(store.url, watching), application_name: 'pawl listener' });
    const over = new Promise<void>((done) => {
      client.once('end', () => done());
      client.on('error', () => done());
    });
    client.on('notification', ({ channel }) => onChange(channel));
    let asking: NodeJS.Timeout | undefined;
    try {
      await client.connect();
      if (stop.signal.aborted) return;
      current = client;
      await client.query(sessionSettings(watching));
      for (const channel of channels) await client.query(`listen ${client.escapeIdentifier(channel)}`);
      connected();
      for (const channel of channels) onChange(channel);
      asking = setInterval(() => void client.query('select 1').catch(() => cut(client)), askEveryMs);
      await over;
    } finally {
      clearInterval(asking);
      current = null;
      cut(client); // there is nothing to say goodbye for, and a silent server would not answer
    }
  };

  const running = (async () => {
    for (let wait = 100; !stop.signal.aborted; wait = Math.min(wait * 2, longestWaitMs)) {
      const begun = Date.now();
      await session().catch(() => {});
      if (Date.now() - begun > longestWaitMs) wait = 100;
      if (!stop.signal.aborted) await sleep(wait, undefined, { signal: stop.signal, ref: false }).catch(() => {});
    }
  })();

  return {
    ready,
    close: async () => {
      stop.abort();
      if (current !== null) cut(current);
      await running;
    },
  };
};
