/** Who gets one release whatever is rolled out: a client key, or a user by the hash of their id. */
import { type Store, storeError } from './postgres.ts';

export type Pin = {
  readonly agent: string;
  readonly kind: 'key' | 'user';
  /** Id of the key, or the user's hash. */
  readonly value: string;
  /** Id of the release. */
  readonly release: string;
  readonly by: string;
  readonly at: number; // ms since epoch
};

type PinTables = { pins: Omit<Pin, 'at'> & { at: Date } };

export const putPin = async (db: Store['db'], pin: Pin): Promise<void> => {
  const row = { ...pin, at: new Date(pin.at) };
  await db
    .withTables<PinTables>()
    .insertInto('pins')
    .values(row)
    .onConflict((conflict) => conflict.columns(['agent', 'kind', 'value']).doUpdateSet(row))
    .execute()
    .catch((error) => {
      throw storeError(error, `Pinning a ${pin.kind} of agent ${pin.agent}`);
    });
};

/** Whether there was one. */
export const removePin = async (
  db: Store['db'],
  { agent, kind, value }: Pick<Pin, 'agent' | 'kind' | 'value'>,
): Promise<boolean> => {
  const { numDeletedRows } = await db
    .withTables<PinTables>()
    .deleteFrom('pins')
    .where('agent', '=', agent)
    .where('kind', '=', kind)
    .where('value', '=', value)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Removing a pin of agent ${agent}`);
    });
  return numDeletedRows > 0n;
};

export const listPins = async (store: Pick<Store, 'db'>, agent: string): Promise<Pin[]> => {
  const rows = await store.db
    .withTables<PinTables>()
    .selectFrom('pins')
    .selectAll()
    .where('agent', '=', agent)
    .orderBy('at', 'desc')
    .limit(1000)
    .execute()
    .catch((error) => {
      throw storeError(error, `Listing the pins of agent ${agent}`);
    });
  return rows.map(({ at, ...pin }) => ({ ...pin, at: at.getTime() }));
};
