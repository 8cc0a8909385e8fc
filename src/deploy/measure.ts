/**
 * What happened to the users of a release since a time: calls, errors, latency from turns; outcomes and votes from the
 * signals about its trajectories. Reads only what lies in the window, by index.
 *
 * An error is what the release did wrong: no answer, a broken-off answer, a 5xx, 408 or 429, and every call that it failed
 * before the first byte, so that the baseline had to answer. What the baseline then refused as well is the caller's fault,
 * as other 4xx are. Only trajectories that one release answered alone
 * are taken for outcomes, and those of one user count as one: users are what is assigned, so users are what is compared.
 *
 * Outcomes are also taken by slice of the traffic (slice.ts). Which slices a trajectory is in is told by its first turn
 * alone: what the user wrote before the release had said anything. Later turns are partly the release's own doing.
 */
import type { Origin } from '../collect/trajectory.ts';
import { type Store, storeError } from '../store/postgres.ts';
import { latencyLimit, type Measurements, type ReleaseMeasurement } from './decide.ts';
import type { RolloutSettings } from './rollout.ts';
import { type Dimension, nobody, type Sample, type Served } from './slice.ts';

export type Window = {
  readonly agent: string;
  /** Name of the release. */
  readonly release: string;
  readonly since: number; // ms since epoch
  readonly until: number;
  readonly outcome: string | null;
  readonly origin?: Origin; // production
};

const parameters = ({ agent, release, since, until, origin = 'production' }: Window) => [
  agent,
  release,
  new Date(since),
  new Date(until),
  origin,
];

/** $1 agent, $2 release, $3 since, $4 until, $5 origin. `day` keeps to the partitions of the window. */
const inWindow = `x.agent = $1 and x.started_at >= $3::timestamptz and x.started_at < $4::timestamptz and x.origin = $5
  and x.day between ($3::timestamptz at time zone 'UTC')::date and ($4::timestamptz at time zone 'UTC')::date`;

/** Exported for the test that looks at its plan. */
export const callsQuery = `
select own.turns + elsewhere.turns as turns, own.errors + elsewhere.turns as errors, own.p99
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

const slowQuery = `
select count(*) as "of", count(*) filter (where latency_ms > $6) as count
from pawl.turns x where x.release = $2 and x.status = 'ok' and ${inWindow}`;

/** A trajectory's day is that of its first turn to arrive, at most a week after it started. */
const weekBeyond = `between ($3::timestamptz at time zone 'UTC')::date and ($4::timestamptz at time zone 'UTC')::date + 7`;

/**
 * `limit` and `offset 0` keep the lookups what they are, index probes per trajectory, whatever the planner thinks. Task types
 * are the caller's words and may be any number: the largest slices are returned, after what is of all users.
 */
export const signalsQuery = `
with own as materialized (
  select t.id, coalesce('u:' || t.user_id, 't:' || t.id) as unit, first.task_type, first.personal
  from pawl.trajectories t left join lateral (
    select 1 as one from pawl.turns x where x.trajectory = t.id and x.agent = $1 and x.day ${weekBeyond}
      and (x.release <> $2 or x.assigned is not null) limit 1
  ) mixed on true left join lateral (
    select x.task_type, x.personal from pawl.turns x where x.trajectory = t.id and x.agent = $1 and x.day ${weekBeyond}
    order by x.started_at limit 1
  ) first on true
  where t.release = $2 and t.agent = $1 and t.origin = $5 and t.day ${weekBeyond}
    and t.started_at >= $3::timestamptz and t.started_at < $4::timestamptz and mixed.one is null
), said as (
  select o.unit, o.id, o.task_type, o.personal, s.kind, avg(s.value) as value
  from own o, lateral (
    select s.kind, s.name, s.value from pawl.signals s
    where s.target_id = o.id and s.target_kind = 'trajectory' and s.agent = $1
    union all
    select s.kind, s.name, s.value from pawl.turns x, lateral (
      select * from pawl.signals s where s.target_id = x.id::text and s.target_kind = 'turn' and s.agent = $1 offset 0
    ) s
    where x.trajectory = o.id and x.agent = $1 and x.day ${weekBeyond}
    union all
    select s.kind, s.name, s.value from pawl.trajectory_keys k, lateral (
      select * from pawl.signals s where s.target_id = k.key and s.target_kind = 'key' and s.agent = $1 offset 0
    ) s
    where k.target_id = o.id and k.target_kind = 'trajectory' and k.agent = $1
  ) s
  where s.value is not null and (s.kind = 'feedback' or s.name = $6)
  group by 1, 2, 3, 4, 5
), units as (
  select s.kind, v.dimension, v.slice, s.unit, avg(s.value) as value
  from said s, lateral (values
    (null, null),
    ('task type', coalesce(s.task_type, 'unknown')),
    ('personal data', case when s.personal then 'yes' else 'no' end)
  ) v(dimension, slice)
  where v.dimension is null or s.kind = 'outcome'
  group by 1, 2, 3, 4
)
select kind, dimension, slice, count(*) as n, sum(value) as sum, sum(value * value) as squares
from units group by 1, 2, 3 order by (dimension is null) desc, n desc, 2, 3 limit 1000`;

type SampleRow = Sample & {
  readonly kind: string;
  readonly dimension: Dimension | null;
  readonly slice: string | null;
};

export async function measureRelease(store: Store, window: Window): Promise<ReleaseMeasurement> {
  const calls = await store.pool
    .query<{ turns: number; errors: number; p99: number | null }>(callsQuery, parameters(window))
    .catch((error) => {
      throw storeError(error, `Measuring release ${window.release}`);
    });
  const { turns, errors, p99 } = calls.rows[0]!;
  return { turns, errors, p99Ms: p99, ...(await measureSignals(store, window)) };
}

/** What users of the release said and got, all together and by slice. */
export async function measureSignals(
  store: Store,
  window: Window,
): Promise<Served & Pick<ReleaseMeasurement, 'feedback'>> {
  const { rows } = await store.pool
    .query<SampleRow>(signalsQuery, [...parameters(window), window.outcome ?? ''])
    .catch((error) => {
      throw storeError(error, `Measuring release ${window.release}`);
    });
  const figures = ({ n, sum, squares }: Sample): Sample => ({ n, sum, squares });
  const whole = (kind: string) => figures(rows.find((row) => row.kind === kind && row.dimension === null) ?? nobody);
  return {
    outcome: whole('outcome'),
    feedback: whole('feedback'),
    slices: rows.flatMap(({ dimension, slice, ...row }) =>
      dimension === null || slice === null ? [] : [{ dimension, name: slice, outcome: figures(row) }],
    ),
  };
}

/** Both sides of a rollout. The baseline's window may begin earlier: at the last step it gets no traffic any more. */
export async function measureBoth(
  store: Store,
  baseline: Window,
  candidate: Window,
  settings: RolloutSettings,
): Promise<Measurements> {
  const ofBaseline = await measureRelease(store, baseline);
  const ofCandidate = await measureRelease(store, candidate);
  if (ofBaseline.p99Ms === null) return { baseline: ofBaseline, candidate: ofCandidate, slow: null };
  const limitMs = latencyLimit(ofBaseline.p99Ms, settings);
  const { rows } = await store.pool
    .query<{ count: number; of: number }>(slowQuery, [...parameters(candidate), limitMs])
    .catch((error) => {
      throw storeError(error, `Measuring release ${candidate.release}`);
    });
  return { baseline: ofBaseline, candidate: ofCandidate, slow: { limitMs, ...rows[0]! } };
}
