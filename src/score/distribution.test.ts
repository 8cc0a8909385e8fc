import { expect, test } from 'vitest';
import { keptBy, reweighed, spreadOf } from './distribution.ts';

test('scores fall into twentieths, 1 into the last, and what was not measured into none', () => {
  const spread = spreadOf([0, 0.04, 0.5, 1, null]);
  expect(spread).toMatchObject({ measured: 4, mean: 0.385 });
  expect(spread.bins.flatMap((n, i) => (n > 0 ? [[i, n]] : []))).toEqual([
    [0, 2],
    [10, 1],
    [19, 1],
  ]);
  expect(spreadOf([null])).toMatchObject({ measured: 0, mean: null });
});

test('a total is weighed again from its parts; a part that is not named keeps its weight', () => {
  const parts = { a: { value: 1, weight: 1 }, b: { value: 0, weight: 1 } };
  expect(reweighed(parts, {})).toBe(0.5);
  expect(reweighed(parts, { a: 3 })).toBe(0.75);
  expect(reweighed(parts, { b: 0 })).toBe(1);
  expect(reweighed(parts, { a: 0, b: 0 })).toBeNull();
});

test('what would be kept is counted both ways', () => {
  const pairs = [
    [0.8, 0.6],
    [0.6, 0.8],
    [0.9, 0.9],
    [null, 0.7],
  ] as const;
  expect(keptBy(pairs, 0.7)).toEqual({ current: 2, proposed: 3, gained: 2, lost: 1 });
});
