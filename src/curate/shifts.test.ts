import { expect, test } from 'vitest';
import { type ScoreSum, shiftsIn } from './shifts.ts';

const sum = (key: string, before: number, now: number, n = 100): ScoreSum => ({
  key,
  taskType: 'refund',
  before: { n, mean: before, variance: 0.05 },
  now: { n, mean: now, variance: 0.05 },
});

test('a key whose scores jump while the others’ stay is named; what all have is not', () => {
  expect(shiftsIn([sum('a', 0.5, 0.95), sum('b', 0.5, 0.5)])).toEqual([
    { key: 'a', taskType: 'refund', before: 0.5, now: 0.95, conversations: 100 },
  ]);
  expect(shiftsIn([sum('a', 0.9, 0.4), sum('b', 0.9, 0.9)]).map(({ key }) => key)).toEqual(['a']);
  expect(shiftsIn([sum('a', 0.5, 0.95), sum('b', 0.5, 0.9)])).toEqual([]);
});

test('little traffic, small changes and a single key say nothing', () => {
  expect(shiftsIn([sum('a', 0.5, 0.95, 19), sum('b', 0.5, 0.5)])).toEqual([]);
  expect(shiftsIn([sum('a', 0.5, 0.7), sum('b', 0.5, 0.5)])).toEqual([]);
  expect(shiftsIn([sum('a', 0.5, 0.95)])).toEqual([]);
});
