/**
 * Direct preference optimisation (Rafailov et al. 2023, arXiv 2305.18290): raise the chosen answer above the rejected one,
 * relative to a reference. With s = Σ over own tokens of (log π − log ref) and Δ = s(chosen) − s(rejected):
 *
 *     loss = mean over pairs of −log σ(β·Δ)        ∂loss/∂log π = ∓ β·σ(−β·Δ)/pairs  on the own tokens of each side
 *
 * To it is added, times `imitation`, the mean cross-entropy of the chosen sides' own tokens (Pang et al. 2024, arXiv
 * 2404.19733; TRL calls it rpo_alpha): the loss above cares for the difference alone and is content when both sides become
 * unlikely, the rejected one more so. Whole conversations share so many tokens that this happens at once.
 *
 * The reference is the weights at the start of the stage; its logprobs are computed once, before the first step. A pair's
 * sides may be whole conversations: only what the model wrote counts, tool results do not.
 */
import type { AdamParams, Datum } from '../engine/engine.ts';
import { forwardBackwardCustom } from '../engine/engine.ts';
import { ConfigError } from '../errors.ts';
import type { Group } from './attempt.ts';
import { ownCount, type Sequence, sequences, type WrittenTurn } from './datum.ts';
import { draw, mixSeed } from './order.ts';
import { reload } from './reload.ts';
import { type Replay, replayed } from './replay.ts';
import { learningRate, type Schedule } from './schedule.ts';
import { supervisedData } from './sft.ts';
import type { Stage } from './stage.ts';

export type Pair = {
  readonly id: string;
  readonly taskType: string;
  readonly chosen: readonly WrittenTurn[];
  readonly rejected: readonly WrittenTurn[];
  /** Score of chosen minus score of rejected. */
  readonly gap: number;
};

export type DpoSettings = {
  readonly beta: number;
  /** Weight of imitating the chosen sides; 0 is the paper's loss alone. */
  readonly imitation: number;
  readonly epochs: number;
  readonly batchSize: number;
  readonly minGap: number;
  readonly schedule: Schedule;
  readonly adam: Omit<AdamParams, 'learningRate'>;
  readonly replay?: Replay;
};

/**
 * A chosen token's preference gradient is about β/2 per pair, its imitation gradient `imitation` per chosen token: of
 * conversations of 42 own tokens, 5 makes the two of like size. Chosen on validation tasks (docs/log.md).
 */
export const dpoDefaults: DpoSettings = {
  beta: 0.1,
  imitation: 5,
  epochs: 2,
  batchSize: 16,
  minGap: 0.2,
  schedule: { peak: 4e-4, shape: 'cosine', warmup: 0.1, floor: 0.1 },
  adam: { beta1: 0.9, beta2: 0.95, gradClipNorm: 1 },
};

/**
 * Attempts at the same task, best against worst, second best against second worst and so on, where the two differ enough. An attempt is in one pair at most.
 */
export function pairsFrom(groups: readonly Group[], minGap = dpoDefaults.minGap, perGroup = 4): Pair[] {
  return groups.flatMap((group) => {
    const sorted = [...group].sort((a, b) => b.reward - a.reward);
    return sorted.slice(0, Math.min(perGroup, Math.floor(sorted.length / 2))).flatMap((best, i) => {
      const worst = sorted[sorted.length - 1 - i]!;
      const gap = best.reward - worst.reward;
      if (gap < minGap) return [];
      return [
        {
          id: `${best.id}>${worst.id}`,
          taskType: best.taskType,
          chosen: best.turns,
          rejected: worst.turns,
          gap,
        },
      ];
    });
  });
}

/** The loss of a batch and its gradient with respect to each side's summed logprob. [pair] */
export function dpoLoss(
  chosen: readonly number[],
  rejected: readonly number[],
  referenceChosen: readonly number[],
  referenceRejected: readonly number[],
  beta: number,
): { loss: number; gradient: number[]; deltas: number[] } {
  const deltas = chosen.map((c, i) => c - referenceChosen[i]! - (rejected[i]! - referenceRejected[i]!));
  const n = deltas.length;
  return {
    // log1p(e^−x) for x ≥ 0 and its mirror below, so neither side overflows.
    loss: deltas.reduce((sum, d) => sum + softplus(-beta * d), 0) / n,
    gradient: deltas.map((d) => -beta / (1 + Math.exp(beta * d)) / n),
    deltas,
  };
}

function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

type Side = { readonly sequences: readonly Sequence[]; reference: number };
type PreparedPair = { readonly pair: Pair; readonly chosen: Side; readonly rejected: Side };

export function dpo(all: readonly Pair[], settings: Partial<DpoSettings> = {}): Stage {
  const set = { ...dpoDefaults, ...settings };
  const pairs = all.filter((p) => p.gap >= set.minGap);
  if (pairs.length === 0)
    throw new ConfigError(
      `None of the ${all.length} pairs has a gap of ${set.minGap}; collect clearer pairs or lower minGap.`,
    );
  const perStep = Math.min(set.batchSize, pairs.length);
  const steps = Math.max(1, Math.ceil((pairs.length * set.epochs) / perStep));
  const prepared: PreparedPair[] = pairs.map((pair) => ({
    pair,
    chosen: { sequences: sequences(pair.chosen), reference: Number.NaN },
    rejected: { sequences: sequences(pair.rejected), reference: Number.NaN },
  }));
  const size = (p: PreparedPair) =>
    [...p.chosen.sequences, ...p.rejected.sequences].reduce((n, s) => n + s.tokens.length, 0);
  const whole = prepared.reduce((sum, p) => sum + size(p), 0);
  return {
    name: 'dpo',
    algorithm: 'dpo',
    steps,
    work: { sampled: 0, forwarded: whole * (set.epochs + 1), trained: whole * set.epochs },
    async begin({ engine, model, start, seed }) {
      const reference = `${model}.reference`;
      await reload(engine, reference, start);
      for (let at = 0; at < prepared.length; at += 32) {
        const sides = prepared.slice(at, at + 32).flatMap((p) => [p.chosen, p.rejected]);
        const { logprobs } = await engine.forward(
          reference,
          sides.flatMap((s) => s.sequences),
        );
        let row = 0;
        for (const side of sides) {
          side.reference = 0;
          for (const s of side.sequences) side.reference += ownSum(s, logprobs[row++]!);
        }
      }
      await engine.unload(reference);
      return {
        async step(index) {
          const batch = draw(prepared.length, index * perStep, perStep, seed).map((i) => prepared[i]!);
          const sides = batch.flatMap((p) => [p.chosen, p.rejected]);
          const rows = sides.flatMap((side, i) => side.sequences.map((sequence) => ({ sequence, side: i })));
          let accuracy = 0;
          let margin = 0;
          const result = await forwardBackwardCustom(
            engine,
            model,
            rows.map((r) => r.sequence),
            (logprobs) => {
              const sums = sides.map(() => 0);
              for (const [row, r] of rows.entries()) sums[r.side]! += ownSum(r.sequence, logprobs[row]!);
              const even = <T>(list: readonly T[]) => list.filter((_, i) => i % 2 === 0);
              const odd = <T>(list: readonly T[]) => list.filter((_, i) => i % 2 === 1);
              const references = sides.map((s) => s.reference);
              const { loss, gradient, deltas } = dpoLoss(
                even(sums),
                odd(sums),
                even(references),
                odd(references),
                set.beta,
              );
              accuracy = deltas.filter((d) => d > 0).length / deltas.length;
              margin = (set.beta * deltas.reduce((a, b) => a + b, 0)) / deltas.length;
              const chosenTokens = rows.reduce(
                (n, { sequence, side }) => n + (side % 2 === 0 ? ownCount(sequence) : 0),
                0,
              );
              const pull = set.imitation / Math.max(1, chosenTokens);
              return {
                loss: loss - pull * even(sums).reduce((a, b) => a + b, 0),
                gradients: rows.map(({ sequence, side }) => {
                  const g = side % 2 === 0 ? gradient[side >> 1]! - pull : -gradient[side >> 1]!;
                  return Float32Array.from(sequence.turns, (turn) => (turn >= 0 ? g : 0));
                }),
              };
            },
          );
          const extra = supervisedData(replayed(set.replay, perStep, index, mixSeed(seed, 1))).data;
          const rate = learningRate(set.schedule, index, steps);
          const [, { gradNorm }] = await Promise.all([
            extra.length > 0 ? engine.forwardBackward(model, extra, { kind: 'cross_entropy' }) : null,
            engine.optimStep(model, { ...set.adam, learningRate: rate }),
          ]);
          return {
            values: {
              loss: result.loss,
              ...(gradNorm === null ? {} : { grad_norm: gradNorm }),
              learning_rate: rate,
              accuracy,
              margin,
              tokens: batch.reduce((n, p) => n + size(p), 0) + countTokens(extra),
            },
          };
        },
        state: () => undefined,
        end: async () => {},
      };
    },
  };
}

function ownSum(sequence: Sequence, logprobs: Float32Array): number {
  let sum = 0;
  for (const [t, turn] of sequence.turns.entries()) if (turn >= 0) sum += logprobs[t]!;
  return sum;
}

function countTokens(data: readonly Datum[]): number {
  return data.reduce((n, d) => n + d.tokens.length, 0);
}
