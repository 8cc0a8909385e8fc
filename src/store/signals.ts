/**
 * Which signals are about a trajectory. They point at it directly, at one of its turns, or at a business key that was
 * attached to either; what points where is decided when reading, because each of the three may arrive first.
 */
import type { Selectable } from 'kysely';
import type { Signal } from '../collect/signal.ts';
import { type Store, storeError } from './postgres.ts';
import type { SignalsTable } from './tables.ts';

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
};

/** The signals, oldest first, and the business keys of a trajectory. */
export const listSignals = async (store: Store, { agent, trajectory, turns }: SignalsOf) => {
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
      .execute();
    const keys = attached.map(({ key }) => key);
    const rows = await store.db
      .selectFrom('signals')
      .selectAll()
      .where('agent', '=', agent)
      .where((where) =>
        where.or([
          where.and([where('target_kind', '=', 'trajectory'), where('target_id', '=', trajectory)]),
          where.and([where('target_kind', '=', 'turn'), where('target_id', '=', where.fn.any(where.val(turns)))]),
          where.and([where('target_kind', '=', 'key'), where('target_id', '=', where.fn.any(where.val(keys)))]),
        ]),
      )
      .orderBy('at')
      .orderBy('identity')
      .execute();
    return { signals: rows.map(signalOf), keys };
  } catch (error) {
    throw storeError(error, `Reading the signals of trajectory ${trajectory}`);
  }
};
