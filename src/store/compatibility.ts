/** Whether releases fit where they are to serve, as it was last found. */
import { sql } from 'kysely';
import type { Compatibility } from '../evaluate/compatibility.ts';
import { type Store, storeError } from './postgres.ts';
import { storableJson } from './storable.ts';

export const saveCompatibility = async ({ db }: Pick<Store, 'db'>, found: Compatibility): Promise<void> => {
  const body = storableJson(JSON.stringify(found));
  await sql`insert into pawl.compatibility (agent, release, verdict, body, at)
    values (${found.agent}, ${found.release}, ${found.verdict}, ${body}::jsonb, ${new Date(found.at)})
    on conflict (agent, release) do update set verdict = excluded.verdict, body = excluded.body, at = excluded.at
    where pawl.compatibility.at <= excluded.at`
    .execute(db)
    .catch((error) => {
      throw storeError(error, `Saving whether ${found.release} fits`);
    });
};

/** null: nobody has looked. */
export const readCompatibility = async (
  { db }: Pick<Store, 'db'>,
  of: { readonly agent: string; readonly release: string },
): Promise<Compatibility | null> => {
  const { rows } = await sql<{ body: Compatibility }>`
    select body from pawl.compatibility where agent = ${of.agent} and release = ${of.release}`
    .execute(db)
    .catch((error) => {
      throw storeError(error, `Reading whether ${of.release} fits`);
    });
  return rows[0]?.body ?? null;
};
