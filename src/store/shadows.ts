/** Comparisons of shadow traffic in Postgres. What they mean is deploy/shadow.ts's business; this file maps rows. */
import type { Comparison, ShadowSummary } from '../deploy/shadow.ts';
import { type Store, storeError } from './postgres.ts';

/** False once there are as many as the rollout may have, or it is not there any more. The same again changes nothing. */
export const insertComparison = async (store: Store, one: Comparison): Promise<void> => {
  await store.pool
    .query(
      `insert into pawl.shadows (id, parent, rollout, agent, at, failed, agreed, similarity, baseline_ms, candidate_ms,
         baseline_tokens, candidate_tokens)
       select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 where exists (select from pawl.rollouts where id = $3)
       on conflict do nothing`,
      [
        ...[one.id, one.parent, one.rollout, one.agent, new Date(one.at), one.failed, one.agreed, one.similarity],
        ...[one.baselineMs, one.candidateMs, one.baselineTokens, one.candidateTokens],
      ],
    )
    .catch((error) => {
      throw storeError(error, `Keeping a comparison of rollout ${one.rollout}`);
    });
};

export const countComparisons = async (store: Store, rollout: string): Promise<number> => {
  const { rows } = await store.pool
    .query<{ n: number }>('select count(*) as n from pawl.shadows where rollout = $1', [rollout])
    .catch((error) => {
      throw storeError(error, `Counting comparisons of rollout ${rollout}`);
    });
  return rows[0]!.n;
};

/** Whether the candidate went another way, or failed, earlier in this conversation, whichever gateway asked it. Of a week. */
export const wentElsewhere = async (
  store: Store,
  { rollout, agent, trajectory }: { readonly rollout: string; readonly agent: string; readonly trajectory: string },
  now: number,
): Promise<boolean> => {
  const { rowCount } = await store.pool
    .query(
      `select from pawl.shadows s where s.rollout = $1 and s.agreed is not true and s.parent in (
         select x.id from pawl.turns x where x.trajectory = $2 and x.agent = $3
           and x.day >= ($4::timestamptz at time zone 'UTC')::date - 7) limit 1`,
      [rollout, trajectory, agent, new Date(now)],
    )
    .catch((error) => {
      throw storeError(error, `Reading comparisons of rollout ${rollout}`);
    });
  return (rowCount ?? 0) > 0;
};

/** `limits`: how much slower than the baseline's 99th percentile is too slow. */
export const readShadow = async (
  store: Store,
  rollout: string,
  limits: { readonly latencyRatio: number; readonly latencySlackMs: number },
): Promise<ShadowSummary> => {
  type Row = Pick<ShadowSummary, 'compared' | 'failed' | 'agreed' | 'similarity' | 'slow'> & {
    readonly [K in 'p50b' | 'p99b' | 'p50c' | 'p99c' | 'tokensb' | 'tokensc']: number | null;
  };
  const { rows } = await store.pool
    .query<Row>(
      `with own as materialized (select * from pawl.shadows where rollout = $1), figures as (
         select count(*) as compared, count(*) filter (where failed) as failed, count(*) filter (where agreed) as agreed,
           avg(similarity) as similarity,
           percentile_cont(0.5) within group (order by baseline_ms) as p50b,
           percentile_cont(0.99) within group (order by baseline_ms) as p99b,
           percentile_cont(0.5) within group (order by candidate_ms) filter (where not failed) as p50c,
           percentile_cont(0.99) within group (order by candidate_ms) filter (where not failed) as p99c,
           avg(baseline_tokens)::double precision as tokensb, avg(candidate_tokens)::double precision as tokensc
         from own
       )
       select figures.*, (select count(*) from own
         where not failed and candidate_ms > greatest(p99b * $2::double precision, p99b + $3::double precision)) as slow
       from figures`,
      [rollout, limits.latencyRatio, limits.latencySlackMs],
    )
    .catch((error) => {
      throw storeError(error, `Reading the shadow of rollout ${rollout}`);
    });
  const { compared, failed, agreed, similarity, slow, ...figures } = rows[0]!;
  return {
    ...{ compared, failed, agreed, similarity, slow },
    baseline: { p50Ms: figures.p50b, p99Ms: figures.p99b, tokens: figures.tokensb },
    candidate: { p50Ms: figures.p50c, p99Ms: figures.p99c, tokens: figures.tokensc },
  };
};

export type ListedComparison = Pick<
  Comparison,
  'id' | 'parent' | 'failed' | 'agreed' | 'similarity' | 'baselineMs' | 'candidateMs'
> & {
  readonly at: Date;
  /** The conversation that the user's turn belongs to; null: it is gone. */
  readonly trajectory: string | null;
};

/** Newest first, those after a position. */
export const listComparisons = async (
  store: Store,
  rollout: string,
  { limit, after }: { readonly limit: number; readonly after: { readonly at: Date; readonly id: string } | null },
): Promise<ListedComparison[]> => {
  const { rows } = await store.pool
    .query<ListedComparison>(
      `select s.id, s.parent, s.failed, s.agreed, s.similarity, s.at, s.baseline_ms as "baselineMs",
         s.candidate_ms as "candidateMs", (select x.trajectory from pawl.turns x where x.id = s.parent
           and x.day between (s.at at time zone 'UTC')::date - 1 and (s.at at time zone 'UTC')::date limit 1) as trajectory
       from pawl.shadows s where s.rollout = $1 and ($2::timestamptz is null or (date_trunc('milliseconds', s.at), s.id) < ($2, $3::uuid))
       order by date_trunc('milliseconds', s.at) desc, s.id desc limit $4`,
      [rollout, after?.at ?? null, after?.id ?? null, limit],
    )
    .catch((error) => {
      throw storeError(error, `Listing comparisons of rollout ${rollout}`);
    });
  return rows;
};
