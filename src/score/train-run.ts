/** `pawl reward train`: labels and their conversations in, a reward model and what was found of it out. Runs in one go; what is cut short leaves nothing. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Engine } from '../engine/engine.ts';
import { keepCheckpoint } from '../engine/keep-checkpoint.ts';
import { ConflictError } from '../errors.ts';
import { listLabels } from '../store/labels.ts';
import type { Store } from '../store/postgres.ts';
import { type RewardModelRecord, saveRewardModel } from '../store/reward-models.ts';
import { readTrajectory } from '../store/trajectories.ts';
import { modelText } from './reward-model.ts';
import { formVersion } from './reward-model-form.ts';
import { tokenizerIn, tokensOf, verdictsOf } from './reward-models.ts';
import { maxTurns } from './run.ts';
import {
  type Example,
  modelVersion,
  pairsOf,
  type RewardModelReport,
  refusalOf,
  type Training,
  trainRewardModel,
} from './train-reward-model.ts';

export type TrainRewardOptions = Pick<Training, 'method' | 'epochs' | 'learningRate' | 'signal' | 'onProgress'> & {
  readonly agent: string;
  readonly name: string;
  /** Folder of a checkpoint. */
  readonly base: string;
  /** Labels, or pairs, that there must be. */
  readonly least: number;
  readonly now: Date;
  readonly seed?: number;
};

/** Labels that are read at most: the newest. */
const mostLabels = 20_000;

export async function trainFromLabels(
  { store, artifacts, engine }: { store: Store; artifacts: Artifacts; engine: Engine },
  options: TrainRewardOptions,
): Promise<RewardModelRecord> {
  const { agent, name, base, least, method, now, seed = 1, signal } = options;
  const labels = new Map<string, number[]>();
  for (const { target, score } of await listLabels(store, { agent, limit: mostLabels }))
    if (target.kind === 'trajectory') labels.set(target.id, [...(labels.get(target.id) ?? []), score]);
  if (method === 'regression') enough(labels.size, least, 'labelled conversations');
  const model = `reward-${name}`;
  const { context } = await engine.load(model, base);
  const tokenizer = await tokenizerIn(base);
  const examples: Example[] = [];
  for (const [trajectory, scores] of labels) {
    signal?.throwIfAborted();
    const found = await readTrajectory(store, trajectory, { agent, maxTurns });
    if (found === null) continue;
    examples.push({
      group: found.keys.find((key) => key.startsWith('task:')) ?? trajectory,
      label: scores.reduce((sum, one) => sum + one, 0) / scores.length,
      tokens: tokensOf(modelText(found.turns), tokenizer, context),
    });
  }
  if (method === 'pairs') enough(pairsOf(examples).length / 2, least, 'pairs of one task with labels apart');
  else enough(examples.length, least, 'labelled conversations that are recorded');
  const verdicts = verdictsOf(tokenizer);
  const report: RewardModelReport = await trainRewardModel({ ...options, engine, model, verdicts, examples, seed });
  const folder = await mkdtemp(join(tmpdir(), 'pawl-reward-model-'));
  try {
    await engine.save(model, join(folder, 'model'), { optimizer: false });
    const artifact = await keepCheckpoint(artifacts, join(folder, 'model'));
    const version = modelVersion({ artifact, calibration: report.calibration, verdicts, form: formVersion });
    const record = { agent, name, version, artifact, report, refused: refusalOf(report), at: now };
    await saveRewardModel(store, record);
    return record;
  } finally {
    await rm(folder, { recursive: true, force: true });
    await engine.unload(model);
  }
}

function enough(count: number, least: number, of: string): void {
  if (count >= least) return;
  throw new ConflictError(
    `There are ${count} ${of}; a reward model is trained from ${least}. Until then judges and rules know more (docs/score.md).`,
  );
}
