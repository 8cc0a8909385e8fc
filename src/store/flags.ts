/** Switches of agents in Postgres. What each governs is deploy/flag.ts's business; one that nobody turned is on. */
import { type Store, storeError } from './postgres.ts';

export type StoredFlag = {
  readonly agent: string;
  readonly name: string;
  readonly isOn: boolean;
  readonly by: string;
  readonly reason: string;
  readonly at: number; // ms since epoch
};

type FlagTables = {
  flags: Pick<StoredFlag, 'agent' | 'name' | 'by' | 'reason'> & { is_on: boolean; at: Date };
};
const tables = (store: Pick<Store, 'db'>) => store.db.withTables<FlagTables>();

export const putFlag = async (db: Store['db'], { isOn, at, ...flag }: StoredFlag): Promise<void> => {
  const row = { ...flag, is_on: isOn, at: new Date(at) };
  await tables({ db })
    .insertInto('flags')
    .values(row)
    .onConflict((conflict) => conflict.columns(['agent', 'name']).doUpdateSet(row))
    .execute()
    .catch((error) => {
      throw storeError(error, `Switching ${flag.name} of agent ${flag.agent}`);
    });
};

/** Those that somebody turned. */
export const readFlags = async (store: Pick<Store, 'db'>, agent: string): Promise<StoredFlag[]> => {
  const rows = await tables(store)
    .selectFrom('flags')
    .selectAll()
    .where('agent', '=', agent)
    .execute()
    .catch((error) => {
      throw storeError(error, `Reading the flags of agent ${agent}`);
    });
  return rows.map(({ is_on, at, ...flag }) => ({ ...flag, isOn: is_on, at: at.getTime() }));
};

export const isFlagOn = async (store: Pick<Store, 'db'>, agent: string, name: string): Promise<boolean> =>
  (await readFlags(store, agent)).find((flag) => flag.name === name)?.isOn ?? true;
