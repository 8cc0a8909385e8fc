/** What answers should have been, as users and experts wrote it, and whether whoever wrote it agrees to training now. */
import { sql } from 'kysely';
import type { Standing } from './consents.ts';
import { type Store, storeError } from './postgres.ts';

export type Correction = {
  readonly id: string;
  readonly identity: string;
  readonly target: { readonly kind: 'turn' | 'trajectory'; readonly id: string };
  readonly text: string;
  readonly by: Corrector;
};
/** `given` too where no user is named, or it is a reviewer's label: then it is the installation's own. */
export type Corrector = Exclude<Standing, 'later'>;

/** Of words at a time; those of the latest come first. */
const maxBytes = 16 * 1024 * 1024;

const by = sql<Corrector>`case when s.user_id is null or s.kind = 'label' then 'given' when c.withdrawn_at is not null then 'withdrawn'
  when c.given_at is not null then 'given' else 'unknown' end`;

/** On these turns and trajectories of one agent, by identity. */
export const readCorrections = async (
  store: Store,
  { agent, turns, trajectories }: { agent: string; turns: readonly string[]; trajectories: readonly string[] },
): Promise<Correction[]> => {
  const { rows } = await sql<{
    id: string;
    identity: string;
    kind: 'turn' | 'trajectory';
    target: string;
    correction: string;
    by: Corrector;
  }>`
    select id, identity, kind, target, correction, by from (
      select s.id, s.identity, s.target_kind as kind, s.target_id as target, s.correction, ${by} as by,
        sum(octet_length(s.correction)) over (order by s.at desc, s.identity) as so_far
      from pawl.signals s left join pawl.consent c on c.agent = s.agent and c.user_id = s.user_id
      where s.agent = ${agent} and s.correction <> '' and (
        (s.target_kind = 'turn' and s.target_id = any(${[...turns]}::text[])) or
        (s.target_kind = 'trajectory' and s.target_id = any(${[...trajectories]}::text[])))
    ) as found where so_far <= ${maxBytes} order by identity`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading corrections');
    });
  return rows.map(({ kind, target, correction, ...rest }) => ({
    ...rest,
    target: { kind, id: target },
    text: correction,
  }));
};

/** Who wrote these, by the id of the signal; one that was replaced or is gone is not in it. */
export const readCorrectors = async (
  store: Store,
  agent: string,
  identities: readonly string[],
): Promise<Map<string, Corrector>> => {
  if (identities.length === 0) return new Map();
  const { rows } = await sql<{ id: string; by: Corrector }>`
    select s.id, ${by} as by from pawl.signals s left join pawl.consent c on c.agent = s.agent and c.user_id = s.user_id
    where s.agent = ${agent} and s.identity = any(${[...identities]}::text[])`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading who wrote corrections');
    });
  return new Map(rows.map((row) => [row.id, row.by]));
};
