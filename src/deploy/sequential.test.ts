import { expect, it } from 'vitest';
import { bounds, spent, upperTail } from './sequential.ts';

const rounded = (values: readonly number[], digits = 2) => values.map((value) => Number(value.toFixed(digits)));

it('the normal’s tail is the textbooks’', () => {
  expect(rounded([0, 1, 1.959964, 2.5758293, 3.2905267, 5].map(upperTail), 7)).toEqual([
    ...[0.5, 0.1586553, 0.025, 0.005, 0.0005, 2.867e-7].map((p) => Number(p.toFixed(7))),
  ]);
  expect(upperTail(-1.959964)).toBeCloseTo(0.975, 6);
});

it('five even looks at a one-sided 2.5% have the published bounds of O’Brien–Fleming spending', () => {
  expect(rounded(bounds([0.2, 0.4, 0.6, 0.8, 1], 0.025))).toEqual([4.88, 3.36, 2.68, 2.29, 2.03]);
});

it('one look is a plain test', () => {
  expect(rounded(bounds([1], 0.025), 3)).toEqual([1.96]);
  expect(rounded(bounds([1], 0.05), 3)).toEqual([1.645]);
});

it('what is spent grows to α and is next to nothing early', () => {
  expect(spent(0, 0.05)).toBe(0);
  expect(spent(0.25, 0.05)).toBeLessThan(0.0001);
  expect(spent(1, 0.05)).toBe(0.05);
});

it('looks that come unevenly take as much as the information they have', () => {
  const [early, late] = bounds([0.5, 1], 0.025);
  expect(early).toBeCloseTo(2.963, 2);
  expect(late).toBeCloseTo(1.969, 2);
});
