/**
 * Which messages this process has journalled lately, so that a turn that repeats them need only name them. What is remembered
 * was acknowledged by the journal, and is remembered for minutes: much less than the sweep of the database waits
 * (store/messages.ts), and little is lost with a damaged record. By agent and day, as the database holds them. A process that
 * begins remembers nothing and sends everything once more. A piece of a list counts as sent when the oldest of what is in it was, so that
 * who knows the piece need not ask for what is in it.
 */
import { createNames } from '../store/content.ts';
import type { Naming } from '../store/line.ts';
import { createRecent } from './recent.ts';

export type SentMessages = {
  /** For one turn. `acknowledged`: the journal has it, and what it carried. `now` never goes back. */
  naming(of: { readonly agent: string; readonly startedAt: number }, now: number): Naming & { acknowledged(): void };
};

const FORGET_MS = 5 * 60_000;
/** Names, of about 300 bytes each. */
const MOST = 200_000;
const DAY_MS = 86_400_000;

export function createSentMessages(secret: string): SentMessages {
  /** By name, and then by place: looking a name up that was met before costs least. */
  const sentAt = createRecent<Map<string, number>>(MOST);
  const names = createNames(secret);
  return {
    naming({ agent, startedAt }, now) {
      const place = `${Math.floor(startedAt / DAY_MS)} ${agent}`;
      const carried: { readonly hash: string; readonly of: readonly string[] | null }[] = [];
      const sentTo = (hash: string): number | undefined => sentAt.get(hash)?.get(place);
      return {
        names,
        isKnown(hash, of) {
          const at = sentTo(hash);
          if (at !== undefined && now - at < FORGET_MS) return true;
          carried.push({ hash, of });
          return false;
        },
        acknowledged() {
          // What a piece is of was asked for after it.
          for (const { hash, of } of carried.reverse()) {
            const at = of === null ? now : Math.min(now, ...of.map((part) => sentTo(part) ?? now));
            sentAt.set(hash, (sentAt.get(hash) ?? new Map()).set(place, at));
          }
        },
      };
    },
  };
}
