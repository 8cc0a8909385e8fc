/**
 * What is known of a conversation beyond its own row, for lists: its newest score, how its users voted, its kind of task. Each is an
 * index probe for a row `t` of trajectories, so that it costs by the row and not by the table.
 */
import type { Trajectory } from '../collect/trajectory.ts';
import { type Store, storeError } from './postgres.ts';
import { joinWindowDays } from './times.ts';

export type TrajectoryFacts = {
  readonly score: number | null;
  /** Mean of the votes on it and on its turns, 0–1. */
  readonly vote: number | null;
  readonly taskType: string | null;
};

const startDay = `(t.started_at at time zone 'UTC')::date`;

export const scoreOfRow = `(
  select s.total from pawl.scores s where s.trajectory = t.id and s.agent = t.agent
    and s.day between ${startDay} and ${startDay} + ${joinWindowDays} order by s.at desc limit 1)`;

/** That of its first turn: what the user wrote before anything was said. */
export const taskTypeOfRow = `(
  select x.task_type from pawl.turns x where x.trajectory = t.id and x.agent = t.agent and x.day = ${startDay}
  order by x.started_at limit 1)`;

export const voteOfRow = `(
  select avg(v.value) from (
    select g.value from pawl.signals g
    where g.target_id = t.id and g.target_kind = 'trajectory' and g.agent = t.agent and g.kind = 'feedback'
    union all
    select g.value from pawl.turns x, lateral (
      select g.value from pawl.signals g
      where g.target_id = x.id::text and g.target_kind = 'turn' and g.agent = t.agent and g.kind = 'feedback' offset 0) g
    where x.trajectory = t.id and x.agent = t.agent
      and x.day between ${startDay} and (t.ended_at at time zone 'UTC')::date) v)`;

/** In the order given. */
export const readTrajectoryFacts = async (
  store: Store,
  trajectories: readonly Trajectory[],
): Promise<TrajectoryFacts[]> => {
  if (trajectories.length === 0) return [];
  const { rows } = await store.pool
    .query<TrajectoryFacts>(
      `select ${scoreOfRow} as score, ${voteOfRow} as vote, ${taskTypeOfRow} as "taskType"
       from unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) with ordinality
         as t(id, agent, started_at, ended_at, n) order by t.n`,
      [
        trajectories.map(({ id }) => id),
        trajectories.map(({ agent }) => agent),
        trajectories.map(({ startedAt }) => startedAt.toISOString()),
        trajectories.map(({ endedAt }) => endedAt.toISOString()),
      ],
    )
    .catch((error) => {
      throw storeError(error, 'Reading scores and votes of conversations');
    });
  return rows;
};
