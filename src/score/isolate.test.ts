import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentOf, loadConfig } from '../config.ts';
import { converse, trajectory } from './fixtures.ts';
import type { RewardSpec } from './weighted.ts';
import { scoreOf } from './weighted.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-isolate-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let spec: RewardSpec;
beforeAll(async () => {
  const file = join(folder, 'pawl.config.ts');
  writeFileSync(
    file,
    `import { defineAgent, defineConfig, matches, rule, weighted } from 'pawl';
const bad = (name: string, act: () => number) =>
  rule(name, 1, ({ turns }) => (String(turns[0]?.request.user) === name ? act() : 1), { seconds: 2 });
export default defineConfig({
  agents: [
    defineAgent({
      name: 'desk',
      reward: weighted({
        short: [1, rule('short', 1, ({ turns }) => ({ value: 0.5, reason: turns.length + ' turn', turns: { [turns[0]!.id]: 1 } }))],
        polite: [1, matches(/please/)],
        spins: [1, bad('spins', () => { for (;;); })],
        throws: [1, bad('throws', () => { throw new Error('no luck'); })],
        leaves: [1, bad('leaves', () => process.exit(7))],
        nan: [1, bad('nan', () => Number.NaN)],
      }),
    }),
  ],
});
`,
  );
  spec = agentOf(await loadConfig({ config: file }, {}, folder), 'desk').reward;
});

const scored = (user: string) => {
  const turns = converse('Hello', [{ say: 'Yes, please.' }]).map((one) => ({
    ...one,
    request: { ...one.request, user },
  }));
  return scoreOf(spec, { trajectory: trajectory(), turns, signals: [] }, { day: '2026-05-20', at: 0 });
};

test('a rule of the settings file says in its thread what it would say here', async () => {
  const score = await scored('nobody');
  expect(score.total).toBeCloseTo(5.5 / 6, 9);
  expect(score.parts.short).toEqual({ value: 0.5, weight: 1, reason: '1 turn' });
  expect(score.turns[0]!.parts).toEqual({ polite: 1, short: 1 });
});

test.each([
  ['spins', 'scorer spins failed: it did not answer within 2 s'],
  ['throws', 'scorer throws failed: no luck'],
  ['leaves', 'scorer leaves failed: it ended its thread with code 7'],
  ['nan', 'scorer nan gave NaN, which is not in 0–1'],
])('one that %s fails by name, and nothing else does', async (name, reason) => {
  const score = await scored(name);
  expect(score.total).toBeNull();
  expect(score.parts[name]).toEqual({ value: null, weight: 1, reason, failed: true });
  const others = Object.entries(score.parts).filter(([one]) => one !== name);
  expect(others.filter(([, { failed }]) => failed)).toEqual([]);
  expect((await scored('nobody')).total).not.toBeNull();
});
