/**
 * How much has come for an agent since a moment. Counts stop at `most`, so that asking costs the same however much came;
 * everything goes through an index.
 */
import type { Origin } from '../collect/trajectory.ts';
import { dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';

export type NewTraffic = { readonly trajectories: number; readonly firstAt: number | null };

type Asked = { readonly agent: string; readonly origin: Origin; readonly since: number; readonly most: number };

export const countNew = async (store: Store, { agent, origin, since, most }: Asked): Promise<NewTraffic> => {
  const { rows } = await store.pool
    .query<{ n: number; first: Date | null }>(
      `select count(*) as n, min(started_at) as first from (
         select started_at from pawl.trajectories
         where agent = $1 and origin = $2 and started_at >= $3 and day >= $4 order by started_at limit $5) t`,
      [agent, origin, new Date(since), dayOf(since), most],
    )
    .catch((error) => {
      throw storeError(error, `Counting the new trajectories of ${agent}`);
    });
  const { n, first } = rows[0]!;
  return { trajectories: n, firstAt: first?.getTime() ?? null };
};

/** Those of them that have a score under a version of the reward. */
export const countScored = async (store: Store, asked: Asked & { readonly spec: string }): Promise<number> => {
  const { agent, origin, since, most, spec } = asked;
  const { rows } = await store.pool
    .query<{ n: number }>(
      `select count(*) as n from (
         select 1 from pawl.trajectories t
         join pawl.scores s on s.trajectory = t.id and s.agent = t.agent and s.day = t.day and s.spec = $6
         where t.agent = $1 and t.origin = $2 and t.started_at >= $3 and t.day >= $4 and s.total is not null
         limit $5) s`,
      [agent, origin, new Date(since), dayOf(since), most, spec],
    )
    .catch((error) => {
      throw storeError(error, `Counting the new scores of ${agent}`);
    });
  return rows[0]!.n;
};

/** All of a window, and its first; for the record of a turn. */
export const countWindow = async (
  store: Store,
  { agent, origin, since, until }: Omit<Asked, 'most'> & { readonly until: number },
): Promise<number> => {
  const { rows } = await store.pool
    .query<{ n: number }>(
      `select count(*) as n from pawl.trajectories
       where agent = $1 and origin = $2 and started_at >= $3 and started_at < $4 and day >= $5`,
      [agent, origin, new Date(since), new Date(until), dayOf(since)],
    )
    .catch((error) => {
      throw storeError(error, `Counting the trajectories of ${agent}`);
    });
  return rows[0]!.n;
};
