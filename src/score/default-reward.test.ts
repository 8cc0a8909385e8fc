import { describe, expect, test } from 'vitest';
import { noon, signal, turn } from '../store/fixtures.ts';
import { defaultReward } from './default-reward.ts';
import { trajectory } from './fixtures.ts';
import type { Scorer } from './scorer.ts';
import { type RewardSpec, scoreOf } from './weighted.ts';

const says = (value: number | null): Scorer => ({
  name: 'stand-in',
  version: '1',
  score: () => ({ value, reason: 'said so', turns: new Map() }),
});

/** The default reward, with the parts that ask a model answered. */
const answered = (values: Readonly<Record<string, number | null>>): RewardSpec => ({
  ...defaultReward,
  parts: defaultReward.parts.map((part) =>
    part.name in values ? { ...part, scorer: says(values[part.name]!) } : part,
  ),
});

const scored = (spec: RewardSpec, vote: number | null, seconds: number) =>
  scoreOf(
    spec,
    {
      trajectory: trajectory(),
      turns: [turn({ latencyMs: seconds * 1000 })],
      signals: vote === null ? [] : [signal({ value: vote })],
    },
    { day: '2026-05-20', at: noon },
  );

describe('the default reward', () => {
  // judge, faithfulness, context recall, feedback, seconds → total
  test.each([
    // All measured: 0.30 j + 0.25 f + 0.20 c + 0.20 u − penalty.
    [1, 1, 1, 1, 5, 0.95],
    [1, 1, 1, 1, 10, 0.95], // not above 10 s
    [1, 1, 1, 1, 12, 0.93], // − 0.02
    [1, 1, 1, 1, 15, 0.9], // − 0.05
    [1, 1, 1, 1, 60, 0.9], // at most 0.05
    [0, 0, 0, 0, 5, 0],
    [0, 0, 0, 0, 60, 0], // clamped
    [0.85, 0.9, 0.5, 1, 3, 0.78], // 0.255 + 0.225 + 0.1 + 0.2
    [0.85, 0.9, 0.5, 0, 3, 0.58],
    [0.85, 0.9, 0.5, 0.5, 12.5, 0.655], // 0.255 + 0.225 + 0.1 + 0.1 − 0.025
    [0.1, 0, 0, 0, 14, 0], // 0.03 − 0.04
    [0.2, 0.4, 0.6, 0.8, 11, 0.43], // 0.06 + 0.1 + 0.12 + 0.16 − 0.01
    // Some not measured: 0.95 × the weighted mean of the others − penalty.
    [null, 1, 1, 1, 5, 0.95],
    [null, 0.9, 0.5, 1, 3, 0.767307692308], // 0.95 × 0.525 / 0.65
    [0.85, null, null, null, 3, 0.8075], // 0.95 × 0.85
    [0.85, null, null, null, 15, 0.7575],
    [null, null, null, 1, 12, 0.93], // 0.95 − 0.02
    [null, null, null, 0, 12, 0],
    [0.6, 0.8, null, null, 2, 0.656363636364], // 0.95 × 0.38 / 0.55
    [null, null, null, null, 5, null], // how fast it was says nothing about how good it was
  ])('judge %s, faithfulness %s, recall %s, feedback %s, %s s: %s', async (j, f, c, u, seconds, total) => {
    const score = await scored(answered({ judge: j, faithfulness: f, context_recall: c }), u, seconds);
    if (total === null) expect(score.total).toBeNull();
    else expect(Math.abs(score.total! - total)).toBeLessThanOrEqual(1e-9);
  });

  test('says which parts spoke and how much weight stood behind them', async () => {
    const { total, measured, parts } = await scored(defaultReward, 1, 12);
    expect([total, measured]).toEqual([0.93, 0.25]);
    expect(parts.judge).toMatchObject({ value: null, weight: 0.3, reason: 'the user has spoken' });
    expect(parts.latency).toEqual({
      value: 0.6,
      weight: 0.05,
      reason: 'the longest answer took 12.0 s',
      penalty: true,
    });
  });

  test('without a judge and a vote nothing is measured, and nothing has failed', async () => {
    const { total, evidence, parts } = await scored(defaultReward, null, 3);
    expect([total, parts.judge!.reason]).toEqual([null, 'no judge is configured']);
    expect(evidence).not.toMatch(/broken/);
  });
});
