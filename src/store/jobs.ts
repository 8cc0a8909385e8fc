/** When each of the things that are done now and then was last done, and how. */
import { type Store, storeError } from './postgres.ts';

export type JobRecord = {
  readonly name: string;
  readonly endedAt: Date | null;
  /** Which process did it last, or failed to. */
  readonly process: string | null;
  /** Since it last went well. */
  readonly failures: number;
  readonly failedAt: Date | null;
  readonly problem: string | null;
};

const failed = (doing: string) => (error: unknown) => {
  throw storeError(error, doing);
};

export const readJobs = async (store: Store): Promise<Map<string, JobRecord>> => {
  const answer = await store.pool
    .query<JobRecord>(
      'select name, ended_at as "endedAt", process, failures, failed_at as "failedAt", problem from pawl.jobs order by name',
    )
    .catch(failed('Reading what is done now and then'));
  return new Map(answer!.rows.map((job) => [job.name, job]));
};

/** `problem`: why it failed; null: it went well. */
export const saveJob = async (store: Store, name: string, process: string, problem: string | null): Promise<void> => {
  await store.pool
    .query(
      `insert into pawl.jobs as j (name, process, ended_at, failures, failed_at, problem)
       values ($1, $2, case when $3::text is null then now() end, case when $3::text is null then 0 else 1 end,
         case when $3::text is not null then now() end, $3)
       on conflict (name) do update set
         process = excluded.process,
         ended_at = coalesce(excluded.ended_at, j.ended_at),
         failures = case when $3::text is null then 0 else j.failures + 1 end,
         failed_at = coalesce(excluded.failed_at, j.failed_at),
         problem = excluded.problem`,
      [name, process, problem],
    )
    .catch(failed(`Noting that ${name} was done`));
};
