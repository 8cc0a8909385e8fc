/** The turns of conversations that are at hand, in one query however many these are. */
import type { Trajectory } from '../collect/trajectory.ts';
import { dayOf } from './partitions.ts';

export type Span = Pick<Trajectory, 'id' | 'agent' | 'startedAt' | 'endedAt'>;

/** `t.n` counts the conversations from 1, `x` are their turns. Its values are those of `spanValues`. */
export const turnsOfSpans = `unnest($2::text[], $3::timestamptz[], $4::timestamptz[]) with ordinality as t(id, started_at, ended_at, n)
  join pawl.turns x on x.trajectory = t.id and x.agent = $1 and x.day between $5::date and $6::date
    and x.started_at between t.started_at and t.ended_at`;

/** Of conversations of one agent. */
export const spanValues = (trajectories: readonly [Span, ...Span[]]): unknown[] => {
  const days = trajectories.flatMap(({ startedAt, endedAt }) => [dayOf(startedAt), dayOf(endedAt)]).sort();
  return [
    trajectories[0].agent,
    trajectories.map(({ id }) => id),
    trajectories.map(({ startedAt }) => startedAt),
    trajectories.map(({ endedAt }) => endedAt),
    days[0],
    days.at(-1),
  ];
};

export const someSpans = <S extends Span>(trajectories: readonly S[]): trajectories is readonly [S, ...S[]] =>
  trajectories.length > 0;
