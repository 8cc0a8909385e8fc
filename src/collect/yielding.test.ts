import { expect, test } from 'vitest';
import { createYielding, nicenessIn, type Rush, rushAfter } from './yielding.ts';

const calm: Rush = { busyMs: 0, calmMs: 0 };
const after = (rates: readonly number[], from = calm, tookMs = 250): number[] => {
  let rush = from;
  return rates.map((rate) => {
    rush = rushAfter(rush, rate, tookMs);
    return nicenessIn(rush, 0, false);
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

/** Looks once a second; what the thread's niceness became. */
function yieldingFor(mayReturn: boolean) {
  const became: number[] = [0];
  const yielding = createYielding((niceness) => {
    if (!mayReturn && niceness < became.at(-1)!) throw new Error('EACCES');
    became.push(niceness);
  });
  let came = 0;
  let at = 0;
  yielding.look(came, at, 0);
  return (rate: number, full = 0): number => {
    came += rate;
    at += 1000;
    yielding.look(came, at, full);
    return became.at(-1)!;
  };
}

test('who may return takes only what answering leaves over, until the queue is half full', () => {
  const second = yieldingFor(true);
  expect(second(300)).toBe(0);
  second(5000); // finds out whether it may
  expect(second(5000, 0.1)).toBe(19);
  expect(second(5000, 0.5)).toBe(10);
  expect(second(5000, 0.9)).toBe(10);
  expect(second(5000, 0.4)).toBe(19);
  for (let i = 0; i < 9; i++) second(0);
  expect(second(0)).toBe(0);
});

test('who may not takes a share from the start, and keeps it', () => {
  const second = yieldingFor(false);
  expect(second(300)).toBe(0);
  expect(second(5000)).toBe(10);
  expect(second(5000, 0.1)).toBe(10);
  expect(second(0)).toBe(10);
  for (let i = 0; i < 20; i++) second(0);
  expect(second(5000)).toBe(10);
});
