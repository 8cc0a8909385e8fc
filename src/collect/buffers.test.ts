import { expect, test } from 'vitest';
import { createBuffers } from './buffers.ts';

const kB = 1024;

test('what comes back is handed out again where it fits, and small ones are made anew', () => {
  const buffers = createBuffers();
  const large = buffers.take(300 * kB);
  expect(large.byteLength).toBe(384 * kB);
  buffers.give(large);
  expect(buffers.take(200 * kB).byteLength).toBe(200 * kB);
  expect(buffers.take(500 * kB)).not.toBe(large);
  expect(buffers.take(380 * kB)).toBe(large);
  expect(buffers.take(380 * kB)).not.toBe(large);
});

test('no more is kept than its limit, and nothing once it is calm', () => {
  const buffers = createBuffers(1024 * kB);
  const three = [1, 2, 3].map(() => buffers.take(512 * kB));
  for (const one of three) buffers.give(one);
  expect([1, 2, 3].map(() => three.includes(buffers.take(512 * kB)))).toEqual([true, true, false]);
  for (const one of three) buffers.give(one);
  buffers.clear();
  expect(three.includes(buffers.take(512 * kB))).toBe(false);
});
