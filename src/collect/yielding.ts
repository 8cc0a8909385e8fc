/**
 * When the recorder's thread gives way. At a few hundred answers a second its work is a few percent of a processor, and
 * what matters is that a killed process has recorded nearly everything it answered: it runs like any other thread. At
 * thousands it would take processors from answering, so it gives way and its queue, which is bounded, takes the
 * difference: while the queue is less than half full it runs in what answering leaves over, after that it takes a share. Only who may
 * take back what it gave up can do so (priority.ts); others take the share from the start, and keep to it. It gives way for a
 * while afterwards, the longer the longer it was busy: rushes come in waves, and the first quarter of a second of each would be paid by
 * those who wait for answers. On Linux priority belongs to the thread; elsewhere it would slow the whole process, so it is left alone.
 */
import { setPriority } from 'node:os';
import { isIdle, isPerThread, mayReturn, thisThread } from '../priority.ts';

/** A tenth of a processor that others want, and next to nothing of it. */
const niceness = { even: 0, share: 10, rest: 19 } as const;
/** How full the queue may be before it takes a share. */
const FULL = 0.5;
/** It gives way from the first of these rates on, and no longer below the second; exchanges per second. */
const BUSY = 1000;
const CALM = 500;
/** And for this many times the length of a rush after it, no longer than this, and not at all after one as short as this. */
const AFTER = 2;
const LONGEST_AFTER_MS = 10_000;
const SHORT_MS = 1000;

/** How long there has been a rush, and how long none; a rush that comes soon after another goes on with it. */
export type Rush = { readonly busyMs: number; readonly calmMs: number };

export function rushAfter({ busyMs, calmMs }: Rush, perSecond: number, tookMs: number): Rush {
  if (perSecond >= BUSY || (perSecond >= CALM && busyMs > 0)) return { busyMs: busyMs + tookMs, calmMs: 0 };
  const afterMs = busyMs < SHORT_MS ? 0 : Math.min(LONGEST_AFTER_MS, AFTER * busyMs);
  const isOver = calmMs + tookMs >= afterMs;
  return isOver ? { busyMs: 0, calmMs: 0 } : { busyMs, calmMs: calmMs + tookMs };
}

export type Level = 'even' | 'share' | 'rest';

/** `full`: how much of the queue is taken, from 0 to 1; `free`: it may take back what it gives up. */
export function levelIn({ busyMs }: Rush, full: number, free: boolean): Level {
  if (busyMs === 0) return 'even';
  return free && full < FULL ? 'rest' : 'share';
}

export type Scheduling = {
  /** It may take back what it gives up. */
  readonly free: boolean;
  become(level: Level): void;
  /** It gets only what nobody else wants. */
  isIdle(): boolean;
};

export function createYielding({ free, become, isIdle }: Scheduling) {
  let level: Level = 'even';
  let rush: Rush = { busyMs: 0, calmMs: 0 };
  let last: { came: number; at: number } | null = null;
  return {
    /** To be called now and then with how many exchanges came so far, and how full the queue is. */
    look(came: number, now: number, full: number): void {
      const before = last;
      last = { came, at: now };
      if (before === null || now <= before.at) return;
      const tookMs = now - before.at;
      rush = rushAfter(rush, (1000 * (came - before.came)) / tookMs, tookMs);
      const wanted = levelIn(rush, full, free);
      if (!free && wanted === 'even') return;
      // Whoever was asked may not have done it.
      if (wanted === level && (wanted === 'rest' || !isIdle())) return;
      level = wanted;
      become(wanted);
    },
  };
}

/** `ask`: has another thread make this one idle, or no longer. */
export function ofThisThread(ask: (thread: number, idle: boolean) => void): Scheduling {
  if (!isPerThread) return { free: false, become() {}, isIdle: () => false };
  const thread = thisThread();
  const free = mayReturn();
  return {
    free,
    isIdle: () => free && isIdle(),
    become(level) {
      setPriority(niceness[level]);
      if (free && (level === 'rest' || isIdle())) ask(thread, level === 'rest');
    },
  };
}
