/** Reward models in Postgres: which there are, where their weights lie, and what was found of each (score/train-reward-model.ts). */
import type { RewardModelReport } from '../score/train-reward-model.ts';
import { type Store, storeError } from './postgres.ts';

export type RewardModelRecord = {
  readonly agent: string;
  readonly name: string;
  readonly version: string;
  /** Reference of its weights. */
  readonly artifact: string;
  readonly report: RewardModelReport;
  /** Why no reward may use it; null: one may. */
  readonly refused: string | null;
  readonly at: Date;
};

const columns = 'agent, name, version, artifact, report, refused, at';

/** `users`: hashes of those whose words it has learned from. The same again changes nothing. */
export const saveRewardModel = async (
  store: Store,
  model: RewardModelRecord,
  users: readonly string[],
): Promise<void> => {
  const { agent, name, version, artifact, report, refused, at } = model;
  await store.pool
    .query(
      `insert into pawl.reward_models (${columns}, users) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
      [agent, name, version, artifact, JSON.stringify(report), refused, at, users],
    )
    .catch((error) => {
      throw storeError(error, `Keeping reward model ${name}`);
    });
};

/** Newest first. */
export const listRewardModels = async (store: Store, agent: string): Promise<RewardModelRecord[]> => {
  const { rows } = await store.pool
    .query<RewardModelRecord>(`select ${columns} from pawl.reward_models where agent = $1 order by at desc limit 100`, [
      agent,
    ])
    .catch((error) => {
      throw storeError(error, `Reading the reward models of ${agent}`);
    });
  return rows;
};

export const readRewardModel = async (
  store: Store,
  { agent, name, version }: { agent: string; name: string; version: string },
): Promise<RewardModelRecord | null> => {
  const { rows } = await store.pool
    .query<RewardModelRecord>(
      `select ${columns} from pawl.reward_models where agent = $1 and name = $2 and version = $3`,
      [agent, name, version],
    )
    .catch((error) => {
      throw storeError(error, `Reading reward model ${name}`);
    });
  return rows[0] ?? null;
};
