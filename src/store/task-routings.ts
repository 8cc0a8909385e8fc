/** Which types of task another release answers than the one that serves. Why is deploy/task-routing.ts's business; this file keeps it. */
import type { ColumnType } from 'kysely';
import type { TaskRoute, TaskRouting } from '../deploy/task-routing.ts';
import { type Store, storeError } from './postgres.ts';

type Tables = {
  task_routings: Omit<TaskRouting, 'types' | 'at'> & {
    types: ColumnType<readonly TaskRoute[], string, string>;
    at: Date;
  };
};
const tables = (store: Pick<Store, 'db'>) => store.db.withTables<Tables>();

export const putTaskRouting = async (db: Store['db'], { types, at, ...routing }: TaskRouting): Promise<void> => {
  const row = { ...routing, types: JSON.stringify(types), at: new Date(at) };
  await tables({ db })
    .insertInto('task_routings')
    .values(row)
    .onConflict((conflict) => conflict.column('agent').doUpdateSet(row))
    .execute()
    .catch((error) => {
      throw storeError(error, `Routing the types of task of agent ${routing.agent}`);
    });
};

export const readTaskRouting = async (store: Pick<Store, 'db'>, agent: string): Promise<TaskRouting | null> => {
  const row = await tables(store)
    .selectFrom('task_routings')
    .selectAll()
    .where('agent', '=', agent)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Reading how types of task of agent ${agent} are routed`);
    });
  return row ? { ...row, at: row.at.getTime() } : null;
};
