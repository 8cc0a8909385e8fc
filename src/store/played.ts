/** What releases answered to cases, by what decided it. Kept for a month: long enough for the candidates of a baseline. */
import type { Attempt } from '../evaluate/match.ts';
import { type Store, storeError } from './postgres.ts';
import { storableJson } from './storable.ts';

const keptDays = 30;

type Row = { key: string; attempts: Attempt[] };

/** By key; what is not known is not in it. */
export const readPlayed = async (store: Store, keys: readonly string[]): Promise<Map<string, Attempt[]>> => {
  const { rows } = await store.pool
    .query<Row>('select key, attempts from pawl.played where key = any($1::text[])', [[...keys]])
    .catch((error) => {
      throw storeError(error, 'Reading what was played before');
    });
  return new Map(rows.map(({ key, attempts }) => [key, attempts]));
};

/** Writes all of them, once each, and forgets what is older than a month. */
export const savePlayed = async (
  store: Store,
  of: { readonly agent: string; readonly release: string; readonly at: Date },
  played: ReadonlyMap<string, readonly Attempt[]>,
): Promise<void> => {
  const rows = [...played].map(([key, attempts]) => ({ key, attempts }));
  await store.pool
    .query(
      `insert into pawl.played (key, agent, release, attempts, at)
       select key, $2, $3, attempts, $4 from json_to_recordset($1::json) as x(key text, attempts jsonb)
       on conflict (key) do nothing`,
      [storableJson(JSON.stringify(rows)), of.agent, of.release, of.at],
    )
    .catch((error) => {
      throw storeError(error, 'Keeping what was played');
    });
  const before = new Date(of.at.getTime() - keptDays * 86_400_000);
  await store.pool.query('delete from pawl.played where at < $1', [before]).catch((error) => {
    throw storeError(error, 'Forgetting what was played long ago');
  });
};
