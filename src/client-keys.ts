/** Client keys as somebody makes and ends them: the key and its row in the audit log stand together, or neither does. */
import { audit } from './audit.ts';
import { createKey, type Key, type NewKey, revokeKey } from './store/keys.ts';
import { type Store, storeError } from './store/postgres.ts';

/** Makes a key. The token is in this answer and nowhere else. `store` may be of a transaction that has more to do. */
export const makeKey = (store: Store, asked: NewKey, actor: string): Promise<{ key: Key; token: string }> =>
  together(store, `Making the key '${asked.name}'`, async (within) => {
    const made = await createKey(within, asked);
    const { id, agent, name, prefix, origin, scopes, rateLimit, region, tenant, createdAt } = made.key;
    const details = { name, prefix, origin, scopes, rateLimit, region, tenant };
    await audit(within.db, { agent, actor, event: 'key-created', subject: id, details, at: createdAt.getTime() });
    return made;
  });

/** Whether there is such a key. Revoking it a second time changes nothing and leaves no second row. */
export const endKey = (store: Store, id: string, actor: string): Promise<boolean> =>
  together(store, `Revoking key ${id}`, async (within) => {
    const found = await revokeKey(within, id);
    if (found === null) return false;
    const { agent, name } = found.key;
    if (found.revoked)
      await audit(within.db, { agent, actor, event: 'key-revoked', subject: id, details: { name }, at: Date.now() });
    return true;
  });

async function together<T>(store: Store, doing: string, work: (within: Store) => Promise<T>): Promise<T> {
  if (store.db.isTransaction) return work(store);
  try {
    return await store.db.transaction().execute((db) => work({ ...store, db }));
  } catch (error) {
    throw storeError(error, doing);
  }
}
