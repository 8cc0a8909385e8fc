/**
 * What came with a client key after it was revoked: a gateway that could not reach its database went on taking the key. Asked as
 * the lines are written, so before anything can learn from them. A key that the database does not know vouches for nothing.
 */
import type { Signal } from '../collect/signal.ts';
import type { Line } from './line.ts';
import { type Store, storeError } from './postgres.ts';

/** For each line whose key was revoked by then, when that was, in words. */
export async function revokedBefore<L extends Line>(
  store: Store,
  lines: readonly L[],
): Promise<ReadonlyMap<L, string>> {
  const signed = lines.flatMap((line) => (line.by === undefined ? [] : [{ line, by: line.by }]));
  if (signed.length === 0) return new Map();
  const { rows } = await store.pool
    .query<{ id: string; revoked_at: Date | null }>('select id, revoked_at from pawl.keys where id = any($1::uuid[])', [
      [...new Set(signed.map(({ by }) => by))],
    ])
    .catch((error) => {
      throw storeError(error, 'Reading which keys are revoked');
    });
  const keys = new Map(rows.map((row) => [row.id, row.revoked_at]));
  const found = new Map<L, string>();
  for (const { line, by } of signed) {
    const revokedAt = keys.get(by);
    if (revokedAt === undefined) found.set(line, `No key ${by} is known.`);
    else if (revokedAt !== null && arrivedAt(line) >= revokedAt.getTime())
      found.set(line, `Its key ${by} had been revoked at ${revokedAt.toISOString()}.`);
  }
  return found;
}

/** When it came, by the gateway's clock: when a signal is said to have happened is its sender's word. */
const arrivedAt = ({ kind, at, json }: Line): number =>
  kind === 'signal' ? (JSON.parse(json.toString()) as Signal).receivedAt : at;
