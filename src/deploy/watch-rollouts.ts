/**
 * Looks at the open rollouts every few seconds, in every process that serves: a candidate that goes wrong is rolled back
 * wherever its traffic is, whether or not anything else of Pawl runs. Looking twice does no harm.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Store } from '../store/postgres.ts';
import { reconcile } from './reconcile.ts';

const everyMs = 5_000;
const closeMs = 3_000;

export function watchRollouts(store: Store, log: Logger): { close(): Promise<void> } {
  let closed = false;
  let up = true;
  let running: Promise<void> | null = null;

  const look = async () => {
    try {
      for (const { rollout, decision } of await reconcile(store, { now: Date.now() }))
        if (decision.kind !== 'hold')
          log.info(
            { rollout: rollout.id, phase: rollout.phase, reasons: decision.reasons },
            `rollout: ${decision.kind}`,
          );
      up = true;
    } catch (error) {
      if (up && !closed) log.warn({ err: error }, 'rollout: cannot look at the rollouts now; they stay as they are');
      up = false;
    }
  };
  const timer = setInterval(() => {
    running ??= look().finally(() => {
      running = null;
    });
  }, everyMs);
  return {
    async close() {
      closed = true;
      clearInterval(timer);
      await Promise.race([running, sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
