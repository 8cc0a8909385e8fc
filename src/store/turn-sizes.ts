/**
 * How large turns are, asked before any of them is read. A document of a few hundred kilobytes on disk can be close to a
 * gigabyte as text (numbers are written out in full), more than a process survives; so every reader asks here first and
 * reads only what fits.
 *
 * A turn says its own size. One from before each message was stored once does not, and has two: `held` is what the database
 * keeps, unpacked, and costs little to tell. `bytes` is what it would send, and telling it means writing it; that is done only
 * for as much of a trajectory as is held in the limit, so that asking costs the database little too, whatever is in there.
 */
import { type SelectQueryBuilder, sql } from 'kysely';
import type { Store } from './postgres.ts';
import type { Tables } from './tables.ts';

export type TurnSize = {
  readonly id: string;
  readonly trajectory: string;
  readonly startedAt: number;
  /** As text, with its token arrays; null: not known, because it, or what comes before it, is held in more than the limit. */
  readonly bytes: number | null;
  /** It alone is larger than the limit. */
  readonly tooLarge: boolean;
};

const arrays = sql<number>`16 * (coalesce(cardinality(prompt_token_ids), 0) + coalesce(cardinality(token_ids), 0)
  + coalesce(cardinality(logprobs), 0))`;
/** The empty path gives the whole document, unpacked. */
const held = sql<number>`coalesce(pg_column_size(request #> '{}') + coalesce(pg_column_size(choices #> '{}'), 0), content_bytes, 0)
  + coalesce(pg_column_size(usage #> '{}'), 0) + ${arrays}`;
const written = sql<number>`coalesce(octet_length(request::text) + coalesce(octet_length(choices::text), 0), content_bytes, 0)
  + coalesce(octet_length(usage::text), 0) + ${arrays}`;

/** Of the turns that the query finds, by start; `most` counts for each trajectory by itself. */
export async function turnSizes(
  store: Store,
  turns: SelectQueryBuilder<Tables, 'turns', object>,
  most: number,
): Promise<TurnSize[]> {
  const found = turns
    .select(['id', 'trajectory', 'started_at', 'request', 'choices', 'content_bytes', 'usage'])
    .select(['prompt_token_ids', 'token_ids', 'logprobs', held.as('held')]);
  const counted = store.db
    .selectFrom(found.as('found'))
    .selectAll()
    .select(
      sql<number>`sum(case when held > ${most} then 0 else held end)
        over (partition by trajectory order by started_at, id)`.as('so_far'),
    );
  const rows = await store.db
    .selectFrom(counted.as('counted'))
    .select(['id', 'trajectory', 'started_at', 'held'])
    .select(sql<number | null>`case when held <= ${most} and so_far <= ${most} then ${written} end`.as('bytes'))
    .orderBy('started_at')
    .orderBy('id')
    .execute();
  return rows.map(({ id, trajectory, started_at: at, held: kept, bytes }) => ({
    id,
    trajectory,
    startedAt: at.getTime(),
    bytes,
    tooLarge: kept > most || (bytes ?? 0) > most,
  }));
}
