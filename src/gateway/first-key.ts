/**
 * The client key that a first start makes. The token is shown before the key is kept: the transaction ends after `show`, so
 * that there is never a key which nobody has seen, whatever ends the start in between.
 */
import { sql } from 'kysely';
import { makeKey } from '../client-keys.ts';
import { listKeys } from '../store/keys.ts';
import { type Store, storeError } from '../store/postgres.ts';

/** Two gateways that start at once on one database make one first key. */
const lock = 0x6b657973; // 'keys' in ASCII

/** Enough to see the whole of Pawl with one key; keys that go to users' machines should have less. */
const firstScopes = ['call', 'feedback', 'outcomes'] as const;

/** Those that commands made for an evaluation and ended are nobody's. */
const hasKeys = async (store: Store): Promise<boolean> =>
  (await listKeys(store)).some(({ origin }) => origin !== 'evaluation');

export async function makeFirstKey(store: Store, agent: string, show: (token: string) => Promise<void>): Promise<void> {
  if (await hasKeys(store)) return;
  try {
    await store.db.transaction().execute(async (db) => {
      const within = { ...store, db };
      await sql`select pg_advisory_xact_lock(${lock})`.execute(db);
      if (await hasKeys(within)) return;
      const { token } = await makeKey(within, { agent, name: 'first', scopes: firstScopes }, 'pawl');
      await show(token);
    });
  } catch (error) {
    throw storeError(error, 'Making the first client key');
  }
}
