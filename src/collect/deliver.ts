/**
 * Gets lines into the sink, however long it takes. A sink that fails is tried again, ever more slowly. One that says
 * nothing at all for too long is given up and opened anew: a connection can fall silent while the database is well.
 * What the sink refuses is put aside; a batch that it refuses as a whole is halved until the one at fault is found.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BoundaryError, StoreError } from '../errors.ts';
import type { Line } from '../store/line.ts';
import type { Sink } from './sink.ts';

export type DeliverOptions = {
  readonly openSink: () => Promise<Sink>;
  /** Puts an entry aside that the sink will never take. Does not throw. */
  readonly reject: (line: Line, reason: string) => Promise<void>;
  /** First and longest wait before trying the sink again. */
  readonly backoffMs: readonly [number, number];
  /** How long a write may be silent before its connection is given up, at first and at most. */
  readonly silenceMs: readonly [number, number];
  readonly onProblem: (message: string) => void;
  /** Ends all waiting. */
  readonly stop: AbortSignal;
};

export type Delivery = {
  /** Opened at once, not at the first batch: whoever opens it may want to read from it. False when stopped first. */
  open(): Promise<boolean>;
  /** How many lines are in the sink, the others being put aside; null when stopped before all were dealt with. */
  deliver(lines: readonly Line[]): Promise<number | null>;
  /** Whether the sink is to give way to nobody, also one that is opened later. */
  hurry(on: boolean): void;
  /** The last thing asked of the sink worked, and nothing asked has been without an answer for seconds. */
  isUp(): boolean;
  close(): Promise<void>;
};

/** Errors that say "never" are believed this many times in a row; beyond that the sink itself is at fault, so wait. */
const MAX_REJECTIONS_IN_A_ROW = 3;
const REJECT_AFTER = 5;
/** A write without an answer for this long means that the database is not up, whatever comes of it. */
const UNANSWERED_MS = 5000;
/** An answer may take this many times as long as the one before it. */
const SLOWER = 4;
/** How long a write under way is waited for when stopping. What it carries is in the journal. */
const STOP_MS = 2000;

/** Not an error of the database: nothing was heard of it. */
class Silence extends StoreError {}

export function createDelivery(options: DeliverOptions): Delivery {
  const { stop } = options;
  const [firstBackoff, longestBackoff] = options.backoffMs;
  const [firstSilence, longestSilence] = options.silenceMs;
  let sink: Sink | null = null;
  let worked = true;
  let askedAt: number | null = null;
  let silenceMs = firstSilence;
  let rejectionsInARow = 0;
  let hurries = false;

  /** What was asked, or an error once it has been silent for too long or, when stopping, for a moment. */
  function answer<T>(asked: Promise<T>, what: string): Promise<T> {
    const began = Date.now();
    askedAt = began;
    return new Promise<T>((resolve, reject) => {
      const giveUp = () => {
        // A database that is only slow gets more time with each attempt.
        silenceMs = Math.min(longestSilence, silenceMs * 2);
        const seconds = Math.round((Date.now() - began) / 1000);
        reject(new Silence(`${what} had no answer for ${seconds} s`, { retryable: true }));
      };
      let timer = setTimeout(giveUp, silenceMs);
      const hurry = () => {
        clearTimeout(timer);
        timer = setTimeout(giveUp, STOP_MS);
      };
      if (stop.aborted) hurry();
      else stop.addEventListener('abort', hurry, { once: true });
      asked
        .then((result) => {
          silenceMs = Math.max(firstSilence, Math.min(longestSilence, SLOWER * (Date.now() - began)));
          resolve(result);
        }, reject)
        .finally(() => {
          clearTimeout(timer);
          stop.removeEventListener('abort', hurry);
        });
    }).finally(() => {
      askedAt = null;
    });
  }

  async function opened(): Promise<Sink> {
    if (sink !== null) return sink;
    const opening = options.openSink();
    try {
      sink = await answer(opening, 'Connecting to the database');
      if (hurries) sink.hurry?.(true);
      return sink;
    } catch (error) {
      // Should it open after all, nobody wants it any more.
      if (error instanceof Silence)
        opening.then(
          (late) => late.destroy(),
          () => {},
        );
      throw error;
    }
  }

  async function write(lines: readonly Line[]) {
    const to = await opened();
    const writing = to.write(lines);
    try {
      return await answer(writing, `Writing ${lines.length} entries`);
    } catch (error) {
      if (error instanceof Silence) {
        writing.catch(() => {});
        sink = null;
        to.destroy();
      }
      throw error;
    }
  }

  async function trouble(error: unknown, attempt: number): Promise<void> {
    if (stop.aborted) return;
    if (worked) options.onProblem(`The database does not take recordings: ${String(error)}. They wait in the journal.`);
    worked = false;
    const wait = Math.min(longestBackoff, firstBackoff * 2 ** Math.min(attempt, 16));
    await sleep(wait, undefined, { signal: stop }).catch(() => {});
  }

  async function deliver(lines: readonly Line[]): Promise<number | null> {
    for (let attempt = 0; !stop.aborted; attempt++) {
      try {
        const { refused } = await write(lines);
        worked = true;
        rejectionsInARow = 0;
        for (const { line, error } of refused) await options.reject(line, error);
        return lines.length - refused.length;
      } catch (error) {
        const never = error instanceof BoundaryError && !error.retryable;
        if (never && rejectionsInARow < MAX_REJECTIONS_IN_A_ROW) {
          if (lines.length > 1) {
            const middle = lines.length >> 1;
            const first = await deliver(lines.slice(0, middle));
            const second = first === null ? null : await deliver(lines.slice(middle));
            return first === null || second === null ? null : first + second;
          }
          if (attempt + 1 >= REJECT_AFTER) {
            rejectionsInARow++;
            await options.reject(lines[0] as Line, String(error));
            return 0;
          }
        }
        await trouble(error, attempt);
      }
    }
    return null;
  }

  return {
    async open() {
      for (let attempt = 0; !stop.aborted; attempt++) {
        try {
          await opened();
          return true;
        } catch (error) {
          await trouble(error, attempt);
        }
      }
      return false;
    },
    deliver,
    hurry(on) {
      hurries = on;
      sink?.hurry?.(on);
    },
    isUp: () => worked && (askedAt === null || Date.now() - askedAt < UNANSWERED_MS),
    async close() {
      const last = sink;
      sink = null;
      await last?.close();
    },
  };
}
