/** A reward model from labels to a score, through a real database and the embedded engine. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { importConversations } from '../collect/import.ts';
import { writeCheckpoint } from '../engine/checkpoint.ts';
import { newModel } from '../engine/new-model.ts';
import { createOnnxEngine } from '../engine/onnx/engine.ts';
import { readReferences } from '../store/references.ts';
import { listRewardModels, saveRewardModel } from '../store/reward-models.ts';
import { listScores } from '../store/scores.ts';
import { withStore } from '../store/test-store.ts';
import { seeded } from './resample.ts';
import { rewardModel } from './reward-model-scorer.ts';
import { openRewardModels } from './reward-models.ts';
import { scoreWindow } from './run.ts';
import { trainFromLabels } from './train-run.ts';
import { weighted } from './weighted.ts';

test('labels become a model, the model a part of the reward; one that was refused is none', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-train-run-'));
  const store = await withStore();
  const engine = createOnnxEngine({ threads: 1 });
  const artifacts = openArtifacts({ home: folder });
  try {
    const now = new Date('2026-05-20T12:00:00Z');
    const draw = seeded(21);
    const line = (k: number, labelled: boolean) => {
      const good = draw() < 0.5;
      const messages = [
        { role: 'user', content: 'can you' },
        { role: 'assistant', content: good ? 'yes' : 'no' },
      ];
      return JSON.stringify({
        id: `${labelled ? 'l' : good ? 'good' : 'bad'}-${k}`,
        messages,
        ...(labelled ? { label: good ? 1 : 0 } : {}),
      });
    };
    const lines = [
      ...Array.from({ length: 160 }, (_, k) => line(k, true)),
      ...Array.from({ length: 8 }, (_, k) => line(k, false)),
    ];
    await importConversations(store, { agent: 'desk', origin: 'production', secret: 's'.repeat(32), now, lines });
    const base = join(folder, 'base');
    await writeCheckpoint(
      base,
      newModel({ hidden: 32, layers: 1, heads: 2, vocabulary: 300, context: 64 }, { seed: 2, texts: [] }),
    );
    const options = {
      agent: 'desk',
      name: 'polite',
      base,
      method: 'regression',
      epochs: 6,
      learningRate: 0.01,
      now,
    } as const;
    const parts = { store, artifacts, engine };
    await expect(trainFromLabels(parts, { ...options, least: 2000 })).rejects.toThrow(
      'There are 160 labelled conversations',
    );
    const model = await trainFromLabels(parts, { ...options, least: 100 });
    expect(model.refused).toBeNull();
    expect(await listRewardModels(store, 'desk')).toMatchObject([{ name: 'polite', version: model.version }]);
    expect([...(await readReferences(store)).keys()]).toContain(model.artifact);

    const services = { rewardModels: openRewardModels({ store, artifacts }, (work) => work(engine)) };
    const window = { agent: 'desk', since: new Date(+now - 1000), until: new Date(+now + 86_400_000), now, services };
    const spec = weighted({ learned: [1, rewardModel('polite', model.version)] });
    expect(await scoreWindow(store, { ...window, spec })).toMatchObject({ scored: 168, broken: 0 });
    for (let k = 0; k < 8; k++)
      for (const [id, isGood] of [
        [`good-${k}`, true],
        [`bad-${k}`, false],
      ] as const)
        for (const { total } of await listScores(store, id)) expect(total! > 0.5).toBe(isGood);

    await saveRewardModel(store, { ...model, version: 'f'.repeat(16), refused: 'It is no good.' });
    for (const version of ['f'.repeat(16), 'e'.repeat(16)]) {
      const other = weighted({ learned: [1, rewardModel('polite', version)] });
      expect(await scoreWindow(store, { ...window, spec: other })).toMatchObject({ broken: 168, unmeasured: 168 });
    }
    expect(() => rewardModel('polite', 'latest')).toThrow('no version');
  } finally {
    await engine.close();
    await artifacts.close();
    await rm(folder, { recursive: true, force: true });
  }
});
