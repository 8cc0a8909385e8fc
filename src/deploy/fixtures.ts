/** Users of a release and what became of their cases, for tests. */
import type { JournalEntry } from '../collect/signal.ts';
import type { Turn } from '../collect/turn.ts';
import { entry } from '../store/fixtures.ts';

export type Traffic = {
  release: string;
  users: number;
  resolved: number;
  from: number;
  failed?: number;
  /** What else each turn says. */
  words?: Partial<Turn>;
};

/** One trajectory of two calls per user; the first `resolved` users have the outcome 1, the others 0. */
export function traffic({ release, users, resolved, from, failed = 0, words = {} }: Traffic): JournalEntry[] {
  return Array.from({ length: users }, (_, i) => {
    const trajectory = `${release}-${from}-${i}`;
    const user = `${release}-${from}-user-${i}`;
    const broken = i < failed ? ({ status: 'error', httpStatus: 500 } as const) : {};
    return [
      entry.turn({ trajectory, user, release, startedAt: from + i, ...words, ...broken }),
      entry.turn({ trajectory, user, release, startedAt: from + i + 1, ...words }),
      entry.signal({
        ...{ identity: `${trajectory}/resolved`, target: { kind: 'trajectory', id: trajectory }, kind: 'outcome' },
        ...{ name: 'resolved', value: i < resolved ? 1 : 0, at: from + i + 2 },
      }),
    ];
  }).flat();
}
