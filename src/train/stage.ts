/**
 * What every algorithm looks like to a run: a number of steps, and a way to do step i. A stage keeps nothing in memory that
 * a crash may lose: what a step does follows from the weights, the stage's saved state, and (seed, i).
 */
import type { Engine } from '../engine/engine.ts';
import type { Played } from './kept-episodes.ts';
import type { StageMetrics } from './metrics.ts';
import type { StepClock } from './step-clock.ts';

export type StageContext = {
  readonly engine: Engine;
  /** Name of the model in the engine that is being trained. */
  readonly model: string;
  /** Checkpoint folder of the weights as they were when the stage began: the reference of KL and DPO. */
  readonly start: string;
  readonly seed: number;
  /** Counts where a step's time goes; what plays tells it. */
  readonly clock?: StepClock;
  /** Told what a step plays, in words; what plays ahead tells it when it is played. */
  readonly onPlayed?: (played: Played) => void;
};

export interface ActiveStage {
  step(index: number, signal?: AbortSignal): Promise<StageMetrics>;
  /** What a checkpoint must hold beside the weights; undefined when the step number says it all. Must survive JSON. */
  state(): unknown;
  /** Gives back what begin() took from the engine. */
  end(): Promise<void>;
}

export interface Stage {
  readonly name: string;
  readonly algorithm: 'sft' | 'rft' | 'dpo' | 'grpo';
  readonly steps: number;
  /** Rough counts of tokens of the whole stage, for the estimate: sampled, only computed forward, learned from. */
  readonly work: { readonly sampled: number; readonly forwarded: number; readonly trained: number };
  /** Called when the stage starts and again after every resume; `state` is what the last checkpoint held. */
  begin(context: StageContext, state?: unknown): Promise<ActiveStage>;
}
