/** Revoking a key and seeing that it has taken effect: it has, once every gateway has read the keys since. */
import { setTimeout as sleep } from 'node:timers/promises';
import { endKey } from '../client-keys.ts';
import { keysChannel } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import { databaseTime, type Gateway, gatewaysBehind } from '../store/processes.ts';

const lookEveryMs = 100;

/** The gateways that may still accept the key when `waitMs` are over, none if all have confirmed; null: no such key. */
export async function revokeEverywhere(
  store: Store,
  id: string,
  actor: string,
  waitMs: number,
): Promise<Gateway[] | null> {
  if (!(await endKey(store, id, actor))) return null;
  const since = await databaseTime(store);
  // Revoking a second time changes nothing, and so announces nothing by itself.
  await store.pool.query('select pg_notify($1, $2)', [keysChannel, id]);
  for (const end = Date.now() + waitMs; ; await sleep(lookEveryMs)) {
    const behind = await gatewaysBehind(store, since);
    if (behind.length === 0 || Date.now() >= end) return behind;
  }
}

/** What is to be said of gateways that have not confirmed. */
export const unconfirmedBy = (gateways: readonly Gateway[]): string =>
  `Not confirmed yet by ${gateways.map(({ id, seenAt }) => `${id} (last heard from at ${seenAt.toISOString()})`).join(', ')}: ` +
  'the key may still work there until it reaches the database again. Stop that gateway if it must not; if it no longer runs, nothing is left to do.';
