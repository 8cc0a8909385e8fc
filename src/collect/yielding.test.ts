import { expect, test } from 'vitest';
import { createYielding, nicenessIn, type Rush, rushAfter } from './yielding.ts';

const calm: Rush = { busyMs: 0, calmMs: 0 };
const after = (rates: readonly number[], from = calm, tookMs = 250): number[] => {
  let rush = from;
  return rates.map((rate) => {
    rush = rushAfter(rush, rate, tookMs);
    return nicenessIn(rush);
  });
};

test('recording is nice at thousands of exchanges a second and not at hundreds', () => {
  for (const [rate, niceness] of [
    [300, 0],
    [999, 0],
    [1000, 10],
    [8000, 10],
  ] as const)
    expect(after([rate])).toEqual([niceness]);
  expect(after([8000, 900, 500, 499])).toEqual([10, 10, 10, 0]);
});

test('after a long rush it stays nice for twice as long, at most ten seconds, and a burst is no rush', () => {
  const second = 1000;
  expect(after([8000, 8000, 0, 0, 0, 0], calm, second)).toEqual([10, 10, 10, 10, 10, 0]);
  const hour = { busyMs: 3_600_000, calmMs: 0 };
  expect(after([0, 0], hour, 9000)).toEqual([10, 0]);
  expect(after([8000, 0])).toEqual([10, 0]);
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
