/** A row in the database for everything that could not be recorded, so that a loss outlives the process that counted it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Loss, recordLoss } from '../store/losses.ts';
import type { Store } from '../store/postgres.ts';
import type { RecorderStats } from './recorder.ts';

const everyMs = 5_000;
const closeMs = 3_000;

type Losses = Readonly<Record<string, number>>;

export const lossesOf = (stats: Pick<RecorderStats, 'dropped' | 'corrupt' | 'refused'>): Losses => ({
  ...stats.dropped,
  corrupt: stats.corrupt,
  refused: stats.refused,
});

/** What was lost between two readings of the counters. */
export function newLosses(before: Losses, now: Losses, at: Date): Loss[] {
  return Object.entries(now)
    .map(([reason, total]) => ({ source: 'recorder', reason, count: total - (before[reason] ?? 0), at }))
    .filter(({ count }) => count > 0);
}

export function keepLosses(store: Store, stats: () => RecorderStats, warn: (error: unknown) => void) {
  let written: Losses = {};
  let running: Promise<void> = Promise.resolve();

  const look = async () => {
    const now = lossesOf(stats());
    for (const loss of newLosses(written, now, new Date())) {
      await recordLoss(store, loss);
      written = { ...written, [loss.reason]: now[loss.reason]! };
    }
  };
  // A database that is away is tried again at the next look.
  const soon = () => {
    running = running.then(look).catch(warn);
  };
  soon();
  const timer = setInterval(soon, everyMs);
  return {
    async close() {
      clearInterval(timer);
      // A database that does not answer must not keep the process; what is not written down now was said in the log.
      await Promise.race([running.then(look).catch(warn), sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
