/**
 * Who agreed that their conversations may train a model, per agent. The row says what holds now and since when; what held
 * when a trajectory began is stamped on it by record.ts.
 */
import { type Selectable, sql } from 'kysely';
import type { Consent } from '../collect/trajectory.ts';
import { type Store, storeError } from './postgres.ts';
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
export const giveConsent = async (store: Store, agent: string, user: string, at: Date): Promise<ConsentRecord> => {
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
export const withdrawConsent = async (store: Store, agent: string, user: string, at: Date): Promise<ConsentRecord> => {
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

export const readConsent = async (store: Store, agent: string, user: string): Promise<ConsentRecord | null> => {
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

/** What these users of an agent say now, by user id. Who never said anything is not in it. */
export const readConsentsOf = async (
  store: Store,
  agent: string,
  users: readonly string[],
): Promise<Map<string, ConsentRecord>> => {
  if (users.length === 0) return new Map();
  const rows = await store.db
    .selectFrom('consent')
    .selectAll()
    .where('agent', '=', agent)
    .where((where) => where('user_id', '=', where.fn.any(where.val(users))))
    .execute()
    .catch((error) => {
      throw storeError(error, 'Reading consent');
    });
  return new Map(rows.map((row) => [row.user_id, recordOf(row)]));
};
