/** What the database holds at the end, for the accountant. */
import type { Store } from '../../src/store/postgres.ts';
import { type Evidence, signalKey } from './account.ts';

const unevenTrajectories = `
select id, concat_ws(', ', 'turns ' || t.turns || ' of ' || s.turns, 'errors ' || t.errors || ' of ' || s.errors,
  'tokens ' || t.prompt + t.completion || ' of ' || s.prompt + s.completion) as how
from (select id, agent, sum(turns) as turns, sum(errors) as errors, sum(prompt_tokens) as prompt,
    sum(completion_tokens) as completion, sum(latency_ms) as latency
  from pawl.trajectories group by id, agent) t
full join (select trajectory as id, agent, count(*) as turns, count(*) filter (where status in ('error', 'truncated')) as errors,
    coalesce(sum(prompt_tokens), 0) as prompt, coalesce(sum(completion_tokens), 0) as completion, sum(latency_ms) as latency
  from pawl.turns group by trajectory, agent) s using (id, agent)
where (t.turns, t.errors, t.prompt, t.completion) is distinct from (s.turns, s.errors, s.prompt, s.completion)
  or abs(t.latency - s.latency) > 0.001 * (1 + abs(s.latency))`;

/** A clock that jumps must not reach what is measured with it. */
const oddTurns = `select id, latency_ms from pawl.turns where latency_ms < 0 or latency_ms > 600000
  or first_token_ms < 0 or first_token_ms > 600000`;

export async function readEvidence({ pool }: Store): Promise<Evidence> {
  const counts = async (sql: string) =>
    new Map((await pool.query<{ id: string; n: number }>(sql)).rows.map(({ id, n }) => [id, n]));
  const signals = await pool.query<{ kind: string; id: string; n: number }>(
    `select kind, target_id as id, count(*) as n from pawl.signals group by 1, 2`,
  );
  const uneven = await pool.query<{ id: string; how: string }>(unevenTrajectories);
  const odd = await pool.query<{ id: string; latency_ms: number }>(oddTurns);
  return {
    turns: await counts(`select id, count(*) as n from pawl.turns group by id`),
    turnsOf: await counts(`select trajectory as id, count(*) as n from pawl.turns group by trajectory`),
    signals: new Map(
      signals.rows.map(({ kind, id, n }) => [signalKey(kind === 'feedback' ? 'vote' : 'outcome', id), n]),
    ),
    uneven: new Map(uneven.rows.map(({ id, how }) => [id, how])),
    odd: new Map(odd.rows.map(({ id, latency_ms }) => [id, `${Math.round(latency_ms)} ms`])),
  };
}
