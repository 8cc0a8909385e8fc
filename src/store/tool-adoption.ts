/** How many conversations were offered tools and used one, by kind of task; and the last such look of a worker, for /metrics. */
import { sql } from 'kysely';
import type { Origin } from '../collect/trajectory.ts';
import type { Adoption } from '../score/tool-adoption.ts';
import { addDays, dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';

type Row = { readonly taskType: string; readonly tool: string | null; readonly offered: number; readonly used: number };

/** Of conversations with a turn in the window that offered tools and was answered. From the turns alone: one pass over the days, no join. */
export const readAdoption = async (
  store: Store,
  { agent, origin, since, until }: { agent: string; origin: Origin; since: Date; until: Date },
): Promise<Adoption[]> => {
  const { rows } = await sql<Row>`
    with talks as materialized (
      select trajectory,
        coalesce((array_agg(task_type order by started_at) filter (where task_type is not null))[1], 'unknown') as task_type,
        array_agg(distinct tool) filter (where tool is not null) as tools
      from pawl.turns left join lateral unnest(tools_called) as tool on true
      where agent = ${agent} and origin = ${origin} and tools_called is not null and status = 'ok'
        and started_at >= ${since} and started_at < ${until} and day between ${dayOf(since)} and ${addDays(dayOf(until), 1)}
      group by trajectory
    )
    select task_type as "taskType", null as tool, count(*)::integer as offered, count(tools)::integer as used
    from talks group by 1
    union all
    (select task_type, tool, count(*)::integer, count(*)::integer from talks, unnest(tools) as tool group by 1, 2
     order by 3 desc, 1, 2 limit 10000)`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Counting which tools conversations of ${agent} used`);
    });
  const found = new Map<string, { taskType: string; offered: number; used: number; tools: Map<string, number> }>();
  for (const { taskType, tool, offered, used } of rows)
    if (tool === null) found.set(taskType, { taskType, offered, used, tools: new Map() });
  for (const { taskType, tool, used } of rows) if (tool !== null) found.get(taskType)!.tools.set(tool, used);
  return [...found.values()]
    .map(({ tools, ...rest }) => ({
      ...rest,
      tools: [...tools].map(([name, conversations]) => ({ name, conversations })),
    }))
    .sort((a, b) => b.offered - a.offered || (a.taskType < b.taskType ? -1 : 1));
};

export type AdoptionLook = {
  readonly agent: string;
  readonly taskType: string;
  readonly offered: number;
  readonly used: number;
};

/** In place of the look before it. */
export const keepAdoptionLook = async (
  store: Store,
  agent: string,
  found: readonly Adoption[],
  at: Date,
): Promise<void> => {
  try {
    await store.db.transaction().execute(async (db) => {
      await sql`delete from pawl.tool_adoption where agent = ${agent}`.execute(db);
      await sql`insert into pawl.tool_adoption (agent, task_type, offered, used, at)
        select ${agent}, x.task_type, x.offered, x.used, ${at} from unnest(${found.map(({ taskType }) => taskType)}::text[],
          ${found.map(({ offered }) => offered)}::integer[], ${found.map(({ used }) => used)}::integer[])
          as x(task_type, offered, used) on conflict do nothing`.execute(db);
    });
  } catch (error) {
    throw storeError(error, `Writing down which tools conversations of ${agent} used`);
  }
};

export const readAdoptionLooks = async (store: Store): Promise<AdoptionLook[]> => {
  const { rows } = await sql<AdoptionLook>`select agent, task_type as "taskType", offered, used from pawl.tool_adoption
    order by agent, offered desc, task_type limit 1000`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading which tools conversations used');
    });
  return rows;
};
