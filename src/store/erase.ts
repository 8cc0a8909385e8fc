/**
 * Removes what is stored of a user, table by table. Each step is a transaction or a few of them and can be run again at any
 * point: what is found is written down first (pawl.erased), and struck off together with what it names.
 */
import type pg from 'pg';
import type { ErasedCounts, Erasure } from '../privacy/erasure.ts';
import { partitionDays } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import { answerName } from './scores.ts';
import type { Day } from './tables.ts';
import { joinWindowDays } from './times.ts';
import { writerLock, writerLocksOf } from './writer-lock.ts';

/** Under which a dataset is saved (datasets.ts). */
const datasetLock = 0x70617764;

type Which = Pick<Erasure, 'id' | 'user' | 'agent' | 'at'>;

const inTransaction = async <T>(
  store: Store,
  doing: string,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> => {
  const client = await store.pool.connect().catch((error) => {
    throw storeError(error, 'Connecting to the database');
  });
  let broken = true;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    broken = false;
    return result;
  } catch (error) {
    broken = !(await client.query('rollback').then(
      () => true,
      () => false,
    ));
    throw storeError(error, doing);
  } finally {
    client.release(broken);
  }
};

/**
 * Returns once everybody who was writing when this was called has finished: who begins later sees the erasure. Their locks are
 * taken one by one, which waits for exactly them.
 */
export const awaitWriters = async (store: Store): Promise<void> => {
  const { rows } = await store.pool
    .query<{ lock: number; of: number }>(
      `select distinct classid::bigint::integer as lock, objid::bigint as of from pg_locks
       where locktype = 'advisory' and granted and objsubid = 2 and classid = any($1::oid[])
         and database = (select oid from pg_database where datname = current_database())`,
      [[writerLock, datasetLock]],
    )
    .catch((error) => {
      throw storeError(error, 'Looking who writes');
    });
  for (const { lock, of } of rows)
    await inTransaction(store, 'Waiting for who writes', (client) =>
      // The number of a lock is signed, what the list shows is not.
      client.query('select pg_advisory_xact_lock($1::integer, $2::integer)', [lock, Number(of) | 0]),
    );
};

/** Writes down every conversation the user took part in before the erasure, day by day. */
export const findConversations = async (
  store: Store,
  { id, user, agent, at }: Which,
  onDay: (day: Day) => void = () => {},
): Promise<void> => {
  for (const day of await partitionDays(store)) {
    onDay(day);
    await store.pool
      .query(
        `insert into pawl.erased (agent, hash, day, erasure, name)
         select distinct agent, pawl.id_hash('trajectory ' || trajectory), day, $1, trajectory from pawl.turns
         where day = $2 and user_id = $3 and started_at < to_timestamp($4::float8 / 1000) and ($5::text is null or agent = $5)
         on conflict (agent, hash, day) do update set erasure = excluded.erasure, name = excluded.name`,
        [id, day, user, at, agent],
      )
      .catch((error) => {
        throw storeError(error, `Looking for conversations of ${day}`);
      });
  }
};

/** Conversations in one transaction, while the agent's writers wait. */
const atOnce = 20;

/** Removes the next few conversations with all that hangs on them; null: there are none left. */
export const removeConversations = (store: Store, { id, user, at }: Which): Promise<ErasedCounts | null> =>
  inTransaction(store, 'Removing conversations', async (client) => {
    const { rows: named } = await client.query<{ agent: string; name: string }>(
      `select agent, name from pawl.erased where erasure = $1 and name is not null order by agent, name limit ${atOnce}`,
      [id],
    );
    const agent = named[0]?.agent;
    if (agent === undefined) return null;
    const names = [...new Set(named.filter((one) => one.agent === agent).map(({ name }) => name))];
    await client.query('select pg_advisory_xact_lock($1::integer, $2::integer)', [
      writerLock,
      writerLocksOf([agent])[0],
    ]);
    const { rows: conversations } = await client.query<{ id: string; day: Day }>(
      `select distinct t.id, t.day from pawl.erased e
       join pawl.trajectories t on t.id = e.name and t.agent = e.agent
         and t.day between e.day - ${joinWindowDays} and e.day + ${joinWindowDays}
       where e.erasure = $1 and e.agent = $2 and e.name = any($3) and t.started_at < to_timestamp($4::float8 / 1000)`,
      [id, agent, names, at],
    );
    const of = [agent, conversations.map((one) => one.id), conversations.map(({ day }) => day)];
    const { rows: turns } = await client.query<{ id: string; day: Day; trajectory: string; user: string | null }>(
      `delete from pawl.turns x using unnest($2::text[], $3::date[]) as c(id, day), pawl.trajectories t
       where t.id = c.id and t.agent = $1 and t.day = c.day and x.trajectory = t.id and x.agent = $1
         and x.day between (t.started_at at time zone 'UTC')::date and (t.ended_at at time zone 'UTC')::date
         and x.started_at between t.started_at and t.ended_at
       returning x.id, x.day, x.trajectory, x.user_id as user`,
      of,
    );
    const turnIds = turns.map((turn) => turn.id);
    const { rows: siblings } = await client.query<{ id: string; day: Day }>(
      'delete from pawl.siblings where parent = any($1::uuid[]) returning id, day',
      [turnIds],
    );
    const { rows: keys } = await client.query<{ key: string }>(
      `delete from pawl.trajectory_keys where agent = $1
         and (target_kind = 'trajectory' and target_id = any($2) or target_kind = 'turn' and target_id = any($3))
       returning key`,
      [agent, names, turnIds],
    );
    // What was said of a business key stays if the key is another conversation's too.
    const { rowCount: signals } = await client.query(
      `delete from pawl.signals s where agent = $1
         and (target_kind = 'trajectory' and target_id = any($2) or target_kind = 'turn' and target_id = any($3)
           or target_kind = 'key' and target_id = any($4)
             and not exists (select 1 from pawl.trajectory_keys k where k.agent = s.agent and k.key = s.target_id))`,
      [agent, names, turnIds, keys.map(({ key }) => key)],
    );
    const answers = [...turnIds, ...siblings.map((one) => one.id)].map(answerName);
    const { rowCount: scores } = await client.query(
      `delete from pawl.scores c where agent = $1 and (trajectory = any($4)
         or exists (select 1 from unnest($2::text[], $3::date[]) as o(id, day) where o.id = c.trajectory and o.day = c.day))`,
      [...of, answers],
    );
    await client.query('delete from pawl.verdicts where agent = $1 and trajectory = any($2)', [
      agent,
      [...names, ...answers],
    ]);
    await client.query(
      `delete from pawl.trajectories t using unnest($2::text[], $3::date[]) as c(id, day)
       where t.id = c.id and t.agent = $1 and t.day = c.day`,
      of,
    );
    const gone = [...turns, ...siblings];
    await client.query(
      `insert into pawl.erased (agent, hash, day, erasure)
       select distinct $1, pawl.id_hash(g.id), g.day, $2 from unnest($3::text[], $4::date[]) as g(id, day)
       on conflict (agent, hash, day) do nothing`,
      [agent, id, gone.map((one) => one.id), gone.map(({ day }) => day)],
    );
    await client.query('update pawl.erased set name = null where erasure = $1 and agent = $2 and name = any($3)', [
      id,
      agent,
      names,
    ]);
    const shared = new Set(turns.filter((turn) => turn.user !== null && turn.user !== user).map((t) => t.trajectory));
    const counts: ErasedCounts = {
      conversations: conversations.length,
      shared: shared.size,
      turns: turns.length,
      siblings: siblings.length,
      signals: signals ?? 0,
      keys: keys.length,
      scores: scores ?? 0,
    };
    await addCounts(client, id, counts);
    return counts;
  });

/** In the transaction that removes, so that a second run counts nothing twice. */
const addCounts = async (client: pg.PoolClient, id: string, counts: Partial<ErasedCounts>): Promise<void> => {
  await client.query(
    `update pawl.erasures set counts = counts || (
       select jsonb_object_agg(key, coalesce((counts ->> key)::integer, 0) + value::integer) from jsonb_each_text($2::jsonb))
     where id = $1`,
    [id, JSON.stringify(counts)],
  );
};

/**
 * What the user said about conversations of others: votes, comments, corrections. Scores that took it into account go with it;
 * the next scoring makes them anew.
 */
export const removeSignalsBy = (store: Store, { id, user, agent, at }: Which): Promise<void> =>
  inTransaction(store, 'Removing signals', async (client) => {
    const { rows } = await client.query<{ signals: number; scores: number }>(
      `with said as (
         delete from pawl.signals where user_id = $1 and ($2::text is null or agent = $2)
           and received_at < to_timestamp($3::float8 / 1000)
         returning agent, target_kind as kind, target_id as target
       ), about as (
         select agent, kind, target from said where kind <> 'key'
         union select k.agent, k.target_kind, k.target_id from said s
           join pawl.trajectory_keys k on k.agent = s.agent and k.key = s.target where s.kind = 'key'
       ), scored as (
         select agent, target as trajectory from about where kind = 'trajectory'
         union select agent, 'answer/' || target from about where kind = 'turn'
         union select x.agent, x.trajectory from about a join pawl.turns x on x.id::text = a.target and x.agent = a.agent
           where a.kind = 'turn'
       ), unscored as (
         delete from pawl.scores c using scored s where c.agent = s.agent and c.trajectory = s.trajectory returning 1
       ), unjudged as (
         delete from pawl.verdicts v using scored s where v.agent = s.agent and v.trajectory = s.trajectory
       )
       select (select count(*)::integer from said) as signals, (select count(*)::integer from unscored) as scores`,
      [user, agent, at],
    );
    await addCounts(client, id, rows[0]!);
  });

/** Scores and verdicts that were being made while their conversation went. */
export const removeLateScores = async (store: Store, { id }: Which): Promise<void> => {
  for (const table of ['scores', 'verdicts'])
    await store.pool
      .query(
        `delete from pawl.${table} c using pawl.erased e
         where e.erasure = $1 and c.agent = e.agent and not exists (
             select 1 from pawl.trajectories t where t.id = c.trajectory and t.agent = c.agent and t.day = c.day)
           and e.hash = case when starts_with(c.trajectory, 'answer/') then pawl.id_hash(substr(c.trajectory, 8))
             else pawl.id_hash('trajectory ' || c.trajectory) end`,
        [id],
      )
      .catch((error) => {
        throw storeError(error, `Removing ${table}`);
      });
};

/** The days and agents that lost something. */
export const touchedDays = async (store: Store, { id }: Which): Promise<{ agent: string; day: Day }[]> => {
  const { rows } = await store.pool
    .query<{ agent: string; day: Day }>(
      'select distinct agent, day from pawl.erased where erasure = $1 order by 2, 1',
      [id],
    )
    .catch((error) => {
      throw storeError(error, 'Reading what was erased');
    });
  return rows;
};

const besideTurns = ['signals', 'trajectory_keys', 'scores', 'verdicts', 'siblings', 'dataset_rows', 'erased'];

/** The tables that lost something, or may have. */
export const touchedTables = async (store: Store, which: Which): Promise<string[]> => {
  const days = new Set((await touchedDays(store, which)).map(({ day }) => day.replaceAll('-', '')));
  const { rows } = await store.pool
    .query<{ name: string }>(
      // As text a regclass has its schema only where the search path has it not, and that of a role pawl has it.
      `select format('%I.%I', c.relnamespace::regnamespace, c.relname) as name
       from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
       where p.relnamespace = 'pawl'::regnamespace and p.relkind = 'p' and right(c.relname, 8) = any($1)`,
      [[...days]],
    )
    .catch((error) => {
      throw storeError(error, 'Looking for partitions');
    });
  return [...rows.map((row) => row.name), ...besideTurns.map((table) => `pawl.${table}`)];
};
