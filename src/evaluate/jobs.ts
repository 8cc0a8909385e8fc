/**
 * Evaluations that run in the server: begun by one request, looked at by others. One at a time for an agent, since two would
 * slow each other down and their users too. They are kept in memory; what counts, the report, is in the database.
 */
import { setMaxListeners } from 'node:events';
import type { Report } from './report.ts';

export type Job = {
  readonly id: string;
  readonly agent: string;
  readonly status: 'running' | 'done' | 'failed';
  readonly played: number;
  /** 0 until it is known. */
  readonly total: number;
  /** Id of the report, once it is done. */
  readonly report: string | null;
  /** Why it failed, once it has. */
  readonly error: string | null;
  readonly startedAt: number; // ms since epoch
  readonly endedAt: number | null;
};

export type Work = (signal: AbortSignal, onProgress: (played: number, total: number) => void) => Promise<Report>;

export type Jobs = {
  /** null: one of this agent runs already. */
  start(agent: string, work: Work): Job | null;
  get(id: string): Job | null;
  /** The one that runs for this agent. */
  running(agent: string): Job | null;
  close(): Promise<void>;
};

const mostKept = 100;

export function createJobs(newId: () => string, now: () => number = Date.now): Jobs {
  const jobs = new Map<string, Job>();
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // every answer under way listens
  const under = new Set<Promise<void>>();
  const running = (agent: string): Job | null =>
    [...jobs.values()].find((job) => job.agent === agent && job.status === 'running') ?? null;
  const change = (id: string, news: Partial<Job>) => jobs.set(id, { ...jobs.get(id)!, ...news });
  const forgetOldest = () => {
    const ended = [...jobs.values()].find(({ status }) => status !== 'running');
    if (jobs.size >= mostKept && ended) jobs.delete(ended.id);
  };

  return {
    start(agent, work) {
      if (running(agent) !== null || stop.signal.aborted) return null;
      forgetOldest();
      const id = newId();
      const job: Job = {
        ...{ id, agent, status: 'running', played: 0, total: 0, report: null, error: null },
        startedAt: now(),
        endedAt: null,
      };
      jobs.set(id, job);
      const done = work(stop.signal, (played, total) => change(id, { played, total })).then(
        (report) => void change(id, { status: 'done', report: report.id, endedAt: now() }),
        (error: unknown) =>
          void change(id, {
            status: 'failed',
            error: stop.signal.aborted ? 'Pawl was stopped meanwhile; ask again.' : (error as Error).message,
            endedAt: now(),
          }),
      );
      under.add(done);
      void done.then(() => under.delete(done));
      return job;
    },
    get: (id) => jobs.get(id) ?? null,
    running,
    async close() {
      stop.abort();
      await Promise.all(under);
    },
  };
}
