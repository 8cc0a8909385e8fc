/** Whether somebody else is connected to the same database. */
import type { Store } from './postgres.ts';

/** For a store of one connection: each of its own others would count as somebody else's. */
export const hasOtherClients = async (store: Store): Promise<boolean> => {
  const { rowCount } = await store.pool.query(
    `select 1 from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' limit 1`,
  );
  return rowCount !== 0;
};
