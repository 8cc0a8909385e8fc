/** Scores by client key and kind of task in a window and in the one before it, and what people have looked at and let go. */
import { sql } from 'kysely';
import type { Origin } from '../collect/trajectory.ts';
import type { ScoreSum } from '../curate/shifts.ts';
import { addDays, dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import { joinWindowDays } from './times.ts';

type Window = {
  readonly agent: string;
  readonly origin: Origin;
  readonly spec: string;
  readonly since: Date;
  readonly until: Date;
};

/**
 * A conversation counts for the key and the kind of its first turn, the one that began when it did: joined by equality, so that the
 * planner has good ways whatever it knows of the tables.
 */
export const sumScores = async (store: Store, { agent, origin, spec, since, until }: Window): Promise<ScoreSum[]> => {
  const earlier = new Date(since.getTime() - (until.getTime() - since.getTime()));
  type Row = { key: string; taskType: string } & Record<'n0' | 'n1', number> &
    Record<'mean0' | 'mean1' | 'variance0' | 'variance1', number | null>;
  const { rows } = await sql<Row>`
    with scored as (
      select distinct on (t.id, t.day) x.client_key as key, x.task_type, s.total, t.started_at >= ${since} as is_now
      from pawl.trajectories t
      join pawl.scores s on s.trajectory = t.id and s.agent = t.agent and s.day = t.day and s.spec = ${spec}
      join pawl.turns x on x.trajectory = t.id and x.agent = t.agent and x.started_at = t.started_at
        and x.day = (t.started_at at time zone 'UTC')::date and x.day between ${dayOf(earlier)} and ${dayOf(until)}
      where t.agent = ${agent} and t.origin = ${origin} and t.started_at >= ${earlier} and t.started_at < ${until}
        and t.day between ${dayOf(earlier)} and ${addDays(dayOf(until), joinWindowDays)}
        and x.client_key is not null and x.task_type is not null and s.total is not null
      order by t.id, t.day, x.id)
    select key, task_type as "taskType",
      count(*) filter (where not is_now)::integer as n0, count(*) filter (where is_now)::integer as n1,
      avg(total) filter (where not is_now) as mean0, avg(total) filter (where is_now) as mean1,
      var_pop(total) filter (where not is_now) as variance0, var_pop(total) filter (where is_now) as variance1
    from scored group by 1, 2 order by 1, 2`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Comparing the scores of ${agent} with those before`);
    });
  return rows.map(({ key, taskType, n0, n1, mean0, mean1, variance0, variance1 }) => ({
    key,
    taskType,
    before: { n: n0, mean: mean0 ?? 0, variance: variance0 ?? 0 },
    now: { n: n1, mean: mean1 ?? 0, variance: variance1 ?? 0 },
  }));
};

export type ShiftOf = { readonly agent: string; readonly key: string; readonly taskType: string };

/** By `key type`: until when somebody let it be learned from. */
export const readShiftReleases = async (store: Store, agent: string): Promise<Map<string, Date>> => {
  const { rows } = await sql<{ name: string; at: Date }>`
    select client_key || ' ' || task_type as name, max(at) as at from pawl.shift_releases where agent = ${agent} group by 1`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading which shifts were released');
    });
  return new Map(rows.map(({ name, at }) => [name, at]));
};

/** Give a transaction, to audit it with. */
export const writeShiftRelease = async (
  db: Store['db'],
  { agent, key, taskType }: ShiftOf,
  by: { readonly actor: string; readonly reason: string | null; readonly at: Date },
): Promise<void> => {
  await sql`insert into pawl.shift_releases values (${agent}, ${key}, ${taskType}, ${by.at}, ${by.actor}, ${by.reason})`
    .execute(db)
    .catch((error) => {
      throw storeError(error, 'Writing down a release');
    });
};
