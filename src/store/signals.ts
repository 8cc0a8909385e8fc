/**
 * Which signals are about a trajectory. They point at it directly, at one of its turns, or at a business key that was
 * attached to either; what points where is decided when reading, because each of the three may arrive first.
 */
import { type Selectable, sql } from 'kysely';
import type { Signal } from '../collect/signal.ts';
import { type Store, storeError } from './postgres.ts';
import type { SignalsTable } from './tables.ts';

/** Every column but those whose size others choose. */
export const signalFacts = [
  ...(['agent', 'identity', 'id', 'target_kind', 'target_id', 'kind', 'name', 'value', 'unit'] as const),
  ...(['user_id', 'key_id', 'at', 'received_at'] as const),
] as const;

export const signalOf = (row: Selectable<SignalsTable>): Signal => ({
  id: row.id,
  identity: row.identity,
  agent: row.agent,
  target: { kind: row.target_kind, id: row.target_id },
  kind: row.kind,
  name: row.name,
  value: row.value,
  unit: row.unit,
  user: row.user_id,
  key: row.key_id,
  comment: row.comment,
  correction: row.correction,
  at: plausible(row.at) ? row.at.getTime() : row.received_at.getTime(),
  receivedAt: row.received_at.getTime(),
});

/** Whatever wrote it, a time that JavaScript cannot hold must not make the whole trajectory unreadable. */
const plausible = (at: Date | number | null): at is Date => at instanceof Date && !Number.isNaN(at.getTime());

export type SignalsOf = {
  readonly agent: string;
  readonly trajectory: string;
  /** Ids of its turns. */
  readonly turns: readonly string[];
  /** Of comments and corrections together; those of the latest signals come first. */
  readonly maxBytes: number;
};

/** One trajectory has a handful of each; who sends more does not fill the memory of who reads. */
const maxSignals = 1000;
const maxKeys = 1000;
const lengthOf = sql<number>`coalesce(octet_length(comment), 0) + coalesce(octet_length(correction), 0)`;

/** The latest signals, oldest of them first, and the business keys of a trajectory. `cut`: there are more. */
export const listSignals = async (store: Store, { agent, trajectory, turns, maxBytes }: SignalsOf) => {
  try {
    const attached = await store.db
      .selectFrom('trajectory_keys')
      .select('key')
      .distinct()
      .where('agent', '=', agent)
      .where((where) =>
        where.or([
          where.and([where('target_kind', '=', 'trajectory'), where('target_id', '=', trajectory)]),
          where.and([where('target_kind', '=', 'turn'), where('target_id', '=', where.fn.any(where.val(turns)))]),
        ]),
      )
      .orderBy('key')
      .limit(maxKeys + 1)
      .execute();
    const keys = attached.slice(0, maxKeys).map(({ key }) => key);
    const about = store.db
      .selectFrom('signals')
      .selectAll()
      .select(sql<number>`sum(${lengthOf}) over (order by at desc, identity)`.as('so_far'))
      .where('agent', '=', agent)
      .where((where) =>
        where.or([
          where.and([where('target_kind', '=', 'trajectory'), where('target_id', '=', trajectory)]),
          where.and([where('target_kind', '=', 'turn'), where('target_id', '=', where.fn.any(where.val(turns)))]),
          where.and([where('target_kind', '=', 'key'), where('target_id', '=', where.fn.any(where.val(keys)))]),
        ]),
      )
      .orderBy('at', 'desc')
      .orderBy('identity')
      .limit(maxSignals + 1);
    const fits = (column: 'comment' | 'correction') =>
      sql<string | null>`case when so_far <= ${maxBytes} then ${sql.ref(column)} end`.as(column);
    const rows = await store.db
      .selectFrom(about.as('about'))
      .select(signalFacts)
      .select(['so_far', fits('comment'), fits('correction')])
      .orderBy('at')
      .orderBy('identity')
      .execute();
    const cut = rows.length > maxSignals || attached.length > maxKeys || rows.some((row) => row.so_far > maxBytes);
    return { signals: rows.slice(-maxSignals).map(signalOf), keys, cut };
  } catch (error) {
    throw storeError(error, `Reading the signals of trajectory ${trajectory}`);
  }
};
