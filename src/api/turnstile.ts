/**
 * Lets so many through at once and makes the rest wait. Reading conversations takes memory and a little of the thread that
 * also answers agents, so however many ask, only a few are read at a time; when too many wait already, the next is told to
 * come back.
 */
import { RequestError } from '../errors.ts';

export type Turnstile = <T>(work: () => Promise<T>) => Promise<T>;

export function createTurnstile(atOnce: number, mostWaiting: number): Turnstile {
  let inside = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (inside >= atOnce) {
      if (waiting.length >= mostWaiting)
        throw new RequestError(
          503,
          'busy',
          `${inside + waiting.length} requests are being read already; try again soon.`,
        );
      await new Promise<void>((enter) => waiting.push(enter)); // whoever leaves hands over the place
    } else inside++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) inside--;
      else next();
    }
  };
}
