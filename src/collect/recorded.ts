/**
 * All that was recorded so far, in the database: who reads a window of traffic waits for it, whichever gateways it came through.
 * A gateway that is away has its part in its journal; it is not waited for.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError } from '../errors.ts';
import { listen } from '../store/listen.ts';
import type { Store } from '../store/postgres.ts';
import { databaseTime, drainChannel, gatewaysUnwritten, reportGateway } from '../store/processes.ts';
import type { Recorder } from './recorder.ts';

const minutes = 5;
const lookEveryMs = 100;

/** A database that takes nothing for minutes ends the wait. */
export async function recordedBy(recorder: Recorder): Promise<void> {
  if (!(await recorder.drain(minutes * 60_000))) throw late('this process');
}

const late = (who: string) =>
  new StoreError(
    `The database has not taken the recorded traffic of ${who} within ${minutes} minutes; see /healthz there for why.`,
    { retryable: true },
  );

/** Asks every gateway of this database, and waits until each has written what it had. */
export async function recordedByAll(store: Store): Promise<void> {
  const since = await databaseTime(store);
  await store.pool.query('select pg_notify($1, $2)', [drainChannel, since]);
  for (const end = Date.now() + minutes * 60_000; ; await sleep(lookEveryMs)) {
    const behind = await gatewaysUnwritten(store, since);
    if (behind.length === 0) return;
    if (Date.now() > end) throw late(behind.map(({ id }) => id).join(', '));
  }
}

/** The gateway's side: says up to when all it answered is in the database, whenever somebody asks. */
export function tellRecorded(
  store: Store,
  recorder: Recorder,
  gateway: string,
  warn: (error: unknown) => void,
): { close(): Promise<void> } {
  let busy = false;
  let asked = false;
  let closed = false;
  const tell = async () => {
    const at = await databaseTime(store);
    if (await recorder.drain(minutes * 60_000)) await reportGateway(store, gateway, 'recorded_at', at);
  };
  const soon = async () => {
    asked = true;
    if (busy) return;
    busy = true;
    while (asked && !closed) {
      asked = false;
      await tell().catch((error: unknown) => {
        if (!closed) warn(error);
      });
    }
    busy = false;
  };
  const listener = listen(store, [drainChannel], () => void soon());
  return {
    async close() {
      closed = true;
      await listener.close();
    },
  };
}
