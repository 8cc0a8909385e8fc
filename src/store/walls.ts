/**
 * What a conversation came with: client keys, and through them regions and tenants; kinds of task; and whether everybody in it
 * agreed that it may cross the walls between regions and between tenants. Curating asks before it reads a word.
 */
import type { Trajectory } from '../collect/trajectory.ts';
import { dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';

export type Walls = {
  /** Ids of client keys; none of what was recorded before this was kept. */
  readonly keys: readonly string[];
  /** null: of a key that names none. */
  readonly regions: readonly (string | null)[];
  readonly tenants: readonly (string | null)[];
  readonly taskTypes: readonly string[];
  /** Everybody agreed when they spoke and has not withdrawn since. */
  readonly mayTransfer: boolean;
  readonly mayCrossTenants: boolean;
};

export const noWalls: Walls = {
  keys: [],
  regions: [null],
  tenants: [null],
  taskTypes: [],
  mayTransfer: false,
  mayCrossTenants: false,
};

const agreedTo = (purpose: string) => `coalesce(bool_and(exists (
  select 1 from pawl.consent_purposes p where p.agent = x.agent and p.user_id = x.user_id and p.purpose = '${purpose}'
    and p.withdrawn_at is null and p.given_at <= x.started_at)), false)`;

/** Of conversations of one agent, in their order. */
export const readWalls = async (
  store: Store,
  trajectories: readonly Pick<Trajectory, 'id' | 'agent' | 'startedAt' | 'endedAt'>[],
): Promise<Walls[]> => {
  const first = trajectories[0];
  if (first === undefined) return [];
  const days = trajectories.flatMap(({ startedAt, endedAt }) => [dayOf(startedAt), dayOf(endedAt)]).sort();
  const { rows } = await store.pool
    .query<Walls & { n: number }>(
      `select t.n::integer, array_remove(array_agg(distinct x.client_key), null) as keys,
         array_agg(distinct k.region) as regions, array_agg(distinct k.tenant) as tenants,
         array_remove(array_agg(distinct x.task_type), null) as "taskTypes",
         ${agreedTo('transfer')} as "mayTransfer", ${agreedTo('tenants')} as "mayCrossTenants"
       from unnest($2::text[], $3::timestamptz[], $4::timestamptz[]) with ordinality as t(id, started_at, ended_at, n)
       join pawl.turns x on x.trajectory = t.id and x.agent = $1 and x.day between $5::date and $6::date
         and x.started_at between t.started_at and t.ended_at
       left join pawl.keys k on k.id::text = x.client_key
       group by t.n`,
      [
        first.agent,
        trajectories.map(({ id }) => id),
        trajectories.map(({ startedAt }) => startedAt),
        trajectories.map(({ endedAt }) => endedAt),
        days[0],
        days.at(-1),
      ],
    )
    .catch((error) => {
      throw storeError(error, 'Reading which keys conversations came with');
    });
  const found = new Map(rows.map(({ n, ...walls }) => [n, walls]));
  return trajectories.map((_, i) => found.get(i + 1) ?? noWalls);
};
