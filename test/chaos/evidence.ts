/** What the database holds at the end, for the accountant. */
import type { Store } from '../../src/store/postgres.ts';
import { type Evidence, signalKey } from './account.ts';

const unevenTrajectories = `
select coalesce(t.id, s.id) as id
from (select id, agent, sum(turns) as turns, sum(errors) as errors, sum(prompt_tokens) as prompt,
    sum(completion_tokens) as completion, sum(latency_ms) as latency
  from pawl.trajectories group by id, agent) t
full join (select trajectory as id, agent, count(*) as turns, count(*) filter (where status in ('error', 'truncated')) as errors,
    coalesce(sum(prompt_tokens), 0) as prompt, coalesce(sum(completion_tokens), 0) as completion, sum(latency_ms) as latency
  from pawl.turns group by trajectory, agent) s using (id, agent)
where (t.turns, t.errors, t.prompt, t.completion) is distinct from (s.turns, s.errors, s.prompt, s.completion)
  or abs(t.latency - s.latency) > 0.01 * (1 + s.latency)`;

export async function readEvidence({ pool }: Store): Promise<Evidence> {
  const counts = async (sql: string) =>
    new Map((await pool.query<{ id: string; n: number }>(sql)).rows.map(({ id, n }) => [id, n]));
  const signals = await pool.query<{ kind: string; id: string; n: number }>(
    `select kind, target_id as id, count(*) as n from pawl.signals group by 1, 2`,
  );
  return {
    turns: await counts(`select id, count(*) as n from pawl.turns group by id`),
    turnsOf: await counts(`select trajectory as id, count(*) as n from pawl.turns group by trajectory`),
    signals: new Map(
      signals.rows.map(({ kind, id, n }) => [signalKey(kind === 'feedback' ? 'vote' : 'outcome', id), n]),
    ),
    uneven: (await pool.query<{ id: string }>(unevenTrajectories)).rows.map(({ id }) => id),
  };
}
