/**
 * When the recorder's thread gives way. At a few hundred answers a second its work is a few percent of a processor, and
 * what matters is that a killed process has recorded nearly everything it answered: it runs like any other thread. At
 * thousands it would take processors from answering, so it becomes nice and its queue, which is bounded, takes the
 * difference: while the queue is less than half full it runs in what answering leaves over, after that it takes a share. Only who may
 * become less nice again can do so (root, or a process with CAP_SYS_NICE); others take the share from the start. It stays nice for a
 * while afterwards, the longer the longer it was busy: rushes come in waves, and the first quarter of a second of each would be paid by
 * those who wait for answers. On Linux priority belongs to the thread; elsewhere it would slow the whole process, so it is left alone.
 */
import { setPriority } from 'node:os';

/** With a share of the processors of a tenth, and with next to none while others want them. */
const NICE = 10;
const NICEST = 19;
/** How full the queue may be before it takes a share. */
const FULL = 0.5;
/** Nice from the first of these rates on, and no longer below the second; exchanges per second. */
const BUSY = 1000;
const CALM = 500;
/** Nice for this many times the length of a rush after it, no longer than this, and not at all after one as short as this. */
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

/** `full`: how much of the queue is taken, from 0 to 1; `free`: it may become less nice again. */
export function nicenessIn({ busyMs }: Rush, full: number, free: boolean): number {
  if (busyMs === 0) return 0;
  return free && full < FULL ? NICEST : NICE;
}

export function createYielding(set: (niceness: number) => void = setNiceness) {
  let niceness = 0;
  let rush: Rush = { busyMs: 0, calmMs: 0 };
  let last: { came: number; at: number } | null = null;
  let free: boolean | null = null; // null: not tried yet

  function become(wanted: number): void {
    try {
      set(wanted);
      niceness = wanted;
    } catch {
      free = false; // and it stays as it is
    }
  }

  return {
    /** To be called now and then with how many exchanges came so far, and how full the queue is. */
    look(came: number, now: number, full: number): void {
      const before = last;
      last = { came, at: now };
      if (before === null || now <= before.at) return;
      const tookMs = now - before.at;
      rush = rushAfter(rush, (1000 * (came - before.came)) / tookMs, tookMs);
      const wanted = nicenessIn(rush, full, free === true);
      if (wanted === niceness || (free === false && wanted < niceness)) return;
      become(wanted);
      if (free === null) {
        become(wanted - 1); // whoever may do this may go back all the way
        free ??= true;
      }
    },
  };
}

function setNiceness(niceness: number): void {
  if (process.platform === 'linux') setPriority(niceness);
}
