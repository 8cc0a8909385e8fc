/**
 * Who agreed that their conversations may train a model, per agent. The row says what holds now and since when.
 *
 * A conversation is everybody's who took part in it: it may train a model only if each of its turns had a user who had
 * agreed by then and has not withdrawn since. A turn without a user is nobody's agreement. What held when each turn began
 * is stamped on the trajectory by record.ts (the worst of its turns); `readStandings` asks again what holds now.
 */
import { type Selectable, sql } from 'kysely';
import type { Consent } from '../collect/trajectory.ts';
import { type Store, storeError } from './postgres.ts';
import { type Span, someSpans, spanValues, turnsOfSpans } from './spans.ts';
import type { ConsentTable } from './tables.ts';

export type ConsentRecord = {
  readonly agent: string;
  readonly user: string;
  readonly givenAt: Date | null;
  readonly withdrawnAt: Date | null;
  readonly now: Consent;
};

const recordOf = (row: Selectable<ConsentTable>): ConsentRecord => ({
  agent: row.agent,
  user: row.user_id,
  givenAt: row.given_at,
  withdrawnAt: row.withdrawn_at,
  now: row.withdrawn_at ? 'withdrawn' : row.given_at ? 'given' : 'unknown',
});

/** Given again while it stands keeps the first date; given after a withdrawal begins anew; an older message changes nothing. */
export const giveConsent = async (
  store: Pick<Store, 'db'>,
  agent: string,
  user: string,
  at: Date,
): Promise<ConsentRecord> => {
  const row = await store.db
    .insertInto('consent')
    .values({ agent, user_id: user, given_at: at, withdrawn_at: null })
    .onConflict((conflict) =>
      conflict.columns(['agent', 'user_id']).doUpdateSet({
        given_at: sql`case
          when consent.withdrawn_at is null then least(consent.given_at, excluded.given_at)
          when excluded.given_at > consent.withdrawn_at then excluded.given_at
          else consent.given_at end`,
        withdrawn_at: sql`case when excluded.given_at > consent.withdrawn_at then null else consent.withdrawn_at end`,
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch((error) => {
      throw storeError(error, 'Recording consent');
    });
  return recordOf(row);
};

/** Works for users who never gave it, too: then it is a refusal. A second withdrawal keeps the first date. */
export const withdrawConsent = async (
  store: Pick<Store, 'db'>,
  agent: string,
  user: string,
  at: Date,
): Promise<ConsentRecord> => {
  const row = await store.db
    .insertInto('consent')
    .values({ agent, user_id: user, given_at: null, withdrawn_at: at })
    .onConflict((conflict) =>
      conflict.columns(['agent', 'user_id']).doUpdateSet({
        withdrawn_at: sql`case
          when consent.withdrawn_at is not null then least(consent.withdrawn_at, excluded.withdrawn_at)
          when consent.given_at > excluded.withdrawn_at then null
          else excluded.withdrawn_at end`,
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch((error) => {
      throw storeError(error, 'Recording the withdrawal of consent');
    });
  return recordOf(row);
};

export const readConsent = async (
  store: Pick<Store, 'db'>,
  agent: string,
  user: string,
): Promise<ConsentRecord | null> => {
  const row = await store.db
    .selectFrom('consent')
    .selectAll()
    .where('agent', '=', agent)
    .where('user_id', '=', user)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, 'Reading consent');
    });
  return row ? recordOf(row) : null;
};

/** Whether a conversation of the agent that is still here was begun by the user. */
export const hasConversed = async (store: Store, agent: string, user: string): Promise<boolean> => {
  const found = await store.db
    .selectFrom('trajectories')
    .select('id')
    .where('user_id', '=', user)
    .where('agent', '=', agent)
    .limit(1)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, 'Looking for conversations of a user');
    });
  return found !== undefined;
};

/** One page by user id; `after` is the last user of the page before. */
export const listConsents = async (
  store: Store,
  options: { readonly agent: string; readonly after?: string; readonly limit?: number },
): Promise<ConsentRecord[]> => {
  let query = store.db.selectFrom('consent').selectAll().where('agent', '=', options.agent);
  if (options.after !== undefined) query = query.where('user_id', '>', options.after);
  const rows = await query
    .orderBy('user_id')
    .limit(Math.min(Math.max(1, options.limit ?? 100), 10_000))
    .execute()
    .catch((error) => {
      throw storeError(error, 'Listing consent');
    });
  return rows.map(recordOf);
};

/**
 * What everybody in a conversation says today about their turns in it, the worst of them: `later` is somebody who agrees now
 * but did not yet, or not any more, when they spoke. The words are in the order of the alphabet, so the worst is the greatest.
 */
export type Standing = 'given' | 'later' | 'unknown' | 'withdrawn';

const standing = `max(case when c.withdrawn_at is not null then 'withdrawn' when c.given_at <= x.started_at then 'given'
  when c.given_at is not null then 'later' else 'unknown' end)`;
const consentOfTurn = `left join pawl.consent c on c.agent = x.agent and c.user_id = x.user_id`;

/** Of conversations of one agent, in their order. One whose turns are not there is unknown. */
export const readStandings = async (store: Store, trajectories: readonly Span[]): Promise<Standing[]> => {
  if (!someSpans(trajectories)) return [];
  const { rows } = await store.pool
    .query<{ n: number; standing: Standing }>(
      `select t.n, ${standing} as standing
       from ${turnsOfSpans} ${consentOfTurn}
       group by t.n`,
      spanValues(trajectories),
    )
    .catch((error) => {
      throw storeError(error, 'Reading consent');
    });
  const found = new Map(rows.map((row) => [row.n, row.standing]));
  return trajectories.map((_, i) => found.get(i + 1) ?? 'unknown');
};

/** Of the rows of a dataset, by `day trajectory`; those whose conversation is gone are not in it. */
export const readStandingsIn = async (store: Store, dataset: string): Promise<Map<string, Standing>> => {
  const { rows } = await store.pool
    .query<{ day: string; trajectory: string; standing: Standing }>(
      // The days are worked out before, so that no other partition is looked at.
      `with t as materialized (
         select t.id, t.agent, t.day, t.started_at, t.ended_at from pawl.dataset_rows r
         join pawl.trajectories t on t.id = r.trajectory and t.agent = r.agent and t.day = r.day
           and t.day >= (select min(day) from pawl.dataset_rows where dataset = $1)
           and t.day <= (select max(day) from pawl.dataset_rows where dataset = $1)
         where r.dataset = $1
       )
       select t.day, t.id as trajectory, ${standing} as standing
       from t join pawl.turns x on x.trajectory = t.id and x.agent = t.agent
         and x.day >= (select min((started_at at time zone 'UTC')::date) from t)
         and x.day <= (select max((ended_at at time zone 'UTC')::date) from t)
         and x.started_at between t.started_at and t.ended_at ${consentOfTurn}
       group by 1, 2`,
      [dataset],
    )
    .catch((error) => {
      throw storeError(error, `Reading the consent in dataset ${dataset}`);
    });
  return new Map(rows.map((row) => [`${row.day} ${row.trajectory}`, row.standing]));
};
