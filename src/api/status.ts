/** The database as `GET /api/status` shows it. A database that is away is an answer here, not an error. */
import type { Store } from '../store/postgres.ts';
import type { Status } from './schema.ts';

type Database = NonNullable<Status['detail']>['database'];

export async function readDatabase(store: Store): Promise<Database> {
  const base = { kind: store.kind, serverVersion: store.serverVersion };
  try {
    const facts = await store.pool.query<{ size: number; migrations: string[]; days: string[] }>(
      `select pg_database_size(current_database())::bigint as size,
              (select coalesce(array_agg(name order by name), '{}') from pawl.migrations) as migrations,
              (select coalesce(array_agg(regexp_replace(c.relname, '^turns_(\\d{4})(\\d\\d)(\\d\\d)$', '\\1-\\2-\\3') order by c.relname), '{}')
               from pg_inherits i join pg_class c on c.oid = i.inhrelid
               where i.inhparent = 'pawl.turns'::regclass) as days`,
    );
    const { size, migrations, days } = facts.rows[0]!;
    return { ...base, reachable: true, problem: null, sizeBytes: Number(size), migrations, days };
  } catch (error) {
    const { message, code } = error as { message?: string; code?: string };
    const problem = message || code || 'unknown';
    return { ...base, reachable: false, problem, sizeBytes: null, migrations: [], days: [] };
  }
}
