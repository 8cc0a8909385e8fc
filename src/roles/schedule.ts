/** Does each job when it is due, in whichever worker finds it first; the others see in the database that it was done. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type JobRecord, readJobs, saveJob } from '../store/jobs.ts';
import { leading } from '../store/lead.ts';
import type { Part } from './ground.ts';
import type { Job, JobParts } from './jobs.ts';

const lookEveryMs = 10_000;
const closeMs = 3_000;
const firstRetryMs = 60_000;

/** After a failure a job waits a minute, then two, four, …, and never longer than it usually does. */
export function isDue({ everyMs }: Pick<Job, 'everyMs'>, last: JobRecord | undefined, now: number): boolean {
  if (last === undefined) return true;
  const waited = now - (last.endedAt?.getTime() ?? 0) >= everyMs;
  if (last.failures === 0 || last.failedAt === null) return waited;
  return now - last.failedAt.getTime() >= Math.min(everyMs, firstRetryMs * 2 ** (last.failures - 1));
}

export function startSchedule(
  parts: Omit<JobParts, 'signal'> & { readonly process: string },
  jobs: readonly Job[],
): Part {
  const { store, artifacts, config, log, process } = parts;
  const stop = new AbortController();
  let running: Promise<void> | null = null;

  const runIfDue = async (job: Job): Promise<void> => {
    await leading(store, `pawl job ${job.name}`, process, async ({ lost }) => {
      // It may have been done while we waited for the database.
      if (!isDue(job, (await readJobs(store)).get(job.name), Date.now())) return;
      const signal = AbortSignal.any([stop.signal, lost]);
      try {
        await job.run({ store, artifacts, config, log, signal });
        await saveJob(store, job.name, process, null);
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error }, `${job.name}: failed, and is tried again`);
        await saveJob(store, job.name, process, error instanceof Error ? error.message : String(error));
      }
    });
  };
  const look = async () => {
    try {
      const done = await readJobs(store);
      for (const job of jobs)
        if (!stop.signal.aborted && isDue(job, done.get(job.name), Date.now())) await runIfDue(job);
    } catch (error) {
      if (!stop.signal.aborted) log.warn({ err: error }, 'what is done now and then waits for the database');
    }
  };
  const soon = () => {
    running ??= look().finally(() => {
      running = null;
    });
  };
  soon();
  const timer = setInterval(soon, lookEveryMs);
  return {
    async close() {
      clearInterval(timer);
      stop.abort(new Error('Pawl is stopping.'));
      await Promise.race([running, sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
