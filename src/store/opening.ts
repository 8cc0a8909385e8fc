/**
 * Opens the database for as long as it takes, while others already work without it. Whoever needs it waits for `opened`;
 * whoever wants to know how long to wait for it looks at `tried`, the end of the first attempt.
 *
 * An attempt that fails is made again after a while. Only settings that a person has to change (a server that is too old, data
 * of another version) end it, and only at the first attempt: a process that serves goes on serving.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../errors.ts';
import type { Store } from './postgres.ts';

export type Opening = {
  /** Null until the database has been reached once. */
  readonly store: Store | null;
  /** Why the last attempt failed; null while the first one is under way, and after success. */
  readonly problem: string | null;
  /** Rejects when it is closed first, or with the ConfigError of the first attempt. */
  readonly opened: Promise<Store>;
  /** Resolves when the first attempt has ended, well or not; rejects with its ConfigError. */
  readonly tried: Promise<void>;
  /** Ends an attempt that is under way, closes the database if it is open. */
  close(): Promise<void>;
};

const longestWaitMs = 5_000;

export function startOpening(
  open: (signal: AbortSignal) => Promise<Store>,
  options: { readonly onProblem?: (problem: string) => void; readonly firstWaitMs?: number } = {},
): Opening {
  const stop = new AbortController();
  let store: Store | null = null;
  let problem: string | null = null;
  let firstTried = (_: { failed?: unknown }) => {};
  const tried = new Promise<void>((resolve, reject) => {
    firstTried = ({ failed }) => (failed === undefined ? resolve() : reject(failed));
  });

  const attempts = async (): Promise<Store> => {
    for (let wait = options.firstWaitMs ?? 250; ; wait = Math.min(longestWaitMs, wait * 2)) {
      try {
        const found = await open(stop.signal);
        if (stop.signal.aborted) {
          await found.close();
          stop.signal.throwIfAborted();
        }
        store = found;
        problem = null;
        firstTried({});
        return found;
      } catch (error) {
        const first = problem === null;
        if (stop.signal.aborted || (first && error instanceof ConfigError)) {
          firstTried({ failed: error });
          throw error;
        }
        const said = error instanceof Error ? error.message : String(error);
        if (said !== problem) options.onProblem?.(said);
        problem = said;
        firstTried({});
      }
      await sleep(wait, undefined, { signal: stop.signal });
    }
  };
  const opened = attempts();
  // Both may go unobserved: a process that ends does not ask any more.
  opened.catch(() => {});
  tried.catch(() => {});

  return {
    get store() {
      return store;
    },
    get problem() {
      return problem;
    },
    opened,
    tried,
    async close() {
      stop.abort(new Error('Pawl is stopping.'));
      await opened.then(
        (found) => found.close(),
        () => {},
      );
    },
  };
}
