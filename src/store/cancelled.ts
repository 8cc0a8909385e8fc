/** Which conversations hold a call that its caller left before the answer was complete. Read when somebody looks at a list. */
import type { Trajectory } from '../collect/trajectory.ts';
import { type Store, storeError } from './postgres.ts';

export async function cancelledAmong<T extends Pick<Trajectory, 'agent' | 'id' | 'startedAt' | 'endedAt'>>(
  store: Store,
  page: readonly T[],
): Promise<ReadonlySet<T>> {
  if (page.length === 0) return new Set();
  const { rows } = await store.pool
    .query<{ nth: number }>(
      `select w.nth from unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) with ordinality w(agent, id, since, until, nth)
       where exists (select 1 from pawl.turns t where t.trajectory = w.id and t.agent = w.agent and t.status = 'disconnected'
                       and t.day between (w.since at time zone 'UTC')::date and (w.until at time zone 'UTC')::date)`,
      [
        page.map(({ agent }) => agent),
        page.map(({ id }) => id),
        page.map(({ startedAt }) => startedAt),
        page.map(({ endedAt }) => endedAt),
      ],
    )
    .catch((error) => {
      throw storeError(error, 'Looking for calls that were cancelled');
    });
  return new Set(rows.map(({ nth }) => page[nth - 1]!));
}
