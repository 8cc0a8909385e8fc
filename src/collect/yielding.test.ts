import { expect, test } from 'vitest';
import { createYielding, type Level, levelIn, type Rush, rushAfter } from './yielding.ts';

const calm: Rush = { busyMs: 0, calmMs: 0 };
const after = (rates: readonly number[], from = calm, tookMs = 250): Level[] => {
  let rush = from;
  return rates.map((rate) => {
    rush = rushAfter(rush, rate, tookMs);
    return levelIn(rush, 0, false);
  });
};

test('recording takes its share at thousands of exchanges a second and runs like any other at hundreds', () => {
  for (const [rate, level] of [
    [300, 'even'],
    [999, 'even'],
    [1000, 'share'],
    [8000, 'share'],
  ] as const)
    expect(after([rate])).toEqual([level]);
  expect(after([8000, 900, 500, 499])).toEqual(['share', 'share', 'share', 'even']);
});

test('after a long rush it gives way for twice as long, at most ten seconds, and a burst is no rush', () => {
  const second = 1000;
  const [share, even] = ['share', 'even'];
  expect(after([8000, 8000, 0, 0, 0, 0], calm, second)).toEqual([share, share, share, share, share, even]);
  const hour = { busyMs: 3_600_000, calmMs: 0 };
  expect(after([0, 0], hour, 9000)).toEqual([share, even]);
  expect(after([8000, 0])).toEqual([share, even]);
});

/** Looks once a second; what the thread became. `obeys`: how many of the changes really happen. */
function yieldingFor(free: boolean, obeys = Number.POSITIVE_INFINITY) {
  const became: Level[] = [];
  let idle = false;
  const yielding = createYielding({
    free,
    become(level) {
      became.push(level);
      if (obeys-- > 0) idle = level === 'rest';
      else obeys = Number.POSITIVE_INFINITY;
    },
    isIdle: () => idle,
  });
  let came = 0;
  let at = 0;
  yielding.look(came, at, 0);
  return (rate: number, full = 0): Level[] => {
    came += rate;
    at += 1000;
    yielding.look(came, at, full);
    return became.splice(0);
  };
}

test('who may take it back takes only what answering leaves over, until the queue is half full', () => {
  const second = yieldingFor(true);
  expect(second(300)).toEqual([]);
  expect(second(5000, 0.1)).toEqual(['rest']);
  expect(second(5000, 0.4)).toEqual([]);
  expect(second(5000, 0.5)).toEqual(['share']);
  expect(second(5000, 0.9)).toEqual([]);
  expect(second(5000, 0.4)).toEqual(['rest']);
  for (let i = 0; i < 9; i++) expect(second(0)).toEqual([]);
  expect(second(0)).toEqual(['even']);
});

test('who may not takes a share from the start, and keeps to it', () => {
  const second = yieldingFor(false);
  expect(second(300)).toEqual([]);
  expect(second(5000, 0.1)).toEqual(['share']);
  for (let i = 0; i < 20; i++) expect(second(0)).toEqual([]);
  expect(second(5000)).toEqual([]);
});

test('asks again while it is still idle and should not be', () => {
  const second = yieldingFor(true, 1);
  expect(second(5000)).toEqual(['rest']);
  expect(second(5000, 0.6)).toEqual(['share']); // which nobody does
  expect(second(5000, 0.7)).toEqual(['share']);
  expect(second(5000, 0.8)).toEqual([]);
});
