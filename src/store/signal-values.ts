/**
 * The named signals of each conversation that a release answered alone, for checks that compute something of them
 * (deploy/expression.ts). `feedback` is the mean of its votes; what users did (`retried` …) is 1 where it happened; any other name is an
 * outcome, of which the newest stands.
 */
import { ownSignals, ownTrajectories, type Window } from './measures.ts';
import { type Store, storeError } from './postgres.ts';

export type Conversation = {
  /** The user, or the conversation where they are unknown. */
  readonly unit: string;
  readonly signals: ReadonlyMap<string, number>;
};

/** The first so many of a window: a test on the beginning of a sequence holds as one on all of it. */
export const mostConversations = 50_000;

const valuesQuery = `
with ${ownTrajectories}, told as (
  select o.unit, o.id, s.kind, s.name, s.value, s.at, s.identity
  from (select * from own order by started_at, id limit ${mostConversations}) o, lateral (${ownSignals}) s
  where (s.kind = 'feedback' and s.value between 0 and 1) or (s.kind = 'event' and s.name = any($6::text[]))
    or (s.kind = 'outcome' and s.name = any($6::text[]) and s.value is not null)
), named as (
  (select distinct on (id, name) unit, id, name, value from told where kind = 'outcome'
    order by id, name, at desc, identity collate "C" desc)
  union all
  select unit, id, 'feedback', avg(value) from told where kind = 'feedback' group by 1, 2
  union all
  select unit, id, name, 1 from told where kind = 'event' group by 1, 2, 3
)
select o.unit, coalesce(jsonb_object_agg(n.name, n.value) filter (where n.name is not null), '{}') as signals
from (select * from own order by started_at, id limit ${mostConversations}) o left join named n on n.id = o.id
group by o.id, o.unit`;

export async function readSignalValues(
  store: Store,
  { agent, release, since, until, origin }: Window,
  names: readonly string[],
): Promise<Conversation[]> {
  try {
    const given = [agent, release, new Date(since), new Date(until), origin, names];
    const { rows } = await store.pool.query<{ unit: string; signals: Record<string, number> }>(valuesQuery, given);
    return rows.map(({ unit, signals }) => ({ unit, signals: new Map(Object.entries(signals)) }));
  } catch (error) {
    throw storeError(error, `Reading signals about release ${release}`);
  }
}
