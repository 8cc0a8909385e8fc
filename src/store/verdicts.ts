/** What judges said, by what they were asked. A verdict stays as long as the conversation that it was made for. */
import type { Verdict } from '../score/ask.ts';
import { countedFigure } from './figures.ts';
import { type Store, storeError } from './postgres.ts';
import { storableJson } from './storable.ts';

export type KeptVerdict = Verdict & {
  /** Above 0: there is no verdict, and this is how often one was asked for in vain. */
  readonly failures: number;
  readonly at: number; // ms since epoch
};

export type VerdictOf = {
  readonly key: string;
  readonly agent: string;
  readonly trajectory: string;
  readonly day: string;
  readonly prompt: string;
  readonly model: string;
};

type Row = {
  value: number | null;
  reason: string;
  details: NonNullable<Verdict['details']>;
  failures: number;
  at: Date;
};

export const readVerdict = async (store: Store, key: string): Promise<KeptVerdict | null> => {
  const { rows } = await store.pool
    .query<Row>('select value, reason, details, failures, at from pawl.verdicts where key = $1', [key])
    .catch((error) => {
      throw storeError(error, 'Reading a verdict');
    });
  const row = rows[0];
  if (row === undefined) return null;
  const { details, at, ...rest } = row;
  return { ...rest, ...(details.length === 0 ? {} : { details }), at: at.getTime() };
};

/** A verdict that is there stays; a failure counts one more. */
export const saveVerdict = async (
  store: Store,
  of: VerdictOf,
  verdict: Verdict & { readonly failed?: true },
): Promise<void> => {
  const { failed, ...kept } = verdict;
  await store.pool
    .query(
      `insert into pawl.verdicts as v (key, agent, trajectory, day, prompt, model, value, reason, details, failures, at)
       select key, agent, trajectory, day, prompt, model, value, reason, details, failures, now()
       from json_to_record($1::json) as x(key text, agent text, trajectory text, day date, prompt text, model text,
         value double precision, reason text, details jsonb, failures integer)
       on conflict (key) do update set agent = excluded.agent, trajectory = excluded.trajectory, day = excluded.day,
         value = excluded.value, reason = excluded.reason, details = excluded.details, at = excluded.at,
         failures = case when excluded.failures = 0 then 0 else v.failures + 1 end
       where v.failures > 0`,
      [storableJson(JSON.stringify({ ...of, ...kept, details: kept.details ?? [], failures: failed ? 1 : 0 }))],
    )
    .catch((error) => {
      throw storeError(error, 'Writing a verdict');
    });
};

export type ListedVerdict = KeptVerdict & Pick<VerdictOf, 'agent' | 'prompt' | 'model'>;

/** Of one conversation, the newest first. */
export const listVerdicts = async (store: Store, trajectory: string, agent?: string): Promise<ListedVerdict[]> => {
  const { rows } = await store.pool
    .query<Row & Pick<VerdictOf, 'agent' | 'prompt' | 'model'>>(
      `select agent, prompt, model, value, reason, details, failures, at from pawl.verdicts
       where trajectory = $1 and ($2::text is null or agent = $2) order by at desc, key limit 100`,
      [trajectory, agent ?? null],
    )
    .catch((error) => {
      throw storeError(error, `Reading the verdicts on trajectory ${trajectory}`);
    });
  return rows.map(({ at, ...row }) => ({ ...row, at: at.getTime() }));
};

export type VerdictSummary = { readonly verdicts: number; readonly failed: number };

/** As they were counted last, where there is much to count. */
export const lookAtVerdicts = (store: Store, options?: { readonly isPatient?: boolean }) =>
  countedFigure(store, { agent: '', name: 'verdicts', of: '' }, () => summariseVerdicts(store), options);

const summariseVerdicts = async (store: Store): Promise<VerdictSummary> => {
  const { rows } = await store.pool
    .query<VerdictSummary>(
      `select count(*) filter (where failures = 0)::integer as verdicts,
         count(*) filter (where failures > 0)::integer as failed from pawl.verdicts`,
    )
    .catch((error) => {
      throw storeError(error, 'Counting verdicts');
    });
  return rows[0]!;
};
