import { expect, test } from 'vitest';
import { hashWord, jaccard, signatureOf, signatureShelf, similarIndex, similarity } from './minhash.ts';

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

test('an index names what is alike and hardly anything else, and one full bucket is not walked to its end', () => {
  const index = similarIndex(10);
  for (let i = 0; i < 200; i++) index.add(signatureOf(count(i * 100, i * 100 + 50)));
  const near = new Set(index.near(signatureOf([...count(700, 748), hashWord('another')])));
  expect(near.has(7)).toBe(true);
  expect(near.size).toBeLessThan(5);
  for (let i = 0; i < 1000; i++) index.add(signatureOf(setOf('same')));
  expect([...index.near(signatureOf(setOf('same')))].length).toBe(10 * 256);
});

test('signatures on a shelf stay what they were, board after board', () => {
  const shelf = signatureShelf(2);
  const made = Array.from({ length: 5 }, (_, i) => signatureOf(count(i, i + 3)));
  const kept = made.map(shelf);
  expect(kept).toEqual(made);
  expect(new Set(kept.map(({ buffer }) => buffer)).size).toBe(3);
});

test('an index of thousands finds each again', () => {
  const index = similarIndex(10);
  const signatures = Array.from({ length: 3000 }, (_, i) => signatureOf([hashWord(`only ${i}`)]));
  for (const signature of signatures) index.add(signature);
  for (const [i, signature] of signatures.entries()) expect(new Set(index.near(signature))).toEqual(new Set([i]));
});
