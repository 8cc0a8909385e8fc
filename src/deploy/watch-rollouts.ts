/**
 * Looks at the open rollouts every few seconds, in one of the workers of a database: the leader. Whoever does not lead asks every
 * two seconds whether it may, so that a leader that dies is replaced within seconds. What a leader writes names it in the audit
 * log, and is refused once another leads (store/lead.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Lead, leading } from '../store/lead.ts';
import type { Store } from '../store/postgres.ts';
import { reconcile } from './reconcile.ts';
import { routeTasks } from './task-routing.ts';

const lookEveryMs = 5_000;
const takeOverMs = 2_000;
const closeMs = 3_000;

export const rolloutsLock = 'pawl rollouts';

/** `process` names this one among all that share the database. */
export function watchRollouts(store: Store, log: Logger, process: string): { close(): Promise<void> } {
  const stop = new AbortController();
  let up = true;
  const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal, ref: false }).catch(() => {});

  const look = async (lead: Lead) => {
    for (const { rollout, decision } of await reconcile(store, { now: Date.now(), lead }))
      if (decision.kind !== 'hold')
        log.info({ rollout: rollout.id, phase: rollout.phase, reasons: decision.reasons }, `rollout: ${decision.kind}`);
    for (const { agent, types } of await routeTasks(store, Date.now(), lead))
      log.info({ agent, types }, 'routing: types of task were looked at');
    up = true;
  };
  /** Until it is stopped, loses the lead, or cannot look. */
  const lead = async (lead: Lead) => {
    const ended = AbortSignal.any([stop.signal, lead.lost]);
    for (; !ended.aborted; await pause(lookEveryMs, ended)) await look(lead);
  };
  const run = async () => {
    for (; !stop.signal.aborted; await pause(takeOverMs, stop.signal)) {
      try {
        await leading(store, rolloutsLock, process, lead);
      } catch (error) {
        if (up && !stop.signal.aborted)
          log.warn({ err: error }, 'rollout: cannot look at the rollouts now; they stay as they are');
        up = false;
      }
    }
  };
  const running = run();
  return {
    async close() {
      stop.abort();
      await Promise.race([running, sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
