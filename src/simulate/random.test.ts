import { expect, test } from 'vitest';
import { hash, random } from './random.ts';

test('the same seed gives the same numbers, another seed others', () => {
  const take = (seed: number) => {
    const r = random('a', seed);
    return Array.from({ length: 5 }, () => r.next());
  };
  expect(take(1)).toEqual(take(1));
  expect(take(1)).not.toEqual(take(2));
});

test('parts of a seed do not run together', () => {
  expect(random('ab', 'c').next()).not.toBe(random('a', 'bc').next());
});

test('first numbers of consecutive seeds fill [0, 1) evenly', () => {
  const tenths = new Array<number>(10).fill(0);
  for (let seed = 0; seed < 10_000; seed++) tenths[Math.floor(random(seed).next() * 10)]!++;
  // 1000 each, deviation 30: five deviations either way.
  for (const count of tenths) expect(Math.abs(count - 1000)).toBeLessThan(150);
});

test('weights of 3 and 1 come up three to one, and a weight of 0 never', () => {
  const r = random('weights');
  const counts = { a: 0, b: 0, c: 0 };
  for (let i = 0; i < 4000; i++) counts[r.weighted({ a: 3, b: 1, c: 0 })]++;
  expect(counts.c).toBe(0);
  expect(Math.abs(counts.a - 3000)).toBeLessThan(140);
});

test('integer() reaches both ends and nothing beyond', () => {
  const r = random('ends');
  const seen = new Set(Array.from({ length: 200 }, () => r.integer(2, 4)));
  expect([...seen].sort()).toEqual([2, 3, 4]);
});

test('shuffle() keeps every element and leaves the list alone', () => {
  const list = [1, 2, 3, 4, 5, 6, 7, 8];
  const mixed = random('mix').shuffle(list);
  expect(list).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(mixed).not.toEqual(list);
  expect([...mixed].sort()).toEqual(list);
});

test('hash() spreads texts that differ in one digit over all of 32 bits', () => {
  const high = new Set(Array.from({ length: 64 }, (_, i) => hash(`order:${i}`) >>> 28));
  expect(high.size).toBeGreaterThan(12);
});
