/** The largest share of its users that an agent ever held out. */
import { sql } from 'kysely';
import { type Store, storeError } from './postgres.ts';

/** Who was held out once stays so: the share that counts is the largest that was ever set. */
export const raiseHoldout = async (store: Store, agent: string, share: number): Promise<number> => {
  const { rows } = await sql<{ share: number }>`
    insert into pawl.holdouts as h (agent, share) values (${agent}, ${share})
    on conflict (agent) do update set share = greatest(h.share, excluded.share) returning share`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading who is held out of ${agent}`);
    });
  return rows[0]!.share;
};

/** Without setting it. */
export const readHoldout = async (store: Store, agent: string): Promise<number> => {
  const { rows } = await sql<{ share: number }>`select share from pawl.holdouts where agent = ${agent}`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading who is held out of ${agent}`);
    });
  return rows[0]?.share ?? 0;
};
