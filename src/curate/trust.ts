/**
 * How much a vote says, by what else the same person voted: who always says the same says little about any one answer, however
 * often. Pure. With p the share of ups among a person's other votes, a prior of one of each, the weight is 4 p (1 − p):
 * 1 for somebody new or of divided opinion, 0.04 for somebody who voted a hundred times and never otherwise.
 */
import type { Signal } from '../collect/signal.ts';

export type VoteHistory = { readonly votes: number; readonly sum: number };

/** `value`: this vote, 0–1, which is part of the history. */
export function voteWeight({ votes, sum }: VoteHistory, value: number): number {
  const others = Math.max(0, votes - 1);
  const up = (Math.min(Math.max(0, sum - value), others) + 1) / (others + 2);
  return 4 * up * (1 - up);
}

/**
 * What users say of an answer together, 0–1: the mean over voters by their weight, drawn towards undecided where all of them count
 * for less than one vote. As for the score (score/feedback.ts), who took part is a voter, and all others of one key are one.
 */
export function weighedVote(
  votes: readonly Signal[],
  participants: ReadonlySet<string>,
  histories: ReadonlyMap<string, VoteHistory>,
): number | null {
  if (votes.length === 0) return null;
  const voters = new Map<string, Signal[]>();
  for (const vote of votes) {
    const { user, key } = vote;
    const voter = user !== null && participants.has(user) ? `user ${user}` : `key ${key}`;
    voters.set(voter, [...(voters.get(voter) ?? []), vote]);
  }
  const said = [...voters.values()].map((own) => ({
    value: mean(own.map(({ value }) => value!)),
    weight: mean(
      own.map(({ user, value }) => voteWeight(histories.get(user ?? '') ?? { votes: 1, sum: value! }, value!)),
    ),
  }));
  const weight = said.reduce((total, vote) => total + vote.weight, 0);
  const whole = said.reduce((total, vote) => total + vote.weight * vote.value, 0) / weight;
  return 0.5 + (whole - 0.5) * Math.min(1, weight);
}

/** Sorted, because sums of floating-point numbers depend on their order. */
const mean = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b).reduce((sum, value) => sum + value, 0) / values.length;
