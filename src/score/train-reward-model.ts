/**
 * Trains a reward model from labels or pairs and puts it before its own gate. Whole groups (tasks, conversations) are set apart before
 * training: a tenth to calibrate on, two tenths to be judged by. A model that does not order those well enough, or whose values are
 * not what they say, is refused, and no reward can use it.
 */
import { createHash } from 'node:crypto';
import type { Engine } from '../engine/engine.ts';
import { forwardBackwardCustom } from '../engine/engine.ts';
import { auc, spearman } from './ranks.ts';
import { bootstrap, groupsOf, shuffled } from './resample.ts';
import {
  type Calibration,
  calibrate,
  calibrated,
  calibrationError,
  opinions,
  pairLoss,
  regressionLoss,
  tokenGradients,
  type Verdicts,
  verdictData,
} from './reward-model.ts';

export type Example = { readonly group: string; readonly tokens: readonly number[]; readonly label: number };

/** What decides whether it may be used. */
export const gate = { auc: 0.7, calibrationError: 0.15 } as const;
/** Fewer labels or pairs than this teach a model little. */
export const fewestExamples = 2000;

export type RewardModelReport = {
  readonly method: 'regression' | 'pairs';
  /** Labels or pairs it was trained on, and labels it was judged by. */
  readonly trained: number;
  readonly judged: number;
  readonly losses: readonly number[];
  readonly auc: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly spearman: number | null;
  readonly errorBefore: number | null;
  readonly calibrationError: number | null;
  readonly calibration: Calibration;
};

export type Training = {
  readonly engine: Engine;
  readonly model: string;
  readonly verdicts: Verdicts;
  readonly examples: readonly Example[];
  readonly method: RewardModelReport['method'];
  readonly epochs: number;
  readonly learningRate: number;
  readonly seed?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (epoch: number, share: number, loss: number) => void;
};

/** Conversations at a time. Even, so that pairs stay together. */
const together = 16;
/** Labels of one task that are this far apart make a pair. */
const leastGap = 0.2;

/** Every conversation of a group with the next worse of the group: better, worse, better, worse, … */
export function pairsOf(examples: readonly Example[]): Example[] {
  return groupsOf(examples, ({ group }) => group).flatMap((group) => {
    const sorted = [...group].sort((a, b) => b.label - a.label);
    return sorted.flatMap((better, i) => {
      const worse = sorted.slice(i + 1).find(({ label }) => better.label - label >= leastGap);
      return worse === undefined ? [] : [better, worse];
    });
  });
}

/** Opinions of the model as it stands. */
export async function opinionsOf(
  engine: Engine,
  model: string,
  verdicts: Verdicts,
  all: readonly (readonly number[])[],
  signal?: AbortSignal,
): Promise<number[]> {
  const out: number[] = [];
  for (let from = 0; from < all.length; from += together) {
    signal?.throwIfAborted();
    const data = all.slice(from, from + together).flatMap((tokens) => verdictData(tokens, verdicts));
    out.push(...opinions((await engine.forward(model, data)).logprobs));
  }
  return out;
}

export async function trainRewardModel(training: Training): Promise<RewardModelReport> {
  const { engine, model, verdicts, method, epochs, learningRate, seed = 1, signal } = training;
  const groups = shuffled(
    groupsOf(training.examples, ({ group }) => group),
    seed,
  );
  const cut = [Math.floor(groups.length * 0.7), Math.floor(groups.length * 0.8)] as const;
  const learn = groups.slice(0, cut[0]).flat();
  const [fit, judge] = [groups.slice(cut[0], cut[1]).flat(), groups.slice(cut[1]).flat()];
  /** What is shuffled: a conversation, or a pair. */
  const units = method === 'pairs' ? chunks(pairsOf(learn), 2) : learn.map((one) => [one]);
  const losses: number[] = [];
  const perStep = method === 'pairs' ? together / 2 : together;
  for (let epoch = 0; epoch < epochs; epoch++) {
    let [sum, count] = [0, 0];
    const steps = chunks(shuffled(units, seed + epoch), perStep);
    for (const [k, step] of steps.entries()) {
      signal?.throwIfAborted();
      const examples = step.flat();
      const data = examples.flatMap(({ tokens }) => verdictData(tokens, verdicts));
      const { loss } = await forwardBackwardCustom(engine, model, data, (logprobs) => {
        const r = opinions(logprobs);
        const found =
          method === 'pairs'
            ? pairLoss(r)
            : regressionLoss(
                r,
                examples.map(({ label }) => label),
              );
        return {
          loss: found.loss,
          gradients: tokenGradients(
            data,
            found.slopes.map((slope) => slope / step.length),
          ),
        };
      });
      await engine.optimStep(model, { learningRate, weightDecay: 0.01, gradClipNorm: 1 });
      sum += loss;
      count += step.length;
      training.onProgress?.(epoch, (k + 1) / steps.length, sum / count);
    }
    losses.push(sum / Math.max(1, count));
  }
  const ask = (some: readonly Example[]) =>
    opinionsOf(
      engine,
      model,
      verdicts,
      some.map(({ tokens }) => tokens),
      signal,
    );
  const calibration = calibrate(
    await ask(fit),
    fit.map(({ label }) => label),
  );
  const raw = await ask(judge);
  const labels = judge.map(({ label }) => label);
  const told = judge.map((one, i) => ({ group: one.group, value: raw[i]!, good: one.label >= 0.5 }));
  const figure = (some: readonly (typeof told)[number][]) =>
    auc(
      some.map(({ value }) => value),
      some.map(({ good }) => good),
    );
  const interval = bootstrap(
    groupsOf(told, ({ group }) => group),
    figure,
    { seed },
  );
  return {
    ...{ method, trained: units.length, judged: judge.length, losses, calibration, auc: figure(told) },
    ...{ low: interval?.low ?? null, high: interval?.high ?? null, spearman: spearman(raw, labels) },
    errorBefore: calibrationError(
      raw.map((r) => calibrated(r, { a: 1, b: 0 })),
      labels,
    ),
    calibrationError: calibrationError(
      raw.map((r) => calibrated(r, calibration)),
      labels,
    ),
  };
}

const chunks = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));

/** Why it may not be used; null: it may. */
export function refusalOf({ auc: found, low, calibrationError: error }: RewardModelReport): string | null {
  if (found === null || low === null || error === null) return 'What was set apart has only good or only bad labels.';
  if (found < gate.auc) return `Its AUC on labels it has not seen is ${found.toFixed(3)}; ${gate.auc} is needed.`;
  if (low <= 0.5) return `Its AUC of ${found.toFixed(3)} may be chance: the interval begins at ${low.toFixed(3)}.`;
  if (error > gate.calibrationError)
    return `Its values are off by ${error.toFixed(3)} in the mean; ${gate.calibrationError} is allowed.`;
  return null;
}

/** Other weights, another calibration or another form: another version. */
export const modelVersion = (of: {
  artifact: string;
  calibration: Calibration;
  verdicts: Verdicts;
  form: number;
}): string => createHash('sha256').update(JSON.stringify(of)).digest('hex').slice(0, 16);
