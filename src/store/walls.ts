/**
 * What a conversation came with: client keys, and through them regions and tenants; kinds of task; and whether everybody in it
 * agreed that it may cross the walls between regions and between tenants. Curating asks before it reads a word.
 */
import { type Store, storeError } from './postgres.ts';
import { type Span, someSpans, spanValues, turnsOfSpans } from './spans.ts';

export type Walls = {
  /** Ids of client keys; none of what was recorded before this was kept. */
  readonly keys: readonly string[];
  /** How it came in: `gateway`, `import`, or `import:NAME` of a file that was given a name. */
  readonly sources: readonly string[];
  /** null: of a key that names none. */
  readonly regions: readonly (string | null)[];
  readonly tenants: readonly (string | null)[];
  readonly taskTypes: readonly string[];
  /** Everybody agreed when they spoke and has not withdrawn since. */
  readonly mayTransfer: boolean;
  readonly mayCrossTenants: boolean;
};

export const noWalls: Walls = {
  keys: [],
  sources: [],
  regions: [null],
  tenants: [null],
  taskTypes: [],
  mayTransfer: false,
  mayCrossTenants: false,
};

const agreedTo = (purpose: string) => `coalesce(bool_and(exists (
  select 1 from pawl.consent_purposes p where p.agent = x.agent and p.user_id = x.user_id and p.purpose = '${purpose}'
    and p.withdrawn_at is null and p.given_at <= x.started_at)), false)`;

/** Nobody here asked an upstream for what was imported, so that field says what it was imported from (collect/conversation.ts). */
const sourceOfTurn = `case when x.release = 'imported' and (x.upstream = 'import' or x.upstream like 'import:%') then x.upstream else 'gateway' end`;

/** Of conversations of one agent, in their order. */
export const readWalls = async (store: Store, trajectories: readonly Span[]): Promise<Walls[]> => {
  if (!someSpans(trajectories)) return [];
  const { rows } = await store.pool
    .query<Walls & { n: number }>(
      `select t.n::integer, array_remove(array_agg(distinct x.client_key), null) as keys,
         array_agg(distinct ${sourceOfTurn}) as sources,
         array_agg(distinct k.region) as regions, array_agg(distinct k.tenant) as tenants,
         array_remove(array_agg(distinct x.task_type), null) as "taskTypes",
         ${agreedTo('transfer')} as "mayTransfer", ${agreedTo('tenants')} as "mayCrossTenants"
       from ${turnsOfSpans}
       left join pawl.keys k on k.id::text = x.client_key
       group by t.n`,
      spanValues(trajectories),
    )
    .catch((error) => {
      throw storeError(error, 'Reading which keys conversations came with');
    });
  const found = new Map(rows.map(({ n, ...walls }) => [n, walls]));
  return trajectories.map((_, i) => found.get(i + 1) ?? noWalls);
};
