import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ChatCodec } from '../simulate/engine-player.ts';
import { dpoDefaults } from './dpo.ts';
import { grpoDefaults } from './grpo.ts';
import { readExamples, readPairs } from './material.ts';
import { loadEnvironment, runSettings, settingsOf, wholeSettings } from './plan.ts';
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
