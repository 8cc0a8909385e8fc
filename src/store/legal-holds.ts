/** Legal holds: what is stored of a user stays, whoever asks and however old it is, until the hold is released. */
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { addDays } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';
import { joinWindowDays } from './times.ts';

export type LegalHold = {
  readonly id: string;
  /** Hash. */
  readonly user: string;
  /** null: every agent's. */
  readonly agent: string | null;
  readonly reason: string;
  readonly actor: string;
  readonly at: Date;
  readonly releasedAt: Date | null;
};

const columns = sql.raw('id, user_id as user, agent, reason, actor, at, released_at as "releasedAt"');

/** Give a transaction, to audit it with. */
export const placeHold = async (
  db: Store['db'],
  { user, agent, reason, actor, at }: Omit<LegalHold, 'id' | 'releasedAt'>,
): Promise<LegalHold> => {
  const id = `hold-${randomBytes(8).toString('hex')}`;
  const { rows } = await sql<LegalHold>`insert into pawl.legal_holds (id, user_id, agent, reason, actor, at)
    values (${id}, ${user}, ${agent}, ${reason}, ${actor}, ${at}) returning ${columns}`
    .execute(db)
    .catch((error) => {
      throw storeError(error, 'Writing down a legal hold');
    });
  return rows[0]!;
};

/** null: there is none that stands. */
export const endHold = async (db: Store['db'], id: string, at: Date): Promise<LegalHold | null> => {
  const { rows } = await sql<LegalHold>`update pawl.legal_holds set released_at = ${at}
    where id = ${id} and released_at is null returning ${columns}`
    .execute(db)
    .catch((error) => {
      throw storeError(error, 'Releasing a legal hold');
    });
  return rows[0] ?? null;
};

/** Newest first. */
export const listHolds = async (store: Store): Promise<LegalHold[]> => {
  const { rows } = await sql<LegalHold>`select ${columns} from pawl.legal_holds order by at desc limit 1000`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Listing legal holds');
    });
  return rows;
};

/** The hold that keeps this user's words from being erased, of one agent or of all; null: none does. */
export const holdOn = async (
  store: Store,
  { user, agent }: { readonly user: string; readonly agent: string | null },
): Promise<LegalHold | null> => {
  const { rows } = await sql<LegalHold>`select ${columns} from pawl.legal_holds where user_id = ${user}
    and released_at is null and (agent is null or ${agent}::text is null or agent = ${agent}) order by at limit 1`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Looking for legal holds');
    });
  return rows[0] ?? null;
};

/** From which day on everything stays because of a hold; null: no hold reaches anything that is stored. */
export const heldFrom = async (store: Store): Promise<Day | null> => {
  const { rows } = await sql<{ day: Day | null }>`select min(x.day) as day from pawl.legal_holds h
    join pawl.turns x on x.user_id = h.user_id and (h.agent is null or h.agent = x.agent) where h.released_at is null`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Looking from when on legal holds reach');
    });
  const day = rows[0]?.day ?? null;
  // A conversation lies on the day of its first turn.
  return day === null ? null : addDays(day, -joinWindowDays);
};
