import { expect, it } from 'vitest';
import { partsOf } from './s3-parts.ts';

it('cuts a file into equal parts and a rest', () => {
  expect([...partsOf(10, 4)]).toEqual([
    { number: 1, start: 0, length: 4 },
    { number: 2, start: 4, length: 4 },
    { number: 3, start: 8, length: 2 },
  ]);
  expect([...partsOf(4, 4)]).toHaveLength(1);
  expect([...partsOf(0, 4)]).toEqual([]);
});

it('makes the parts larger where there would be more than S3 takes', () => {
  const parts = [...partsOf(1_000_001, 10)];
  expect(parts.length).toBeLessThanOrEqual(10_000);
  expect(parts.reduce((sum, { length }) => sum + length, 0)).toBe(1_000_001);
});
