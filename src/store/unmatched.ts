/**
 * Signals and business keys that are about nothing the agent ever did: mistyped ids, other systems' keys, or somebody who
 * fills the table. They count nowhere, because every figure begins with a trajectory. A month gives what they are about
 * time to arrive; after that they go, and are counted as lost.
 */
import type { SignalTarget } from '../collect/signal.ts';
import { recordLoss } from './losses.ts';
import { type Store, storeError } from './postgres.ts';

const keptDays = 30;

/** Whether the agent has such a trajectory or turn, or has attached such a business key to one. */
export const isThere = async (store: Store, agent: string, target: SignalTarget): Promise<boolean> => {
  const { rows } = await store.pool
    .query<{ there: boolean }>('select pawl.is_there($1, $2, $3) as there', [agent, target.kind, target.id])
    .catch((error) => {
      throw storeError(error, `Looking for ${target.kind} ${target.id}`);
    });
  return rows[0]?.there === true;
};

/**
 * Looks once at everything that became a month old since the last time. One transaction: interrupted it is as if it had not
 * begun, and of two that sweep at once the second finds nothing left.
 */
const sweep = `
with window_ as (
  update pawl.installation i set swept_until = $1::timestamptz - interval '${keptDays} days'
  from (select swept_until from pawl.installation for update) before
  where before.swept_until is null or before.swept_until < $1::timestamptz - interval '${keptDays} days'
  returning before.swept_until as since, i.swept_until as until
), signals as (
  delete from pawl.signals s using window_ w
  where s.received_at <= w.until and (w.since is null or s.received_at > w.since)
    and not pawl.is_there(s.agent, s.target_kind, s.target_id)
  returning 1
), keys as (
  delete from pawl.trajectory_keys k using window_ w
  where k.at <= w.until and (w.since is null or k.at > w.since) and not pawl.is_there(k.agent, k.target_kind, k.target_id)
  returning 1
)
select (select count(*) from signals) as signals, (select count(*) from keys) as keys`;

export const sweepUnmatched = async (store: Store, now: Date): Promise<{ signals: number; keys: number }> => {
  const { rows } = await store.pool.query<{ signals: number; keys: number }>(sweep, [now]).catch((error) => {
    throw storeError(error, 'Sweeping signals that are about nothing');
  });
  const swept = rows[0] ?? { signals: 0, keys: 0 };
  for (const [reason, count] of Object.entries(swept))
    if (count > 0) await recordLoss(store, { source: 'unmatched', reason, count, at: now });
  return swept;
};
