/** The audit log's rows. What a row must contain, and its hash, is deploy/audit.ts's business; rows are appended one by one. */
import { sql } from 'kysely';
import type { AuditRow } from '../deploy/audit.ts';
import { type Store, storeError } from './postgres.ts';

type AuditTables = { audit: Omit<AuditRow, 'at'> & { at: Date } };

/** A number nobody else is likely to use: 'pawa' in ASCII. */
const lock = 0x70617761;

/** Writers take turns, so that the chain has no forks. Give a transaction to make the row part of it. */
export const appendAudit = async (db: Store['db'], seal: (last: AuditRow | null) => AuditRow): Promise<AuditRow> => {
  try {
    if (!db.isTransaction) return await db.transaction().execute((transaction) => append(transaction, seal));
    return await append(db, seal);
  } catch (error) {
    throw storeError(error, 'Writing to the audit log');
  }
};

const append = async (db: Store['db'], seal: (last: AuditRow | null) => AuditRow): Promise<AuditRow> => {
  await sql`select pg_advisory_xact_lock(${sql.lit(lock)})`.execute(db);
  const rows = db.withTables<AuditTables>();
  const last = await rows.selectFrom('audit').selectAll().orderBy('n', 'desc').limit(1).executeTakeFirst();
  const row = seal(last ? toRow(last) : null);
  await rows
    .insertInto('audit')
    .values({ ...row, at: new Date(row.at) })
    .execute();
  return row;
};

const toRow = ({ at, ...row }: AuditTables['audit']): AuditRow => ({ ...row, at: at.getTime() });

export type AuditFilter = {
  readonly agent?: string | undefined;
  readonly actor?: string | undefined;
  /** One, or, with a hyphen at its end, all that begin so. */
  readonly event?: string | undefined;
  readonly subject?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** Only rows after this number. */
  readonly after?: number;
  /** Only rows before this number. */
  readonly before?: number | undefined;
  readonly limit?: number;
  readonly oldestFirst?: boolean;
};

/** Newest first unless told otherwise. */
export const readAudit = async (store: Store, filter: AuditFilter = {}): Promise<AuditRow[]> => {
  let query = store.db.withTables<AuditTables>().selectFrom('audit').selectAll();
  for (const column of ['agent', 'actor', 'subject'] as const)
    if (filter[column] !== undefined) query = query.where(column, '=', filter[column]);
  if (filter.event?.endsWith('-')) query = query.where(sql<boolean>`starts_with(event, ${filter.event})`);
  else if (filter.event !== undefined) query = query.where('event', '=', filter.event);
  if (filter.since !== undefined) query = query.where('at', '>=', filter.since);
  if (filter.until !== undefined) query = query.where('at', '<', filter.until);
  if (filter.after !== undefined) query = query.where('n', '>', filter.after);
  if (filter.before !== undefined) query = query.where('n', '<', filter.before);
  const rows = await query
    .orderBy('n', filter.oldestFirst ? 'asc' : 'desc')
    .limit(filter.limit ?? 100)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Reading the audit log');
    });
  return rows.map(toRow);
};
