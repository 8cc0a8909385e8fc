/**
 * Supervised fine-tuning: learn to write what good examples wrote. Only examples of quality ≥ 0.8 are used, loss
 * falls only on the model's own tokens, and a batch's loss is the mean over those tokens, so long examples count by what
 * they say; with credit per turn, by what each turn was worth. What is left out: packing; the engine batches sequences as it likes, and sums do not care.
 */
import type { AdamParams, Datum } from '../engine/engine.ts';
import { ConfigError } from '../errors.ts';
import { ownCount, ownWeight, sequences, supervisedDatum, type WrittenTurn } from './datum.ts';
import { draw, mixSeed } from './order.ts';
import { type Replay, replayed } from './replay.ts';
import { learningRate, type Schedule } from './schedule.ts';
import type { Stage, StageContext } from './stage.ts';

export type Example = {
  readonly id: string;
  readonly taskType: string;
  /** The score of the example, 0–1. */
  readonly quality: number;
  readonly turns: readonly WrittenTurn[];
};

/** What earns weight: the example as a whole, or each of its turns by what it was worth. */
export type SftCredit = 'attempt' | 'turn';

export type SftSettings = {
  readonly epochs: number;
  readonly batchSize: number;
  readonly minQuality: number;
  readonly schedule: Schedule;
  readonly adam: Omit<AdamParams, 'learningRate'>;
  readonly replay?: Replay;
  readonly credit?: SftCredit;
};

export const sftDefaults: SftSettings = {
  epochs: 2,
  batchSize: 16,
  minQuality: 0.8,
  schedule: { peak: 5e-4, shape: 'cosine', warmup: 0.05, floor: 0.1 },
  adam: { beta1: 0.9, beta2: 0.95, gradClipNorm: 1 },
};

export function sft(all: readonly Example[], settings: Partial<SftSettings> = {}): Stage {
  const set = { ...sftDefaults, ...settings };
  const examples = all.filter((e) => e.quality >= set.minQuality);
  if (examples.length === 0)
    throw new ConfigError(
      `None of the ${all.length} examples reaches quality ${set.minQuality}; collect better ones or lower minQuality.`,
    );
  const perStep = Math.min(set.batchSize, examples.length);
  const steps = Math.max(1, Math.ceil((examples.length * set.epochs) / perStep));
  return {
    name: 'sft',
    algorithm: 'sft',
    steps,
    work: {
      sampled: 0,
      forwarded: 0,
      trained: examples.reduce((sum, e) => sum + sequenceTokens(e), 0) * set.epochs,
    },
    async begin(context) {
      return {
        step: (index) => {
          const batch = draw(examples.length, index * perStep, perStep, context.seed).map((i) => examples[i]!);
          const rate = learningRate(set.schedule, index, steps);
          return supervisedStep(
            context,
            [...batch, ...replayed(set.replay, perStep, index, mixSeed(context.seed, 1))],
            {
              ...set.adam,
              learningRate: rate,
            },
            set.credit,
          );
        },
        state: () => undefined,
        end: async () => {},
      };
    },
  };
}

/**
 * The data of one supervised step: every own token weighs 1 / (own tokens of the batch). With credit per turn it weighs what its turn
 * was worth, over the sum of that: a turn worth nothing is context, and the step is as large as it would be.
 */
export function supervisedData(
  batch: readonly Example[],
  credit: SftCredit = 'attempt',
): { data: Datum[]; own: number } {
  const all = batch.flatMap(({ turns }) => {
    const weightOf = credit === 'turn' ? (k: number) => turns[k]!.worth ?? 1 : () => 1;
    return sequences(turns).map((sequence) => ({ sequence, weightOf }));
  });
  const own = all.reduce((sum, { sequence }) => sum + ownCount(sequence), 0);
  const weight = all.reduce((sum, { sequence, weightOf }) => sum + ownWeight(sequence, weightOf), 0);
  const scale = weight === 0 ? 0 : 1 / weight;
  return { data: all.map(({ sequence, weightOf }) => supervisedDatum(sequence, (k) => weightOf(k) * scale)), own };
}

export async function supervisedStep(
  { engine, model }: Pick<StageContext, 'engine' | 'model'>,
  batch: readonly Example[],
  adam: AdamParams,
  credit?: SftCredit,
) {
  const { data, own } = supervisedData(batch, credit);
  // Sent together: an engine carries them out in order, and a remote one does not wait for us in between.
  const [{ loss, entropies }, { gradNorm }] = await Promise.all([
    engine.forwardBackward(model, data, { kind: 'cross_entropy' }),
    engine.optimStep(model, adam),
  ]);
  return {
    values: {
      loss,
      ...(gradNorm === null ? {} : { grad_norm: gradNorm }),
      learning_rate: adam.learningRate,
      length: own / Math.max(1, batch.length),
      tokens: data.reduce((sum, d) => sum + d.tokens.length, 0),
      ...(entropies ? { entropy: meanWhere(entropies, data) } : {}),
    },
  };
}

/** Mean of per-token figures over the tokens that carry weight. */
function meanWhere(figures: readonly Float32Array[], data: readonly Datum[]): number {
  let sum = 0;
  let count = 0;
  for (const [i, d] of data.entries())
    for (let t = 0; t < d.tokens.length; t++)
      if (d.weights![t] !== 0) {
        sum += figures[i]![t]!;
        count++;
      }
  return count === 0 ? 0 : sum / count;
}

function sequenceTokens(example: Example): number {
  return sequences(example.turns).reduce((sum, s) => sum + s.tokens.length, 0);
}
