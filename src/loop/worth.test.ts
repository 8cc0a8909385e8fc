import { expect, test } from 'vitest';
import { goOf, moneyOf, type WorthFacts } from './worth.ts';

const facts: WorthFacts = {
  traces: 2_500,
  golden: 150,
  turns: [
    { promoted: true, gain: 0.1, money: 80 },
    { promoted: false, gain: -0.2, money: 100 },
  ],
  judgingMoney: 20,
  conversationsPerWeek: 500,
  successWorth: 2,
  moneyPerHour: 1,
};
const go = (more: Partial<WorthFacts>) => goOf({ ...facts, ...more }, moneyOf({ ...facts, ...more }));

test('a loop that cost 200 and brings 100 a week returns six times that in twelve weeks and pays back in two', () => {
  // 0.1 more solved of 500 a week, worth 2 each: 100. What was not promoted brought nothing, and cost.
  expect(moneyOf(facts)).toEqual({ cost: 200, savedPerWeek: 100, return: 6, paybackWeeks: 2, unmeasured: [] });
});

test('what nobody said is unmeasured, with the setting that would say it', () => {
  const money = moneyOf({ ...facts, successWorth: null, moneyPerHour: null });
  expect(money).toMatchObject({ savedPerWeek: null, return: null, paybackWeeks: null });
  expect(money.unmeasured.join(' ')).toMatch(/successWorth.*moneyPerHour/);
});

test('enough conversations, enough golden cases and a return are a go', () => {
  expect(go({}).verdict).toBe('go');
  expect(go({}).checks.map(({ wayOut }) => wayOut)).toEqual([null, null, null]);
});

test('fewer than a thousand conversations, or a loss, are a no-go; between them it is not yet', () => {
  expect(go({ traces: 999 }).verdict).toBe('no-go');
  expect(go({ traces: 1_500 }).verdict).toBe('not yet');
  expect(go({ golden: null }).checks[1]).toMatchObject({
    end: 'unmeasured',
    wayOut: expect.stringContaining('golden'),
  });
  const loss = go({ turns: [{ promoted: true, gain: -0.1, money: 80 }] });
  expect(loss).toMatchObject({ verdict: 'no-go', checks: [{ end: 'pass' }, { end: 'pass' }, { end: 'fail' }] });
});

test('the phase follows what was done: a pilot, a first turn, then turn after turn', () => {
  expect(go({ turns: [], traces: 600 }).phase).toEqual({ name: 'pilot', traces: 500, money: 500, gain: 0.03 });
  expect(go({ turns: [], traces: 6_000 }).phase.name).toBe('first turn');
  expect(go({}).phase.name).toBe('continuous');
});
