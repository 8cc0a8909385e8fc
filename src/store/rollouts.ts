/** Rollouts in Postgres, and the routes that follow from them. The shape is deploy/rollout.ts's; this file maps rows. */
import { type ColumnType, type Selectable, sql } from 'kysely';
import type { Release } from '../deploy/release.ts';
import type { Rollout } from '../deploy/rollout.ts';
import { ConflictError } from '../errors.ts';
import { type Store, storeError } from './postgres.ts';
import { type ReleaseTables, releaseOf } from './releases.ts';

type RolloutTables = {
  rollouts: Pick<Rollout, 'id' | 'agent' | 'baseline' | 'candidate' | 'report' | 'phase' | 'step' | 'version'> & {
    settings: ColumnType<Rollout['settings'], string, string>;
    reasons: ColumnType<string[], string, string>;
    steps_at: ColumnType<number[], string, string>;
    looks: ColumnType<Rollout['looks'], string, string>;
    created_at: Date;
    started_at: Date | null;
    step_since: Date | null;
    ended_at: Date | null;
  };
};

/** Gateways listen to it; triggers announce every change of a route or a rollout. */
export const routesChannel = 'pawl_routes';

const open = ['waiting', 'shadow', 'canary', 'paused'] as const;
const date = (at: number | null) => (at === null ? null : new Date(at));
const tables = (db: Store['db']) => db.withTables<RolloutTables & ReleaseTables>();

const rolloutOf = (row: Selectable<RolloutTables['rollouts']>): Rollout => {
  const { created_at, started_at, step_since, ended_at, steps_at, ...rest } = row;
  return {
    ...rest,
    stepsAt: steps_at,
    createdAt: created_at.getTime(),
    startedAt: started_at?.getTime() ?? null,
    stepSince: step_since?.getTime() ?? null,
    endedAt: ended_at?.getTime() ?? null,
  };
};

const rowOf = (rollout: Rollout) => {
  const { createdAt, startedAt, stepSince, endedAt, settings, reasons, stepsAt, looks, ...rest } = rollout;
  return {
    ...rest,
    settings: JSON.stringify(settings),
    reasons: JSON.stringify(reasons),
    steps_at: JSON.stringify(stepsAt),
    looks: JSON.stringify(looks),
    created_at: new Date(createdAt),
    started_at: date(startedAt),
    step_since: date(stepSince),
    ended_at: date(endedAt),
  };
};

/** False if there is a rollout with this id already. Two open rollouts of one agent are refused. */
export const insertRollout = async (db: Store['db'], rollout: Rollout): Promise<boolean> => {
  const inserted = await tables(db)
    .insertInto('rollouts')
    .values(rowOf(rollout))
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst()
    .catch((error) => {
      if ((error as { constraint?: string }).constraint === 'rollouts_one_open')
        throw new ConflictError(
          `Agent ${rollout.agent} has a rollout that has not ended; wait for it, or end it with \`pawl rollouts abort\`.`,
        );
      throw storeError(error, `Starting rollout ${rollout.id}`);
    });
  return inserted !== undefined;
};

/** Writes the next version. False if somebody else has moved the rollout since it was read. */
export const updateRollout = async (db: Store['db'], rollout: Rollout): Promise<boolean> => {
  const { numUpdatedRows } = await tables(db)
    .updateTable('rollouts')
    .set(rowOf(rollout))
    .where('id', '=', rollout.id)
    .where('version', '=', rollout.version - 1)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Saving rollout ${rollout.id}`);
    });
  return numUpdatedRows === 1n;
};

export const readRollout = async (store: Store, id: string): Promise<Rollout | null> => {
  const row = await tables(store.db)
    .selectFrom('rollouts')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Reading rollout ${id}`);
    });
  return row ? rolloutOf(row) : null;
};

/** Newest first. */
export const listRollouts = async (
  store: Pick<Store, 'db'>,
  filter: {
    readonly agent?: string | undefined;
    /** Id of a release. */
    readonly candidate?: string;
    readonly open?: boolean;
    readonly phase?: Rollout['phase'];
    readonly limit?: number;
  } = {},
): Promise<Rollout[]> => {
  let query = tables(store.db).selectFrom('rollouts').selectAll();
  if (filter.agent !== undefined) query = query.where('agent', '=', filter.agent);
  if (filter.candidate !== undefined) query = query.where('candidate', '=', filter.candidate);
  if (filter.phase !== undefined) query = query.where('phase', '=', filter.phase);
  if (filter.open === true) query = query.where('phase', 'in', open);
  const rows = await query
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(filter.limit ?? 50)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Listing rollouts');
    });
  return rows.map(rolloutOf);
};

export type StoredRoute = {
  readonly agent: string;
  readonly aliases: readonly string[];
  readonly release: Release;
  /** Who gets one release whatever is rolled out; nobody while the kill switch is pulled. */
  readonly pins: readonly { readonly kind: 'key' | 'user'; readonly value: string; readonly release: Release }[];
  /** Types of task that another release answers. */
  readonly tasks: readonly {
    readonly type: string;
    readonly release: Release;
    /** How long its first byte is waited for, before what serves answers; gateways may know of routes from before it was said. */
    readonly firstByteMs?: number | undefined;
  }[];
  /** The agent's open rollout with its two releases. */
  readonly open: { readonly rollout: Rollout; readonly candidate: Release } | null;
};

/** What every gateway needs to know, in one statement so that it is of one moment. */
export const readRoutes = async (store: Store): Promise<StoredRoute[]> => {
  type Row = {
    agent: string;
    aliases: string[];
    release: unknown;
    pins: { kind: 'key' | 'user'; value: string; release: unknown }[];
    types: { type: string }[] | null;
    other: unknown;
    patience: number | null;
    rollout: unknown;
    candidate: unknown;
  };
  const { rows } = await sql<Row>`
    select t.agent, t.aliases, to_jsonb(r) as release, case when t.killed is not null then '[]'::jsonb else coalesce((
      select jsonb_agg(jsonb_build_object('kind', p.kind, 'value', p.value, 'release', to_jsonb(l)))
      from pawl.pins p join pawl.releases l on l.id = p.release where p.agent = t.agent), '[]') end as pins, k.types, to_jsonb(s) as other,
      (q.settings->>'firstByteSeconds')::float8 as patience, to_jsonb(o) as rollout, to_jsonb(c) as candidate
    from pawl.routes t
    join pawl.releases r on r.id = t.release
    left join pawl.rollouts o on o.agent = t.agent and o.phase in ('waiting', 'shadow', 'canary', 'paused')
    left join pawl.releases c on c.id = o.candidate
    left join pawl.task_routings k on k.agent = t.agent and k.serving = t.release and t.killed is null
      and not exists (select from pawl.flags f where f.agent = t.agent and f.name = 'routing' and not f.is_on)
    left join pawl.releases s on s.id = k.other
    left join pawl.rollouts q on q.id = k.rollout`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Loading routes');
    });
  return rows.map(({ agent, aliases, release, pins, types, other, patience, rollout, candidate }) => ({
    agent,
    aliases,
    release: releaseFrom(release),
    pins: pins.map((pin) => ({ ...pin, release: releaseFrom(pin.release) })),
    tasks: (types ?? []).map(({ type }) => ({
      ...{ type, release: releaseFrom(other) },
      ...(patience === null ? {} : { firstByteMs: patience * 1000 }),
    })),
    open: rollout === null ? null : { rollout: rolloutFrom(rollout), candidate: releaseFrom(candidate) },
  }));
};

/** Rows that came as JSON have their times as text. */
const dates = (json: unknown): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(json as Record<string, unknown>).map(([name, value]) => [
      name,
      typeof value === 'string' && /_(at|since)$/.test(name) ? new Date(value) : value,
    ]),
  );
const rolloutFrom = (json: unknown): Rollout => rolloutOf(dates(json) as Selectable<RolloutTables['rollouts']>);
const releaseFrom = (json: unknown): Release => releaseOf(dates(json) as Selectable<ReleaseTables['releases']>);
