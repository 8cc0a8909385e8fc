/** Medians of an agent's weeks in Postgres. The first that is written of a week stands. */
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

export type SavedNorm = {
  readonly agent: string;
  readonly name: string;
  readonly week: Day;
  readonly value: number;
  readonly sample: number;
  readonly at: Date;
};
type NormTables = { norms: { agent: string; name: string; week: Day; value: number; sample: number; at: Date } };

export const readNorm = async (
  store: Store,
  { agent, name, week }: Pick<SavedNorm, 'agent' | 'name' | 'week'>,
): Promise<number | null> => {
  const row = await store.db
    .withTables<NormTables>()
    .selectFrom('norms')
    .select('value')
    .where('agent', '=', agent)
    .where('name', '=', name)
    .where('week', '=', week)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Reading what is usual for ${agent}`);
    });
  return row?.value ?? null;
};

/** Returns the one that stands: another process may have been first. */
export const saveNorm = async (store: Store, norm: SavedNorm): Promise<number> => {
  await store.db
    .withTables<NormTables>()
    .insertInto('norms')
    .values(norm)
    .onConflict((conflict) => conflict.columns(['agent', 'name', 'week']).doNothing())
    .execute()
    .catch((error) => {
      throw storeError(error, `Writing what is usual for ${norm.agent}`);
    });
  return (await readNorm(store, norm)) ?? norm.value;
};
