/** Which days were trained on, and since when. Written with the run; retention reads it (privacy/retention.ts). */
import { sql } from 'kysely';
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

/**
 * The days of a dataset's conversations, or of what took its place, from now on count as trained on; a day that did before keeps its
 * date. Of what was simulated nobody is a person. Give the transaction that writes the run.
 */
export const noteTraining = async (db: Store['db'], dataset: string, at: Date): Promise<void> => {
  await sql`
    with recursive present(id, next) as (
      select id, replaced_by from pawl.datasets where id = ${dataset} and coalesce(settings ->> 'on', '') <> 'simulation'
      union select d.id, d.replaced_by from pawl.datasets d join present p on d.id = p.next
    )
    insert into pawl.trained_days as known (day, since)
    select distinct days.day, ${at}::timestamptz
    from present p
    join pawl.dataset_rows r on r.dataset = p.id
    join pawl.trajectories t on t.id = r.trajectory and t.agent = r.agent and t.day = r.day,
    lateral (
      select t.day union select generate_series((t.started_at at time zone 'UTC')::date,
        (t.ended_at at time zone 'UTC')::date, interval '1 day')::date
    ) days(day)
    on conflict (day) do update set since = least(known.since, excluded.since)`
    .execute(db)
    .catch((error) => {
      throw storeError(error, `Writing down which days dataset ${dataset} is from`);
    });
};

/** Trained on before a moment, the oldest first. */
export const daysTrainedBefore = async (store: Store, before: Date): Promise<Day[]> => {
  const { rows } = await sql<{ day: Day }>`select day from pawl.trained_days where since < ${before} order by day`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading which days were trained on');
    });
  return rows.map(({ day }) => day);
};
