/** Figures of the database, from the catalogue and the server's own counters: nothing is counted by reading it. */
import { partitionDays } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

export type StoreStats = {
  readonly sizeBytes: number;
  /** Names of those that have run, in order. */
  readonly migrations: string[];
  /** Those that have partitions, oldest first. */
  readonly days: Day[];
};

export const readStats = async (store: Store): Promise<StoreStats> => {
  try {
    const { rows } = await store.pool.query<Omit<StoreStats, 'days'>>(
      `select pg_database_size(current_database())::bigint as "sizeBytes",
         (select coalesce(array_agg(name order by name), '{}') from pawl.migrations) as migrations`,
    );
    return { ...rows[0]!, days: await partitionDays(store) };
  } catch (error) {
    throw storeError(error, 'Reading figures of the database');
  }
};
