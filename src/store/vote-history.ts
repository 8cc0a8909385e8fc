/** How often each of some users voted on answers of an agent, and how: what a vote of theirs says depends on it. */
import { sql } from 'kysely';
import type { VoteHistory } from '../curate/trust.ts';
import { type Store, storeError } from './postgres.ts';

export const readVoteHistories = async (
  store: Store,
  agent: string,
  users: readonly string[],
): Promise<Map<string, VoteHistory>> => {
  if (users.length === 0) return new Map();
  const { rows } = await sql<{ user: string; votes: number; sum: number }>`
    select user_id as user, count(*)::integer as votes, sum(value) as sum from pawl.signals
    where agent = ${agent} and user_id = any(${[...new Set(users)]}::text[]) and kind = 'feedback' and value between 0 and 1
    group by 1`
    .execute(store.db)
    .catch((error) => {
      throw storeError(error, 'Reading how users voted before');
    });
  return new Map(rows.map(({ user, ...history }) => [user, history]));
};
