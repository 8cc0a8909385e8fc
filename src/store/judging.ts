/** What asking judges has cost, by day (UTC), agent, upstream and model: calls, tokens, money. */
import { type Store, storeError } from './postgres.ts';

export type Spent = {
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly money: number;
};

export type JudgingOf = { readonly agent: string; readonly upstream: string; readonly model: string };

export type Judging = JudgingOf & Spent & { readonly day: string };

/** Adds to the day's, and says what all agents have spent on this day with it. */
export const addJudging = async (store: Store, of: JudgingOf, spent: Spent): Promise<number> => {
  const { rows } = await store.pool
    .query<{ before: number }>(
      `with added as (
         insert into pawl.judging as j (day, agent, upstream, model, calls, prompt_tokens, completion_tokens, money)
         values ((now() at time zone 'UTC')::date, $1, $2, $3, $4, $5, $6, $7)
         on conflict (day, agent, upstream, model) do update set calls = j.calls + excluded.calls,
           prompt_tokens = j.prompt_tokens + excluded.prompt_tokens,
           completion_tokens = j.completion_tokens + excluded.completion_tokens, money = j.money + excluded.money
       )
       select coalesce(sum(money), 0) as before from pawl.judging where day = (now() at time zone 'UTC')::date`,
      [of.agent, of.upstream, of.model, spent.calls, spent.promptTokens, spent.completionTokens, spent.money],
    )
    .catch((error) => {
      throw storeError(error, 'Writing down what judging cost');
    });
  // A statement does not see what it has just written.
  return rows[0]!.before + spent.money;
};

/** Money of all agents since midnight. */
export const spentToday = async (store: Store): Promise<number> => {
  const { rows } = await store.pool
    .query<{ money: number }>(
      `select coalesce(sum(money), 0) as money from pawl.judging where day = (now() at time zone 'UTC')::date`,
    )
    .catch((error) => {
      throw storeError(error, 'Reading what judging cost');
    });
  return rows[0]!.money;
};

/** Of all days, by agent, upstream and model. */
export const sumJudging = async (store: Store): Promise<(JudgingOf & Spent)[]> => {
  const { rows } = await store.pool
    .query<JudgingOf & Spent>(
      `select agent, upstream, model, sum(calls)::double precision as calls, sum(money) as money,
         sum(prompt_tokens)::double precision as "promptTokens",
         sum(completion_tokens)::double precision as "completionTokens"
       from pawl.judging group by agent, upstream, model order by agent, upstream, model`,
    )
    .catch((error) => {
      throw storeError(error, 'Reading what judging cost');
    });
  return rows;
};

/** Newest day first. */
export const listJudging = async (store: Store, days: number): Promise<Judging[]> => {
  const { rows } = await store.pool
    .query<Judging>(
      `select day, agent, upstream, model, calls::double precision as calls, money,
         prompt_tokens::double precision as "promptTokens", completion_tokens::double precision as "completionTokens"
       from pawl.judging where day > (now() at time zone 'UTC')::date - $1::integer order by day desc, agent, upstream, model`,
      [days],
    )
    .catch((error) => {
      throw storeError(error, 'Reading what judging cost');
    });
  return rows;
};
