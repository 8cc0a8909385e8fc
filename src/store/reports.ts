/** Evaluation reports in Postgres. The shape is evaluate/report.ts's. */
import type { ColumnType } from 'kysely';
import type { Report } from '../evaluate/report.ts';
import type { Verdict } from '../evaluate/verdict.ts';
import { type Store, storeError } from './postgres.ts';
import { storable } from './storable.ts';

type ReportTables = {
  reports: {
    id: string;
    agent: string;
    baseline: string;
    candidate: string;
    suite: string;
    verdict: Verdict;
    body: ColumnType<Report, string, string>;
    created_at: Date;
  };
};

const tables = (store: Pick<Store, 'db'>) => store.db.withTables<ReportTables>();

/** Saving the same report again changes nothing, and says so: the first that measured something stands. */
export const saveReport = async (store: Pick<Store, 'db'>, report: Report): Promise<boolean> => {
  const saved = await tables(store)
    .insertInto('reports')
    .values({
      id: report.id,
      agent: report.agent,
      baseline: report.baseline,
      candidate: report.candidate,
      suite: report.suite.name,
      verdict: report.verdict,
      body: storable(report), // models write what no database holds
      created_at: new Date(report.createdAt),
    })
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet((row) => ({
          verdict: row.ref('excluded.verdict'),
          body: row.ref('excluded.body'),
          created_at: row.ref('excluded.created_at'),
        }))
        .where('reports.verdict', '=', 'unmeasured'),
    )
    .returning('id')
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Saving report ${report.id}`);
    });
  return saved !== undefined;
};

export const readReport = async (store: Store, id: string): Promise<Report | null> => {
  const row = await tables(store)
    .selectFrom('reports')
    .select('body')
    .where('id', '=', id)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Reading report ${id}`);
    });
  return row?.body ?? null;
};

/** The newest that compares these two releases, or the candidate with whatever else. */
export const latestReport = async (
  store: Store,
  of: { readonly agent: string; readonly baseline?: string; readonly candidate: string },
): Promise<Report | null> => {
  let query = tables(store).selectFrom('reports').select('body');
  if (of.baseline !== undefined) query = query.where('baseline', '=', of.baseline);
  const row = await query
    .where('agent', '=', of.agent)
    .where('candidate', '=', of.candidate)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Looking for a report on ${of.candidate}`);
    });
  return row?.body ?? null;
};

/** Newest first. */
export const listReports = async (
  store: Store,
  filter: { readonly agent?: string | undefined; readonly limit?: number } = {},
): Promise<Report[]> => {
  let query = tables(store).selectFrom('reports').select('body');
  if (filter.agent !== undefined) query = query.where('agent', '=', filter.agent);
  const rows = await query
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(filter.limit ?? 50)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Listing reports');
    });
  return rows.map(({ body }) => body);
};
