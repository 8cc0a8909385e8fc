/** Keeps the key ring equal to the database, and tells the database which keys were used and as of when they are known. */
import type { Logger } from 'pino';
import { follow } from '../store/follow.ts';
import { type ActiveKey, activeKeys, keysChannel, touchKeys } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import { databaseTime, reportGateway } from '../store/processes.ts';
import type { ClientKey, KeyRing } from './keys.ts';

/** `gateway` names this one among all that share the database. */
export function watchKeys(
  store: Store,
  ring: Pick<KeyRing, 'replace' | 'takeUsed'>,
  log: Logger,
  gateway: string,
): Promise<{ close(): Promise<void> }> {
  const refresh = async () => {
    const readAt = await databaseTime(store); // what was committed by then is seen by the next statement
    const keys = await activeKeys(store);
    ring.replace(new Map(keys.map((key) => [key.hash, clientKeyOf(key)])));
    await reportGateway(store, gateway, 'keys_read_at', readAt);
    await touchKeys(store, ring.takeUsed());
  };
  return follow(store, { channel: keysChannel, name: 'keys', refresh }, log);
}

/**
 * Without when it was used last, which changes all the time: the gateway keeps what it knows on disk (last-known.ts), and waiting for a disk
 * every few seconds is nothing for the thread that answers.
 */
const clientKeyOf = ({ id, agent, name, origin, scopes, rateLimit }: ActiveKey): ClientKey => ({
  ...{ id, agent, name, origin, scopes, rateLimit },
});
