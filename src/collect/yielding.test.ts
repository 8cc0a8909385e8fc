import { expect, test } from 'vitest';
import { createYielding, nicenessAt } from './yielding.ts';

test('recording is nice at thousands of exchanges a second and not at hundreds', () => {
  expect([300, 999, 1000, 8000].map((rate) => nicenessAt(rate, 0))).toEqual([0, 0, 10, 10]);
  expect([900, 500, 499, 0].map((rate) => nicenessAt(rate, 10))).toEqual([10, 10, 0, 0]);
});

test('the thread changes its priority when the rate does, and keeps it where it may not', () => {
  const said: number[] = [];
  const yielding = createYielding((niceness) => {
    if (niceness === 0) throw new Error('EACCES');
    said.push(niceness);
  });
  let taken = 0;
  const second = (rate: number, at: number) => {
    taken += rate;
    yielding.look(taken, at);
  };
  second(0, 0);
  second(300, 1000);
  expect(said).toEqual([]);
  second(5000, 2000);
  second(5000, 3000);
  expect(said).toEqual([10]);
  second(0, 4000);
  second(5000, 5000);
  expect(said).toEqual([10]);
});
