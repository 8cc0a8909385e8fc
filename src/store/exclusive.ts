/**
 * One at a time over all processes of a database: work under an advisory lock that the server lets go when this process, its
 * connection or its machine is gone. The lock has a connection of its own for as long as the work takes, and none before.
 */
import { type Store, storeError } from './postgres.ts';

/** Null: somebody else is at it. `work` is told when the lock is lost, and must come to an end then. */
export async function exclusively<T>(
  store: Store,
  name: string,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<{ readonly done: T } | null> {
  const client = await store.pool.connect().catch((error) => {
    throw storeError(error, `Taking the lock ${name}`);
  });
  const lost = new AbortController();
  const onEnd = () => lost.abort(new Error(`The connection that held the lock ${name} broke.`));
  client.on('end', onEnd);
  client.on('error', onEnd);
  let broken = true;
  try {
    const { rows } = await client
      .query<{ taken: boolean }>('select pg_try_advisory_lock(hashtextextended($1, 0)) as taken', [name])
      .catch((error) => {
        throw storeError(error, `Taking the lock ${name}`);
      });
    if (!rows[0]!.taken) {
      broken = false;
      return null;
    }
    try {
      return { done: await work(lost.signal) };
    } finally {
      await client.query('select pg_advisory_unlock(hashtextextended($1, 0))', [name]).then(
        () => {
          broken = false;
        },
        () => {}, // the connection is closed below, and the lock goes with it
      );
    }
  } finally {
    client.off('end', onEnd);
    client.off('error', onEnd);
    client.release(broken);
  }
}
