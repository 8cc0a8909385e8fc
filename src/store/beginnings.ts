/** Which release a conversation was begun with, for a gateway that did not see it begin. */
import type { Store } from './postgres.ts';

/** Where the candidate failed and the baseline answered, it was still begun with the candidate. A conversation of more than a week is not looked for. */
const query = `
select coalesce(x.assigned, x.release) as release from pawl.turns x
where x.trajectory = $1 and x.agent = $2 and x.day >= ($3::timestamptz at time zone 'UTC')::date - 7
order by x.started_at limit 1`;

export async function firstRelease(
  store: Pick<Store, 'pool'>,
  { agent, trajectory }: { readonly agent: string; readonly trajectory: string },
  now: number,
): Promise<string | null> {
  const { rows } = await store.pool.query<{ release: string | null }>(query, [trajectory, agent, new Date(now)]);
  return rows[0]?.release ?? null;
}
