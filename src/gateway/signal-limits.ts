/**
 * How much one key may say. Signals cannot be refused because the database does not know what they are about: recording is
 * asynchronous, another gateway may have answered, and an outcome may come before its business key. So they are bounded:
 *
 * - votes and events about one thing: by at most so many users a day, since user names are the sender's own invention;
 * - signals on trust, about what this gateway has not answered: so many a day. Beyond that the database must know the
 *   target. While it cannot be asked, trust goes on: its trouble is not the sender's.
 *
 * What stays unmatched is swept after a month (store/unmatched.ts). Counts are this process's, and bounded themselves.
 */
import { createRecent, type Recent } from '../collect/recent.ts';
import type { SignalEntry } from '../collect/recorder.ts';
import type { SignalTarget } from '../collect/signal.ts';
import { ComeBackLater } from './admit.ts';
import type { ClientKey } from './keys.ts';

export const votersPerDay = 20;
export const trustPerDay = 1000;
const dayMs = 86_400_000;
/** Of each agent: those of a minute or so, after which the database has them. */
const answersKnown = 50_000;

type Answered = { readonly turn: Recent<true>; readonly trajectory: Recent<true> };

export type SignalLimits = {
  /** This gateway answered it, so it exists whatever the database says yet. */
  answered(agent: string, turn: string, trajectory: string | null): void;
  /** Throws ComeBackLater (429) when the key has said too much. */
  check(key: ClientKey, entry: SignalEntry, now: number): Promise<void>;
};

const targetOf = (entry: SignalEntry): SignalTarget => {
  if (entry.kind === 'signal') return entry.signal.target;
  const { trajectory, turn } = entry.attachment;
  return trajectory !== null ? { kind: 'trajectory', id: trajectory } : { kind: 'turn', id: turn ?? '' };
};

export function createSignalLimits(isThere: (agent: string, target: SignalTarget) => Promise<boolean>): SignalLimits {
  const known = new Map<string, Answered>(); // by agent
  const voters = createRecent<Set<string>>(20_000);
  const trusted = new Map<string, { day: number; count: number }>(); // by key
  const untilTomorrow = (now: number) => dayMs - (now % dayMs);

  function countVoter(key: ClientKey, target: SignalTarget, user: string, now: number): void {
    const about = JSON.stringify([Math.floor(now / dayMs), key.id, target.kind, target.id]);
    const users = voters.get(about) ?? new Set();
    if (!users.has(user) && users.size >= votersPerDay)
      throw new ComeBackLater(
        429,
        'too_many_voters',
        `Key ${key.name} has sent votes of ${votersPerDay} users about this ${target.kind} today, which is as many as count.`,
        untilTomorrow(now),
      );
    voters.set(about, users.add(user));
  }

  async function trust(key: ClientKey, target: SignalTarget, now: number): Promise<void> {
    if (target.kind !== 'key' && known.get(key.agent)?.[target.kind].get(target.id)) return;
    const day = Math.floor(now / dayMs);
    const so = trusted.get(key.id);
    const count = so?.day === day ? so.count : 0;
    if (count < trustPerDay) {
      trusted.set(key.id, { day, count: count + 1 });
      return;
    }
    if (await isThere(key.agent, target).catch(() => true)) return;
    throw new ComeBackLater(
      429,
      'unknown_target',
      `There is no ${target.kind === 'key' ? 'business key' : target.kind} ${JSON.stringify(target.id.slice(0, 80))} of agent ${key.agent} yet, and key ${key.name} has used up the ${trustPerDay} signals a day that are taken on trust. Send it again once it exists.`,
      60_000,
    );
  }

  return {
    answered(agent, turn, trajectory) {
      let answered = known.get(agent);
      if (answered === undefined) {
        answered = { turn: createRecent(answersKnown), trajectory: createRecent(answersKnown) };
        known.set(agent, answered);
      }
      answered.turn.set(turn, true);
      if (trajectory !== null) answered.trajectory.set(trajectory, true);
    },
    async check(key, entry, now) {
      const target = targetOf(entry);
      if (entry.kind === 'signal' && entry.signal.kind !== 'outcome')
        countVoter(key, target, entry.signal.user ?? '', now);
      await trust(key, target, now);
    },
  };
}
