/**
 * When the recorder's thread gives way. At a few hundred answers a second its work is a few percent of a processor, and
 * what matters is that a killed process has recorded nearly everything it answered: it runs like any other thread. At
 * thousands it would take processors from answering, so it becomes nice and its queue, which is bounded, takes the
 * difference. It stays nice for a while afterwards, the longer the longer it was busy: rushes come in waves, and the first
 * quarter of a second of each would be paid by those who wait for answers. On Linux priority belongs to the thread; elsewhere it would slow the whole process, so it is left alone.
 */
import { setPriority } from 'node:os';

const NICENESS = 10;
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

export const nicenessIn = ({ busyMs }: Rush): number => (busyMs > 0 ? NICENESS : 0);

export function createYielding(set: (niceness: number) => void = setNiceness) {
  let niceness = 0;
  let rush: Rush = { busyMs: 0, calmMs: 0 };
  let last: { taken: number; at: number } | null = null;
  let allowed = true;
  return {
    /** To be called now and then with how many exchanges were taken so far. */
    look(taken: number, now: number): void {
      const before = last;
      last = { taken, at: now };
      if (before === null || now <= before.at || !allowed) return;
      const tookMs = now - before.at;
      rush = rushAfter(rush, (1000 * (taken - before.taken)) / tookMs, tookMs);
      const wanted = nicenessIn(rush);
      if (wanted === niceness) return;
      try {
        set(wanted);
        niceness = wanted;
      } catch {
        // Becoming less nice needs a right that most processes do not have; then it stays as it is.
        allowed = false;
      }
    },
  };
}

function setNiceness(niceness: number): void {
  if (process.platform === 'linux') setPriority(niceness);
}
