/**
 * Keeps the recorder's worker thread running. One that dies is started again. One that has not been heard of for too long
 * hangs (it reports several times a second, whatever there is to do): it is ended and replaced. Who uses the thread is told
 * what became of it, once.
 */
import { Worker } from 'node:worker_threads';
import type { FromWorker, ToWorker, WorkerData } from './recorder.ts';

export type LostReason = 'crash' | 'hang' | 'closed';

export type ThreadOptions = {
  readonly data: WorkerData;
  readonly onReady: () => void;
  readonly onMessage: (message: FromWorker) => void;
  /** The thread is gone, with all that was posted to it and not answered. */
  readonly onLost: (reason: LostReason) => void;
  readonly warn: (details: object, message: string) => void;
  /** How long without a word before it counts as hanging. */
  readonly hangMs: number;
};

export type Thread = {
  /** False while there is no thread to take it. */
  post(message: ToWorker, transfer?: ArrayBuffer[]): boolean;
  isReady(): boolean;
  restarts(): number;
  /** Asks it to finish and waits; ends it when that takes too long. */
  close(): Promise<void>;
};

const LOOK_MS = 250;
/** Loading the code on a busy machine takes seconds. */
const START_MS = 60_000;
/** What it has to do at the end is bounded by less than this. */
const CLOSE_MS = 15_000;
/** A thread whose disk never answers may not even end; nobody waits for that. */
const END_MS = 2000;
const LONGEST_WAIT_MS = 5000;

export async function keepThread(options: ThreadOptions): Promise<Thread> {
  let live: Worker | null = null;
  let restarts = 0;
  let waitMs = 100;
  let closing = false;

  /** Resolves once the thread can take messages. */
  function begin(): Promise<void> {
    const started = new Worker(
      new URL(import.meta.url.endsWith('.ts') ? './recorder-boot.js' : './recorder-worker.js', import.meta.url),
      {
        workerData: options.data,
        name: 'recorder',
      },
    );
    return new Promise((resolve, reject) => {
      let failure: unknown = null;
      let over = false;
      let unheard = 0; // looks, not time: while this thread itself stood still, nothing could be heard
      let ready = false;
      const end = (lost: LostReason, cause: unknown) => {
        if (over) return;
        over = true;
        clearInterval(look);
        const isFirst = !ready && restarts === 0;
        live = null;
        options.onLost(closing ? 'closed' : lost);
        if (closing) return;
        if (isFirst) {
          reject(new Error(`The recorder could not start: ${String(cause)}.`, { cause }));
          return;
        }
        restarts++;
        options.warn({ err: cause }, `The recorder stopped (${String(cause)}); it is started again.`);
        setTimeout(() => {
          // A start that fails comes back here through its own end.
          if (!closing) begin().catch(() => {});
        }, waitMs).unref();
        waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
      };
      const look = setInterval(() => {
        const limitMs = ready ? options.hangMs : START_MS;
        if (++unheard * LOOK_MS < limitMs) return;
        end('hang', `nothing was heard of it for ${Math.round(limitMs / 1000)} s`);
        void started.terminate();
      }, LOOK_MS);
      look.unref();
      started.on('message', (message: FromWorker) => {
        if (over) return;
        unheard = 0;
        if (message.kind !== 'ready') {
          options.onMessage(message);
          return;
        }
        live = started;
        ready = true;
        waitMs = 100;
        options.onReady();
        resolve();
      });
      started.on('error', (error) => {
        failure = error;
      });
      started.on('exit', (code) => end('crash', failure ?? `exit code ${code}`));
    });
  }

  await begin();
  return {
    post(message, transfer) {
      live?.postMessage(message, transfer ?? []);
      return live !== null;
    },
    isReady: () => live !== null,
    restarts: () => restarts,
    async close() {
      closing = true;
      const last = live;
      if (last === null) return;
      const exited = new Promise<void>((resolve) => last.once('exit', () => resolve()));
      const within = (ms: number) => Promise.race([exited, new Promise((resolve) => setTimeout(resolve, ms).unref())]);
      last.postMessage({ kind: 'close' } satisfies ToWorker);
      // A disk or database that hangs must not keep the process: what is journalled is safe.
      const limit = setTimeout(() => void last.terminate(), CLOSE_MS);
      await within(CLOSE_MS + END_MS);
      clearTimeout(limit);
    },
  };
}
