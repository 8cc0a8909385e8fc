/**
 * What is known of a conversation beyond its own row, for lists: its newest score, how its users voted, its kind of task. Each is an
 * index probe for a row `t` of trajectories, so that it costs by the row and not by the table.
 */
import type { Trajectory } from '../collect/trajectory.ts';
import { dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import { joinWindowDays } from './times.ts';

export type TrajectoryFacts = {
  readonly score: number | null;
  /** Mean of the votes on it and on its turns, 0–1. */
  readonly vote: number | null;
  readonly taskType: string | null;
};

const startDay = `(t.started_at at time zone 'UTC')::date`;

/**
 * Statements for a row `t`, and the days that can hold what they look for, `[from, to]` as SQL, where those are known: with them the
 * server plans for a few days' partitions and not for all.
 */
export const factsOfRow = ([from, to]: readonly [string | null, string | null]) => {
  const within = (alias: string): string =>
    `${from === null ? '' : ` and ${alias}.day >= ${from}::date`}${to === null ? '' : ` and ${alias}.day <= ${to}::date`}`;
  return {
    score: `(
      select s.total from pawl.scores s where s.trajectory = t.id and s.agent = t.agent
        and s.day between ${startDay} and ${startDay} + ${joinWindowDays}${within('s')} order by s.at desc limit 1)`,
    /** That of its first turn: what the user wrote before anything was said. */
    taskType: `(
      select x.task_type from pawl.turns x where x.trajectory = t.id and x.agent = t.agent and x.day = ${startDay}${within('x')}
      order by x.started_at limit 1)`,
    vote: `(
      select avg(v.value) from (
        select g.value from pawl.signals g
        where g.target_id = t.id and g.target_kind = 'trajectory' and g.agent = t.agent and g.kind = 'feedback'
        union all
        select g.value from pawl.turns x, lateral (
          select g.value from pawl.signals g
          where g.target_id = x.id::text and g.target_kind = 'turn' and g.agent = t.agent and g.kind = 'feedback' offset 0) g
        where x.trajectory = t.id and x.agent = t.agent
          and x.day between ${startDay} and (t.ended_at at time zone 'UTC')::date${within('x')}) v)`,
    /** Somewhere in messages of their own, in what a turn has of its own, and in turns from before each message was stored once. */
    hasText: (needle: string) => `exists (
      select from pawl.turns x where x.trajectory = t.id and x.agent = t.agent
        and x.day between ${startDay} and (t.ended_at at time zone 'UTC')::date${within('x')}
        and (strpos(lower(x.frame::text), ${needle}) > 0 or strpos(lower(x.request::text), ${needle}) > 0
          or strpos(lower(x.choices::text), ${needle}) > 0
          or exists (select from unnest(x.parts) p(hash) join pawl.messages m on m.hash = p.hash and m.agent = x.agent
            and m.day = x.day${within('m')} where strpos(lower(m.body), ${needle}) > 0)))`,
  };
};

/** In the order given. */
export const readTrajectoryFacts = async (
  store: Store,
  trajectories: readonly Trajectory[],
): Promise<TrajectoryFacts[]> => {
  if (trajectories.length === 0) return [];
  const { score, vote, taskType } = factsOfRow(['$5', '$6']);
  const { rows } = await store.pool
    .query<TrajectoryFacts>(
      `select ${score} as score, ${vote} as vote, ${taskType} as "taskType"
       from unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) with ordinality
         as t(id, agent, started_at, ended_at, n) order by t.n`,
      [
        trajectories.map(({ id }) => id),
        trajectories.map(({ agent }) => agent),
        trajectories.map(({ startedAt }) => startedAt.toISOString()),
        trajectories.map(({ endedAt }) => endedAt.toISOString()),
        dayOf(Math.min(...trajectories.map(({ startedAt }) => startedAt.getTime()))),
        dayOf(Math.max(...trajectories.map(({ endedAt }) => endedAt.getTime()))),
      ],
    )
    .catch((error) => {
      throw storeError(error, 'Reading scores and votes of conversations');
    });
  return rows;
};
