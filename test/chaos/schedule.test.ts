import { expect, it } from 'vitest';
import { faults } from './faults.ts';
import { printStep, type Step, schedule } from './schedule.ts';

const steps = (seed: number, n: number): Step[] => {
  const dealt = schedule(seed, faults);
  return Array.from({ length: n }, () => dealt.next().value);
};

it('is the same for the same seed and another for another', () => {
  expect(steps(7, 60).map(printStep)).toEqual(steps(7, 60).map(printStep));
  expect(steps(8, 60).map(printStep)).not.toEqual(steps(7, 60).map(printStep));
});

it('brings every fault once a round, in an order that changes', () => {
  const names = steps(7, 2 * faults.length).map(({ fault }) => fault.name);
  const [first, second] = [names.slice(0, faults.length), names.slice(faults.length)];
  expect(first.toSorted()).toEqual(faults.map(({ name }) => name).toSorted());
  expect(second.toSorted()).toEqual(first.toSorted());
  expect(second).not.toEqual(first);
});

it('never puts two faults together that have their hands on the same part', () => {
  const pairs = steps(7, 500).filter(({ meanwhile }) => meanwhile !== null);
  expect(pairs.length).toBeGreaterThan(50);
  for (const { fault, meanwhile } of pairs)
    expect(fault.parts.filter((part) => meanwhile!.fault.parts.includes(part))).toEqual([]);
});

it('says of every fault what it does, how it heals and what it may cost', () => {
  for (const { name, does, heals, costs } of faults)
    expect([name, does, heals, costs].every((text) => text !== '')).toBe(true);
  expect(new Set(faults.map(({ name }) => name)).size).toBe(faults.length);
});
