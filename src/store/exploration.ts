/**
 * What exploring has taken of an agent's allowance: calls of the hour, money of the day. Taken before anything is asked, in one
 * statement, so that neither two gateways nor a restart can go over it; what turns out not to be needed is given back. Hours
 * and days are UTC by the database's clock.
 */
import { type Store, storeError } from './postgres.ts';

export type Allowance = {
  readonly perHour: number;
  /** null: no price is known, so money does not limit. */
  readonly moneyPerDay: number | null;
};

export type Taken = { readonly day: string; readonly hour: number; readonly calls: number; readonly money: number };

const take = `
with given as (
  select $1::text as agent, $2::integer as calls, $3::double precision as money, $4::integer as per_hour,
    coalesce($5::double precision, 'infinity') as per_day,
    (now() at time zone 'UTC')::date as day, extract(hour from now() at time zone 'UTC')::smallint as hour
)
insert into pawl.exploration as e (agent, day, asked, money, hour, asked_in_hour)
select agent, day, calls, money, hour, calls from given where calls <= per_hour and money <= per_day
on conflict (agent, day) do update set
  asked = e.asked + excluded.asked,
  money = e.money + excluded.money,
  hour = excluded.hour,
  asked_in_hour = case when e.hour = excluded.hour then e.asked_in_hour else 0 end + excluded.asked_in_hour
where (e.hour <> excluded.hour or e.asked_in_hour + excluded.asked_in_hour <= $4::integer)
  and e.money + excluded.money <= coalesce($5::double precision, 'infinity')
returning day, hour`;

/** What was taken, or which of the two limits is reached; then nothing is. */
export const takeAllowance = async (
  store: Store,
  agent: string,
  { calls, money }: Pick<Taken, 'calls' | 'money'>,
  { perHour, moneyPerDay }: Allowance,
): Promise<Taken | 'per-hour' | 'money'> => {
  try {
    const { rows } = await store.pool.query<Pick<Taken, 'day' | 'hour'>>(take, [
      agent,
      calls,
      money,
      perHour,
      moneyPerDay,
    ]);
    if (rows[0] !== undefined) return { ...rows[0], calls, money };
    const today = await readExploration(store, agent);
    return moneyPerDay !== null && today.money + money > moneyPerDay ? 'money' : 'per-hour';
  } catch (error) {
    throw storeError(error, `Taking from what ${agent} may explore`);
  }
};

/** Gives back calls that were not made, and what those that were made cost less than was taken. */
export const returnAllowance = async (store: Store, agent: string, taken: Taken): Promise<void> => {
  const { day, hour, calls, money } = taken;
  await store.pool
    .query(
      `update pawl.exploration set asked = greatest(0, asked - $3::integer), money = greatest(0, money - $4),
         asked_in_hour = case when hour = $5 then greatest(0, asked_in_hour - $3::integer) else asked_in_hour end
       where agent = $1 and day = $2`,
      [agent, day, calls, money, hour],
    )
    .catch((error) => {
      throw storeError(error, `Giving back what ${agent} did not explore`);
    });
};

export type Explored = { readonly asked: number; readonly askedThisHour: number; readonly money: number };

/** Today's. */
export const readExploration = async (store: Store, agent: string): Promise<Explored> => {
  const { rows } = await store.pool
    .query<Explored>(
      `select asked, money, case when hour = extract(hour from now() at time zone 'UTC') then asked_in_hour else 0 end as "askedThisHour"
       from pawl.exploration where agent = $1 and day = (now() at time zone 'UTC')::date`,
      [agent],
    )
    .catch((error) => {
      throw storeError(error, `Reading what ${agent} has explored today`);
    });
  return rows[0] ?? { asked: 0, askedThisHour: 0, money: 0 };
};
