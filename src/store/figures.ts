/**
 * Figures that need a look at everything: counted at every look while there is little, so that they are never old; with much stored, kept
 * with when they were counted. A look then gets what is kept at once, whatever is stored, and has it counted again meanwhile where it is
 * old. How old it may get goes by what counting takes, so that looking never costs the database more than a small share of its time. Workers
 * count once an hour (roles/jobs.ts), so that what is shown is of today even where nobody looked.
 *
 * Only sums and counts belong here, and nothing that names a conversation or a user.
 */
import { type Store, storeError } from './postgres.ts';

export type Counted<T> = { readonly value: T; readonly countedAt: Date };

export type FigureOf = {
  /** Empty: of all agents. */
  readonly agent: string;
  readonly name: string;
  /** Whatever else it depends on, in a few words. */
  readonly of: string;
};

/** Conversations, as the planner knows of them, from which on figures are kept. */
export const keptFrom = 50_000;
/** Counting takes at most this share of the time. */
const shareOfTime = 1 / 200;
const [shortestMs, longestMs] = [60_000, 3_600_000];

/** What is being counted by this process, by the store's pool. */
const counting = new WeakMap<Store['pool'], Map<string, Promise<unknown>>>();

type Row = { readonly value: unknown; readonly took_ms: number; readonly counted_at: Date };

const isMuch = (n: string): string => `(select coalesce(sum(greatest(c.reltuples, 0)), 0) >= ${n} from pg_inherits i
  join pg_class c on c.oid = i.inhrelid where i.inhparent = 'pawl.trajectories'::regclass)`;

/** Whether figures are kept. */
export const keepsFigures = async (store: Store): Promise<boolean> => {
  const { rows } = await store.pool
    .query<{ much: boolean }>(`select ${isMuch('$1')} as much`, [keptFrom])
    .catch((error) => {
      throw storeError(error, 'Asking how much is stored');
    });
  return rows[0]!.much;
};

const readKept = async (
  store: Store,
  { agent, name, of }: FigureOf,
): Promise<{ readonly isMuch: boolean; readonly kept: Row | null }> => {
  const { rows } = await store.pool
    .query<Partial<Row> & { much: boolean }>(
      `select f.value, f.took_ms, f.counted_at, m.much from (select ${isMuch('$4')} as much) m
       left join pawl.figures f on f.agent = $1 and f.name = $2 and f.of = $3`,
      [agent, name, of, keptFrom],
    )
    .catch((error) => {
      throw storeError(error, `Reading the figure ${name} of ${agent}`);
    });
  const { much, counted_at, ...row } = rows[0]!;
  return { isMuch: much, kept: counted_at == null ? null : ({ ...row, counted_at } as Row) };
};

/** Counts and keeps it; who asks meanwhile waits for the same. */
function countAndKeep<T>(store: Store, figure: FigureOf, count: () => Promise<T>): Promise<Counted<T>> {
  const { agent, name, of } = figure;
  const underWay = counting.get(store.pool) ?? new Map<string, Promise<unknown>>();
  counting.set(store.pool, underWay);
  const key = JSON.stringify([agent, name, of]);
  const same = underWay.get(key) as Promise<Counted<T>> | undefined;
  if (same !== undefined) return same;
  const work = async (): Promise<Counted<T>> => {
    const countedAt = new Date();
    const begun = performance.now();
    const value = await count();
    await store.pool
      .query(
        `insert into pawl.figures as f (agent, name, of, value, took_ms, counted_at) values ($1, $2, $3, $4, $5, $6)
         on conflict (agent, name, of) do update set value = excluded.value, took_ms = excluded.took_ms,
           counted_at = excluded.counted_at where f.counted_at < excluded.counted_at`,
        [agent, name, of, JSON.stringify(value), performance.now() - begun, countedAt],
      )
      .catch((error) => {
        throw storeError(error, `Keeping the figure ${name} of ${agent}`);
      });
    return { value, countedAt };
  };
  const doing = work().finally(() => underWay.delete(key));
  underWay.set(key, doing);
  return doing;
}

/** How long a figure that took so long to count is as good as new. */
export const goodFor = (tookMs: number): number => Math.min(longestMs, Math.max(shortestMs, tookMs / shareOfTime));

/**
 * `count` gives what JSON can hold. `isPatient`: who asks would rather wait than be told of earlier.
 */
export const countedFigure = async <T>(
  store: Store,
  figure: FigureOf,
  count: () => Promise<T>,
  { isPatient = false, now = Date.now() }: { readonly isPatient?: boolean; readonly now?: number } = {},
): Promise<Counted<T>> => {
  const { isMuch, kept } = await readKept(store, figure);
  if (!isMuch) {
    const countedAt = new Date(now);
    return { value: await count(), countedAt };
  }
  const isOld = kept !== null && now - kept.counted_at.getTime() > goodFor(kept.took_ms);
  if (kept === null || (isOld && isPatient)) return countAndKeep(store, figure, count);
  // Where that fails, what is kept is shown with its time, and the next look tries again.
  if (isOld) countAndKeep(store, figure, count).catch(() => {});
  return { value: kept.value as T, countedAt: kept.counted_at };
};

/** Forgets what nobody has counted for a week: of rewards and thresholds from before. */
export const dropOldFigures = async (store: Store): Promise<void> => {
  await store.pool.query(`delete from pawl.figures where counted_at < now() - interval '7 days'`).catch((error) => {
    throw storeError(error, 'Forgetting old figures');
  });
};
