/** What an agent's latest traffic used of the server that answers it: how long, with what, how much at a time. */
import { sql } from 'kysely';
import type { Origin } from '../collect/trajectory.ts';
import type { Used } from '../evaluate/compatibility.ts';
import { dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';

/** The newest calls tell what is needed now, and reading more of them takes longer than anybody should wait. */
const mostTurns = 5_000;
const days = 7;

export const readUsed = async (
  store: Store,
  { agent, origin, now }: { readonly agent: string; readonly origin: Origin; readonly now: number },
): Promise<Used> => {
  const since = new Date(now - days * 86_400_000);
  const { rows } = await sql<Used>`
    with lately as (
      select endpoint, started_at, latency_ms, prompt_tokens, completion_tokens, tools_called is not null as tools,
        coalesce(request->'response_format'->>'type' = 'json_schema', false)
          or exists (select 1 from json_array_elements(case when json_typeof(frame->'request') = 'array' then frame->'request' else '[]' end) one
            where one->>0 = 'response_format' and (one->>1 <> 'is' or one->2->>'type' = 'json_schema')) as structured
      from pawl.turns
      where agent = ${agent} and origin = ${origin} and status = 'ok' and endpoint <> 'embeddings' and day >= ${dayOf(since)}
      order by id desc limit ${sql.lit(mostTurns)}
    ), minutes as (
      select sum(latency_ms) / 60000 as load from lately group by date_trunc('minute', started_at)
    )
    select count(*)::integer as calls, (count(*) filter (where endpoint = 'chat'))::integer as chats,
      max(prompt_tokens + coalesce(completion_tokens, 0))::integer as "contextTokens",
      round(avg(prompt_tokens))::integer as "promptTokens", round(avg(completion_tokens))::integer as "answerTokens",
      coalesce(bool_or(tools), false) as tools, coalesce(bool_or(structured), false) as structured,
      coalesce((select max(load) from minutes), 0)::double precision as load
    from lately`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading what the traffic of ${agent} uses`);
    });
  return rows[0]!;
};
