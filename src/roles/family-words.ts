/**
 * What the parent of several gateway processes and its children say to each other, over Node's channel between them. Each may
 * ask the other; an answer carries the ticket of its question.
 */
import type { RecorderStats } from '../collect/recorder.ts';
import type { Placed } from '../engine/keep.ts';

/** How one process is. */
export type MemberHealth = {
  readonly pid: number;
  readonly problems: readonly string[];
  readonly recording: RecorderStats;
};

/** `figures`: the process's registry as JSON, which only prom-client reads. */
export type Member = { readonly health: MemberHealth; readonly figures: object[] };

/** All processes together: what is wrong with which, the sums of what they record, and their figures as text. */
export type FamilyHealth = {
  readonly problems: readonly string[];
  readonly recording: RecorderStats | null;
  readonly processes: readonly {
    readonly number: number;
    readonly pid: number;
    readonly problems: readonly string[];
  }[];
};

export type FromChild =
  | { readonly kind: 'up'; readonly url: string }
  | { readonly kind: 'failed'; readonly message: string }
  /** What users may get from Pawl's own engine, which the parent has. */
  | { readonly kind: 'in-play'; readonly placed: readonly Placed[] }
  | { readonly kind: 'ask'; readonly ticket: number; readonly what: 'health' | 'figures' }
  | { readonly kind: 'load'; readonly ticket: number; readonly placed: Placed }
  | { readonly kind: 'member'; readonly ticket: number; readonly member: Member };

export type FromParent =
  | { readonly kind: 'stop' }
  /** Pawl's own engine answers there from now on. */
  | { readonly kind: 'engine'; readonly url: string }
  | { readonly kind: 'how-are-you'; readonly ticket: number }
  | { readonly kind: 'answer'; readonly ticket: number; readonly value?: unknown; readonly problem?: string };
