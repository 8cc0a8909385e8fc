/**
 * When the recorder's thread gives way. At a few hundred answers a second its work is a few percent of a processor, and
 * what matters is that a killed process has recorded nearly everything it answered: it runs like any other thread. At
 * thousands it would take processors from answering, so it gives way and its queue, which is bounded, takes the difference. It gives way for a
 * while afterwards, the longer the longer it was busy: rushes come in waves, and the first quarter of a second of each would be paid by
 * those who wait for answers.
 *
 *   even    like any other thread: no rush, or the queue is nearly full
 *   share   a tenth of a processor that others want: half a queue waits, or something has waited too long
 *   rest    what answering leaves over
 *
 * Only who may take back what it gave up can do so (priority.ts); others take the share as soon as there is a rush, and keep to it. It is
 * decided by the thread that answers: whoever gets nothing cannot ask for more. Pure; recorder-priority.ts does it.
 */

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

export type Waiting = {
  /** How much of the queue is taken, 0–1. */
  readonly full: number;
  /** Of the oldest answer that is not in the journal: what a kill would cost. */
  readonly oldestMs: number;
  /** Of the oldest vote, outcome or question that somebody waits for. */
  readonly askedMs: number;
};

/** Where it takes a share, and where it takes what it needs. */
const FULL = 0.5;
const CRAMMED = 0.75;
const LATE_MS = 5000;
const ASKED_MS = 1000;
/** It gives way again once there is only so much of what made it stop. */
const EASED = 0.5;

export type Level = 'even' | 'share' | 'rest';
export type Yielding = { readonly rush: Rush; readonly isPressed: boolean; readonly isCrammed: boolean };
export const calm: Yielding = { rush: { busyMs: 0, calmMs: 0 }, isPressed: false, isCrammed: false };

export function yieldingAfter(
  { rush, isPressed, isCrammed }: Yielding,
  perSecond: number,
  tookMs: number,
  { full, oldestMs, askedMs }: Waiting,
): Yielding {
  const pressure = Math.max(full / FULL, oldestMs / LATE_MS, askedMs / ASKED_MS);
  return {
    rush: rushAfter(rush, perSecond, tookMs),
    isPressed: pressure >= (isPressed ? EASED : 1),
    isCrammed: full >= (isCrammed ? EASED * CRAMMED : CRAMMED),
  };
}

/** `free`: it may take back what it gives up. */
export function levelIn({ rush, isPressed, isCrammed }: Yielding, free: boolean): Level {
  if (rush.busyMs === 0) return 'even';
  if (!free) return 'share';
  return isCrammed ? 'even' : isPressed ? 'share' : 'rest';
}
