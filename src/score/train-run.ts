/**
 * `pawl reward train`: labels and their conversations in, a reward model and what was found of it out. It learns from whom any model may:
 * what everybody in it agreed to, and what was simulated. Runs in one go; what is cut short leaves nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../audit.ts';
import { mayTrain } from '../collect/own-traffic.ts';
import type { Trajectory } from '../collect/trajectory.ts';
import type { Engine } from '../engine/engine.ts';
import { keepCheckpoint } from '../engine/keep-checkpoint.ts';
import { ConflictError } from '../errors.ts';
import { readStandings } from '../store/consents.ts';
import { listLabels } from '../store/labels.ts';
import type { Store } from '../store/postgres.ts';
import { type RewardModelRecord, saveRewardModel } from '../store/reward-models.ts';
import { readTrajectory } from '../store/trajectories.ts';
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
  /** Who trains it; stands in the audit log. */
  readonly by?: string; // pawl
};

/** Labels that are read at most: the newest. */
const mostLabels = 20_000;

export async function trainFromLabels(
  { store, artifacts, engine }: { store: Store; artifacts: Artifacts; engine: Engine },
  options: TrainRewardOptions,
): Promise<RewardModelRecord> {
  const { agent, name, base, least, method, now, seed = 1, by = 'pawl', signal } = options;
  const labels = new Map<string, number[]>();
  for (const { target, score } of await listLabels(store, { agent, limit: mostLabels }))
    if (target.kind === 'trajectory') labels.set(target.id, [...(labels.get(target.id) ?? []), score]);
  if (method === 'regression') enough(labels.size, least, 'labelled conversations');
  const model = `reward-${name}`;
  const { context } = await engine.load(model, base);
  const folder = await mkdtemp(join(tmpdir(), 'pawl-reward-model-'));
  try {
    const tokenizer = await tokenizerIn(base);
    const examples: Example[] = [];
    const users = new Set<string>();
    for (const [trajectory, scores] of labels) {
      signal?.throwIfAborted();
      const found = await readTrajectory(store, trajectory, { agent, maxTurns });
      if (found === null || !(await mayLearnFrom(store, found.trajectory))) continue;
      for (const { user } of found.turns) if (user !== null) users.add(user);
      examples.push({
        group: found.keys.find((key) => key.startsWith('task:')) ?? trajectory,
        label: scores.reduce((sum, one) => sum + one, 0) / scores.length,
        tokens: await tokensOf(found.turns, tokenizer, context),
      });
    }
    const whose = 'that are recorded and whose users agreed';
    if (method === 'pairs') enough(pairsOf(examples).length / 2, least, `pairs of one task with labels apart ${whose}`);
    else enough(examples.length, least, `labelled conversations ${whose}`);
    const verdicts = verdictsOf(tokenizer);
    const report: RewardModelReport = await trainRewardModel({ ...options, engine, model, verdicts, examples, seed });
    await engine.save(model, join(folder, 'model'), { optimizer: false });
    const artifact = await keepCheckpoint(artifacts, join(folder, 'model'));
    const version = modelVersion({ artifact, calibration: report.calibration, verdicts, form: formVersion });
    const record = { agent, name, version, artifact, report, refused: refusalOf(report), at: now };
    await saveRewardModel(store, record, [...users]);
    const about = { agent, actor: by, event: 'reward-model-trained', subject: `${name} ${version}` };
    const details = { artifact, labels: examples.length, refused: record.refused };
    await audit(store.db, { ...about, details, at: now.getTime() });
    return record;
  } finally {
    await rm(folder, { recursive: true, force: true });
    await engine.unload(model);
  }
}

/** As it stood when they spoke, and as it stands now. */
async function mayLearnFrom(store: Store, trajectory: Trajectory): Promise<boolean> {
  if (mayTrain(trajectory, 'simulation')) return true;
  return mayTrain(trajectory) && (await readStandings(store, [trajectory]))[0] === 'given';
}

function enough(count: number, least: number, of: string): void {
  if (count >= least) return;
  throw new ConflictError(
    `There are ${count} ${of}; a reward model is trained from ${least}. Until then judges and rules know more (docs/score.md).`,
  );
}
