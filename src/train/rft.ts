/**
 * Rejection-sampled fine-tuning (RAFT, Dong et al. 2023, arXiv 2304.06767; "STaR" without rationalisation): play groups
 * of attempts, keep the best of each group if its reward is above 0.9, and learn the kept ones by cross-entropy. Then play
 * again with the better model. Its ceiling is what the model already does sometimes; it never learns from a failure.
 *
 * A round is one step of playing and a fixed number of steps of learning, so the length of a run is known beforehand.
 */
import type { AdamParams } from '../engine/engine.ts';
import { type AttemptSource, type Group, ownTokens, playFrozen } from './attempt.ts';
import { attemptMetrics } from './grpo.ts';
import { draw, mixSeed } from './order.ts';
import { type Replay, replayed } from './replay.ts';
import { learningRate, type Schedule } from './schedule.ts';
import { type Example, type SftCredit, supervisedStep } from './sft.ts';
import type { Stage } from './stage.ts';

export type RftSettings = {
  readonly rounds: number;
  readonly tasksPerRound: number;
  readonly attempts: number;
  /** An attempt is kept if it earned more than this and no other attempt of its group earned more. */
  readonly minReward: number;
  readonly learningSteps: number;
  readonly batchSize: number;
  readonly schedule: Schedule;
  readonly adam: Omit<AdamParams, 'learningRate'>;
  readonly replay?: Replay;
  readonly credit?: SftCredit;
  /** Expected tokens of one attempt, for the estimate only. */
  readonly tokensPerAttempt: number;
};

export const rftDefaults: RftSettings = {
  rounds: 3,
  tasksPerRound: 256,
  attempts: 4,
  minReward: 0.9,
  learningSteps: 48,
  batchSize: 16,
  schedule: { peak: 3e-4, shape: 'constant', warmup: 0.05, floor: 1 },
  adam: { beta1: 0.9, beta2: 0.95, gradClipNorm: 1 },
  tokensPerAttempt: 200,
};

/** The best attempt of each group, if it is good enough. Ties go to the shorter one: it says the same in fewer tokens. */
export function bestOfGroups(groups: readonly Group[], minReward: number): Example[] {
  return groups.flatMap((group) => {
    const best = [...group].sort((a, b) => b.reward - a.reward || ownTokens(a) - ownTokens(b))[0];
    if (!best || !(best.reward > minReward)) return [];
    return [
      {
        id: best.id,
        taskType: best.taskType,
        quality: best.reward,
        turns: best.turns.map(({ prompt, completion, reward }) => ({
          ...{ prompt: [...prompt], completion: [...completion] },
          ...(reward === undefined ? {} : { worth: reward }),
        })),
      },
    ];
  });
}

export function rft(source: AttemptSource, settings: Partial<RftSettings> = {}): Stage {
  const set = { ...rftDefaults, ...settings };
  const perRound = 1 + set.learningSteps;
  const steps = set.rounds * perRound;
  const learning = set.rounds * set.learningSteps;
  return {
    name: 'rft',
    algorithm: 'rft',
    steps,
    work: {
      sampled: set.rounds * set.tasksPerRound * set.attempts * set.tokensPerAttempt,
      forwarded: 0,
      trained: learning * set.batchSize * set.tokensPerAttempt,
    },
    async begin({ engine, model, seed, clock, onPlayed }, state) {
      let kept = (state as readonly Example[] | undefined) ?? [];
      return {
        async step(index, signal) {
          const round = Math.floor(index / perRound);
          const inRound = index % perRound;
          if (inRound === 0) {
            const tasks = draw(source.tasks, round * set.tasksPerRound, set.tasksPerRound, seed);
            const groups = await playFrozen(source, {
              engine,
              model,
              tasks,
              attempts: set.attempts,
              seed: mixSeed(seed, 2, round),
              ...(signal ? { signal } : {}),
              ...(clock ? { clock } : {}),
              ...(onPlayed ? { onPlayed } : {}),
            });
            kept = bestOfGroups(groups, set.minReward);
            const { values, taskTypes } = attemptMetrics(groups);
            return { values: { ...values, kept_fraction: kept.length / Math.max(1, groups.flat().length) }, taskTypes };
          }
          if (kept.length === 0) return { values: { loss: 0, grad_norm: 0, tokens: 0 } };
          const at = inRound - 1;
          const size = Math.min(set.batchSize, kept.length);
          const batch = draw(kept.length, at * size, size, mixSeed(seed, 3, round)).map((i) => kept[i]!);
          const extra = replayed(set.replay, size, index, mixSeed(seed, 1));
          const rate = learningRate(set.schedule, round * set.learningSteps + at, learning);
          return supervisedStep(
            { engine, model },
            [...batch, ...extra],
            { ...set.adam, learningRate: rate },
            set.credit,
          );
        },
        state: () => kept,
        end: async () => {},
      };
    },
  };
}
