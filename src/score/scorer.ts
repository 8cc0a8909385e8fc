/**
 * A scorer: one way of telling how good a recorded conversation was. What it says follows from its input, in whatever order
 * turns and signals come. Most compute; one that must ask somebody (a judge, a service) answers with a promise, and is given a
 * limit of time and a signal to stop at. Every scorer runs scorer-conformance.ts.
 */
import type { Signal } from '../collect/signal.ts';
import type { Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';

export type ScorerInput = {
  readonly trajectory: Trajectory;
  readonly turns: readonly Turn[];
  readonly signals: readonly Signal[];
};

export type Measured = {
  /** 0–1; null: it cannot tell. */
  readonly value: number | null;
  /** A sentence or less: what the value rests on, or why there is none. */
  readonly reason: string;
  /** Value of single turns, by id, where it can tell. */
  readonly turns: ReadonlyMap<string, number>;
};

export type Scorer = {
  readonly name: string;
  /** Changes whenever the same input would score differently: settings and, for a change of the code, a number. */
  readonly version: string;
  /** Seconds it may take for one conversation; beyond them it has measured nothing. */
  readonly timeoutSeconds?: number; // 60
  score(input: ScorerInput, options: { readonly signal: AbortSignal }): Measured | Promise<Measured>;
};

/** One that only computes. */
export type ComputingScorer = Scorer & { score(input: ScorerInput): Measured };

export const unmeasured = (reason: string): Measured => ({ value: null, reason, turns: new Map() });

export const inOrder = (turns: readonly Turn[]): Turn[] =>
  [...turns].sort((a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
