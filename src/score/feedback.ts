/**
 * What users said: up 1, neutral 0.5, down 0, or a score in between; the mean over voters. Who took part in the conversation
 * is a voter of their own, however often they vote. Whoever else is said to have voted is a name that a client key gave, and
 * names cost nothing: all such votes of one key together are one voter, with their mean. So a key with a thousand invented
 * users weighs as much as one user who was there. Silence is unmeasured: most users never say anything.
 */
import type { Signal } from '../collect/signal.ts';
import { type ComputingScorer, mean, unmeasured } from './scorer.ts';

const isVote = ({ kind, value }: Signal): boolean => kind === 'feedback' && value !== null && value >= 0 && value <= 1;

function meanOverVoters(votes: readonly Signal[], participants: ReadonlySet<string>) {
  const byVoter = new Map<string, Map<string, number[]>>();
  for (const { user, key, identity, value } of votes) {
    const voter = user !== null && participants.has(user) ? `user ${user}` : `key ${key}`;
    const name = user ?? identity;
    const said = byVoter.get(voter) ?? new Map<string, number[]>();
    byVoter.set(voter, said.set(name, [...(said.get(name) ?? []), value!]));
  }
  // Sorted, because sums of floating-point numbers depend on their order.
  const sortedMean = (values: number[]) => mean(values.sort((a, b) => a - b));
  const means = [...byVoter.values()].map((said) => sortedMean([...said.values()].map(sortedMean)));
  return { value: sortedMean(means), voters: means.length };
}

export function feedback(): ComputingScorer {
  return {
    name: 'feedback',
    version: JSON.stringify(['feedback', 2]),
    score({ turns, signals }) {
      const votes = signals.filter(isVote);
      if (votes.length === 0) return unmeasured('no feedback');
      const participants = new Set(turns.flatMap(({ user }) => user ?? []));
      const perTurn = turns.flatMap(({ id }): [string, number][] => {
        const about = votes.filter(({ target }) => target.kind === 'turn' && target.id === id);
        return about.length === 0 ? [] : [[id, meanOverVoters(about, participants).value]];
      });
      const { value, voters } = meanOverVoters(votes, participants);
      return { value, reason: voters === 1 ? 'one voter' : `${voters} voters`, turns: new Map(perTurn) };
    },
  };
}
