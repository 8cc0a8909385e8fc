/**
 * What happened at each stage in the last day and the last week. Everything is counted up to a limit, so that asking costs the same however
 * much is stored: a figure at its limit says so.
 */
import { dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';

export const mostCounted = 50_000;
/** Scores that the mean is of: the newest. */
const meanOf = 5_000;

export type StageCounts = {
  readonly conversations: { readonly day: number; readonly week: number };
  readonly errors: { readonly day: number; readonly week: number };
  /** Conversations of all time, counted up to 10,001. */
  readonly traces: number;
  readonly signals: { readonly feedback: number; readonly outcome: number; readonly label: number };
  readonly scores: { readonly week: number; readonly mean: number | null };
  readonly datasets: { readonly week: number; readonly newest: string | null; readonly rows: number | null };
  readonly runs: { readonly week: number; readonly running: number };
  readonly reports: { readonly week: number; readonly ended: number; readonly passed: number };
  readonly rollouts: {
    readonly week: number;
    readonly open: number;
    readonly promoted: number;
    readonly rolledBack: number;
  };
  /** Cases of the newest evaluation's suite. */
  readonly golden: number | null;
  readonly judgingMoney: number;
  readonly serving: {
    readonly name: string;
    readonly model: string;
    readonly since: Date;
    readonly killed: boolean;
  } | null;
};

export type CountsOf = {
  readonly agent: string;
  readonly origin: string;
  readonly spec: string;
  readonly now: Date;
};

const dayMs = 86_400_000;

export const countStages = async (store: Store, { agent, origin, spec, now }: CountsOf): Promise<StageCounts> => {
  const day = new Date(now.getTime() - dayMs);
  const week = new Date(now.getTime() - 7 * dayMs);
  const since = dayOf(week);
  const first = async <Row extends object>(text: string, ...values: unknown[]): Promise<Row> =>
    (await store.pool.query<Row>(text, values)).rows[0]!;
  try {
    const [conversations, errors, traces, signals, scores, datasets, runs, reports, rollouts, judging, serving] =
      await Promise.all([
        first<{ day: number; week: number }>(
          `select count(*) filter (where started_at >= $3)::integer as day, count(*)::integer as week from (
             select started_at from pawl.trajectories where agent = $1 and origin = $2 and started_at >= $4 and day >= $5
             order by started_at desc limit ${mostCounted}) t`,
          ...[agent, origin, day, week, since],
        ),
        first<{ day: number; week: number }>(
          `select count(*) filter (where started_at >= $3)::integer as day, count(*)::integer as week from (
             select started_at from pawl.trajectories
             where agent = $1 and origin = $2 and errors > 0 and started_at >= $4 and day >= $5
             order by started_at desc limit ${mostCounted}) t`,
          ...[agent, origin, day, week, since],
        ),
        first<{ n: number }>(
          `select count(*)::integer as n from (select 1 from pawl.trajectories where agent = $1 and origin = $2 limit 10001) t`,
          ...[agent, origin],
        ),
        first<StageCounts['signals']>(
          `select count(*) filter (where kind = 'feedback')::integer as feedback,
             count(*) filter (where kind = 'outcome')::integer as outcome, count(*) filter (where kind = 'label')::integer as label
           from (select kind from pawl.signals where agent = $1 and received_at >= $2 limit ${mostCounted}) s`,
          ...[agent, week],
        ),
        first<StageCounts['scores']>(
          `select (select count(*)::integer from (select 1 from pawl.scores where agent = $1 and spec = $2 and day >= $3 limit ${mostCounted}) c) as week,
             (select avg(total) from (select total from pawl.scores where agent = $1 and spec = $2 and day >= $3 order by day desc limit ${meanOf}) s) as mean`,
          ...[agent, spec, since],
        ),
        first<StageCounts['datasets']>(
          `select count(*) filter (where created_at >= $2)::integer as week,
             (array_agg(id order by created_at desc))[1] as newest, (array_agg(rows order by created_at desc))[1] as rows
           from pawl.datasets where agent = $1 and gone_at is null`,
          ...[agent, week],
        ),
        first<StageCounts['runs']>(
          `select count(*) filter (where created_at >= $2)::integer as week,
             count(*) filter (where status = 'running')::integer as running from pawl.runs where agent = $1`,
          ...[agent, week],
        ),
        first<StageCounts['reports'] & { golden: number | null }>(
          `select count(*) filter (where created_at >= $2)::integer as week,
             count(*) filter (where verdict in ('pass', 'fail'))::integer as ended,
             count(*) filter (where verdict = 'pass')::integer as passed,
             (select (body -> 'suite' ->> 'tasks')::integer from pawl.reports where agent = $1 order by created_at desc limit 1) as golden
           from pawl.reports where agent = $1`,
          ...[agent, week],
        ),
        first<StageCounts['rollouts']>(
          `select count(*) filter (where created_at >= $2)::integer as week,
             count(*) filter (where ended_at is null)::integer as open,
             count(*) filter (where phase = 'promoted')::integer as promoted,
             count(*) filter (where phase = 'rolled-back')::integer as "rolledBack" from pawl.rollouts where agent = $1`,
          ...[agent, week],
        ),
        first<{ money: number }>('select coalesce(sum(money), 0) as money from pawl.judging where agent = $1', agent),
        store.pool.query<NonNullable<StageCounts['serving']>>(
          `select r.name, r.model, o.changed_at as since, o.killed is not null as killed
           from pawl.routes o join pawl.releases r on r.id = o.release where o.agent = $1`,
          [agent],
        ),
      ]);
    const { golden, ...ended } = reports;
    return {
      ...{ conversations, errors, traces: traces.n, signals, scores, datasets, runs, reports: ended, rollouts, golden },
      ...{ judgingMoney: judging.money, serving: serving.rows[0] ?? null },
    };
  } catch (error) {
    throw storeError(error, `Counting what agent ${agent} did`);
  }
};
