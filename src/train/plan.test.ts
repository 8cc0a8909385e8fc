import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { CuratedExample, CuratedPair } from '../curate/examples.ts';
import type { DatasetReader } from '../curate/read.ts';
import type { ChatCodec } from '../simulate/engine-player.ts';
import { dpoDefaults } from './dpo.ts';
import { grpoDefaults } from './grpo.ts';
import { exampleLine, readExamples, readPairs } from './material.ts';
import {
  loadEnvironment,
  type OfAgent,
  runSettings,
  type SpecOptions,
  settingsOf,
  specOf,
  wholeSettings,
} from './plan.ts';
import { trainSettings } from './settings.ts';
import { sftDefaults } from './sft.ts';
import { stopDefaults } from './stop.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-plan-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const role = (name: string): number => ({ system: 1, user: 2, assistant: 3, tool: 4 })[name]!;
const codec: ChatCodec = {
  encode: (messages, _tools, { generate }) => [
    ...messages.flatMap((m) => [role(m.role), ...[...(m.content ?? '')].map((c) => c.charCodeAt(0)), 0]),
    ...(generate ? [3] : []),
  ],
  decode: () => ({ message: { role: 'assistant', content: '' } }),
  stopTokens: [0],
};
const file = (name: string, lines: readonly unknown[]): string => {
  const path = join(folder, name);
  writeFileSync(path, lines.map((l) => (typeof l === 'string' ? l : JSON.stringify(l))).join('\n'));
  return path;
};
const user = (content: string) => ({ role: 'user', content });
const assistant = (content: string) => ({ role: 'assistant', content });

describe('files to learn from', () => {
  it('examples are conversations; quality is 1 unless said', async () => {
    const path = file('examples.jsonl', [
      { messages: [user('a'), assistant('b')], quality: 0.5, taskType: 'x' },
      '',
      { messages: [user('a'), assistant('b'), user('c'), assistant('d')] },
    ]);
    const examples = await readExamples(path, codec);
    expect(examples.map((e) => [e.quality, e.taskType, e.turns.length])).toEqual([
      [0.5, 'x', 1],
      [1, 'example', 2],
    ]);
  });

  it('of a pair, only what follows the shared prompt is learned', async () => {
    const prompt = [user('a'), assistant('b'), user('c')];
    const path = file('pairs.jsonl', [{ prompt, chosen: [assistant('d')], rejected: [assistant('e')], gap: 0.4 }]);
    const [pair] = await readPairs(path, codec);
    expect(pair).toMatchObject({ gap: 0.4, chosen: [{ completion: [100, 0] }], rejected: [{ completion: [101, 0] }] });
  });

  it('a bad line is named', async () => {
    await expect(
      readExamples(file('a.jsonl', [{ messages: [user('a'), assistant('b')] }, 'nonsense']), codec),
    ).rejects.toThrow(/a.jsonl, line 2: not JSON/);
    await expect(readExamples(file('b.jsonl', [{ messages: [user('a')] }]), codec)).rejects.toThrow(/line 1: messages/);
    await expect(
      readPairs(file('c.jsonl', [{ prompt: [user('a')], chosen: [assistant('b')] }]), codec),
    ).rejects.toThrow(/line 1: rejected/);
    const said = (message: object) => file('d.jsonl', [{ messages: [user('a'), { role: 'assistant', ...message }] }]);
    for (const [message, problem] of [
      [{ content: [{ type: 'image_url', image_url: {} }] }, /line 1: messages.1: holds image_url that is no text/],
      [{ content: null, tool_calls: [{ id: 'c' }] }, /line 1: messages.1: has a tool call without a name/],
      [{ content: null, tool_calls: 'look' }, /line 1: messages.1.tool_calls/],
    ] as const)
      await expect(readExamples(said(message), codec)).rejects.toThrow(problem);
  });

  it('content may be in parts, arguments may be objects', () => {
    const made = (message: object) =>
      exampleLine.parse({ messages: [user('a'), { role: 'assistant', ...message }] }).messages[1];
    const call = { id: 'c', type: 'function', function: { name: 'look', arguments: '{"id":7}' } };
    expect(made({ content: [{ type: 'text', text: 'b' }], weight: 0 })).toEqual({
      role: 'assistant',
      content: 'b',
      weight: 0,
    });
    expect(made({ tool_calls: [{ ...call, function: { name: 'look', arguments: { id: 7 } } }] })).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [call],
    });
  });
});

describe('a spec', () => {
  const reader = (examples: number, pairs: number): DatasetReader => ({
    async *examples() {
      for (let i = 0; i < examples; i++) yield { quality: 0.9 } as CuratedExample;
    },
    async *pairs() {
      for (let i = 0; i < pairs; i++) yield { gap: 0.5 } as CuratedPair;
    },
  });
  const agent = (train: object = {}, environment?: object): OfAgent => ({
    name: 'desk',
    train: trainSettings.parse(train),
    environment: environment as OfAgent['environment'],
  });
  const at = { base: 'model', seed: 1, dataset: 'desk-v1' };

  it('takes the recipe that what there is to learn from is enough for, and says why', async () => {
    const recipeOf = async (of: OfAgent, read: DatasetReader) => {
      const { spec, unused, reasons } = await specOf(of, at, read);
      expect(reasons).not.toEqual([]);
      return [spec.recipe, spec.settings.dataset, unused];
    };
    expect(await recipeOf(agent(), reader(3, 0))).toEqual(['sft', 'desk-v1', []]);
    expect(await recipeOf(agent(), reader(3, 150))).toEqual(['sft-dpo', 'desk-v1', []]);
    expect(await recipeOf(agent(), reader(0, 150))).toEqual(['dpo', 'desk-v1', []]);
    expect(await recipeOf(agent({}, {}), reader(3, 0))).toEqual(['sft-grpo', 'desk-v1', []]);
    expect(await recipeOf(agent({}, {}), reader(0, 0))).toEqual(['grpo', undefined, ['dataset']]);
    await expect(specOf(agent(), at, reader(0, 1))).rejects.toThrow(/nothing to train on yet.*--advise/);
  });

  it('is made of the agent’s settings, and of what this run sets above them', async () => {
    const train = {
      ...{ steps: 7, tasks: 64, validationTasks: 0 },
      learningRate: 0.01,
      lora: { rank: 4 },
      budget: { hours: 2, money: 5 },
      moneyPerHour: 3,
      replay: { examples: 'kept.jsonl' },
    };
    const { spec } = await specOf(
      agent(train, {}),
      { ...at, overrides: { steps: 9 }, budget: { tokens: 10 } },
      reader(1, 0),
    );
    expect(spec).toMatchObject({
      ...{ agent: 'desk', recipe: 'sft-grpo', base: 'model', seed: 1 },
      budget: { seconds: 7200, money: 5, tokens: 10 },
    });
    expect(spec.settings).toMatchObject({
      ...{ ofAgent: true, dataset: 'desk-v1', learningRate: 0.01, moneyPerHour: 3, tasks: 64, validationTasks: 0 },
      lora: { rank: 4, alpha: 8 },
      replay: { share: 0.1 },
      stages: { grpo: { steps: 9, schedule: { peak: 0.01 } }, sft: { schedule: { peak: 0.01 } } },
    });
    expect(settingsOf({ id: 'a', settings: JSON.parse(JSON.stringify(spec.settings)) })).toEqual(spec.settings);
  });

  it('drops what an agent set for other recipes, and refuses what a person set for nothing', async () => {
    const { spec } = await specOf(agent({ steps: 7 }), at, reader(1, 0));
    expect([spec.recipe, spec.settings.steps]).toEqual(['sft', undefined]);
    const asked = (overrides: SpecOptions['overrides'], train = {}) =>
      specOf(agent(train), { ...at, overrides: overrides! }, reader(1, 0));
    expect((await asked({ recipe: 'sft' }, { steps: 7 })).spec.settings.steps).toBeUndefined();
    await expect(asked({ steps: 7 })).rejects.toThrow('steps is for the recipes grpo');
    await expect(asked({}, { steps: 7, recipe: 'sft' })).rejects.toThrow('steps is for the recipes grpo');
  });

  it('of an agent whose budget has no price is refused with its settings', () => {
    expect(() => agent({ budget: { money: 5 } })).toThrow(/5 needs a price: set moneyPerHour too/);
  });
});

describe('settings', () => {
  it('have defaults and refuse what they do not know', () => {
    expect(runSettings.parse({ recipe: 'grpo' })).toEqual({ recipe: 'grpo', tasks: 2000, validationTasks: 60 });
    expect(() => runSettings.parse({ recipe: 'grpo', stepz: 3 })).toThrow(/stepz/);
    expect(() => runSettings.parse({ recipe: 'ppo' })).toThrow(/recipe/);
    expect(() => runSettings.parse({ recipe: 'grpo', attempts: 1 })).toThrow(/attempts/);
  });

  it('are stored whole: a Pawl with other defaults goes on with the run as it was begun', () => {
    const given = runSettings.parse({ recipe: 'sft-grpo', steps: 7, learningRate: 0.001, kl: 0.2, credit: 'turn' });
    const stored = JSON.parse(JSON.stringify(wholeSettings(given)));
    expect(settingsOf({ id: 'a', settings: stored })).toEqual(stored);
    expect(stored).toMatchObject({
      stages: {
        sft: { ...sftDefaults, schedule: { ...sftDefaults.schedule, peak: 0.001 } },
        dpo: { beta: dpoDefaults.beta, schedule: { peak: 0.001 } },
        grpo: { steps: 7, attempts: grpoDefaults.attempts, kl: { coefficient: 0.2 }, credit: { kind: 'turn' } },
      },
      rules: stopDefaults,
    });
  });

  it('that do not say what a run learns from are refused, with the way out', () => {
    expect(() => settingsOf({ id: 'old', settings: {} })).toThrow(/settings of run old .*`pawl runs stop old`/);
  });

  it('name an environment by module and export', async () => {
    const path = file('not-an-environment.mjs', ['export const world = { name: "x" };']);
    await expect(loadEnvironment(`${path}#world`)).rejects.toThrow(/is no environment: 'world' must be/);
    const desk = await loadEnvironment('examples/support-desk/desk.ts#supportDesk');
    expect(desk.name).toBe('support-desk');
  });
});
