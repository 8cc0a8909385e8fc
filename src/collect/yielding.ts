/**
 * When the recorder's thread gives way. At a few hundred answers a second its work is a few percent of a processor, and
 * what matters is that a killed process has recorded nearly everything it answered: it runs like any other thread. At
 * thousands it would take processors from answering, so it becomes nice and its queue, which is bounded, takes the
 * difference. On Linux priority belongs to the thread; elsewhere it would slow the whole process, so it is left alone.
 */
import { setPriority } from 'node:os';

const NICENESS = 10;
/** Nice from the first of these rates on, and no longer below the second; exchanges per second. */
const BUSY = 1000;
const CALM = 500;

/** The niceness for a rate, given the one before. */
export function nicenessAt(perSecond: number, before: number): number {
  if (perSecond >= BUSY) return NICENESS;
  return perSecond < CALM ? 0 : before;
}

export function createYielding(set: (niceness: number) => void = setNiceness) {
  let niceness = 0;
  let last: { taken: number; at: number } | null = null;
  let allowed = true;
  return {
    /** To be called now and then with how many exchanges were taken so far. */
    look(taken: number, now: number): void {
      const before = last;
      last = { taken, at: now };
      if (before === null || now <= before.at || !allowed) return;
      const wanted = nicenessAt((1000 * (taken - before.taken)) / (now - before.at), niceness);
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
