/** Keeps the key ring equal to the database, and tells the database which keys were used. */
import type { Logger } from 'pino';
import { follow } from '../store/follow.ts';
import { activeKeys, keysChannel, touchKeys } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import type { KeyRing } from './keys.ts';

export function watchKeys(
  store: Store,
  ring: Pick<KeyRing, 'replace' | 'takeUsed'>,
  log: Logger,
): Promise<{ close(): Promise<void> }> {
  const refresh = async () => {
    const keys = await activeKeys(store);
    ring.replace(new Map(keys.map((key) => [key.hash, key])));
    await touchKeys(store, ring.takeUsed());
  };
  return follow(store, { channel: keysChannel, name: 'keys', refresh }, log);
}
