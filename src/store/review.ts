/** Conversations that wait for people, and what they are picked from. What people said are labels (store/labels.ts). */
import type { Picked, Scored } from '../review/pick.ts';
import { type Store, storeError } from './postgres.ts';
import { storableJson } from './storable.ts';

/** More conversations of one week than this are picked from the first of them. */
const mostScored = 200_000;

/** Scored conversations of a window with the mean of their users' votes, whether on the whole or on a turn. */
export const readScored = async (
  store: Store,
  of: {
    readonly agent: string;
    readonly spec: string;
    readonly origin: string;
    readonly since: Date;
    readonly until: Date;
  },
): Promise<Scored[]> => {
  const { rows } = await store.pool
    .query<{ trajectory: string; reward: number | null; feedback: number | null }>(
      `select t.id as trajectory, s.total as reward, f.value as feedback
       from pawl.trajectories t
       join pawl.scores s on s.trajectory = t.id and s.agent = t.agent and s.day = t.day and s.spec = $2
       left join lateral (
         select avg(g.value) as value from pawl.signals g
         where g.agent = t.agent and g.kind = 'feedback' and g.target_kind = 'trajectory' and g.target_id = t.id) f on true
       where t.agent = $1 and t.origin = $3 and t.started_at >= $4 and t.started_at < $5
         and t.day between ($4::timestamptz at time zone 'UTC')::date - 1 and ($5::timestamptz at time zone 'UTC')::date + 1
       order by t.started_at limit ${mostScored}`,
      [of.agent, of.spec, of.origin, of.since, of.until],
    )
    .catch((error) => {
      throw storeError(error, `Reading what ${of.agent} could have reviewed`);
    });
  return rows;
};

/** Writes those that are new, and forgets items whose conversation is gone. Says how many were new. */
export const saveReviewItems = async (
  store: Store,
  agent: string,
  picked: readonly Picked[],
  at: Date,
): Promise<number> => {
  try {
    const { rowCount } = await store.pool.query(
      `insert into pawl.review_items (agent, trajectory, why, reward, feedback, picked_at)
       select $2, trajectory, why, reward, feedback, $3 from json_to_recordset($1::json)
         as x(trajectory text, why text, reward double precision, feedback double precision)
       on conflict (agent, trajectory) do nothing`,
      [storableJson(JSON.stringify(picked)), agent, at],
    );
    await store.pool.query(
      `delete from pawl.review_items i where i.agent = $1 and not exists
         (select from pawl.trajectories t where t.id = i.trajectory and t.agent = i.agent)`,
      [agent],
    );
    return rowCount ?? 0;
  } catch (error) {
    throw storeError(error, `Writing what of ${agent} is to be reviewed`);
  }
};

export type ReviewItem = Picked & {
  readonly agent: string;
  readonly pickedAt: Date;
  /** How many people have labelled it. */
  readonly labelled: number;
};

/** Those with fewer labels than `reviewers`, the oldest first; with a reviewer, those that this one has not labelled. */
export const listReviewItems = async (
  store: Store,
  of: {
    readonly agent: string;
    readonly reviewers: number;
    /** Hash. */
    readonly without?: string | undefined;
    readonly trajectory?: string | undefined;
    readonly limit: number;
  },
): Promise<ReviewItem[]> => {
  const { rows } = await store.pool
    .query<Omit<ReviewItem, 'pickedAt'> & { picked_at: Date }>(
      `select i.agent, i.trajectory, i.why, i.reward, i.feedback, i.picked_at, l.people as labelled
       from pawl.review_items i
       join lateral (
         select count(distinct coalesce(g.user_id, ''))::int as people,
           coalesce(bool_or(g.user_id = $3), false) as done
         from pawl.signals g where g.agent = i.agent and g.kind = 'label' and g.name = 'score'
           and g.target_kind = 'trajectory' and g.target_id = i.trajectory) l on true
       where i.agent = $1 and l.people < $2 and not l.done and ($4::text is null or i.trajectory = $4)
         and exists (select from pawl.trajectories t where t.id = i.trajectory and t.agent = i.agent)
       order by i.picked_at, i.why, i.trajectory limit $5`,
      [of.agent, of.reviewers, of.without ?? null, of.trajectory ?? null, of.limit],
    )
    .catch((error) => {
      throw storeError(error, `Reading what of ${of.agent} is to be reviewed`);
    });
  return rows.map(({ picked_at: pickedAt, ...row }) => ({ ...row, pickedAt }));
};
