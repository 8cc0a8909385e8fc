/** The database as `GET /api/status` shows it. A database that is away is an answer here, not an error. */
import type { Store } from '../store/postgres.ts';
import { readStats } from '../store/stats.ts';
import type { Status } from './schema.ts';

type Database = NonNullable<Status['detail']>['database'];

export async function readDatabase(store: Store): Promise<Database> {
  const base = { kind: store.kind, serverVersion: store.serverVersion };
  try {
    return { ...base, reachable: true, problem: null, ...(await readStats(store)) };
  } catch (error) {
    const problem = (error as Error).message;
    return { ...base, reachable: false, problem, sizeBytes: null, migrations: [], days: [] };
  }
}
