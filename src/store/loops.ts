/** What people said to an agent's loop: one row per agent, made when it is first looked at. */
import { type Store, storeError } from './postgres.ts';

/** Runners listen to it; triggers announce what people say. */
export const loopsChannel = 'pawl_loops';

/** Traffic to learn from: what began at `since` or later, and before `until`; ms since epoch. */
export type TrafficWindow = { readonly since: number; readonly until: number };
export type Wanted = {
  readonly at: number;
  readonly by: string;
  readonly seed?: number;
  readonly window?: TrafficWindow;
};

export type Loop = {
  readonly agent: string;
  readonly since: number; // ms since epoch, as below
  readonly paused: { readonly at: number; readonly by: string } | null;
  readonly wanted: Wanted | null;
  readonly resumedAt: number | null;
  readonly lookedAt: number | null;
};

type Row = {
  agent: string;
  since: Date;
  paused_at: Date | null;
  paused_by: string | null;
  wanted: Wanted | null;
  resumed_at: Date | null;
  looked_at: Date | null;
};

const loopOf = ({ agent, since, paused_at, paused_by, wanted, resumed_at, looked_at }: Row): Loop => ({
  agent,
  since: since.getTime(),
  paused: paused_at === null ? null : { at: paused_at.getTime(), by: paused_by ?? 'somebody' },
  wanted,
  resumedAt: resumed_at?.getTime() ?? null,
  lookedAt: looked_at?.getTime() ?? null,
});

const query = async (store: Store, doing: string, text: string, values: unknown[]): Promise<Row[]> => {
  const { rows } = await store.pool.query<Row>(text, values).catch((error) => {
    throw storeError(error, doing);
  });
  return rows;
};

/** Null for a loop that nobody has looked at yet. */
export const readLoop = async (store: Store, agent: string): Promise<Loop | null> => {
  const [row] = await query(store, `Reading the loop of ${agent}`, 'select * from pawl.loops where agent = $1', [
    agent,
  ]);
  return row ? loopOf(row) : null;
};

/** Changes what is given; makes the row where there is none. */
export const saveLoop = async (
  store: Store,
  agent: string,
  now: number,
  change: Partial<Pick<Loop, 'paused' | 'wanted' | 'resumedAt' | 'lookedAt'>> = {},
): Promise<Loop> => {
  const date = (at: number | null) => (at === null ? null : new Date(at));
  const values: Record<string, unknown> = {
    ...(change.paused === undefined
      ? {}
      : { paused_at: date(change.paused?.at ?? null), paused_by: change.paused?.by ?? null }),
    ...(change.wanted === undefined ? {} : { wanted: change.wanted && JSON.stringify(change.wanted) }),
    ...(change.resumedAt === undefined ? {} : { resumed_at: date(change.resumedAt) }),
    ...(change.lookedAt === undefined ? {} : { looked_at: date(change.lookedAt) }),
  };
  const names = Object.keys(values);
  const columns = ['agent', 'since', ...names];
  const sets = names.length === 0 ? ['agent = excluded.agent'] : names.map((name) => `${name} = excluded.${name}`);
  const [row] = await query(
    store,
    `Saving the loop of ${agent}`,
    `insert into pawl.loops (${columns.join(', ')}) values (${columns.map((_, i) => `$${i + 1}`).join(', ')})
     on conflict (agent) do update set ${sets.join(', ')} returning *`,
    [agent, new Date(now), ...Object.values(values)],
  );
  return loopOf(row!);
};
