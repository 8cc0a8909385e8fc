import { describe, expect, it } from 'vitest';
import type { StepMetrics } from './metrics.ts';
import { overBudget, stopDefaults, stopRule } from './stop.ts';

const rules = { ...stopDefaults, window: 2, patience: 5 };
const history = (rows: readonly StepMetrics['values'][]): StepMetrics[] =>
  rows.map((values, step) => ({ step, stage: 'grpo', stageStep: step, values }));
const steady = { reward_mean: 0.5, reward_std: 0.4, kl: 0.01, entropy: 0.5, success: 0.5 };

describe('stop rules', () => {
  it('let a healthy run go on', () => {
    expect(
      stopRule(history([{ ...steady }, { ...steady, reward_mean: 0.6 }, { ...steady, reward_mean: 0.7 }]), rules),
    ).toBeNull();
    expect(stopRule([], rules)).toBeNull();
  });

  it('do not fire on what was not measured', () => {
    expect(stopRule(history(Array(50).fill({ loss: 1 })), rules)).toBeNull();
  });

  it.each([
    ['loss that is not a number', [{ loss: Number.NaN }], /loss became NaN at step 0/],
    ['KL above its bound', Array(2).fill({ kl: 0.6 }), /KL from the reference is 0.6/],
    ['entropy that collapsed', [1, 1, 0.01, 0.01].map((entropy) => ({ entropy })), /Entropy went from 1 to 0.01/],
    ['entropy that exploded', [1, 1, 6, 6].map((entropy) => ({ entropy })), /Entropy went from 1 to 6/],
    [
      'reward deviation that collapsed',
      [0.4, 0.4, 0, 0].map((reward_std) => ({ reward_std, success: 0.2 })),
      /collapsed to 0 \(highest: 0.4\)/,
    ],
    ['a sampler that is not the policy', Array(2).fill({ sampler_gap: 0.2 }), /differ from the trainer's by 0.2/],
  ])('call %s bad', (_what, rows, reason) => {
    const stop = stopRule(history(rows), rules);
    expect(stop?.kind).toBe('bad');
    expect(stop?.reason).toMatch(reason);
  });

  it('call a solved task enough, not a collapse', () => {
    const rows = [0.4, 0.4, 0, 0].map((reward_std) => ({ reward_std, success: 1 }));
    expect(stopRule(history(rows), rules)).toMatchObject({ kind: 'enough', reason: /Solved/ });
  });

  it('give up after patience steps without a better mean', () => {
    const rows = [0.1, 0.1, 0.5, 0.5, ...Array(4).fill(0.4)].map((reward_mean) => ({ reward_mean }));
    expect(stopRule(history(rows), rules)).toBeNull();
    expect(stopRule(history([...rows, { reward_mean: 0.4 }]), rules)).toMatchObject({
      kind: 'enough',
      reason: /No better reward_mean than 0.5 for 5/,
    });
  });

  it('end at the budget', () => {
    const spent = { seconds: 10, tokens: 5, money: 1 };
    expect(overBudget(spent, { seconds: 11 })).toBeNull();
    expect(overBudget(spent, { seconds: 11, money: 1 })).toMatchObject({ kind: 'budget', reason: /1 money/ });
  });
});
