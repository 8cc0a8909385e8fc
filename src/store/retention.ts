/** What is forgotten by its age, and the record of having done so. What goes when is privacy/retention.ts's. */
import { sql } from 'kysely';
import type { RetentionResult, RetentionRun } from '../privacy/retention.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

type Counts = Pick<RetentionResult, 'conversations' | 'turns' | 'siblings' | 'signals' | 'keys' | 'scores'>;

/** Days that go: all before one, and single ones. */
type Old = { readonly before: Day | null; readonly days: readonly Day[] };

/** What goes with them. Signals and business keys go by when they came, and with the conversations they are about. */
export const countOld = async (store: Store, { before, days }: Old): Promise<Counts> => {
  const isOld = sql`(day < ${before}::date or day = any(${[...days]}::date[]))`;
  const moment = before === null ? null : `${before}T00:00:00Z`;
  const { rows } = await sql<Counts>`
    select (select count(*)::integer from pawl.trajectories where ${isOld}) as conversations,
      (select count(*)::integer from pawl.turns where ${isOld}) as turns,
      (select count(*)::integer from pawl.siblings where ${isOld}) as siblings,
      (select count(*)::integer from pawl.signals s where received_at < ${moment}::timestamptz
        or ${aboutDays('s', days)}) as signals,
      (select count(*)::integer from pawl.trajectory_keys k where at < ${moment}::timestamptz
        or ${aboutDays('k', days)}) as keys,
      (select count(*)::integer from pawl.scores where ${isOld}) as scores`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Counting what is older than ${before ?? days[0]}`);
    });
  return rows[0]!;
};

/** Whether a signal or a business key is about a conversation, or a turn, of these days. */
const aboutDays = (alias: 's' | 'k', days: readonly Day[]) => {
  const of = sql.ref(alias);
  return sql`(${of}.target_kind = 'trajectory' and exists (select 1 from pawl.trajectories t
      where t.id = ${of}.target_id and t.agent = ${of}.agent and t.day = any(${[...days]}::date[]))
    or ${of}.target_kind = 'turn' and exists (select 1 from pawl.turns x
      where x.id::text = ${of}.target_id and x.agent = ${of}.agent and x.day = any(${[...days]}::date[])))`;
};

/**
 * Ids of the datasets that were made, or first trained on, before a moment, are still there, and that no legal hold keeps. What
 * took the place of another was trained on when that was.
 */
export const oldDatasets = async (
  store: Store,
  { made, trained }: { readonly made: Date | null; readonly trained: Date | null },
): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`
    with recursive learned(id) as (
      select settings ->> 'dataset' from pawl.runs where created_at < ${trained}::timestamptz
      union select d.replaced_by from pawl.datasets d join learned l on l.id = d.id where d.replaced_by is not null
    )
    select id from pawl.datasets d where gone_at is null
      and (created_at < ${made}::timestamptz or id in (select id from learned where id is not null))
      and not exists (
        select 1 from pawl.dataset_rows r join pawl.legal_holds h on h.user_id = any(r.users) and h.released_at is null
          and (h.agent is null or h.agent = r.agent) where r.dataset = d.id)
    order by id`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Looking for old datasets');
    });
  return rows.map(({ id }) => id);
};

type Row = {
  id: number;
  at: Date;
  actor: string;
  settings: RetentionRun['settings'];
  result: RetentionResult | null;
  finished_at: Date | null;
};
const runOf = ({ at, finished_at, ...row }: Row): RetentionRun => ({
  ...row,
  id: Number(row.id),
  at: at.getTime(),
  finishedAt: finished_at?.getTime() ?? null,
});

export const beginRetention = async (
  store: Store,
  { at, actor, settings }: Pick<RetentionRun, 'at' | 'actor' | 'settings'>,
): Promise<number> => {
  const { rows } = await sql<{ id: number }>`insert into pawl.retention_runs (at, actor, settings)
    values (${new Date(at)}, ${actor}, ${JSON.stringify(settings)}) returning id`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Writing down a retention run');
    });
  return Number(rows[0]!.id);
};

export const endRetention = async (db: Store['db'], id: number, result: RetentionResult): Promise<void> => {
  await sql`update pawl.retention_runs set result = ${JSON.stringify(result)}, finished_at = now() where id = ${id}`
    .execute(db)
    .catch((error) => {
      throw storeError(error, 'Writing down a retention run');
    });
};

/** Newest first. */
export const listRetention = async (store: Store, limit: number): Promise<RetentionRun[]> => {
  const { rows } = await sql<Row>`select * from pawl.retention_runs order by id desc limit ${limit}`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading retention runs');
    });
  return rows.map(runOf);
};

/** From when on things are forgotten without being told to; infinitely far where no installation has begun. */
export const forgetsFrom = async (store: Store): Promise<number> => {
  const { rows } = await sql<{ forgets_from: Date }>`select forgets_from from pawl.installation`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading since when this installation forgets');
    });
  return rows[0]?.forgets_from.getTime() ?? Number.POSITIVE_INFINITY;
};

/** A text that changes whenever something was erased or retired. */
export const forgetStamp = async (store: Store): Promise<string> => {
  const { rows } = await sql<{ changed: string }>`
    select concat_ws(' ', max(at), max(finished_at), (select max(gone_at) from pawl.datasets),
      (select max(id) from pawl.retention_runs)) as changed
    from pawl.erasures`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Looking whether something was erased');
    });
  return rows[0]!.changed;
};
