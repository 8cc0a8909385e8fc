/** What is told to webhooks, in Postgres: queued from the audit log, claimed by one worker at a time, ended once. */
import { type Store, storeError } from './postgres.ts';

export type HookCall = {
  readonly n: number;
  readonly hook: string;
  /** Including the one that begins now. */
  readonly attempts: number;
  /** Of the audit row. */
  readonly audit: number;
  readonly at: Date;
  readonly agent: string;
  readonly actor: string;
  readonly event: string;
  readonly subject: string;
  readonly details: string;
};

/** A row that has ended marks where a hook that is new begins: it is not told the past. */
export const queueCalls = async (store: Store, hook: string, events: readonly string[]): Promise<void> => {
  try {
    await store.pool.query(
      `insert into pawl.hook_calls (audit, hook, next_at, ended_at)
       select coalesce(max(n), 0), $1, now(), now() from pawl.audit
       where not exists (select from pawl.hook_calls where hook = $1)
       having not exists (select from pawl.hook_calls where hook = $1) on conflict do nothing`,
      [hook],
    );
    await store.pool.query(
      `insert into pawl.hook_calls (audit, hook, next_at)
       select a.n, $1, now() from pawl.audit a
       where a.n > (select max(audit) from pawl.hook_calls where hook = $1)
         and exists (select from unnest($2::text[]) e where a.event = e or (e like '%-' and starts_with(a.event, e)))
       order by a.n limit 1000 on conflict do nothing`,
      [hook, events],
    );
  } catch (error) {
    throw storeError(error, `Queueing what webhook ${hook} is told`);
  }
};

/** Those that are due, each for a minute only this worker's. */
export const claimCalls = async (store: Store, hooks: readonly string[]): Promise<HookCall[]> => {
  const { rows } = await store.pool
    .query<HookCall>(
      `with due as (
         select n from pawl.hook_calls where ended_at is null and next_at <= now() and hook = any($1::text[])
         order by n limit 20 for update skip locked
       ), mine as (
         update pawl.hook_calls c set attempts = attempts + 1, next_at = now() + interval '1 minute'
         from due where c.n = due.n returning c.*
       )
       select mine.n, mine.hook, mine.attempts, a.n as audit, a.at, a.agent, a.actor, a.event, a.subject, a.details
       from mine join pawl.audit a on a.n = mine.audit order by mine.n`,
      [hooks],
    )
    .catch((error) => {
      throw storeError(error, 'Claiming what webhooks are told');
    });
  return rows;
};

export const endCall = async (
  store: Store,
  n: number,
  {
    problem,
    isOver,
    waitSeconds,
  }: { readonly problem: string | null; readonly isOver: boolean; readonly waitSeconds: number },
): Promise<void> => {
  await store.pool
    .query(
      `update pawl.hook_calls set problem = $2, ended_at = case when $3 then now() end,
         next_at = now() + $4 * interval '1 second' where n = $1`,
      [n, problem, isOver, waitSeconds],
    )
    .catch((error) => {
      throw storeError(error, 'Noting what a webhook said');
    });
};
