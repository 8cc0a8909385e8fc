/** The newest scores of an agent under one version of its reward, as many as a page can weigh: parts without their reasons. */
import { type Store, storeError } from './postgres.ts';
import type { Day } from './tables.ts';

export type SampledScore = {
  readonly total: number | null;
  readonly parts: Readonly<
    Record<string, { readonly value: number | null; readonly weight: number; readonly penalty?: true }>
  >;
};

export const sampleScores = async (
  store: Store,
  of: {
    readonly agent: string;
    readonly spec: string;
    readonly since: Day;
    readonly until: Day;
    readonly most: number;
  },
): Promise<SampledScore[]> => {
  const { rows } = await store.pool
    .query<SampledScore>(
      `select s.total, (select jsonb_object_agg(p.key, p.value - 'reason') from jsonb_each(s.parts) p) as parts
       from pawl.scores s where s.agent = $1 and s.spec = $2 and s.day between $3 and $4 and s.trajectory not like 'answer/%'
       order by s.day desc limit $5`,
      [of.agent, of.spec, of.since, of.until, of.most],
    )
    .catch((error) => {
      throw storeError(error, `Reading scores of agent ${of.agent}`);
    });
  return rows.map(({ total, parts }) => ({ total, parts: parts ?? {} }));
};
