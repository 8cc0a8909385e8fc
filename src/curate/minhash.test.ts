import { expect, test } from 'vitest';
import { column } from './column.ts';
import {
  bandKey,
  createNumbered,
  hashWord,
  jaccard,
  onesIn,
  type Signature,
  signatureOf,
  similarity,
} from './minhash.ts';

const setOf = (...words: string[]) => words.map(hashWord);
const count = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => hashWord(`word${from + i}`));
const sorted = (items: number[]) => Uint32Array.from(items).sort();

test('signatures agree about as often as sets do', () => {
  // 80 words of 120 are in both: 2/3.
  const estimate = similarity(signatureOf(count(0, 100)), signatureOf(count(20, 120)));
  expect(Math.abs(estimate - 2 / 3)).toBeLessThan(0.2);
  expect(similarity(signatureOf(count(0, 9)), signatureOf(count(0, 9).reverse()))).toBe(1);
  expect(similarity(signatureOf(count(0, 100)), signatureOf(count(500, 600)))).toBeLessThan(0.1);
});

test('the exact share of common items', () => {
  expect(jaccard(sorted(setOf('a', 'b', 'c')), sorted(setOf('b', 'c', 'd')))).toBe(0.5);
  expect(jaccard(sorted([]), sorted([]))).toBe(1);
  expect(jaccard(sorted(setOf('a')), sorted([]))).toBe(0);
});

test('bands of what is alike have the same keys, and hardly anything else has', () => {
  const keysOf = (signature: Signature) => Array.from({ length: 10 }, (_, band) => bandKey(signature, band, 10));
  const common = (a: Signature, b: Signature) => keysOf(a).filter((key) => keysOf(b).includes(key)).length;
  const all = Array.from({ length: 200 }, (_, i) => signatureOf(count(i * 100, i * 100 + 50)));
  const like = signatureOf([...count(700, 748), hashWord('another')]);
  const near = all.flatMap((one, i) => (common(one, like) > 0 ? i : []));
  expect(near).toContain(7);
  expect(near.length).toBeLessThan(5);
  expect(common(like, like)).toBe(10);
});

test('numbers come back by their key, also where several share it, thousands of them', () => {
  const numbered = createNumbered(column(Uint32Array));
  const under = (key: number) => {
    const numbers: number[] = [];
    numbered.find(key, (number) => numbers.push(number) < 0);
    return numbers.sort((a, b) => a - b);
  };
  for (let i = 0; i < 20_000; i++) expect(numbered.add(hashWord(`key ${i % 9000}`))).toBe(i);
  expect(under(hashWord('key 1'))).toEqual([1, 9001, 18_001]);
  expect(under(hashWord('key 8999'))).toEqual([8999, 17_999]);
  expect(under(hashWord('none'))).toEqual([]);
  expect(numbered.find(hashWord('key 1'), (number) => number === 9001)).toBe(9001);
});

test('how many bits are set', () => {
  expect([0, 1, 3, 0x80000000, -1, 0x55555555].map(onesIn)).toEqual([0, 1, 2, 1, 32, 16]);
});
