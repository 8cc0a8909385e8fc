/**
 * What users said: up 1, neutral 0.5, down 0, or a score in between. Each user counts once, however often they vote, so
 * nobody outvotes the others by clicking. Silence is unmeasured: most users never say anything.
 */
import type { Signal } from '../collect/signal.ts';
import { mean, type Scorer, unmeasured } from './scorer.ts';

const isVote = ({ kind, value }: Signal): boolean => kind === 'feedback' && value !== null && value >= 0 && value <= 1;

/** Mean over users of each user's mean. Votes without a user are one voter each. */
function meanOverUsers(votes: readonly Signal[]): { value: number; voters: number } {
  const byVoter = new Map<string, number[]>();
  for (const { user, identity, value } of votes) {
    const voter = user === null ? `signal ${identity}` : `user ${user}`;
    byVoter.set(voter, [...(byVoter.get(voter) ?? []), value!]);
  }
  // Sorted, because sums of floating-point numbers depend on their order.
  const means = [...byVoter.values()].map((values) => mean(values.sort((a, b) => a - b))).sort((a, b) => a - b);
  return { value: mean(means), voters: means.length };
}

export function feedback(): Scorer {
  return {
    name: 'feedback',
    version: JSON.stringify(['feedback', 1]),
    score({ turns, signals }) {
      const votes = signals.filter(isVote);
      if (votes.length === 0) return unmeasured('no feedback');
      const perTurn = turns.flatMap(({ id }): [string, number][] => {
        const about = votes.filter(({ target }) => target.kind === 'turn' && target.id === id);
        return about.length === 0 ? [] : [[id, meanOverUsers(about).value]];
      });
      const { value, voters } = meanOverUsers(votes);
      return { value, reason: voters === 1 ? 'one user’s vote' : `votes of ${voters} users`, turns: new Map(perTurn) };
    },
  };
}
