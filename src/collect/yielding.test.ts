import { expect, test } from 'vitest';
import { calm, type Level, levelIn, type Waiting, yieldingAfter } from './yielding.ts';

const nothing: Waiting = { full: 0, oldestMs: 0, askedMs: 0 };
/** Looks again and again; what the thread should be after each. */
function looks(free: boolean, tookMs = 1000) {
  let state = calm;
  return (rate: number, waiting: Partial<Waiting> = {}): Level => {
    state = yieldingAfter(state, rate, tookMs, { ...nothing, ...waiting });
    return levelIn(state, free);
  };
}

test('recording gives way at thousands of exchanges a second and runs like any other at hundreds', () => {
  for (const [rate, level] of [
    [300, 'even'],
    [999, 'even'],
    [1000, 'rest'],
    [8000, 'rest'],
  ] as const)
    expect(looks(true)(rate)).toBe(level);
  const look = looks(true, 250);
  expect([8000, 900, 500, 499].map((rate) => look(rate))).toEqual(['rest', 'rest', 'rest', 'even']);
});

test('after a long rush it gives way for twice as long, at most ten seconds, and a burst is no rush', () => {
  const after = looks(true);
  expect([8000, 8000, 0, 0, 0, 0].map((rate) => after(rate))).toEqual(['rest', 'rest', 'rest', 'rest', 'rest', 'even']);
  const long = looks(true, 9000);
  expect([8000, 0, 0].map((rate) => long(rate))).toEqual(['rest', 'rest', 'even']);
  const burst = looks(true, 250);
  expect([8000, 0].map((rate) => burst(rate))).toEqual(['rest', 'even']);
});

test('who may not take back what it gives up takes a share in a rush, whatever waits', () => {
  const look = looks(false);
  expect(look(300)).toBe('even');
  expect(look(5000)).toBe('share');
  expect(look(5000, { full: 0.9 })).toBe('share');
});

test('it takes a share from half a queue on, what it needs from three quarters on, and gives way again at half of that', () => {
  const look = looks(true);
  const at = (full: number) => look(5000, { full });
  expect([0.4, 0.5, 0.3, 0.24].map(at)).toEqual(['rest', 'share', 'share', 'rest']);
  expect([0.8, 0.7, 0.38, 0.37, 0.2].map(at)).toEqual(['even', 'even', 'even', 'share', 'rest']);
});

test('an answer that has waited five seconds and somebody who has waited one make it take a share', () => {
  const look = looks(true);
  expect(look(5000, { oldestMs: 4999, askedMs: 999 })).toBe('rest');
  expect(look(5000, { oldestMs: 5000 })).toBe('share');
  expect(look(5000, { oldestMs: 2400 })).toBe('rest');
  expect(look(5000, { askedMs: 1000 })).toBe('share');
  expect(look(5000)).toBe('rest');
});
