/**
 * Keeps the recorder's worker thread running. One that dies is replaced. One that has not been heard of for too long hangs (it
 * reports every second, whatever there is to do): it is ended and replaced. Who uses the thread is told what
 * became of it, once.
 *
 * Loading its code takes most of a thread's start, and until it is ready what has been answered is nowhere but in memory. So a
 * spare stands by with its code loaded, and is told to begin at the moment the other one is gone.
 */
import { Worker } from 'node:worker_threads';
import { isBuilt, root } from '../root.ts';
import type { FromWorker, ToWorker, WorkerData } from './recorder.ts';
import type { Scheduled } from './recorder-priority.ts';

export type LostReason = 'crash' | 'hang' | 'closed';

export type ThreadOptions = {
  readonly data: WorkerData;
  /** What a thread is told when it begins; `again`: another one was there before it. */
  readonly begin: (again: boolean) => ToWorker;
  readonly onReady: (scheduled: Scheduled) => void;
  readonly onMessage: (message: FromWorker) => void;
  /** The thread is gone, with all that was posted to it and not answered. */
  readonly onLost: (reason: LostReason) => void;
  readonly warn: (details: object, message: string) => void;
  /** How long without a word before it counts as hanging. */
  readonly hangMs: number;
  /** How long after a thread is ready its spare is loaded: a start has other things to do. */
  readonly spareAfterMs?: number;
};

export type Thread = {
  /** False while there is no thread to take it. */
  post(message: ToWorker, transfer?: ArrayBuffer[]): boolean;
  isReady(): boolean;
  restarts(): number;
  /** Asks it to finish and waits; ends it when that takes too long. */
  close(): Promise<void>;
};

const LOOK_MS = 1000;
/** Loading the code on a busy machine takes seconds. */
const START_MS = 60_000;
const SPARE_AFTER_MS = 5000;
/** What it has to do at the end is bounded by less than this. */
const CLOSE_MS = 15_000;
/** A thread whose disk never answers may not even end; nobody waits for that. */
const END_MS = 2000;
const LONGEST_WAIT_MS = 5000;
/**
 * A turn lives until the journal has it, so a young generation that is collected more often than that copies every turn: 48 MB of
 * Node's own choice took an eighth of the recorder's time more, twice as much memory as this falls out of the processor's caches.
 */
const YOUNG_MB = 96;

type Held = { readonly worker: Worker; state: 'loading' | 'loaded' | 'begun' | 'ready' | 'over'; unheard: number };

export async function keepThread(options: ThreadOptions): Promise<Thread> {
  let current: Held | null = null; // the one that records, or is about to
  let spare: Held | null = null; // loading or loaded
  let restarts = 0;
  let waitMs = 100;
  let closing = false;
  let settle: { started: () => void; failed: (error: Error) => void } | null = null; // until the first is ready

  function load(): void {
    if (closing || spare !== null) return;
    const program = isBuilt ? 'dist/recorder-worker.js' : 'src/collect/recorder-boot.js';
    const worker = new Worker(new URL(program, root), {
      workerData: options.data,
      name: 'recorder',
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    const held: Held = { worker, state: 'loading', unheard: 0 };
    spare = held;
    let failure: unknown = null;
    worker.on('message', (message: FromWorker) => {
      if (held.state !== 'over') heard(held, message);
    });
    worker.on('error', (error) => {
      failure = error;
    });
    worker.on('exit', (code) => {
      if (held.state !== 'over') ended(held, 'crash', failure ?? `exit code ${code}`);
    });
  }

  function look(held: Held): void {
    if (held.state === 'loaded') return; // it has nothing to say
    const limitMs = held.state === 'ready' ? options.hangMs : START_MS;
    // Looks, not time: while this thread itself stood still, nothing could be heard.
    if (++held.unheard * LOOK_MS < limitMs) return;
    ended(held, 'hang', `nothing was heard of it for ${Math.round(limitMs / 1000)} s`);
    void held.worker.terminate();
  }
  const looking = setInterval(() => {
    for (const held of [current, spare]) if (held !== null) look(held);
  }, LOOK_MS);
  looking.unref();

  function heard(held: Held, message: FromWorker): void {
    held.unheard = 0;
    if (message.kind === 'loaded') {
      held.state = 'loaded';
      takeOver();
    } else if (message.kind === 'ready') {
      held.state = 'ready';
      waitMs = 100;
      options.onReady(message.scheduled);
      settle?.started();
      settle = null;
      setTimeout(load, options.spareAfterMs ?? SPARE_AFTER_MS).unref();
    } else options.onMessage(message);
  }

  function takeOver(): void {
    if (closing || current !== null || spare?.state !== 'loaded') return;
    current = spare;
    spare = null;
    current.state = 'begun';
    current.worker.postMessage(options.begin(restarts > 0));
  }

  function ended(held: Held, lost: LostReason, cause: unknown): void {
    const before = held.state;
    held.state = 'over';
    if (held === current) {
      current = null;
      options.onLost(closing ? 'closed' : lost);
    } else spare = null;
    if (closing) return;
    if (settle !== null) {
      clearInterval(looking);
      settle.failed(new Error(`The recorder could not start: ${String(cause)}.`, { cause }));
      return;
    }
    if (before === 'ready' || before === 'begun') restarts++;
    options.warn({ err: cause }, `The recorder stopped (${String(cause)}); it is started again.`);
    takeOver();
    if (before === 'ready') {
      if (current === null) load(); // else when that one is ready, and has what the processor gives
      return;
    }
    // One that never came to be ready may not be able to.
    setTimeout(load, waitMs).unref();
    waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
  }

  const live = (): Worker | null => (current?.state === 'ready' ? current.worker : null);

  await new Promise<void>((started, failed) => {
    settle = { started, failed };
    load();
  });
  return {
    post(message, transfer) {
      live()?.postMessage(message, transfer ?? []);
      return live() !== null;
    },
    isReady: () => live() !== null,
    restarts: () => restarts,
    async close() {
      closing = true;
      const last = live();
      const others = [spare, current].filter((held) => held !== null && held.worker !== last) as Held[];
      const ending = Promise.all(others.map(({ worker }) => worker.terminate()));
      const within = (ended: Promise<unknown>, ms: number) =>
        Promise.race([ended, new Promise((resolve) => setTimeout(resolve, ms).unref())]);
      if (last !== null) {
        const exited = new Promise<void>((resolve) => last.once('exit', () => resolve()));
        last.postMessage({ kind: 'close' } satisfies ToWorker);
        // A disk or database that hangs must not keep the process: what is journalled is safe.
        const limit = setTimeout(() => void last.terminate(), CLOSE_MS);
        await within(exited, CLOSE_MS + END_MS);
        clearTimeout(limit);
      }
      await within(ending, END_MS);
      clearInterval(looking);
    },
  };
}
