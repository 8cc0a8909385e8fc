/**
 * Conversations from before a window that are to be scored all the same. About some something was said since: an outcome that took a month,
 * a vote on an old answer, a business key that was attached late. Others are owed: a scorer failed for them, as while a judge was away for
 * longer than anybody looks back. What was said, and what failed, is looked at first, and there is little of it, so nothing here grows
 * with the number of conversations.
 */
import { sql } from 'kysely';
import { addDays, dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import { answerName } from './scores.ts';
import type { Day } from './tables.ts';
import { joinWindowDays } from './times.ts';
import { trajectoryOf } from './trajectories.ts';
import type { Placed, Window } from './window.ts';

export type Late = Pick<Window, 'agent' | 'origin'> & {
  /** Began before this time. */
  readonly before: Date;
  /** Something was heard of it since. */
  readonly heardSince: Date;
  /** Whether labels count. */
  readonly labels: boolean;
  /** Version of the reward whose scorers may have failed. */
  readonly spec: string;
  /** Owed ones that are looked at: those whose turn was longest ago, so that all have theirs. */
  readonly mostOwed?: number; // 500
};

/** Nobody waits for a judge longer than that. */
const owedDays = 90;

const find = (store: Store, { agent, origin, before, heardSince, labels, spec, mostOwed = 500 }: Late) =>
  sql<{ id: string; day: Day }>`
    with owed as materialized (
      select trajectory, day, starts_with(trajectory, ${answerName('')}) as is_answer,
        substr(trajectory, ${answerName('').length + 1}::integer) as answer from pawl.scores
      where agent = ${agent} and spec = ${spec} and evidence like '% broken'
        and day between ${addDays(dayOf(before), -owedDays)} and ${dayOf(before)}
      order by at limit ${mostOwed}
    ), told as (
      select target_kind, target_id from pawl.signals
      where agent = ${agent} and received_at >= ${heardSince} and (${labels} or kind <> 'label')
      union select target_kind, target_id from pawl.trajectory_keys where agent = ${agent} and at >= ${heardSince}
    ), about as materialized (
      select target_kind, target_id from told where target_kind <> 'key'
      union select k.target_kind, k.target_id from told
        join pawl.trajectory_keys k on told.target_kind = 'key' and k.agent = ${agent} and k.key = told.target_id
      union select 'trajectory', trajectory from owed where not is_answer
      union select 'turn', answer from owed where is_answer
      union select 'turn', s.parent::text from owed join pawl.siblings s
        on is_answer and s.id::text = answer and s.agent = ${agent} and s.day between owed.day and owed.day + ${joinWindowDays}::integer
    ), turn_ids as materialized (
      select target_id::uuid as id, (to_timestamp(('x' || substr(target_id, 1, 8) || substr(target_id, 10, 4))::bit(48)::bigint / 1000.0)
        at time zone 'UTC')::date as day
      from about where target_kind = 'turn' and target_id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$'
    ), ids as (
      select target_id as id from about where target_kind = 'trajectory'
      union select t.trajectory from turn_ids join pawl.turns t on t.id = turn_ids.id and t.day = turn_ids.day and t.agent = ${agent}
    )
    select t.id, t.day from ids join pawl.trajectories t on t.id = ids.id
    where t.agent = ${agent} and t.origin = ${origin} and t.started_at < ${before}
    order by t.started_at, t.id`.execute(store.db);

/** Oldest first. */
export async function* latePages(store: Store, late: Late, size = 200): AsyncGenerator<Placed[]> {
  const failed = (error: unknown): never => {
    throw storeError(error, `Looking for what was said late about conversations of ${late.agent}`);
  };
  const { rows } = await find(store, late).catch(failed);
  for (let from = 0; from < rows.length; from += size) {
    const some = rows.slice(from, from + size);
    const days = [...new Set(some.map(({ day }) => day))];
    const wanted = new Set(some.map(({ id, day }) => `${day} ${id}`));
    const found = await store.db
      .selectFrom('trajectories')
      .selectAll()
      .where('agent', '=', late.agent)
      .where((where) => where('id', '=', where.fn.any(where.val(some.map(({ id }) => id)))))
      .where((where) => where('day', '=', where.fn.any(where.val(days))))
      .orderBy('started_at')
      .orderBy('id')
      .execute()
      .catch(failed);
    // One that was erased meanwhile is not there.
    const page = found.filter(({ id, day }) => wanted.has(`${day} ${id}`));
    if (page.length > 0) yield page.map((row) => ({ trajectory: trajectoryOf(row), day: row.day }));
  }
}
