/** Labels as they stand (collect/label.ts): a reviewer's newest word about each conversation or turn. Writing them is record.ts. */
import { sql } from 'kysely';
import { type Store, storeError } from './postgres.ts';

export type Label = {
  readonly target: { readonly kind: 'trajectory' | 'turn'; readonly id: string };
  /** Hash; null: nobody said who. */
  readonly reviewer: string | null;
  readonly score: number;
  readonly parts: Readonly<Record<string, number>>;
  readonly comment: string | null;
  readonly correction: string | null;
  readonly at: number;
};

type LabelRow = {
  target_kind: 'trajectory' | 'turn';
  target_id: string;
  user_id: string | null;
  score: number;
  parts: Record<string, number> | null;
  comment: string | null;
  correction: string | null;
  at: Date;
};

export type LabelFilter = {
  readonly agent: string;
  readonly limit: number;
  readonly reviewer?: string | undefined;
  /** Of these conversations and turns only. */
  readonly targets?: readonly string[] | undefined;
};

/** Newest first. A part that was labelled without a total is no label. */
export const listLabels = async (store: Store, filter: LabelFilter): Promise<Label[]> => {
  const { agent, limit, reviewer, targets } = filter;
  const { rows } = await sql<LabelRow>`
    select target_kind, target_id, user_id, max(at) as at, max(value) filter (where name = 'score') as score,
      jsonb_object_agg(substr(name, 6), value) filter (where name like 'part.%') as parts,
      max(comment) as comment, max(correction) as correction
    from pawl.signals
    where agent = ${agent} and kind = 'label' and target_kind <> 'key'
      and (${reviewer ?? null}::text is null or user_id = ${reviewer ?? null})
      and (${targets === undefined ? null : [...targets]}::text[] is null or target_id = any(${targets === undefined ? null : [...targets]}::text[]))
    group by target_kind, target_id, user_id
    having count(value) filter (where name = 'score') > 0
    order by max(at) desc, target_id, user_id limit ${limit}`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, `Reading the labels of ${agent}`);
    });
  return rows.map(({ target_kind: kind, target_id: id, user_id, parts, at, ...row }) => ({
    target: { kind, id },
    reviewer: user_id,
    ...row,
    parts: parts ?? {},
    at: at.getTime(),
  }));
};

export type Standing = Pick<Label, 'comment' | 'correction'> & { readonly value: number | null };

/** What stands under these identities. */
export const standingLabels = async (
  store: Store,
  agent: string,
  identities: readonly string[],
): Promise<Map<string, Standing>> => {
  const rows = await store.db
    .selectFrom('signals')
    .select(['identity', 'value', 'comment', 'correction'])
    .where('agent', '=', agent)
    .where((where) => where('identity', '=', where.fn.any(where.val(identities))))
    .execute()
    .catch((error) => {
      throw storeError(error, `Reading the labels of ${agent}`);
    });
  return new Map(rows.map(({ identity, ...standing }) => [identity, standing]));
};
