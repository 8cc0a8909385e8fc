/**
 * What happened to the users of a release since a time: calls, errors, latency from turns; outcomes and votes from the
 * signals about its trajectories. Reads only what lies in the window, by index.
 *
 * An error is what the release did wrong: no answer, a broken-off answer, a 5xx, 408 or 429, and every call that it failed
 * before the first byte, so that the baseline had to answer. What the baseline then refused as well is the caller's fault,
 * as other 4xx are. Only trajectories that one release answered alone
 * are taken for outcomes, and those of one user count as one: users are what is assigned, so users are what is compared.
 *
 * Of a trajectory's outcomes the newest stands; its votes are taken as score/feedback.ts takes them, one voter one vote.
 *
 * Outcomes are also taken by slice of the traffic (deploy/slice.ts). Which slices a trajectory is in is told by its first
 * turn alone: what the user wrote before the release had said anything. Later turns are partly the release's own doing.
 * Language and length of it are known of conversations that were looked at (first-words.ts); the others are in no such slice.
 */
import type { Origin } from '../collect/trajectory.ts';
import type { Dimension, Sample, Served } from '../deploy/slice.ts';
import { type Store, storeError } from './postgres.ts';

export type Window = {
  readonly agent: string;
  /** Name of the release. */
  readonly release: string;
  readonly since: number; // ms since epoch
  readonly until: number;
  /** The one kind of traffic that is looked at. */
  readonly origin: Origin;
};

export type Calls = {
  readonly calls: number;
  readonly errors: number;
  /** 99th percentile of latency of the calls that worked; null without any. */
  readonly p99Ms: number | null;
};

/** What users of a release got, all together and by slice, and how they voted. */
export type Said = Served & { readonly feedback: Sample };

const parameters = ({ agent, release, since, until, origin }: Window) => [
  agent,
  release,
  new Date(since),
  new Date(until),
  origin,
];

/** $1 agent, $2 release, $3 since, $4 until, $5 origin. `day` keeps to the partitions of the window. */
const inWindow = `x.agent = $1 and x.started_at >= $3::timestamptz and x.started_at < $4::timestamptz and x.origin = $5
  and x.day between ($3::timestamptz at time zone 'UTC')::date and ($4::timestamptz at time zone 'UTC')::date`;

/** Not whom a pin gives a release, by their own id or by the client key they come with: nobody drew what they get. */
const isFree = (
  user: string,
  key: string,
) => `not exists (select from pawl.pins p where p.agent = $1 and p.kind = 'user' and p.value = ${user})
  and not exists (select from pawl.pins p where p.agent = $1 and p.kind = 'key' and p.value = ${key})`;

const callsOf = (inWindow: string) => `
select own.turns + elsewhere.turns as calls, own.errors + elsewhere.turns as errors, own.p99 as "p99Ms"
from (
  select count(*) as turns,
    count(*) filter (where status = 'truncated' or (status = 'error'
      and (http_status < 400 or http_status >= 500 or http_status in (408, 429)))) as errors,
    percentile_cont(0.99) within group (order by latency_ms) filter (where status = 'ok') as p99
  from pawl.turns x where x.release = $2 and ${inWindow}
) own, (
  select count(*) as turns from pawl.turns x where x.assigned = $2 and ${inWindow}
    and not (status = 'error' and http_status between 400 and 499 and http_status not in (408, 429))
) elsewhere`;

const slowOf = (inWindow: string) => `
select count(*) as "of", count(*) filter (where latency_ms > $6) as count
from pawl.turns x where x.release = $2 and x.status = 'ok' and ${inWindow}`;

/** Exported for the test that looks at its plan: without pins, calls are counted by an index that knows neither users nor keys. */
export const callsQuery = callsOf(inWindow);
const inWindowAndFree = `${inWindow} and ${isFree('x.user_id', 'x.client_key')}`;
const pinsQuery = 'select from pawl.pins where agent = $1 limit 1';

/** A trajectory's day is that of its first turn to arrive, at most a week after it started. */
const weekBeyond = `between ($3::timestamptz at time zone 'UTC')::date and ($4::timestamptz at time zone 'UTC')::date + 7`;

/** The trajectories of the window that the release answered alone, and whose they are. */
export const ownTrajectories = `own as materialized (
  select t.id, t.started_at, coalesce('u:' || t.user_id, 't:' || t.id) as unit, first.task_type, first.personal,
    t.first_language, t.first_chars
  from pawl.trajectories t left join lateral (
    select 1 as one from pawl.turns x where x.trajectory = t.id and x.agent = $1 and x.day ${weekBeyond}
      and (x.release <> $2 or x.assigned is not null) limit 1
  ) mixed on true left join lateral (
    select x.task_type, x.personal, x.client_key from pawl.turns x where x.trajectory = t.id and x.agent = $1 and x.day ${weekBeyond}
    order by x.started_at limit 1
  ) first on true
  where t.release = $2 and t.agent = $1 and t.origin = $5 and t.day ${weekBeyond}
    and ${isFree('t.user_id', 'first.client_key')}
    and t.started_at >= $3::timestamptz and t.started_at < $4::timestamptz and mixed.one is null
)`;

/** What was said of the trajectory `o`: of it, of a turn of it, or under a business key of it. */
export const ownSignals = `
    select s.* from pawl.signals s
    where s.target_id = o.id and s.target_kind = 'trajectory' and s.agent = $1
    union all
    select s.* from pawl.turns x, lateral (
      select * from pawl.signals s where s.target_id = x.id::text and s.target_kind = 'turn' and s.agent = $1 offset 0
    ) s
    where x.trajectory = o.id and x.agent = $1 and x.day ${weekBeyond}
    union all
    select s.* from pawl.trajectory_keys k, lateral (
      select * from pawl.signals s where s.target_id = k.key and s.target_kind = 'key' and s.agent = $1 offset 0
    ) s
    where k.target_id = o.id and k.target_kind = 'trajectory' and k.agent = $1
  `;

/**
 * `limit` and `offset 0` keep the lookups what they are, index probes per trajectory, whatever the planner thinks. Task types
 * are the caller's words and may be any number: the largest slices are returned, after what is of all users.
 */
export const saidQuery = `
with ${ownTrajectories}, said as materialized (
  select o.unit, o.id, o.task_type, o.personal, o.first_language, o.first_chars, s.kind, s.value, s.at, s.identity, s.user_id, s.key_id
  from own o, lateral (${ownSignals}) s
  where (s.kind = 'feedback' and s.value between 0 and 1) or (s.kind = 'outcome' and s.name = $6 and s.value is not null)
), outcomes as (
  select distinct on (id) unit, id, task_type, personal, first_language, first_chars, value
  from said where kind = 'outcome' order by id, at desc, identity collate "C" desc
), named as (
  select s.unit, s.id, coalesce(s.user_id, s.identity) as name, avg(s.value) as value,
    case when there.one is null then 'key ' || coalesce(s.key_id, '') else 'user ' || s.user_id end as voter
  from said s left join lateral (
    select 1 as one from pawl.turns x
    where x.trajectory = s.id and x.agent = $1 and x.day ${weekBeyond} and x.user_id = s.user_id limit 1
  ) there on true
  where s.kind = 'feedback'
  group by 1, 2, 3, 5
), voters as (
  select unit, id, voter, avg(value) as value from named group by 1, 2, 3
), votes as (
  select unit, id, avg(value) as value from voters group by 1, 2
), units as (
  select 'feedback' as kind, null as dimension, null as slice, unit, avg(value) as value from votes group by unit
  union all
  select 'outcome', v.dimension, v.slice, o.unit, avg(o.value)
  from outcomes o, lateral (values
    (null, null),
    ('task type', coalesce(o.task_type, 'unknown')),
    ('personal data', case when o.personal then 'yes' else 'no' end),
    ('language', o.first_language),
    ('length', case when o.first_chars <= 60 then 'up to 60' when o.first_chars <= 250 then '61 to 250'
      when o.first_chars <= 1000 then '251 to 1000' else 'over 1000' end)
  ) v(dimension, slice)
  where v.dimension is null or (v.slice is not null and (v.dimension <> 'length' or o.first_chars > 0))
  group by 2, 3, 4
)
select kind, dimension, slice, count(*) as n, sum(value) as sum, sum(value * value) as squares
from units group by 1, 2, 3 order by (dimension is null) desc, n desc, 2, 3 limit 1000`;

async function queried<Row extends object>(store: Store, window: Window, query: string, ...more: unknown[]) {
  try {
    return (await store.pool.query<Row>(query, [...parameters(window), ...more])).rows;
  } catch (error) {
    throw storeError(error, `Measuring release ${window.release}`);
  }
}

const hasPins = async (store: Store, { agent }: Window): Promise<boolean> => {
  const { rowCount } = await store.pool.query(pinsQuery, [agent]).catch((error) => {
    throw storeError(error, `Reading the pins of agent ${agent}`);
  });
  return (rowCount ?? 0) > 0;
};

export const readCalls = async (store: Store, window: Window): Promise<Calls> =>
  (await queried<Calls>(store, window, (await hasPins(store, window)) ? callsOf(inWindowAndFree) : callsQuery))[0]!;

/** Of the calls that worked: how many, and how many took longer. */
export const countSlow = async (store: Store, window: Window, limitMs: number) =>
  (
    await queried<{ readonly count: number; readonly of: number }>(
      store,
      window,
      slowOf((await hasPins(store, window)) ? inWindowAndFree : inWindow),
      limitMs,
    )
  )[0]!;

/**
 * Users who began a conversation in the window that was meant for the release, whoever answered: where the candidate failed and the
 * baseline answered, the turn says so.
 */
const unitsQuery = `
select count(distinct coalesce('u:' || t.user_id, 't:' || t.id)) as units
from pawl.trajectories t, lateral (
  select coalesce(x.assigned, x.release) as meant, x.client_key from pawl.turns x
  where x.trajectory = t.id and x.agent = $1 and x.day ${weekBeyond} order by x.started_at limit 1
) first
where t.agent = $1 and t.origin = $5 and t.day ${weekBeyond}
  and ${isFree('t.user_id', 'first.client_key')}
  and t.started_at >= $3::timestamptz and t.started_at < $4::timestamptz and first.meant = $2`;

export const countUnits = async (store: Store, window: Window): Promise<number> =>
  (await queried<{ readonly units: number }>(store, window, unitsQuery))[0]!.units;

/** `outcome`: name of the one that is looked at; null: none. */
export async function readSaid(store: Store, window: Window, outcome: string | null): Promise<Said> {
  type Row = Sample & { readonly kind: string; readonly dimension: Dimension | null; readonly slice: string | null };
  const rows = await queried<Row>(store, window, saidQuery, outcome ?? '');
  const sample = ({ n, sum, squares }: Sample): Sample => ({ n, sum, squares });
  const whole = (kind: string): Sample =>
    sample(rows.find((row) => row.kind === kind && row.dimension === null) ?? { n: 0, sum: 0, squares: 0 });
  return {
    outcome: whole('outcome'),
    feedback: whole('feedback'),
    slices: rows.flatMap(({ dimension, slice, ...row }) =>
      dimension === null || slice === null ? [] : [{ dimension, name: slice, outcome: sample(row) }],
    ),
  };
}
