/**
 * Scorers that a user wrote run in threads of their own: one that never returns, eats the memory or ends the process does that to
 * its thread, which is stopped, and the part has failed by name. A thread loads the settings file itself and does one conversation
 * at a time, so whoever runs out of time is the one to blame. Threads come as they are needed, up to four for an agent, and go
 * when there is nothing to do. Pawl's own scorers stay where they are: those that compute certainly end, those that ask a model
 * need what a thread cannot be lent.
 */
import { Worker } from 'node:worker_threads';
import { isBuilt, root } from '../root.ts';
import type { Measured, Scorer, ScorerInput } from './scorer.ts';
import type { RewardSpec } from './weighted.ts';

/** Where a thread finds the scorer: the settings file, and the agent in it. */
export type Whose = { readonly file: string; readonly agent: string };
export type ToThread = { readonly part: string; readonly input: ScorerInput };
export type FromThread =
  | { readonly kind: 'ready' }
  | { readonly kind: 'measured'; readonly measured: Measured }
  | { readonly kind: 'failed'; readonly message: string };

const maxThreads = 4;
const idleMs = 10_000;
/** Loading the settings file. */
const startMs = 60_000;
/** One that hung so often in a row is not asked for a while: a window has thousands of conversations. */
const patience = { times: 3, ms: 60_000 };

type Thread = { readonly worker: Worker; idle: NodeJS.Timeout | null };

const isForeign = ({ inProcess, cost }: Scorer): boolean => inProcess !== true && cost === undefined;

/** The same reward, by the same version, with the user's scorers in threads. */
export function isolated(spec: RewardSpec, whose: Whose): RewardSpec {
  if (!spec.parts.some(({ scorer }) => isForeign(scorer))) return spec;
  const pool = threadsOf(whose);
  return {
    ...spec,
    parts: spec.parts.map((part) =>
      isForeign(part.scorer) ? { ...part, scorer: inThread(part.scorer, part.name, pool) } : part,
    ),
  };
}

function inThread(scorer: Scorer, part: string, pool: Pool): Scorer {
  const { timeoutSeconds = 60 } = scorer;
  let hung = 0;
  let hungAt = 0;
  return {
    ...scorer,
    // The limit is for its own work; waiting for a thread is not.
    timeoutSeconds: 3600,
    async score(input) {
      if (hung >= patience.times && Date.now() - hungAt < patience.ms)
        throw new Error(`it hung ${hung} times in a row and is not asked for a minute`);
      try {
        const measured = await pool.ask({ part, input }, timeoutSeconds * 1000);
        hung = 0;
        return measured;
      } catch (error) {
        if (error instanceof Hung) {
          hung++;
          hungAt = Date.now();
        }
        throw error;
      }
    },
  };
}

class Hung extends Error {}

type Pool = { ask(work: ToThread, limitMs: number): Promise<Measured> };

function threadsOf(whose: Whose): Pool {
  const idle: Thread[] = [];
  const waiting: (() => void)[] = [];
  let threads = 0;

  async function start(): Promise<Thread> {
    const program = isBuilt ? 'dist/isolate-worker.js' : 'src/score/isolate-boot.js';
    const worker = new Worker(new URL(program, root), {
      workerData: whose,
      name: 'scorers',
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    });
    worker.unref();
    worker.on('error', () => undefined); // whoever waits for it hears of it
    try {
      const said = await heard(worker, startMs);
      if (said.kind === 'failed') throw new Error(said.message);
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    return { worker, idle: null };
  }

  const done = (): void => {
    threads--;
    waiting.shift()?.();
  };

  function rest(thread: Thread): void {
    thread.worker.unref();
    thread.idle = setTimeout(() => {
      idle.splice(idle.indexOf(thread), 1);
      void thread.worker.terminate();
    }, idleMs);
    thread.idle.unref();
    idle.push(thread);
    done();
  }

  return {
    async ask(work, limitMs) {
      while (threads >= maxThreads) await new Promise<void>((resolve) => waiting.push(resolve));
      threads++;
      let thread: Thread;
      try {
        thread = idle.pop() ?? (await start());
      } catch (error) {
        done();
        throw error;
      }
      const { worker } = thread;
      if (thread.idle !== null) clearTimeout(thread.idle);
      worker.ref();
      try {
        const answer = heard(worker, limitMs);
        worker.postMessage(work);
        const said = await answer;
        rest(thread);
        if (said.kind === 'measured') return said.measured;
        throw new Error(said.kind === 'failed' ? said.message : 'it answered before it was asked');
      } catch (error) {
        if (!idle.includes(thread)) {
          await worker.terminate();
          done();
        }
        throw error;
      }
    },
  };
}

/** The next thing a thread says. */
function heard(worker: Worker, limitMs: number): Promise<FromThread> {
  return new Promise((resolve, reject) => {
    const over = () => {
      clearTimeout(timer);
      worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    };
    const onMessage = (message: FromThread) => {
      over();
      resolve(message);
    };
    const onError = (error: unknown) => {
      over();
      reject(error);
    };
    const onExit = (code: number) => onError(new Error(`it ended its thread with code ${code}`));
    const timer = setTimeout(() => onError(new Hung(`it did not answer within ${limitMs / 1000} s`)), limitMs);
    worker.on('message', onMessage).on('error', onError).on('exit', onExit);
  });
}
