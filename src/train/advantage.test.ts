import { describe, expect, it } from 'vitest';
import { groupAdvantages, isFlat, returnsToGo, turnCredit } from './advantage.ts';
import type { Attempt } from './attempt.ts';

const wholeReturn = { kind: 'turn', weight: 1, discount: 1 } as const;

const attempt = (reward: number, turnRewards: readonly number[] = [0]): Attempt => ({
  id: 'a',
  task: 't',
  taskType: 'toy',
  reward,
  success: reward === 1,
  version: 0,
  turns: turnRewards.map((r) => ({ prompt: [1], completion: [2], logprobs: [-1], reward: r })),
});

describe('advantages', () => {
  it('are the reward minus the mean of the group, not divided by its deviation', () => {
    expect(groupAdvantages([attempt(1), attempt(0), attempt(0), attempt(0)])).toEqual([
      [0.75],
      [-0.25],
      [-0.25],
      [-0.25],
    ]);
  });

  it('are exactly zero when all earned the same, even where the mean would round', () => {
    // 0.1 + 0.1 + 0.1 is not 0.3 in floating point.
    const advantages = groupAdvantages([attempt(0.1), attempt(0.1), attempt(0.1)]);
    expect(advantages).toEqual([[0], [0], [0]]);
    expect(isFlat(advantages)).toBe(true);
  });

  it('give every turn of an attempt the same number without turn-level credit', () => {
    expect(groupAdvantages([attempt(1, [1, 0]), attempt(0, [0, 0])])).toEqual([
      [0.5, 0.5],
      [-0.5, -0.5],
    ]);
  });

  it('credit a turn for what came after it, compared with the same turn of its peers', () => {
    // Returns to go: [1+0, 0] and [0+1, 1]; equal at turn 0, half apart from their mean at turn 1.
    expect(groupAdvantages([attempt(1, [1, 0]), attempt(0, [0, 1])], wholeReturn)).toEqual([
      [0.5, 0],
      [-0.5, 0],
    ]);
    // By default a turn answers for itself at half weight: 0.5 ± 0.25.
    expect(groupAdvantages([attempt(1, [1, 0]), attempt(0, [0, 1])], turnCredit)).toEqual([
      [0.75, 0.25],
      [-0.75, -0.25],
    ]);
    expect(returnsToGo([1, 2, 4], 0.5)).toEqual([3, 4, 4]);
  });

  it('leave the turn part out where an attempt has no peer that came so far', () => {
    expect(groupAdvantages([attempt(1, [0, 0, 1]), attempt(0, [0])], wholeReturn)).toEqual([[1, 0.5, 0.5], [-1]]);
  });

  it('see a difference in turns where the final rewards are equal', () => {
    expect(isFlat(groupAdvantages([attempt(1, [1]), attempt(1, [0])], turnCredit))).toBe(false);
  });

  it('refuse a reward that is not a number', () => {
    expect(() => groupAdvantages([attempt(Number.NaN)])).toThrow(/reward NaN/);
  });
});
