/**
 * What the planner knows of the tables. The server looks at them about once a minute; a stage that goes through much of what has just
 * been written cannot wait for that: a plan made for an empty table takes the square of the rows.
 */
import type { Store } from './postgres.ts';
import { storeError } from './postgres.ts';

/** Of few rows any plan is good enough; below a tenth the server would not look again either. */
const stale = `select format('%I.%I', schemaname, relname) as name from pg_stat_all_tables
  where schemaname = 'pawl' and n_mod_since_analyze > 1000 and n_mod_since_analyze > 0.1 * n_live_tup`;

/** Looks again at the tables that have changed much since the last time; whoever is at one of them already does it for us. */
export const refreshStatistics = async (store: Store): Promise<void> => {
  try {
    const { rows } = await store.pool.query<{ name: string }>(stale);
    if (rows.length > 0) await store.pool.query(`analyze (skip_locked) ${rows.map(({ name }) => name).join(', ')}`);
  } catch (error) {
    throw storeError(error, 'Looking at how much there is in the tables');
  }
};
