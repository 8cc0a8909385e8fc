/**
 * Conversations that have both a score and a judgement of their own: a reviewer's label, or a measured outcome. For checking the
 * reward against people and business. A turn's label counts for its conversation where that has none of its own.
 */
import { sql } from 'kysely';
import type { PartScore } from '../score/score.ts';
import { countedFigure } from './figures.ts';
import { partitionDays } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

export type Judged = {
  readonly trajectory: string;
  /** The task it was a try of (a business key `task:…`), else the conversation itself: what belongs together. */
  readonly group: string;
  readonly total: number | null;
  readonly parts: Readonly<Record<string, PartScore>>;
  /** Mean over reviewers, or the outcome. */
  readonly target: number;
  /** What reviewers said of single parts, mean over reviewers. */
  readonly partTargets: Readonly<Record<string, number>>;
};

export type JudgedQuery = {
  readonly agent: string;
  readonly spec: string;
  /** Labels, or the outcome of this name. */
  readonly by: { readonly kind: 'labels' } | { readonly kind: 'outcome'; readonly name: string };
  readonly limit?: number; // 20,000
};

/** The day a turn of this id began, or the next. Only a turn's id is one that says so, and `case` is what keeps others from being read. */
const turnDay = sql`(case when s.target_kind = 'turn' then
  (to_timestamp(('x' || substr(s.target_id, 1, 8) || substr(s.target_id, 10, 4))::bit(48)::bigint / 1000.0) at time zone 'UTC')::date end)`;
const turnId = sql`(case when s.target_kind = 'turn' then s.target_id::uuid end)`;

export const readJudged = async (store: Store, query: JudgedQuery): Promise<Judged[]> => {
  const { agent, spec, by, limit = 20_000 } = query;
  const isMeant = by.kind === 'labels' ? sql`s.kind = 'label'` : sql`s.kind = 'outcome' and s.name = ${by.name}`;
  const total = by.kind === 'labels' ? 'score' : by.name;
  const { rows } = await sql<Omit<Judged, 'partTargets'> & { partTargets: Record<string, number> | null }>`
    with said as (
      select coalesce(t.trajectory, k.target_id, s.target_id) as trajectory, s.target_kind = 'turn' as of_turn, s.name, s.value
      from pawl.signals s
      left join lateral (
        select t.trajectory from pawl.turns t
        where t.id = ${turnId} and t.agent = s.agent
          and t.day between ${turnDay} and ${turnDay} + 1 limit 1
      ) t on true
      left join pawl.trajectory_keys k on s.target_kind = 'key' and k.agent = s.agent and k.key = s.target_id
        and k.target_kind = 'trajectory'
      where s.agent = ${agent} and s.value is not null and ${isMeant}
      order by s.at desc limit ${limit * 4}
    ), by_name as (
      select trajectory, name, coalesce(avg(value) filter (where not of_turn), avg(value)) as value from said group by 1, 2
    ), judged as materialized (
      select trajectory, max(value) filter (where name = ${total}) as target,
        jsonb_object_agg(substr(name, 6), value) filter (where name like 'part.%') as parts
      from by_name group by 1
    )
    select c.trajectory, c.total, c.parts, j.target, j.parts as "partTargets",
      coalesce((select min(k.key) from pawl.trajectory_keys k where k.agent = c.agent and k.target_kind = 'trajectory'
        and k.target_id = c.trajectory and k.key like 'task:%'), c.trajectory) as "group"
    from judged j join pawl.scores c on c.trajectory = j.trajectory and c.agent = ${agent} and c.spec = ${spec}
    where j.target is not null
    order by c.trajectory, c.day desc limit ${limit}`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading what was said of the conversations of ${agent}`);
    });
  // An id that came back on a later day is another conversation: the newest is meant.
  const newest = new Map<string, Judged>();
  for (const row of rows)
    if (!newest.has(row.trajectory)) newest.set(row.trajectory, { ...row, partTargets: row.partTargets ?? {} });
  return [...newest.values()];
};

export type PartWeek = {
  /** 0: the latest seven days; 1: the seven before. */
  readonly week: number;
  /** null: the total. */
  readonly part: string | null;
  readonly scored: number;
  readonly measured: number;
  readonly mean: number | null;
  readonly variance: number | null;
};

/** Every part of a reward in weeks of seven days, counted back from `until`. */
export const readPartWeeks = async (
  store: Store,
  { agent, spec, until, weeks }: { agent: string; spec: string; until: string; weeks: number },
): Promise<PartWeek[]> => {
  const { rows } = await sql<PartWeek>`
    select (${until}::date - s.day) / 7 as week, p.part, count(*)::integer as scored, count(p.value)::integer as measured,
      avg(p.value) as mean, var_samp(p.value) as variance
    from pawl.scores s cross join lateral (
      select null::text as part, s.total as value
      union all select e.key, (e.value ->> 'value')::double precision from jsonb_each(s.parts) e) p
    where s.agent = ${agent} and s.spec = ${spec} and s.day <= ${until}::date
      and s.day > ${until}::date - ${weeks * 7}::integer and s.trajectory not like 'answer/%'
    group by 1, 2 order by 2 nulls first, 1`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading the weeks of ${agent}’s scores`);
    });
  return rows;
};

/** Totals under two versions of a reward, of conversations that have both: the newest `most`. */
export type BothScores = {
  readonly trajectory: string;
  readonly a: number;
  readonly b: number;
  readonly partsA: Readonly<Record<string, PartScore>>;
  readonly partsB: Readonly<Record<string, PartScore>>;
};

/** Day by day, the newest first, so that no more is read than is asked for. */
export const readBothScores = async (
  store: Store,
  { agent, a, b, from, to, most }: { agent: string; a: string; b: string; from: Day; to: Day; most: number },
): Promise<BothScores[]> => {
  const both: BothScores[] = [];
  const days = (await partitionDays(store)).filter((day) => day >= from && day <= to);
  for (const day of days.toReversed()) {
    if (both.length >= most) break;
    const { rows } = await sql<BothScores>`
      select x.trajectory, x.total as a, y.total as b, x.parts as "partsA", y.parts as "partsB"
      from pawl.scores x join pawl.scores y on y.trajectory = x.trajectory and y.agent = x.agent and y.day = x.day
      where x.agent = ${agent} and x.spec = ${a} and x.day = ${day} and y.agent = ${agent} and y.spec = ${b}
        and y.day = ${day} and x.total is not null and y.total is not null and x.trajectory not like 'answer/%'
      order by x.trajectory limit ${most - both.length}`
      .execute(store.db)
      .catch((error) => {
        throw storeError(error, `Reading the scores of ${agent} under ${a} and ${b}`);
      });
    both.push(...rows);
  }
  return both;
};

/** Versions of the reward under which an agent's conversations have scores, the latest first. */
export const listSpecs = async (
  store: Store,
  agent: string,
): Promise<{ readonly version: string; readonly scores: number; readonly at: Date }[]> => {
  const { rows } = await sql<{ version: string; scores: number; at: Date }>`
    select spec as version, count(*)::integer as scores, max(at) as at from pawl.scores
    where agent = ${agent} and trajectory not like 'answer/%' group by spec order by max(at) desc limit 100`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading the rewards of ${agent}`);
    });
  return rows;
};

export const hasScores = async (store: Store, agent: string, spec: string): Promise<boolean> => {
  const { rows } = await sql`
    select from pawl.scores where agent = ${agent} and spec = ${spec} and trajectory not like 'answer/%'
    order by day desc limit 1`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Looking for scores of ${agent} under ${spec}`);
    });
  return rows.length > 0;
};

/** Versions, as they were counted last where there is much to count. */
export const lookAtSpecs = async (store: Store, agent: string, options?: { readonly isPatient?: boolean }) => {
  const count = async () => (await listSpecs(store, agent)).map(({ at, ...one }) => ({ ...one, at: at.getTime() }));
  const { value, countedAt } = await countedFigure(store, { agent, name: 'reward versions', of: '' }, count, options);
  return { specs: value.map(({ at, ...one }) => ({ ...one, at: new Date(at) })), countedAt };
};

export type RewardCheckRow = {
  readonly agent: string;
  readonly spec: string;
  readonly at: Date;
  readonly result: unknown;
};

export const saveRewardCheck = async (store: Store, { agent, spec, at, result }: RewardCheckRow): Promise<void> => {
  await store.pool
    .query(
      `insert into pawl.reward_checks (agent, spec, at, result) values ($1, $2, $3, $4)
       on conflict (agent, spec) do update set at = excluded.at, result = excluded.result`,
      [agent, spec, at, JSON.stringify(result)],
    )
    .catch((error) => {
      throw storeError(error, `Keeping the check of ${agent}’s reward`);
    });
};

/** The latest of each agent. */
export const readRewardChecks = async (store: Pick<Store, 'pool'>): Promise<RewardCheckRow[]> => {
  const { rows } = await store.pool
    .query<RewardCheckRow>(
      'select distinct on (agent) agent, spec, at, result from pawl.reward_checks order by agent, at desc',
    )
    .catch((error) => {
      throw storeError(error, 'Reading the checks of rewards');
    });
  return rows;
};
