import { expect, test } from 'vitest';
import { normal, seededRandom } from './random.ts';

const take = <T>(n: number, draw: () => T) => Array.from({ length: n }, draw);

test('a seed repeats, and another seed or stream is another sequence', () => {
  expect(take(5, seededRandom(7))).toEqual(take(5, seededRandom(7)));
  const firsts = [seededRandom(7), seededRandom(8), seededRandom(7, 1), seededRandom(7 + 2 ** 32)].map((r) => r());
  expect(new Set(firsts).size).toBe(4);
});

test('numbers are spread evenly over [0, 1)', () => {
  const bins = new Array(10).fill(0);
  for (const x of take(20_000, seededRandom(1))) bins[Math.floor(x * 10)]++;
  // 2000 each, deviation 42: five deviations either way
  for (const count of bins) expect(Math.abs(count - 2000)).toBeLessThan(212);
});

test('normal numbers have mean 0, variance 1 and normal tails', () => {
  const values = take(20_000, normal(seededRandom(2)));
  const mean = values.reduce((a, b) => a + b) / 20_000;
  const variance = values.reduce((a, b) => a + b * b, 0) / 20_000 - mean * mean;
  expect(Math.abs(mean)).toBeLessThan(0.035);
  expect(Math.abs(variance - 1)).toBeLessThan(0.05);
  // Beyond two deviations lies 4.55%.
  expect(values.filter((x) => Math.abs(x) > 2).length / 20_000).toBeCloseTo(0.0455, 2);
});
