/** Releases, and which of them answers an agent's traffic. The shapes are deploy/release.ts's; this file maps rows. */
import { type ColumnType, type Selectable, sql } from 'kysely';
import type { Release } from '../deploy/release.ts';
import { ConflictError } from '../errors.ts';
import { type Store, storeError } from './postgres.ts';

/** Who pulled an agent's kill switch, why and when (ms since epoch). */
export type Killed = { readonly by: string; readonly reason: string; readonly at: number };

export type ReleaseTables = {
  releases: Omit<Release, 'sampling' | 'prompt' | 'createdAt'> & {
    prompt: ColumnType<Release['prompt'], string | null, string | null>;
    sampling: ColumnType<Release['sampling'], string, string>;
    created_at: Date;
  };
  routes: {
    agent: string;
    release: string;
    aliases: string[];
    killed: ColumnType<Killed | null, string | null, string | null>;
    changed_at: Date;
  };
};

export const releaseOf = ({ created_at, ...row }: Selectable<ReleaseTables['releases']>): Release => ({
  ...row,
  createdAt: created_at.getTime(),
});

/** Whether it is new. Saving the same release again changes nothing. */
export const insertRelease = async (db: Store['db'], release: Release): Promise<boolean> => {
  const { createdAt, sampling, prompt, ...fields } = release;
  const inserted = await db
    .withTables<ReleaseTables>()
    .insertInto('releases')
    .values({
      ...fields,
      sampling: JSON.stringify(sampling),
      prompt: prompt === null ? null : JSON.stringify(prompt),
      created_at: new Date(createdAt),
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst()
    .catch((error) => {
      if ((error as { code?: string }).code === '23505')
        throw new ConflictError(
          `Agent ${release.agent} has another release named ${release.name}; names are used once, choose a new one.`,
        );
      throw storeError(error, `Saving release ${release.name}`);
    });
  return inserted !== undefined;
};

/** By id, or by an agent's name for it. */
export const readRelease = async (
  store: Store,
  which: { readonly id: string } | { readonly agent: string; readonly name: string },
): Promise<Release | null> => {
  let query = store.db.withTables<ReleaseTables>().selectFrom('releases').selectAll();
  query =
    'id' in which
      ? query.where('id', '=', which.id)
      : query.where('agent', '=', which.agent).where('name', '=', which.name);
  const row = await query.executeTakeFirst().catch((error) => {
    throw storeError(error, 'Reading a release');
  });
  return row ? releaseOf(row) : null;
};

/** What a release goes back to: the first in the line of its parents; itself where it has none. */
export const firstOfLine = async (store: Store, id: string): Promise<Release> => {
  const { rows } = await sql<{ id: string }>`
    with recursive line as (
      select id, parent, 0 as back from pawl.releases where id = ${id}
      union all
      select r.id, r.parent, line.back + 1 from pawl.releases r join line on r.id = line.parent
    ) cycle id set again using path
    select id from line where not again order by back desc limit 1`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading what a release goes back to');
    });
  return (await readRelease(store, { id: rows[0]!.id }))!;
};

/** Names of an agent's releases whose models learned from what is confidential. */
export const internalReleases = async (store: Store, agent: string): Promise<Set<string>> => {
  const rows = await store.db
    .withTables<ReleaseTables>()
    .selectFrom('releases')
    .select('name')
    .where('agent', '=', agent)
    .where('internal', '=', true)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Reading which releases are internal');
    });
  return new Set(rows.map(({ name }) => name));
};

export type ListedRelease = Release & {
  /** Whether it is its agent's release now. */
  readonly serving: boolean;
};

/** Newest first. */
export const listReleases = async (
  store: Store,
  filter: {
    readonly agent?: string | undefined;
    readonly upstream?: string;
    readonly model?: string;
    readonly limit?: number;
  } = {},
): Promise<ListedRelease[]> => {
  let query = store.db
    .withTables<ReleaseTables>()
    .selectFrom('releases')
    .leftJoin('routes', 'routes.release', 'releases.id')
    .selectAll('releases')
    .select('routes.release as routed');
  for (const column of ['agent', 'upstream', 'model'] as const)
    if (filter[column] !== undefined) query = query.where(`releases.${column}`, '=', filter[column]);
  const rows = await query
    .orderBy('releases.created_at', 'desc')
    .orderBy('releases.id')
    .limit(filter.limit ?? 50)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Listing releases');
    });
  return rows.map(({ routed, ...row }) => ({ ...releaseOf(row), serving: routed !== null }));
};

export const setRoute = async (
  db: Store['db'],
  route: {
    readonly agent: string;
    readonly release: string;
    readonly aliases?: readonly string[];
    readonly at: number;
  },
): Promise<void> => {
  const changed = {
    release: route.release,
    changed_at: new Date(route.at),
    ...(route.aliases === undefined ? {} : { aliases: [...route.aliases] }),
  };
  await db
    .withTables<ReleaseTables>()
    .insertInto('routes')
    .values({ agent: route.agent, aliases: [], killed: null, ...changed })
    .onConflict((conflict) => conflict.column('agent').doUpdateSet(changed))
    .execute()
    .catch((error) => {
      throw storeError(error, `Routing agent ${route.agent}`);
    });
};

/** False where the agent has a route already, which stays. */
export const setFirstRoute = async (
  db: Store['db'],
  route: { readonly agent: string; readonly release: string; readonly at: number },
): Promise<boolean> => {
  const inserted = await db
    .withTables<ReleaseTables>()
    .insertInto('routes')
    .values({ agent: route.agent, release: route.release, aliases: [], killed: null, changed_at: new Date(route.at) })
    .onConflict((conflict) => conflict.column('agent').doNothing())
    .returning('agent')
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Routing agent ${route.agent}`);
    });
  return inserted !== undefined;
};

/** Model names, besides the agent's own, under which the agent's release answers. */
export const routedAliases = async (store: Pick<Store, 'db'>, agent: string): Promise<readonly string[]> => {
  const row = await store.db
    .withTables<ReleaseTables>()
    .selectFrom('routes')
    .select('aliases')
    .where('agent', '=', agent)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Reading the route of agent ${agent}`);
    });
  return row?.aliases ?? [];
};

export const setKilled = async (db: Store['db'], agent: string, killed: Killed | null): Promise<void> => {
  await db
    .withTables<ReleaseTables>()
    .updateTable('routes')
    .set({ killed: killed === null ? null : JSON.stringify(killed) })
    .where('agent', '=', agent)
    .execute()
    .catch((error) => {
      throw storeError(error, `Setting the kill switch of agent ${agent}`);
    });
};

export const readKilled = async (store: Pick<Store, 'db'>, agent: string): Promise<Killed | null> => {
  const row = await store.db
    .withTables<ReleaseTables>()
    .selectFrom('routes')
    .select('killed')
    .where('agent', '=', agent)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Reading the kill switch of agent ${agent}`);
    });
  return row?.killed ?? null;
};

/** The release that answers the agent's traffic where no rollout says otherwise. */
export const servingRelease = async (store: Pick<Store, 'db'>, agent: string): Promise<Release | null> => {
  const row = await store.db
    .withTables<ReleaseTables>()
    .selectFrom('routes')
    .innerJoin('releases', 'releases.id', 'routes.release')
    .selectAll('releases')
    .where('routes.agent', '=', agent)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Reading the release of agent ${agent}`);
    });
  return row ? releaseOf(row) : null;
};
