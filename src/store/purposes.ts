/**
 * What users agreed to beyond learning from their conversations (consents.ts): that these leave the region they were said in, and
 * that they teach a model of other tenants. Each is asked for, given and withdrawn by itself; consent to learn implies neither.
 */
import { sql } from 'kysely';
import type { Consent } from '../collect/trajectory.ts';
import { type Store, storeError } from './postgres.ts';

export const purposes = ['transfer', 'tenants'] as const;
export type Purpose = (typeof purposes)[number];

export type PurposeRecord = {
  readonly purpose: Purpose;
  readonly givenAt: Date | null;
  readonly withdrawnAt: Date | null;
  readonly now: Consent;
};

type Row = { purpose: Purpose; given_at: Date | null; withdrawn_at: Date | null };
const recordOf = ({ purpose, given_at, withdrawn_at }: Row): PurposeRecord => ({
  purpose,
  givenAt: given_at,
  withdrawnAt: withdrawn_at,
  now: withdrawn_at ? 'withdrawn' : given_at ? 'given' : 'unknown',
});

type Said = { readonly agent: string; readonly user: string; readonly purpose: Purpose; readonly at: Date };

/** Given again while it stands keeps the first date; after a withdrawal it begins anew. Give a transaction to audit it with. */
export const givePurpose = async (db: Store['db'], { agent, user, purpose, at }: Said): Promise<PurposeRecord> => {
  const { rows } = await sql<Row>`
    insert into pawl.consent_purposes as c (agent, user_id, purpose, given_at) values (${agent}, ${user}, ${purpose}, ${at})
    on conflict (agent, user_id, purpose) do update set
      given_at = case when c.withdrawn_at is null then least(c.given_at, excluded.given_at)
        when excluded.given_at > c.withdrawn_at then excluded.given_at else c.given_at end,
      withdrawn_at = case when excluded.given_at > c.withdrawn_at then null else c.withdrawn_at end
    returning purpose, given_at, withdrawn_at`
    .execute(db)
    .catch((error) => {
      throw storeError(error, 'Recording consent');
    });
  return recordOf(rows[0]!);
};

export const withdrawPurpose = async (db: Store['db'], { agent, user, purpose, at }: Said): Promise<PurposeRecord> => {
  const { rows } = await sql<Row>`
    insert into pawl.consent_purposes as c (agent, user_id, purpose, withdrawn_at)
    values (${agent}, ${user}, ${purpose}, ${at})
    on conflict (agent, user_id, purpose) do update set withdrawn_at = case
      when c.withdrawn_at is not null then least(c.withdrawn_at, excluded.withdrawn_at)
      when c.given_at > excluded.withdrawn_at then null else excluded.withdrawn_at end
    returning purpose, given_at, withdrawn_at`
    .execute(db)
    .catch((error) => {
      throw storeError(error, 'Recording the withdrawal of consent');
    });
  return recordOf(rows[0]!);
};

/** Every purpose, also those nobody said anything about. */
export const readPurposes = async (store: Pick<Store, 'db'>, agent: string, user: string): Promise<PurposeRecord[]> => {
  const { rows } = await sql<Row>`select purpose, given_at, withdrawn_at from pawl.consent_purposes
    where agent = ${agent} and user_id = ${user}`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading consent');
    });
  return purposes.map(
    (purpose) =>
      rows.map(recordOf).find((one) => one.purpose === purpose) ?? {
        ...{ purpose, givenAt: null, withdrawnAt: null, now: 'unknown' },
      },
  );
};
