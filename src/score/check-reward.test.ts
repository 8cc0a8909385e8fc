/** Trust in a reward, from a real database: agreement with labels, proposals, comparisons, drift. */
import { beforeAll, describe, expect, test } from 'vitest';
import { importConversations } from '../collect/import.ts';
import { importLabels } from '../collect/import-labels.ts';
import { parseConfig } from '../config.ts';
import { readRewardChecks } from '../store/judged.ts';
import type { Store } from '../store/postgres.ts';
import { withStore } from '../store/test-store.ts';
import { checkReward, compareStored, fitReward } from './check-reward.ts';
import { contextRecall } from './context-recall.ts';
import { defaultReward } from './default-reward.ts';
import { label } from './label.ts';
import { outcome } from './outcome.ts';
import { seeded } from './resample.ts';
import { scoreWindow } from './run.ts';
import { trustMetrics } from './trust-metrics.ts';
import { type RewardSpec, repeatsLabels, weighted } from './weighted.ts';

const secret = 's'.repeat(32);
const week = 7 * 86_400_000;
const now = new Date('2026-05-20T12:00:00Z');
const window = { since: new Date(+now - 30 * 86_400_000), until: now, now };
/** What people see is 0.8 of `insight` and 0.2 of `speed`; `noise` is nobody's. */
const mostlyNoise = weighted({
  insight: [0.1, outcome('insight')],
  noise: [0.8, outcome('noise')],
  speed: [0.1, outcome('speed')],
});
const better = weighted({ insight: [0.8, outcome('insight')], speed: [0.2, outcome('speed')] });
const agentWith = (reward: RewardSpec) =>
  parseConfig({ agents: [{ name: 'desk', reward }] }, {}, '/nowhere').agents[0]!;

let store: Store;
beforeAll(async () => {
  store = await withStore();
  const draw = seeded(11);
  const lines = Array.from({ length: 120 }, (_, k) => {
    const [insight, noise, speed] = [draw(), draw(), draw()] as const;
    const seen = 0.8 * insight + 0.2 * speed;
    return JSON.stringify({
      id: `c-${k}`,
      at: +now - (k % 2 === 0 ? 86_400_000 : week + 86_400_000),
      keys: [`task:${k % 30}`],
      messages: [
        { role: 'user', content: `question ${k}` },
        { role: 'assistant', content: 'answer' },
      ],
      outcomes: { insight, noise: k % 2 === 0 ? noise / 2 : noise, speed, sold: seen > 0.5 },
      ...(k < 80 ? { label: { score: Math.round(seen * 100) / 100, parts: { speed }, reviewer: 'rita' } } : {}),
    });
  });
  await importConversations(store, { agent: 'desk', origin: 'production', secret, now, lines });
  for (const spec of [mostlyNoise, better]) await scoreWindow(store, { agent: 'desk', spec, ...window });
});

describe('agreement with people', () => {
  test('is told for the total and each part, with an alarm below 0.7', async () => {
    const poor = await checkReward(store, agentWith(mostlyNoise), now);
    expect(poor.total).toMatchObject({ labels: 80, state: 'alarm' });
    expect(poor.total.low!).toBeLessThan(poor.total.spearman!);
    const of = (name: string) => poor.parts.find(({ part }) => part === name)!;
    expect(of('insight')).toMatchObject({ labels: 80, state: 'ok' });
    expect(of('noise').state).toBe('alarm');
    expect(of('speed').spearman).toBe(1); // against what was said of the part
    const good = await checkReward(store, agentWith(better), now);
    expect(good.total.state).toBe('ok');
    expect(good.total.spearman!).toBeGreaterThan(0.99);
  });

  test('a reward that is made of labels is not checked against them, and few labels say nothing', async () => {
    const own = weighted({ people: [0.5, label()], insight: [0.5, outcome('insight')] });
    await scoreWindow(store, { agent: 'desk', spec: own, ...window });
    const check = await checkReward(store, agentWith(own), now);
    expect(check.total.state).toBe('unmeasured');
    expect(check.parts.map(({ part }) => part)).toEqual(['insight']);
    const nobody = { ...agentWith(better), name: 'nobody' };
    expect((await checkReward(store, nobody, now)).total).toMatchObject({
      labels: 0,
      spearman: null,
      state: 'unmeasured',
    });
  });

  test('a reward that only reads from labels what should have been answered, as the default, is checked like any other', async () => {
    const recalling = weighted({ recall: [0.2, contextRecall()], insight: [0.8, outcome('insight')] });
    await scoreWindow(store, { agent: 'desk', spec: recalling, ...window });
    const check = await checkReward(store, agentWith(recalling), now);
    expect(check.total).toMatchObject({ labels: 80, state: 'ok' });
    expect(check.parts.map(({ part }) => part).sort()).toEqual(['insight', 'recall']);
    expect(defaultReward.parts.some(repeatsLabels)).toBe(false);
  });

  test('the latest check of each agent is kept and becomes metrics', async () => {
    await checkReward(store, agentWith(mostlyNoise), new Date(+now + 1000));
    const text = trustMetrics(await readRewardChecks(store));
    expect(text).toMatch(/pawl_reward_agreement\{agent="desk",part="total"\} 0\.\d+/);
    expect(text).toContain('pawl_reward_alarm{agent="desk",part="total"} 1');
    expect(text).toContain('pawl_reward_alarm{agent="desk",part="insight"} 0');
    expect(text).not.toContain('agent="nobody",part="insight"}');
  });

  test('a part that moved from one week to the next is named', async () => {
    const { drift } = await checkReward(store, agentWith(mostlyNoise), now);
    const of = (name: string | null) => drift.find(({ part }) => part === name)!;
    expect(of('noise')).toMatchObject({ state: 'moved', measured: [1, 1, 0, 0] });
    expect(of('noise').change!).toBeLessThan(-0.1);
    expect(of('speed').state).toBe('steady');
    expect(of(null).state).toBe('moved');
  });
});

describe('a proposal', () => {
  test('finds the weights that people use, on conversations it has not seen', async () => {
    const found = await fitReward(store, agentWith(mostlyNoise), undefined);
    expect(found).toMatchObject({ samples: 80, groups: 30, verdict: 'better', leftOut: [], auc: null });
    const weights = Object.fromEntries(found.parts.map(({ name, proposed }) => [name, proposed]));
    expect(weights.insight).toBeCloseTo(0.8, 1);
    expect(weights.speed).toBeCloseTo(0.2, 1);
    expect(weights.noise!).toBeLessThan(0.02);
    expect(found.spearman.difference.low!).toBeGreaterThan(0.3);
    expect(found.gained + found.lost).toBeGreaterThan(0);
  });

  test('to an outcome leaves out what reads it, keeps what is never measured, and counts pairs', async () => {
    const spec = weighted({
      ...{ insight: [0.2, outcome('insight')], noise: [0.3, outcome('noise')], sold: [0.3, outcome('sold')] },
      silent: [0.2, outcome('never')],
    });
    await scoreWindow(store, { agent: 'desk', spec, ...window });
    const found = await fitReward(store, agentWith(spec), 'sold');
    expect(found).toMatchObject({ samples: 120, leftOut: ['sold'], verdict: 'better' });
    const of = (name: string) => found.parts.find((part) => part.name === name)!;
    expect(of('sold')).toMatchObject({ current: 0.3, proposed: 0.3, kept: true });
    expect(of('silent')).toMatchObject({ proposed: 0.2, kept: true });
    expect(of('insight').proposed! + of('noise').proposed!).toBeCloseTo(0.5, 2);
    expect(found.auc!.proposed.value!).toBeGreaterThan(0.9);
  });

  test('of too little says so', async () => {
    expect(await fitReward(store, agentWith(better), 'unheard-of')).toMatchObject({ samples: 0, verdict: 'too few' });
  });
});

test('two rewards side by side: who changes places, why, and whom people agree with', async () => {
  const found = await compareStored(store, agentWith(better), {
    ...{ a: mostlyNoise.version, b: better.version, ...window },
  });
  expect(found.conversations).toBe(120);
  expect(found.spearman!).toBeLessThan(0.6);
  expect(found.reordered!).toBeGreaterThan(0.2);
  expect(found.swaps).toHaveLength(20);
  const [first] = found.swaps;
  expect(first!.because).toMatch(/^(noise −|insight \+)/);
  expect(Math.abs(first!.placeA - first!.placeB)).toBeGreaterThan(40);
  expect(found.labels.count).toBe(80);
  expect(found.labels.low!).toBeGreaterThan(0.3);
  const same = await compareStored(store, agentWith(better), { a: better.version, b: better.version, ...window });
  expect(same).toMatchObject({ spearman: 1, reordered: 0, swaps: [], gained: 0, lost: 0 });
});

test('a label of a turn counts for its conversation', async () => {
  const { rows } = await store.pool.query<{ id: string }>(`select id from pawl.turns where trajectory = 'c-100'`);
  const labels = [{ turn: rows[0]!.id, score: 0.5 }];
  expect(await importLabels(store, { agent: 'desk', secret, now, labels })).toMatchObject({ written: 1, bad: 0 });
  expect((await checkReward(store, agentWith(better), now)).total.labels).toBe(81);
});
