/**
 * Lets the recorder's thread give way, from the thread that answers (yielding.ts says when). On Linux niceness and policy belong to the
 * thread; elsewhere they would slow the whole process, so they are left alone. What does not work is not tried again, and
 * changes nothing else: recording goes on as it is.
 */
import { setPriority } from 'node:os';
import type { Policies } from '../priority.ts';
import { calm, type Level, levelIn, type Waiting, yieldingAfter } from './yielding.ts';

/** What a thread says of itself when it begins. */
export type Scheduled = {
  /** null: nothing can be done about it here. */
  readonly thread: number | null;
  readonly niceness: number;
  /** It may take back what it gives up. */
  readonly free: boolean;
};

/** A tenth of a processor that others want. */
const SHARE_NICENESS = 10;
/** How long the way back is waited for when all of it ends. */
const BACK_MS = 1000;

export type RecorderPriority = {
  /** Another thread does the work from now on. */
  of(thread: Scheduled): void;
  /** To be called now and then with how many exchanges came so far. False: there is nothing to look at until more come. */
  look(came: number, now: number, waiting: Waiting): boolean;
  /** Gives way to nobody any more. */
  end(): Promise<void>;
};

/** `told`: whether the thread gets only what nobody else wants. */
export function createRecorderPriority(
  policies: Pick<Policies, 'setIdle'>,
  told: (isIdle: boolean) => void,
  nice: (thread: number, niceness: number) => void = setPriority,
): RecorderPriority {
  let scheduled: Scheduled = { thread: null, niceness: 0, free: false };
  let state = calm;
  let last: { came: number; at: number } | null = null;
  let level: Level = 'even';
  let niceness = 0;
  let isIdle = false;
  let canIdle = true;
  let asking: Promise<void> | null = null;
  let hasEnded = false;

  function become(wanted: Level): void {
    const { thread, niceness: base, free } = scheduled;
    level = wanted;
    // What cannot be taken back is not given up twice.
    if (thread === null || (!free && wanted === 'even')) return;
    const wantedNiceness = wanted === 'even' ? base : Math.max(base, SHARE_NICENESS);
    if (wantedNiceness !== niceness)
      try {
        nice(thread, wantedNiceness);
        niceness = wantedNiceness;
      } catch {
        scheduled = { ...scheduled, thread: null };
        return;
      }
    const wantsIdle = wanted === 'rest' && canIdle;
    // Whoever was asked may not have done it: the next look asks again.
    if (wantsIdle !== isIdle && asking === null) asking = makeIdle(thread, wantsIdle);
  }

  async function makeIdle(thread: number, on: boolean): Promise<void> {
    const worked = await policies.setIdle(thread, on);
    asking = null;
    if (thread !== scheduled.thread) return;
    if (on && !worked) canIdle = false;
    if (!worked) return;
    isIdle = on;
    told(on);
  }

  return {
    of(thread) {
      scheduled = thread;
      niceness = thread.niceness;
      isIdle = false; // as it takes itself to be
    },
    look(came, now, waiting) {
      const before = last;
      last = { came, at: now };
      if (hasEnded || before === null || now <= before.at) return !hasEnded;
      const tookMs = now - before.at;
      state = yieldingAfter(state, (1000 * (came - before.came)) / tookMs, tookMs, waiting);
      become(levelIn(state, scheduled.free));
      const isCalm = level === 'even' && !isIdle && came === before.came && state.rush.busyMs === 0;
      if (isCalm) last = null;
      return !isCalm;
    },
    async end() {
      hasEnded = true;
      const back = async (): Promise<void> => {
        await asking;
        become('even');
        await asking;
      };
      await Promise.race([back(), new Promise((resolve) => setTimeout(resolve, BACK_MS).unref())]);
    },
  };
}
