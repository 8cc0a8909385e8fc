/**
 * What training needs to know about one attempt at a task, whoever played it: exact token ids, the logprobs they were
 * sampled with, the version of the weights that wrote them, and what it earned. An episode of simulate/ becomes one of
 * these; so can a recorded trajectory whose server gave token ids. Text is never re-tokenised here.
 *
 * attempt   one try at one task: its turns and its reward
 * group     the attempts at one task that are compared with each other
 * source    whatever can play attempts with a given model
 */
import type { Engine, PerToken, Tokens } from '../engine/engine.ts';
import type { Played } from './kept-episodes.ts';
import type { StepClock } from './step-clock.ts';

/** One model call: what it saw, what it wrote. */
export type AttemptTurn = {
  readonly prompt: Tokens;
  /** What the model wrote, its stop token included. */
  readonly completion: Tokens;
  /** Logprob of each completion token under the plain model at the time (temperature 1). */
  readonly logprobs: PerToken;
  /** What this turn earned by itself; 0 when nobody says. */
  readonly reward?: number;
};

export type Attempt = {
  readonly id: string;
  readonly task: string;
  readonly taskType: string;
  /** The reward of the whole attempt, in 0–1 unless the grader says otherwise. */
  readonly reward: number;
  readonly success: boolean;
  /** Version of the weights that wrote it. */
  readonly version: number;
  readonly turns: readonly AttemptTurn[];
};

export type Group = readonly Attempt[];

export interface AttemptSource {
  /** How many training tasks there are; they are addressed by 0 … tasks − 1. */
  readonly tasks: number;
  /** Plays `attempts` attempts at each task. Same seed and weights, same attempts. [task][attempt] */
  play(request: {
    readonly engine: Engine;
    readonly model: string;
    readonly tasks: readonly number[];
    readonly attempts: number;
    readonly seed: number;
    readonly signal?: AbortSignal;
    /** Told what of the time is the environment's. */
    readonly clock?: StepClock;
    /** Told what was played, in words. */
    readonly onPlayed?: (played: Played) => void;
  }): Promise<readonly Group[]>;
}

type PlayRequest = Parameters<AttemptSource['play']>[0];

/** Plays with a snapshot of the model as it is now. Attempts carry the version of the weights that the snapshot holds. */
export async function playFrozen(source: AttemptSource, request: PlayRequest): Promise<readonly Group[]> {
  return (await beginFrozen(source, request)).groups;
}

/**
 * Resolves when the snapshot is taken, under a name of its own that is gone afterwards: from then on the model may move on, whatever is
 * still played.
 */
export async function beginFrozen(
  source: AttemptSource,
  request: PlayRequest,
): Promise<{ readonly groups: Promise<readonly Group[]> }> {
  const { engine, model } = request;
  const frozen = `${model}.sampler`;
  // A step that was cut off in this process may have left its own behind.
  if ((await engine.models()).some(({ name }) => name === frozen)) await engine.unload(frozen);
  await engine.snapshot(model, frozen);
  const playing = async () => {
    try {
      return await source.play({ ...request, model: frozen });
    } finally {
      // An engine that died has nothing to give back, and what killed it is the error to tell.
      await engine.unload(frozen).catch(() => {});
    }
  };
  return { groups: playing() };
}

/** Tokens the model wrote in this attempt. */
export function ownTokens(attempt: Attempt): number {
  return attempt.turns.reduce((sum, turn) => sum + turn.completion.length, 0);
}
