/** How privacy stands, in counts: what users agreed to, what was masked of late, what must be forgotten by when. */
import { dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';

export type Said = { readonly given: number; readonly withdrawn: number };

export type PrivacyCounts = {
  readonly learn: Said;
  readonly transfer: Said;
  readonly tenants: Said;
  readonly masked: readonly { readonly type: string; readonly count: number }[];
  /** Turns of the last week that were looked at. */
  readonly turns: number;
  readonly holds: number;
};

/** Of each of the last seven days so many turns. */
const perDay = 2_000;
const dayMs = 86_400_000;

const said = `count(*) filter (where given_at is not null and (withdrawn_at is null or withdrawn_at < given_at))::integer as given,
  count(*) filter (where withdrawn_at is not null and (given_at is null or withdrawn_at >= given_at))::integer as withdrawn`;

export const countPrivacy = async (store: Store, agent: string, now: Date): Promise<PrivacyCounts> => {
  const days = Array.from({ length: 7 }, (_, i) => dayOf(now.getTime() - i * dayMs));
  try {
    const [learn, others, masked, holds] = await Promise.all([
      store.pool.query<Said>(`select ${said} from pawl.consent where agent = $1`, [agent]),
      store.pool.query<Said & { purpose: string }>(
        `select purpose, ${said} from pawl.consent_purposes where agent = $1 group by purpose`,
        [agent],
      ),
      store.pool.query<{ type: string | null; count: number }>(
        `with looked as materialized (
           select x.redactions from unnest($2::date[]) d(day), lateral (
             select redactions from pawl.turns x where x.day = d.day and x.agent = $1 limit ${perDay}) x)
         select null as type, count(*)::integer as count from looked
         union all
         (select r.key, sum(r.value::integer)::integer from looked, jsonb_each_text(looked.redactions) r
          group by r.key order by 2 desc, 1 limit 100)`,
        [agent, days],
      ),
      store.pool.query<{ n: number }>(
        'select count(*)::integer as n from pawl.legal_holds where released_at is null and (agent is null or agent = $1)',
        [agent],
      ),
    ]);
    const purpose = (name: string): Said => {
      const { given = 0, withdrawn = 0 } = others.rows.find((row) => row.purpose === name) ?? {};
      return { given, withdrawn };
    };
    return {
      ...{ learn: learn.rows[0]!, transfer: purpose('transfer'), tenants: purpose('tenants') },
      masked: masked.rows.flatMap(({ type, count }) => (type === null ? [] : [{ type, count }])),
      turns: masked.rows.find(({ type }) => type === null)?.count ?? 0,
      holds: holds.rows[0]!.n,
    };
  } catch (error) {
    throw storeError(error, `Counting what users of agent ${agent} agreed to`);
  }
};
