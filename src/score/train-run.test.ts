/** A reward model from labels to a score, through a real database and the embedded engine. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { importConversations } from '../collect/import.ts';
import { hashedId } from '../collect/person.ts';
import { writeCheckpoint } from '../engine/checkpoint.ts';
import { newModel } from '../engine/new-model.ts';
import { createOnnxEngine } from '../engine/onnx/engine.ts';
import { giveConsent, withdrawConsent } from '../store/consents.ts';
import { surveyUser } from '../store/erasures.ts';
import { readReferences } from '../store/references.ts';
import { listRewardModels, saveRewardModel } from '../store/reward-models.ts';
import { listScores } from '../store/scores.ts';
import { withStore } from '../store/test-store.ts';
import { converse } from './fixtures.ts';
import { seeded } from './resample.ts';
import { rewardModel } from './reward-model-scorer.ts';
import { openRewardModels, tokenizerIn, tokensOf } from './reward-models.ts';
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
        user: k < 160 ? 'ann' : 'bob',
        messages,
        ...(labelled ? { label: good ? 1 : 0 } : {}),
      });
    };
    const lines = [
      ...Array.from({ length: 170 }, (_, k) => line(k, true)), // ten of bob, who never agreed
      ...Array.from({ length: 8 }, (_, k) => line(k, false)),
    ];
    const secret = 's'.repeat(32);
    await giveConsent(store, 'desk', hashedId('ann', secret), new Date(+now - 1000));
    await importConversations(store, { agent: 'desk', origin: 'production', secret, now, lines });
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
      'There are 170 labelled conversations',
    );
    await expect(trainFromLabels(parts, { ...options, least: 161 })).rejects.toThrow(
      'There are 160 labelled conversations that are recorded and whose users agreed',
    );
    const model = await trainFromLabels(parts, { ...options, least: 100 });
    expect(model.refused).toBeNull();
    const named = [`reward model polite ${model.version}`];
    expect(await surveyUser(store, hashedId('ann', secret), null)).toMatchObject({ rewardModels: named });
    expect(await surveyUser(store, hashedId('bob', secret), null)).toMatchObject({ rewardModels: [] });
    expect(model.report.trained + model.report.judged).toBeLessThanOrEqual(160);
    await withdrawConsent(store, 'desk', hashedId('ann', secret), new Date(+now + 1000));
    await expect(trainFromLabels(parts, { ...options, least: 100 })).rejects.toThrow('There are 0 labelled');
    expect(await listRewardModels(store, 'desk')).toMatchObject([{ name: 'polite', version: model.version }]);
    expect([...(await readReferences(store)).keys()]).toContain(model.artifact);

    const services = { rewardModels: openRewardModels({ store, artifacts }, (work) => work(engine)) };
    const window = { agent: 'desk', since: new Date(+now - 1000), until: new Date(+now + 86_400_000), now, services };
    const spec = weighted({ learned: [1, rewardModel('polite', model.version)] });
    expect(await scoreWindow(store, { ...window, spec })).toMatchObject({ scored: 178, broken: 0 });
    for (let k = 0; k < 8; k++)
      for (const [id, isGood] of [
        [`good-${k}`, true],
        [`bad-${k}`, false],
      ] as const)
        for (const { total } of await listScores(store, id)) expect(total! > 0.5).toBe(isGood);

    await saveRewardModel(store, { ...model, version: 'f'.repeat(16), refused: 'It is no good.' }, []);
    for (const version of ['f'.repeat(16), 'e'.repeat(16)]) {
      const other = weighted({ learned: [1, rewardModel('polite', version)] });
      expect(await scoreWindow(store, { ...window, spec: other })).toMatchObject({ broken: 178, unmeasured: 178 });
    }
    expect(() => rewardModel('polite', 'latest')).toThrow('no version');
  } finally {
    await engine.close();
    await artifacts.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test('what a reward model reads has no names in it', async () => {
  const tokenizer = await tokenizerIn('examples/support-desk/model');
  const turns = converse('My name is Karen Jones.', [{ say: 'Hello Karen Jones, it was sent.' }]);
  const text = tokenizer.decode(await tokensOf(turns, tokenizer, 512));
  expect(text).toContain('[PERSON_1]');
  expect(text).not.toContain('Karen');
});
