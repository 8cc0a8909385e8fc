/**
 * The named signals of each conversation that a release answered alone, for checks that compute something of them
 * (deploy/expression.ts). `feedback` is the mean of its votes; what users did (`retried` …) is 1 where it happened; any other name is an
 * outcome, of which the newest stands. All of a window, a few thousand conversations at a time: it may have any number.
 */
import type { Sample } from '../deploy/slice.ts';
import { ownSignals, ownTrajectories, type Window } from './measures.ts';
import { type Store, storeError } from './postgres.ts';

const atATime = 5_000;

const valuesQuery = `
with ${ownTrajectories}, told as (
  select o.unit, o.id, s.kind, s.name, s.value, s.at, s.identity
  from own o, lateral (${ownSignals}) s
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
from own o left join named n on n.id = o.id
group by o.unit, o.id order by o.unit`;

type Row = { readonly unit: string; readonly signals: Readonly<Record<string, number>> };

/**
 * A user, or a conversation where they are unknown, counts once, with the mean over those of their conversations that `figureOf` gives
 * a value.
 */
export async function readSignalValues(
  store: Store,
  { agent, release, since, until, origin }: Window,
  names: readonly string[],
  figureOf: (signals: ReadonlyMap<string, number>) => number | null,
): Promise<Sample> {
  const given = [agent, release, new Date(since), new Date(until), origin, names];
  let sample: Sample = { n: 0, sum: 0, squares: 0 };
  let user = { unit: '', n: 0, sum: 0 };
  const ended = () => {
    if (user.n === 0) return;
    const mean = user.sum / user.n;
    sample = { n: sample.n + 1, sum: sample.sum + mean, squares: sample.squares + mean * mean };
  };
  const client = await store.pool.connect().catch((error) => {
    throw storeError(error, 'Connecting to the database');
  });
  try {
    await client.query('begin read only');
    await client.query(`declare told no scroll cursor for ${valuesQuery}`, given);
    for (;;) {
      const { rows } = await client.query<Row>(`fetch ${atATime} from told`);
      for (const { unit, signals } of rows) {
        const value = figureOf(new Map(Object.entries(signals)));
        if (value === null) continue;
        if (unit !== user.unit) {
          ended();
          user = { unit, n: 0, sum: 0 };
        }
        user = { unit, n: user.n + 1, sum: user.sum + value };
      }
      if (rows.length < atATime) break;
    }
    await client.query('commit');
    client.release();
  } catch (error) {
    client.release(true);
    throw storeError(error, `Reading signals about release ${release}`);
  }
  ended();
  return sample;
}
