/**
 * The proof that a user was forgotten: what was asked and done stands in the audit log, whose chain is whole, and a fresh look at
 * every table finds nothing. Reads only.
 */
import { verifyAudit } from '../audit.ts';
import { readAudit } from '../store/audit.ts';
import { erasuresOf, surveyUser } from '../store/erasures.ts';
import type { Store } from '../store/postgres.ts';
import type { ErasedCounts, Erasure } from './erasure.ts';

export type ErasureProof = {
  /** Hash. */
  readonly user: string;
  readonly erasures: readonly (Erasure & {
    /** Its lines in the audit log: number, event, and the hash that covers all before it. */
    readonly audit: readonly {
      readonly n: number;
      readonly event: string;
      readonly at: number;
      readonly hash: string;
    }[];
  })[];
  readonly chain: { readonly rows: number; readonly head: string; readonly problem: string | null };
  /** What is stored of the user now: of before, or of what they said since. */
  readonly stored: ErasedCounts;
  readonly datasets: readonly string[];
  readonly verified: boolean;
};

export async function verifyErasure(store: Store, user: string): Promise<ErasureProof> {
  const erasures = await Promise.all(
    (await erasuresOf(store, user)).map(async (erasure) => {
      const rows = await readAudit(store, { subject: erasure.id, oldestFirst: true });
      return { ...erasure, audit: rows.map(({ n, event, at, hash }) => ({ n, event, at, hash })) };
    }),
  );
  const { rows, head, problem } = await verifyAudit(store);
  const { counts: stored, datasets } = await surveyUser(store, user, null);
  const isDone = erasures.length > 0 && erasures.every(({ status }) => status === 'done');
  const isTold = erasures.every(({ audit }) => audit.some(({ event }) => event === 'erasure-done'));
  const isGone = datasets.length === 0 && Object.values(stored).every((n) => n === 0);
  return {
    user,
    erasures,
    chain: { rows, head, problem: problem?.problem ?? null },
    stored,
    datasets: datasets.map(({ id }) => id),
    verified: isDone && isTold && isGone && problem === null,
  };
}
