/** Whether releases fit where they are to serve, as it was last found. */
import type { Compatibility } from '../evaluate/compatibility.ts';
import { type Store, storeError } from './postgres.ts';
import { storableJson } from './storable.ts';

export const saveCompatibility = async (store: Store, found: Compatibility): Promise<void> => {
  await store.pool
    .query(
      `insert into pawl.compatibility (agent, release, verdict, body, at) values ($1, $2, $3, $4::jsonb, $5)
       on conflict (agent, release) do update set verdict = excluded.verdict, body = excluded.body, at = excluded.at
       where pawl.compatibility.at <= excluded.at`,
      [found.agent, found.release, found.verdict, storableJson(JSON.stringify(found)), new Date(found.at)],
    )
    .catch((error) => {
      throw storeError(error, `Saving whether ${found.release} fits`);
    });
};

/** null: nobody has looked. */
export const readCompatibility = async (
  store: Store,
  of: { readonly agent: string; readonly release: string },
): Promise<Compatibility | null> => {
  const { rows } = await store.pool
    .query<{ body: Compatibility }>('select body from pawl.compatibility where agent = $1 and release = $2', [
      of.agent,
      of.release,
    ])
    .catch((error) => {
      throw storeError(error, `Reading whether ${of.release} fits`);
    });
  return rows[0]?.body ?? null;
};
