/**
 * Evidence about a trajectory or a turn that comes from outside the call itself: a user's feedback now, a measured
 * production outcome perhaps days later, perhaps before the trajectory it is about has been recorded; what a user did with an
 * answer; a reviewer's label.
 */
import type { Sibling } from './sibling.ts';
import type { Turn } from './turn.ts';

export type SignalTarget =
  | { readonly kind: 'turn'; readonly id: string }
  | { readonly kind: 'trajectory'; readonly id: string }
  /** A business key such as `order:1234`, which the agent attaches to a trajectory at some time, before or after. */
  | { readonly kind: 'key'; readonly id: string };

export const signalKinds = ['feedback', 'outcome', 'event', 'label'] as const;
export type SignalKind = (typeof signalKinds)[number];

/** What a user did with an answer, which nobody had to ask them. */
export const userEvents = ['accepted', 'edited', 'retried', 'abandoned', 'copied'] as const;
export type UserEvent = (typeof userEvents)[number];

export type Signal = {
  readonly id: string; // UUIDv7
  /** Same identity, same signal: a repeat replaces the older one (newest `at` wins) and never adds a row. */
  readonly identity: string;
  readonly agent: string;
  readonly target: SignalTarget;
  readonly kind: SignalKind;
  /** feedback: `vote`; outcome: the KPI's name, e.g. `resolved`; event: one of `userEvents`; label: see label.ts. */
  readonly name: string;
  /** feedback: up 1, neutral 0.5, down 0, or the given score in 0–1. Outcome: the measured value. Event: none. */
  readonly value: number | null;
  readonly unit: string | null;
  readonly user: string | null;
  /** Id of the client key it came with; null: from before this was kept. */
  readonly key: string | null;
  readonly comment: string | null;
  /** What the answer should have been, said by a user or an expert. */
  readonly correction: string | null;
  readonly at: number; // ms since epoch: when it happened, as the sender says
  readonly receivedAt: number;
};

/** A business key joined to a trajectory. */
export type Attachment = {
  readonly agent: string;
  readonly key: string;
  readonly trajectory: string | null;
  /** Set when the caller knows only the turn; the database resolves it. */
  readonly turn: string | null;
  readonly at: number;
  /** Id of the client key it came with. */
  readonly by?: string;
};

/** What the journal holds, in the order it was acknowledged. */
export type JournalEntry =
  | { readonly kind: 'turn'; readonly turn: Turn }
  | { readonly kind: 'sibling'; readonly sibling: Sibling }
  | { readonly kind: 'signal'; readonly signal: Signal }
  | { readonly kind: 'attachment'; readonly attachment: Attachment };
