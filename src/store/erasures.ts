/** Erasures in Postgres: the requests and how far each is. The record is privacy/erasure.ts's; what is removed, erase.ts's. */
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { ErasedCounts, ErasedDataset, Erasure, Survey } from '../privacy/erasure.ts';
import { type Store, storeError } from './postgres.ts';

type Row = {
  id: string;
  user_id: string;
  agent: string | null;
  at: Date;
  actor: string;
  status: Erasure['status'];
  counts: Partial<ErasedCounts> & { late?: number };
  datasets: ErasedDataset[];
  problem: string | null;
  finished_at: Date | null;
  reward_models: string[];
};

const rewardModels = (user: string, agent: string): string =>
  `(select coalesce(array_agg('reward model ' || m.name || ' ' || m.version order by m.at), '{}') from pawl.reward_models m
    where ${user} = any(m.users) and (${agent} is null or m.agent = ${agent}))`;
const columns = `id, user_id, agent, at, actor, status, counts, datasets, problem, finished_at,
  ${rewardModels('erasures.user_id', 'erasures.agent')} as reward_models`;

const noCounts: ErasedCounts = {
  conversations: 0,
  shared: 0,
  turns: 0,
  siblings: 0,
  signals: 0,
  keys: 0,
  scores: 0,
};

const erasureOf = (found: Row): Erasure => {
  const {
    user_id,
    at,
    counts: { late = 0, ...counts },
    finished_at,
    reward_models,
    ...row
  } = found;
  return {
    ...row,
    rewardModels: reward_models,
    user: user_id,
    at: at.getTime(),
    counts: { ...noCounts, ...counts },
    late,
    finishedAt: finished_at?.getTime() ?? null,
  };
};

/** What the user of one agent, or of all, would lose. Reads every day; nothing is changed. */
export const surveyUser = async (store: Store, user: string, agent: string | null): Promise<Survey> => {
  const { rows } = await store.pool
    .query<ErasedCounts & { consents: number; rewardModels: string[] }>(survey, [user, agent])
    .catch((error) => {
      throw storeError(error, 'Looking for what is stored of a user');
    });
  const { consents, rewardModels: models, ...counts } = rows[0]!;
  return { user, agent, counts, datasets: await readDatasetsOf(store, user, agent), rewardModels: models, consents };
};

const survey = `
with touched as materialized (
  select distinct agent, trajectory, day from pawl.turns where user_id = $1 and ($2::text is null or agent = $2)
), mine as materialized (
  select distinct t.id, t.agent, t.day, t.started_at, t.ended_at from touched x
  join pawl.trajectories t on t.id = x.trajectory and t.agent = x.agent and t.day between x.day - 7 and x.day + 7
), said as materialized (
  select x.id, x.agent, x.trajectory, x.user_id from mine m
  join pawl.turns x on x.trajectory = m.id and x.agent = m.agent and x.day between (m.started_at at time zone 'UTC')::date and (m.ended_at at time zone 'UTC')::date
    and x.started_at between m.started_at and m.ended_at
), keys as materialized (
  select k.agent, k.key from pawl.trajectory_keys k
  where k.target_kind = 'trajectory' and (k.agent, k.target_id) in (select agent, id from mine)
    or k.target_kind = 'turn' and (k.agent, k.target_id) in (select agent, id::text from said)
)
select
  (select count(*)::integer from mine) as conversations,
  (select count(distinct (agent, trajectory))::integer from said where user_id <> $1) as shared,
  (select count(*)::integer from said) as turns,
  (select count(*)::integer from pawl.siblings where parent in (select id from said)) as siblings,
  (select count(*)::integer from pawl.signals s where s.user_id = $1 and ($2::text is null or s.agent = $2)
    or s.target_kind = 'trajectory' and (s.agent, s.target_id) in (select agent, id from mine)
    or s.target_kind = 'turn' and (s.agent, s.target_id) in (select agent, id::text from said)
    or s.target_kind = 'key' and (s.agent, s.target_id) in (select agent, key from keys)) as signals,
  (select count(*)::integer from keys) as keys,
  (select count(*)::integer from pawl.scores c where (c.agent, c.trajectory, c.day) in (select agent, id, day from mine)
    or (c.agent, c.trajectory) in (select agent, 'answer/' || id from said)) as scores,
  (select count(*)::integer from pawl.consent where user_id = $1 and ($2::text is null or agent = $2)) as consents,
  ${rewardModels('$1', '$2::text')} as "rewardModels"`;

/** The datasets, begun before a moment, that hold rows of a user, and what has learned from them. */
export const readDatasetsOf = async (
  store: Store,
  user: string,
  agent: string | null,
  before: Date = new Date(),
): Promise<Survey['datasets']> => {
  const { rows } = await sql<{ id: string; rows: number; runs: string[]; releases: string[] }>`
    select d.id, count(*)::integer as rows, learned.runs, learned.releases
    from pawl.dataset_rows r join pawl.datasets d on d.id = r.dataset,
    lateral (
      select coalesce(array_agg(distinct run), '{}') as runs, coalesce(array_agg(distinct release), '{}') as releases from (
        select u.id as run, l.id as release from pawl.runs u left join pawl.releases l on l.run = u.id
        where u.settings ->> 'dataset' = d.id
        union all select null, l.id from pawl.releases l where l.dataset = d.id) found
    ) learned
    where ${user} = any(r.users) and (${agent}::text is null or r.agent = ${agent}) and d.gone_at is null
      and d.created_at < ${before}
    group by d.id, learned.runs, learned.releases order by d.id`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Looking for datasets with rows of a user');
    });
  const named = (ids: readonly (string | null)[]): string[] => ids.filter((id) => id !== null);
  return rows.map(({ id, rows: held, runs, releases }) => ({
    id,
    rows: held,
    learned: { runs: named(runs), releases: named(releases) },
  }));
};

/**
 * From here on the writer refuses what began before. What the user said about training becomes a refusal that stands until
 * they agree anew. Give a transaction, so that the audit log says it exactly if it is so.
 */
export const requestErasure = async (
  db: Store['db'],
  request: { readonly user: string; readonly agent: string | null; readonly actor: string },
): Promise<Erasure> => {
  const { user, agent, actor } = request;
  const id = `erasure-${randomBytes(8).toString('hex')}`;
  try {
    const { rows } = await sql<Row>`
      insert into pawl.erasures (id, user_id, agent, at, actor, status)
      values (${id}, ${user}, ${agent}, date_trunc('milliseconds', clock_timestamp()), ${actor}, 'erasing')
      returning ${sql.raw(columns)}`.execute(db);
    const made = rows[0]!;
    await sql`
      insert into pawl.consent as c (agent, user_id, withdrawn_at)
      select agent, ${user}, ${made.at} from (
        select agent from pawl.keys union select agent from pawl.consent where user_id = ${user}
        union select ${agent}::text) of
      where agent is not null and (${agent}::text is null or agent = ${agent})
      on conflict (agent, user_id) do update set given_at = null, withdrawn_at = excluded.withdrawn_at`.execute(db);
    await sql`update pawl.consent_purposes set given_at = null, withdrawn_at = ${made.at}
      where user_id = ${user} and (${agent}::text is null or agent = ${agent})`.execute(db);
    return erasureOf(made);
  } catch (error) {
    throw storeError(error, 'Writing down an erasure');
  }
};

export const readErasure = async (store: Store, id: string): Promise<Erasure | null> => {
  const { rows } = await store.pool
    .query<Row>(`select ${columns} from pawl.erasures where id = $1`, [id])
    .catch((error) => {
      throw storeError(error, `Reading erasure ${id}`);
    });
  return rows[0] ? erasureOf(rows[0]) : null;
};

/** Of one user, oldest first. */
export const erasuresOf = async (store: Store, user: string): Promise<Erasure[]> => {
  const { rows } = await store.pool
    .query<Row>(`select ${columns} from pawl.erasures where user_id = $1 order by at limit 1000`, [user])
    .catch((error) => {
      throw storeError(error, 'Reading the erasures of a user');
    });
  return rows.map(erasureOf);
};

/** Newest first; `open`: those that can be gone on with, oldest first. */
export const listErasures = async (
  store: Store,
  which: { readonly limit: number } | { readonly open: true },
): Promise<Erasure[]> => {
  const { rows } = await store.pool
    .query<Row>(
      'open' in which
        ? `select ${columns} from pawl.erasures where status = 'erasing' or status = 'sweeping' and sweep_after <= now() order by at limit 1000`
        : `select ${columns} from pawl.erasures order by at desc limit $1`,
      'open' in which ? [] : [which.limit],
    )
    .catch((error) => {
      throw storeError(error, 'Listing erasures');
    });
  return rows.map(erasureOf);
};

/** Adds to the datasets of an erasure; one that is there already is not added twice. */
export const addErasedDataset = async (db: Store['db'], id: string, dataset: ErasedDataset): Promise<void> => {
  await sql`update pawl.erasures set datasets = datasets || ${JSON.stringify([dataset])}::jsonb
    where id = ${id} and not datasets @> ${JSON.stringify([{ id: dataset.id }])}::jsonb`
    .execute(db)
    .catch((error) => {
      throw storeError(error, `Writing down what erasure ${id} did`);
    });
};

/** False: the writer opened it again meanwhile, so there is more to do. */
export const moveErasure = async (
  store: Store,
  id: string,
  from: Erasure['status'],
  to: Erasure['status'],
): Promise<boolean> => {
  const { rowCount } = await store.pool
    .query(
      `update pawl.erasures set status = $3, problem = null, sweep_after = now(), finished_at = case when $3 = 'done' then now() end
       where id = $1 and status = $2
         and ($2 <> 'erasing' or not exists (select 1 from pawl.erased where erasure = $1 and name is not null))`,
      [id, from, to],
    )
    .catch((error) => {
      throw storeError(error, `Writing down how far erasure ${id} is`);
    });
  return rowCount === 1;
};

/** What is left came so lately that a turn under way may refer to it. */
export const waitWithSweep = async (store: Store, id: string): Promise<void> => {
  await store.pool
    .query(`update pawl.erasures set sweep_after = now() + interval '10 minutes' where id = $1`, [id])
    .catch((error) => {
      throw storeError(error, `Writing down how far erasure ${id} is`);
    });
};

export const noteProblem = async (store: Store, id: string, problem: string): Promise<void> => {
  await store.pool.query('update pawl.erasures set problem = $2 where id = $1', [id, problem]).catch((error) => {
    throw storeError(error, `Writing down why erasure ${id} waits`);
  });
};
