/**
 * What users said: up 1, neutral 0.5, down 0, or a score in between; the mean over voters (voters.ts). Silence is unmeasured:
 * most users never say anything.
 */
import type { Signal } from '../collect/signal.ts';
import { type ComputingScorer, unmeasured } from './scorer.ts';
import { meanOverVoters, participantsOf } from './voters.ts';

type Vote = Signal & { readonly value: number };
const isVote = (signal: Signal): signal is Vote =>
  signal.kind === 'feedback' && signal.value !== null && signal.value >= 0 && signal.value <= 1;

export function feedback(): ComputingScorer {
  return {
    name: 'feedback',
    version: JSON.stringify(['feedback', 2]),
    inProcess: true,
    score({ turns, signals }) {
      const votes = signals.filter(isVote);
      if (votes.length === 0) return unmeasured('no feedback');
      const participants = participantsOf(turns);
      const perTurn = turns.flatMap(({ id }): [string, number][] => {
        const about = votes.filter(({ target }) => target.kind === 'turn' && target.id === id);
        return about.length === 0 ? [] : [[id, meanOverVoters(about, participants).value]];
      });
      const { value, voters } = meanOverVoters(votes, participants);
      return { value, reason: voters === 1 ? 'one voter' : `${voters} voters`, turns: new Map(perTurn) };
    },
  };
}
