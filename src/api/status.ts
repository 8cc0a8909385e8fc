/** The database and who works on it, as `GET /api/status` shows them. A database that is away is an answer here, not an error. */
import type { Store } from '../store/postgres.ts';
import { listProcesses } from '../store/processes.ts';
import { readStats } from '../store/stats.ts';
import type { Status } from './schema.ts';

type Database = NonNullable<Status['detail']>['database'];
type Processes = NonNullable<Status['detail']>['processes'];

export async function readDatabase(store: Store): Promise<Database> {
  const base = { kind: store.kind, serverVersion: store.serverVersion };
  try {
    return { ...base, reachable: true, problem: null, ...(await readStats(store)) };
  } catch (error) {
    const problem = (error as Error).message;
    return { ...base, reachable: false, problem, sizeBytes: null, migrations: [], days: [] };
  }
}

export async function readProcesses(store: Store): Promise<Processes> {
  const processes = await listProcesses(store.pool).catch(() => []);
  return processes.map(({ isAlive, startedAt, seenAt, roles, problems, doing, ...rest }) => ({
    ...rest,
    roles: [...roles],
    problems: [...problems],
    doing: [...doing],
    alive: isAlive,
    startedAt: startedAt.toISOString(),
    seenAt: seenAt.toISOString(),
  }));
}
