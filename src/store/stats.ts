/** Figures of the database, from the catalogue and the server's own counters: nothing is counted by reading it. */
import { partitionDays } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

export type StoreStats = {
  readonly kind: Store['kind'];
  readonly serverVersion: number;
  readonly databaseBytes: number;
  readonly connections: number;
  readonly partitions: { readonly count: number; readonly oldest: Day | null; readonly newest: Day | null };
  /** Estimates the server keeps as rows come and go. */
  readonly trajectories: number;
  readonly turns: number;
  readonly signals: number;
};

export const readStats = async (store: Store): Promise<StoreStats> => {
  try {
    const days = await partitionDays(store);
    const sizes = await store.pool.query<{ bytes: number; connections: number }>(
      `select pg_database_size(current_database()) as bytes,
        (select count(*) from pg_stat_activity where datname = current_database()) as connections`,
    );
    const rows = await store.pool.query<{ kind: string; rows: number }>(
      `select regexp_replace(relname, '_\\d{8}$', '') as kind, sum(n_live_tup)::bigint as rows
       from pg_stat_user_tables where schemaname = 'pawl' group by 1`,
    );
    const of = (kind: string): number => rows.rows.find((row) => row.kind === kind)?.rows ?? 0;
    return {
      kind: store.kind,
      serverVersion: store.serverVersion,
      databaseBytes: sizes.rows[0]?.bytes ?? 0,
      connections: sizes.rows[0]?.connections ?? 0,
      partitions: { count: days.length, oldest: days[0] ?? null, newest: days.at(-1) ?? null },
      trajectories: of('trajectories'),
      turns: of('turns'),
      signals: of('signals'),
    };
  } catch (error) {
    throw storeError(error, 'Reading figures of the database');
  }
};
