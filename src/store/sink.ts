/** The database as the journal sees it: the module that collect/recorder-worker.ts loads in its thread. */
import type { OpenSink } from '../collect/sink.ts';
import { StoreError } from '../errors.ts';
import { runningEmbedded } from './embedded.ts';
import { createWaiting } from './give-way.ts';
import { recording } from './limits.ts';
import { connectStore } from './postgres.ts';
import { writeLines } from './record.ts';

const recentThreads = `
select thread_key as "threadKey", trajectory, extract(epoch from started_at) * 1000 + latency_ms as at
from pawl.turns
where day >= (to_timestamp($1 / 1000.0) at time zone 'UTC')::date and started_at >= to_timestamp($1 / 1000.0)
  and thread_key is not null and status = 'ok'
order by started_at desc limit 20000`;

export const openSink: OpenSink = async ({ home, databaseUrl, setIdle }) => {
  const isOurs = databaseUrl === null;
  const url = databaseUrl ?? runningEmbedded(home);
  if (url === null) throw new StoreError('The embedded PostgreSQL is not up', { retryable: true });
  const waiting = isOurs ? createWaiting(setIdle) : null;
  const store = await connectStore(url, {
    poolSize: 2,
    limits: recording,
    ...(waiting === null ? {} : { onConnect: waiting.add, onGone: waiting.gone }),
  });
  return {
    write: (lines) => writeLines(store, lines),
    threads: async (since) => {
      const { rows } = await store.pool.query<{ threadKey: string; trajectory: string; at: string }>(recentThreads, [
        since,
      ]);
      return rows.map((row) => ({ ...row, at: Number(row.at) })).reverse();
    },
    hurry: (on) => waiting?.hurry(on),
    close: () => store.close(),
    destroy: () => {
      store.cut();
      void store.close();
    },
  };
};
