/**
 * Which gateways there are and how new the keys are that they know, by the database's own clock. A gateway says so each time
 * it has read the keys; one that ends in order takes its row away, and one that was killed is forgotten after an hour.
 */
import { type Store, storeError } from './postgres.ts';

/** `id` names the machine and the data folder, so that a gateway that starts again is the same. */
export type Gateway = { readonly id: string; readonly seenAt: Date };

const failed = (doing: string) => (error: unknown) => {
  throw storeError(error, doing);
};

/** Microseconds matter: a Date would cut them off. */
export const databaseTime = async (store: Store): Promise<string> => {
  const answer = await store.pool
    .query<{ at: string }>('select clock_timestamp()::text as at')
    .catch(failed('Reading the database’s clock'));
  return answer!.rows[0]!.at;
};

/** Says that `id` knows all keys as they were at `readAt`. */
export const reportGateway = async (store: Store, id: string, readAt: string): Promise<void> => {
  await store.pool
    .query(
      `insert into pawl.gateways as g (id, keys_read_at) values ($1, $2::timestamptz)
       on conflict (id) do update set keys_read_at = greatest(g.keys_read_at, excluded.keys_read_at), seen_at = now()`,
      [id, readAt],
    )
    .catch(failed('Reporting this gateway'));
};

export const removeGateway = async (store: Store, id: string): Promise<void> => {
  await store.pool
    .query(`delete from pawl.gateways where id = $1 or seen_at < now() - interval '1 hour'`, [id])
    .catch(failed('Taking this gateway off the list'));
};

/** Gateways that have not read the keys since, as far as anybody knows. */
export const gatewaysBehind = async (store: Store, since: string): Promise<Gateway[]> => {
  const answer = await store.pool
    .query<Gateway>(
      `select id, seen_at as "seenAt" from pawl.gateways
       where keys_read_at < $1::timestamptz and seen_at > now() - interval '1 hour' order by id`,
      [since],
    )
    .catch(failed('Asking which gateways know the keys'));
  return answer!.rows;
};
