/** Whose the conversations of a dataset are, as far as they are still stored: who took part and with which client keys. */
import { sql } from 'kysely';
import { type Store, storeError } from './postgres.ts';

export type Owners = { readonly users: readonly string[]; readonly keys: readonly string[] };

/** By `day trajectory`. */
export const readOwners = async (store: Store, dataset: string): Promise<Map<string, Owners>> => {
  const { rows } = await sql<Owners & { day: string; trajectory: string }>`
    select r.day, r.trajectory, r.users, coalesce((
      select array_agg(distinct x.client_key) from pawl.turns x where x.trajectory = r.trajectory and x.agent = r.agent
        and x.day between r.day - 7 and r.day + 7 and x.client_key is not null), '{}') as keys
    from pawl.dataset_rows r where r.dataset = ${dataset}`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading whose conversations are in dataset ${dataset}`);
    });
  return new Map(rows.map(({ day, trajectory, users, keys }) => [`${day} ${trajectory}`, { users, keys }]));
};

/** What people wrote beside conversations of a window, a page at a time. */
export async function* readComments(
  store: Store,
  { agent, since, until }: { readonly agent: string; readonly since: Date; readonly until: Date },
): AsyncGenerator<{ readonly id: string; readonly text: string }> {
  const size = 1000;
  for (let after = ''; ; ) {
    const { rows } = await sql<{ identity: string; id: string; text: string }>`
      select identity, id, concat_ws(E'\n', comment, correction) as text from pawl.signals
      where agent = ${agent} and received_at >= ${since} and received_at < ${until}::timestamptz + interval '7 days'
        and (comment <> '' or correction <> '') and identity > ${after} order by identity limit ${size}`
      .execute(store.db)
      .catch((error) => {
        throw storeError(error, 'Reading comments');
      });
    yield* rows;
    if (rows.length < size) return;
    after = rows.at(-1)!.identity;
  }
}
