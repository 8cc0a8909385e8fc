/**
 * A mean over people, not over messages. Who took part in the conversation is a voter of their own, however often they speak.
 * Whoever else is said to have spoken is a name that a client key gave, and names cost nothing: all of one key together are one
 * voter, with their mean. So a key with a thousand invented users weighs as much as one user who was there.
 */
import type { Turn } from '../collect/turn.ts';
import { mean } from './scorer.ts';

export type Spoken = {
  readonly user: string | null;
  /** Id of the client key. */
  readonly key: string | null;
  readonly identity: string;
  /** 0–1 */
  readonly value: number;
};

export const participantsOf = (turns: readonly Turn[]): ReadonlySet<string> =>
  new Set(turns.flatMap(({ user }) => user ?? []));

export function meanOverVoters(
  said: readonly Spoken[],
  participants: ReadonlySet<string>,
): { readonly value: number; readonly voters: number } {
  const byVoter = new Map<string, Map<string, number[]>>();
  for (const { user, key, identity, value } of said) {
    const voter = user !== null && participants.has(user) ? `user ${user}` : `key ${key}`;
    const name = user ?? identity;
    const ofVoter = byVoter.get(voter) ?? new Map<string, number[]>();
    const values = ofVoter.get(name) ?? [];
    values.push(value);
    byVoter.set(voter, ofVoter.set(name, values));
  }
  // Sorted, because sums of floating-point numbers depend on their order.
  const sortedMean = (values: number[]) => mean(values.sort((a, b) => a - b));
  const means = [...byVoter.values()].map((one) => sortedMean([...one.values()].map(sortedMean)));
  return { value: sortedMean(means), voters: means.length };
}
