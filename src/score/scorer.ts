/**
 * A scorer: one way of telling how good a recorded conversation was. What it says follows from its input, in whatever order
 * turns and signals come. Most compute; one that must ask somebody (a judge, a service) answers with a promise, and is given a
 * limit of time and a signal to stop at. Every scorer runs scorer-conformance.ts.
 */
import type { Signal } from '../collect/signal.ts';
import type { Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import type { Ask, Judge } from './ask.ts';
import type { RewardModels } from './reward-model-scorer.ts';

export type ScorerInput = {
  readonly trajectory: Trajectory;
  readonly turns: readonly Turn[];
  readonly signals: readonly Signal[];
  /** The agent's own medians that its scorers asked for and that are known, by name (norms.ts). */
  readonly norms?: ReadonlyMap<string, number>;
};

/** What the agent usually does, which a scorer compares a conversation with. */
export type Norm = {
  readonly name: string;
  /** Of one conversation; null: it says nothing about what is usual. */
  of(input: ScorerInput): number | null;
};

export type Measured = {
  /** 0–1; null: it cannot tell. */
  readonly value: number | null;
  /** A sentence or less: what the value rests on, or why there is none. */
  readonly reason: string;
  /** Value of single turns, by id, where it can tell. */
  readonly turns: ReadonlyMap<string, number>;
};

/** What the runtime lends to scorers that need more than the conversation. One that lacks what it needs is unmeasured. */
export type Services = {
  /** Whoever asks trained reward models; none where no engine is lent. */
  readonly rewardModels?: RewardModels | undefined;
  /** Whoever answers scorers that ask a model; none where no judge is configured. */
  readonly judge?: Judge | undefined;
};
export type ScorerContext = {
  readonly rewardModels?: RewardModels | undefined;
  /** Aborted when the scorer's time is over. */
  readonly signal: AbortSignal;
  /** Asks a model about this conversation (ask.ts). */
  readonly ask?: Ask | undefined;
};

/** What measuring one conversation would take, before it is done. */
export type Cost = {
  /** Calls to a model. */
  readonly calls: number;
  /** null: nobody said what a call costs. */
  readonly money: number | null;
};

export type Scorer = {
  readonly name: string;
  /** Changes whenever the same input would score differently: settings and, for a change of the code, a number. */
  readonly version: string;
  /** It reads labels, so that a new one scores a conversation again: all of them, or only what they say should have been answered. */
  readonly usesLabels?: true | 'corrections';
  /** It compares with this median of the agent's. */
  readonly norm?: Norm;
  /** Seconds it may take for one conversation; beyond them it has measured nothing. */
  readonly timeoutSeconds?: number; // 60
  /** Of one that names a file: the same with the file read, found from the folder of the settings. */
  from?(folder: string): Scorer;
  /** It certainly ends, so it may run in Pawl's own thread; others of a settings file run in one of theirs (isolate.ts). */
  readonly inProcess?: true;
  /** Of one that can compare: how good answers to the same turn are beside each other, in place of `score` for each alone. */
  rank?(answers: readonly ScorerInput[], context: ScorerContext): Promise<readonly Measured[]>;
  score(input: ScorerInput, context: ScorerContext): Measured | Promise<Measured>;
  /** Of one that asks: what that would take. Without it, nothing. */
  cost?(input: ScorerInput, context: ScorerContext): Cost | Promise<Cost>;
  /** Of one that compares by asking. */
  rankCost?(answers: readonly ScorerInput[], context: ScorerContext): Cost | Promise<Cost>;
};

/** One of Pawl's own that only computes. */
export type ComputingScorer = Scorer & { readonly inProcess: true; score(input: ScorerInput): Measured };

export const unmeasured = (reason: string): Measured => ({ value: null, reason, turns: new Map() });

export const inOrder = (turns: readonly Turn[]): Turn[] =>
  [...turns].sort((a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
