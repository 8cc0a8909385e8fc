/** Keeps the key ring equal to the database, and tells the database which keys were used and as of when they are known. */
import type { Logger } from 'pino';
import { follow } from '../store/follow.ts';
import { databaseTime, removeGateway, reportGateway } from '../store/gateways.ts';
import { activeKeys, keysChannel, touchKeys } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import type { KeyRing } from './keys.ts';

/** `gateway` names this one among all that share the database. */
export async function watchKeys(
  store: Store,
  ring: Pick<KeyRing, 'replace' | 'takeUsed'>,
  log: Logger,
  gateway: string,
): Promise<{ close(): Promise<void> }> {
  const refresh = async () => {
    const readAt = await databaseTime(store); // what was committed by then is seen by the next statement
    const keys = await activeKeys(store);
    ring.replace(new Map(keys.map((key) => [key.hash, key])));
    await reportGateway(store, gateway, readAt);
    await touchKeys(store, ring.takeUsed());
  };
  const following = await follow(store, { channel: keysChannel, name: 'keys', refresh }, log);
  return {
    async close() {
      await following.close();
      await removeGateway(store, gateway).catch(() => {});
    },
  };
}
