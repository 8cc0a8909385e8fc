/**
 * The audit log: who did what, when, to which run, report, release or rollout. Rows are only added. Each row's hash covers the
 * row and the hash before it, so a row that was changed, removed or put in later breaks the chain there; the database refuses
 * changes besides. What a chain cannot show is that its newest rows were cut off: keep the head's hash elsewhere (the model
 * card prints it) and hand it to `verifyAudit`.
 */
import { createHash } from 'node:crypto';
import { appendAudit, readAudit } from './store/audit.ts';
import type { Store } from './store/postgres.ts';

export type AuditEvent = {
  readonly agent: string;
  /** Who: a person's name, or `pawl` for what it did by itself. */
  readonly actor: string;
  /** noun-verb, e.g. `rollout-advanced` */
  readonly event: string;
  /** Id of what it is about. */
  readonly subject: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly at: number; // ms since epoch
};

export type AuditRow = Omit<AuditEvent, 'details'> & {
  readonly n: number;
  /** JSON; text, because the hash is over text. */
  readonly details: string;
  readonly previous: string;
  readonly hash: string;
};

/** The `previous` of the first row. */
export const genesis = '0'.repeat(64);

export function sealed({ details, ...event }: AuditEvent, last: Pick<AuditRow, 'n' | 'hash'> | null): AuditRow {
  const row = { ...event, details: JSON.stringify(details), n: (last?.n ?? 0) + 1, previous: last?.hash ?? genesis };
  return { ...row, hash: hashOf(row) };
}

const hashOf = ({ n, at, agent, actor, event, subject, details, previous }: Omit<AuditRow, 'hash'>): string =>
  createHash('sha256')
    .update(JSON.stringify([n, at, agent, actor, event, subject, details, previous]))
    .digest('hex');

/** Inside a transaction, the row stands exactly if the change it tells of does. */
export const audit = (db: Store['db'], event: AuditEvent): Promise<AuditRow> =>
  appendAudit(db, (last) => sealed(event, last));

export type ChainProblem = { readonly n: number; readonly problem: string };

/** The first thing wrong with rows in order that follow `last`, or null. */
export function chainProblem(
  rows: readonly AuditRow[],
  last: Pick<AuditRow, 'n' | 'hash'> | null,
): ChainProblem | null {
  let before = last;
  for (const row of rows) {
    const n = (before?.n ?? 0) + 1;
    if (row.n !== n) return { n, problem: `Row ${n} is missing; the next one is ${row.n}.` };
    if (row.previous !== (before?.hash ?? genesis))
      return { n, problem: `Row ${n} does not follow the row before it: one of the two is not the original.` };
    if (row.hash !== hashOf(row)) return { n, problem: `Row ${n} was changed after it was written.` };
    before = row;
  }
  return null;
}

export type Verified = { readonly rows: number; readonly head: string; readonly problem: ChainProblem | null };

/** Reads the whole log. `knownHead`: a hash noted earlier, which must still be in the chain. */
export async function verifyAudit(store: Store, knownHead?: string): Promise<Verified> {
  let last: AuditRow | null = null;
  let found = knownHead === undefined;
  for (;;) {
    const rows: AuditRow[] = await readAudit(store, { after: last?.n ?? 0, limit: 1000, oldestFirst: true });
    const problem = chainProblem(rows, last);
    if (problem) return { rows: problem.n - 1, head: last?.hash ?? genesis, problem };
    found ||= rows.some(({ hash }) => hash === knownHead);
    last = rows.at(-1) ?? last;
    if (rows.length < 1000) break;
  }
  const rows = last?.n ?? 0;
  const problem = found
    ? null
    : {
        n: rows + 1,
        problem: `The hash ${knownHead} is not in the log: rows after row ${rows} may have been cut off.`,
      };
  return { rows, head: last?.hash ?? genesis, problem };
}
