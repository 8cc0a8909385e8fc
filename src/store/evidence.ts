/** How much there is to learn from an agent's traffic, counted. */
import { sql } from 'kysely';
import type { Origin } from '../collect/trajectory.ts';
import { type Store, storeError } from './postgres.ts';

export type EvidenceCounts = {
  readonly trajectories: number;
  /** Of users who had agreed when they spoke. */
  readonly consenting: number;
  /** With a score under the reward. */
  readonly scored: number;
  /** Consenting, and scored well enough from enough of the reward's weights. */
  readonly good: number;
  readonly votes: number;
  readonly corrections: number;
};

export const countEvidence = async (
  store: Store,
  about: {
    readonly agent: string;
    readonly origin: Origin;
    readonly spec: string;
    readonly minScore: number;
    readonly minMeasured: number;
  },
): Promise<EvidenceCounts> => {
  const { agent, origin, spec, minScore, minMeasured } = about;
  // Simulated conversations have no user who could be asked.
  const agreed = origin === 'production' ? sql`t.consent = 'given'` : sql`t.consent <> 'withdrawn'`;
  const { rows } = await sql<EvidenceCounts>`
    select count(*) as trajectories, count(*) filter (where ${agreed}) as consenting, count(s.total) as scored,
      count(*) filter (where ${agreed} and s.total >= ${minScore} and s.measured >= ${minMeasured}) as good,
      (select count(*) from pawl.signals where agent = ${agent} and kind = 'feedback' and value is not null) as votes,
      (select count(*) from pawl.signals where agent = ${agent} and correction <> '') as corrections
    from pawl.trajectories t
    left join pawl.scores s on s.trajectory = t.id and s.agent = t.agent and s.day = t.day and s.spec = ${spec}
    where t.agent = ${agent} and t.origin = ${origin}`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Counting what there is to learn from ${agent}`);
    });
  return rows[0]!;
};
