import { expect, it } from 'vitest';
import { Budget } from './budget.ts';

it('lets in as many requests as there are places, and takes none back twice', () => {
  const budget = new Budget(100, 2);
  const [first, second] = [budget.enter()!, budget.enter()!];
  expect(budget.enter()).toBeNull();
  first.leave();
  first.leave();
  expect(budget.taken).toBe(1);
  expect(budget.enter()).not.toBeNull();
  expect(budget.enter()).toBeNull();
  second.leave();
});

it('bounds what all requests hold together, and forgets what a request held', () => {
  const budget = new Budget(100, 10);
  const [one, other] = [budget.enter()!, budget.enter()!];
  expect(one.take(60)).toBe(true);
  expect(other.fits(40)).toBe(true);
  expect(other.fits(41)).toBe(false);
  expect(other.take(41)).toBe(false);
  one.leave();
  expect(one.take(1)).toBe(false); // what comes late is not counted for anybody
  expect(other.take(100)).toBe(true);
  other.leave();
  expect(budget.used).toBe(0);
});

it('keeps copies of answers in half of it, so that recording turns no caller away', () => {
  const budget = new Budget(100, 10);
  const claim = budget.enter()!;
  expect(claim.keep(50)).toBe(true);
  expect(claim.keep(1)).toBe(false);
  expect(claim.take(50)).toBe(true);
});
