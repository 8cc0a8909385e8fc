/**
 * The record of an erasure: a user asked to be forgotten, and everything of theirs goes.
 *
 * erasing    conversations, signals, scores and dataset rows are being removed; whoever finds it unfinished goes on with it
 * sweeping   that is done; what only their turns referred to is removed once nothing can be about to use it
 * done       nothing is left. Something of theirs that a gateway delivers late is dropped, and may open it again
 */
import { z } from 'zod';

export const erasureStatuses = ['erasing', 'sweeping', 'done'] as const;

const count = z.int().nonnegative();

export const erasedCounts = z.strictObject({
  /** Whole conversations: each call repeats what was said before. */
  conversations: count,
  /** Of these, how many other people took part in. */
  shared: count,
  turns: count,
  siblings: count,
  /** By the user, and about what went. */
  signals: count,
  keys: count,
  scores: count,
});
export type ErasedCounts = Readonly<z.infer<typeof erasedCounts>>;

/** A dataset that held rows of the user. */
export const erasedDataset = z.strictObject({
  id: z.string(),
  /** Rows and sides of pairs that went. */
  rows: count,
  /** The same without them; null: nothing was left, or its file was not at hand. */
  replacedBy: z.string().nullable(),
  /** What has learned from it. Weights cannot be made to forget; train again from `replacedBy`. */
  learned: z.strictObject({ runs: z.array(z.string()), releases: z.array(z.string()) }),
});
export type ErasedDataset = Readonly<z.infer<typeof erasedDataset>>;

export const erasure = z.strictObject({
  id: z.string(),
  /** Hash. */
  user: z.string(),
  /** null: every agent's. */
  agent: z.string().nullable(),
  at: z.number(), // ms since epoch: what began before is forgotten
  actor: z.string(),
  status: z.enum(erasureStatuses),
  counts: erasedCounts,
  /** Dropped on arrival since. */
  late: count,
  datasets: z.array(erasedDataset),
  /** `reward model NAME VERSION`: those that have learned from the user. */
  rewardModels: z.array(z.string()),
  /** Why it waits. */
  problem: z.string().nullable(),
  finishedAt: z.number().nullable(),
});
export type Erasure = Readonly<z.infer<typeof erasure>>;

/** By when a request must have been carried out. */
export const dueAt = ({ at }: Pick<Erasure, 'at'>): number => at + 7 * 86_400_000;
/** Whole days that are left; below 0 it is late; null: it is done. */
export const daysLeft = (erasure: Pick<Erasure, 'at' | 'status'>, now: number): number | null =>
  erasure.status === 'done' ? null : Math.floor((dueAt(erasure) - now) / 86_400_000);

/** What an erasure would remove. */
export type Survey = {
  readonly user: string;
  readonly agent: string | null;
  readonly counts: ErasedCounts;
  readonly datasets: readonly Omit<ErasedDataset, 'replacedBy'>[];
  readonly rewardModels: readonly string[];
  /** Whether the user said something about training. */
  readonly consents: number;
};

/** Nothing here is this user's. */
export const isUnknown = ({ counts, datasets, rewardModels, consents }: Survey): boolean =>
  Object.values(counts).every((n) => n === 0) && datasets.length + rewardModels.length === 0 && consents === 0;
