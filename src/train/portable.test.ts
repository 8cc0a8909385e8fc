/** A run that one machine began and another ends: nothing but the database and the artifacts is theirs together. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { isReference } from '../artifacts/artifact.ts';
import { openArtifacts } from '../artifacts/open.ts';
import { writeModel } from '../engine/fixtures/write-model.ts';
import { keepCheckpoint } from '../engine/keep-checkpoint.ts';
import { createOnnxEngine } from '../engine/onnx/engine.ts';
import { runFolder, runPlaces } from './checkpoints.ts';
import { toySource } from './fixtures/toy.ts';
import { grpo } from './grpo.ts';
import { exportResult } from './result.ts';
import { createRun, train } from './run.ts';
import { memoryRunStore } from './run-record.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-portable-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const shared = join(folder, 'shared');
const machine = (name: string) => openArtifacts({ home: join(folder, name), artifacts: shared });

/** Odd tokens are better than even ones. */
const source = toySource((_, answer) => answer % 2);
const stages = () => [grpo(source, { steps: 5, tasksPerStep: 2, attempts: 4, lengthNormaliser: 2 })];
const lora = { rank: 2, alpha: 4, seed: 3 };

/** Trains on one machine until `limit` steps are done, then on the next. */
async function trained(id: string, plan: readonly (readonly [machine: string, limit: number])[]) {
  const runs = memoryRunStore();
  const first = machine(plan[0]![0]);
  await writeModel(join(first.home, 'model'), 'd16-l1-h2-kv1-v280-c64');
  const base = await keepCheckpoint(first, join(first.home, 'model'));
  const settings = { lora: { rank: lora.rank, alpha: lora.alpha } };
  const about = { id, agent: 'toy', recipe: 'grpo', settings, base, seed: 3, budget: {} };
  await createRun(runs, { ...about, folder: runFolder(first, id) }, stages(), 0);
  let last = first;
  for (const [name, limit] of plan) {
    const engine = createOnnxEngine({ threads: 1 });
    last = machine(name);
    try {
      let done = 0;
      const parts = { engine, store: runs, stages: stages(), lora, checkpointEvery: 2, ...runPlaces(last, about) };
      for await (const _ of train(id, parts)) if (++done >= limit) break;
    } finally {
      await engine.close();
    }
    if (last !== first || plan.length > 1) rmSync(join(folder, plan[0]![0]), { recursive: true, force: true });
  }
  return { runs, about, last };
}

it('goes on with an adapter where its first machine is gone, onto the same curve, and gives the same model', async () => {
  const whole = await trained('whole', [['a', Number.POSITIVE_INFINITY]]);
  const cut = await trained('cut', [
    ['b', 3],
    ['c', Number.POSITIVE_INFINITY],
  ]);
  const curve = async ({ runs, about }: typeof whole) =>
    (await runs.metrics(about.id)).map(({ values }) => values.reward_mean);
  expect(await curve(cut)).toEqual(await curve(whole));
  expect(existsSync(join(folder, 'b'))).toBe(false);

  const checkpoints = await cut.runs.checkpoints('cut');
  expect(checkpoints.every(({ folder: kept }) => isReference(kept))).toBe(true);
  const names = await Promise.all(checkpoints.map(async (c) => (await cut.last.manifest(c.folder)).of));
  expect(names).toEqual(['cut stage-0', 'cut step-000004', 'cut step-000005']);

  const models: string[] = [];
  for (const { runs, about, last } of [whole, cut]) {
    const engine = createOnnxEngine({ threads: 1 });
    try {
      const draft = await last.draft();
      await exportResult(about.id, draft, { store: runs, engine, ...runPlaces(last, about) });
      models.push(await last.add({ kind: 'model' }, draft, { move: true }));
    } finally {
      await engine.close();
    }
  }
  expect(models[1]).toBe(models[0]);
  // What was dropped on the way is gone from the shared folder too: base, model, and three checkpoints of each run.
  expect(readdirSync(shared).filter((name) => name.endsWith('.json'))).toHaveLength(2 + 3 + 3);
});
