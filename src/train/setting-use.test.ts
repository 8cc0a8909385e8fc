import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { DatasetReader } from '../curate/read.ts';
import type { Engine } from '../engine/engine.ts';
import { planRun, runSettings, wholeSettings } from './plan.ts';
import { type RecipeName, recipeNames } from './recipe-names.ts';
import { algorithmsOf, isRead, materials, readSettings } from './setting-use.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-use-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const messages = [
  { role: 'user', content: 'Where is my order?' },
  { role: 'assistant', content: 'On its way.' },
] as const;
const lines = (name: string, count: number, value: object): string => {
  const path = join(folder, `${name}-${count}.jsonl`);
  writeFileSync(path, `${JSON.stringify(value)}\n`.repeat(count));
  return path;
};
const pair = { prompt: [messages[0]], chosen: [messages[1]], rejected: [{ role: 'assistant', content: 'No.' }] };

/** Two values of each setting that must make a difference where the setting is read. */
const values = {
  examples: [lines('examples', 2, { messages }), lines('examples', 40, { messages })],
  dataset: ['2', '40'],
  pairs: [lines('pairs', 2, pair), lines('pairs', 40, pair)],
  learningRate: [0.001, 0.002],
  attempts: [3, 5],
  steps: [7, 9],
  tasksPerStep: [3, 5],
  kl: [0.1, 0.2],
  credit: ['attempt', 'turn'],
  lag: [0, 1],
} as const;

/** As many good examples and pairs as its id says. */
const readDataset: DatasetReader = {
  async *examples(id) {
    const answers = [{ at: 1, score: null, reasoning: '' }];
    for (let i = 0; i < Number(id); i++)
      yield { id: `${i}`, taskType: 'x', quality: 1, messages, tools: [], answers, exact: null };
  },
  async *pairs(id) {
    const sides = {
      prompt: [messages[0]],
      chosen: messages[1],
      rejected: { role: 'assistant', content: 'No.' } as const,
    };
    for (let i = 0; i < Number(id); i++)
      yield { id: `${i}`, source: 'votes', group: 'g', taskType: 'x', gap: 1, tools: [], ...sides };
  },
};

/** What a recipe's algorithms are told, and how long its stages are. */
async function effect(recipe: RecipeName, given: object): Promise<unknown> {
  const needs = {
    ...(algorithmsOf(recipe).includes('sft') && !('dataset' in given) ? { examples: values.examples[0] } : {}),
    ...(algorithmsOf(recipe).includes('dpo') && !('dataset' in given) ? { pairs: values.pairs[0] } : {}),
    ...(algorithmsOf(recipe).some((one) => one === 'rft' || one === 'grpo')
      ? { environment: 'examples/support-desk/desk.ts#supportDesk', validationTasks: 0, tasks: 4 }
      : {}),
  };
  const settings = wholeSettings(runSettings.parse({ ...needs, ...given, recipe }));
  const run = { base: 'examples/support-desk/model', seed: 1 };
  const engine = { traits: { computesHere: true, overlaps: true } } as Engine;
  const { stages } = await planRun(settings, run, engine, readDataset);
  return [
    algorithmsOf(recipe).map((algorithm) => settings.stages?.[algorithm]),
    stages.map(({ algorithm, steps, work }) => [algorithm, steps, work]),
  ];
}

describe.each(recipeNames)('the recipe %s', (recipe) => {
  it('is made of the algorithms it is called after', async () => {
    const [, stages] = (await effect(recipe, {})) as [unknown, [string][]];
    expect(stages.map(([algorithm]) => algorithm)).toEqual(algorithmsOf(recipe));
  });

  it.each(readSettings)('reads the setting %s, or refuses it', async (setting) => {
    const [one, other] = values[setting].map((value) => ({ [setting]: value }));
    if (isRead(setting, recipe)) expect(await effect(recipe, one!)).not.toEqual(await effect(recipe, other!));
    else await expect(effect(recipe, one!)).rejects.toThrow(`${setting} is for the recipe`);
  });
});

it('says for which recipes a setting is', () => {
  expect(() => wholeSettings(runSettings.parse({ recipe: 'sft', kl: 0.1, examples: 'x' }))).toThrow(
    'kl is for the recipes grpo, sft-grpo, rft-grpo; sft does not read it.\nLeave it out, or choose a recipe that reads it.',
  );
  expect(materials.every((material) => readSettings.includes(material))).toBe(true);
});
