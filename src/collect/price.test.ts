import { expect, test } from 'vitest';
import { moneyOf, moneyOfAll } from './price.ts';

const price = { prompt: 0.5, completion: 2 };

test('tokens cost what a million of them costs, by part', () => {
  expect(moneyOf({ promptTokens: 1_000_000, completionTokens: 250_000 }, price)).toBe(1);
  expect(moneyOf({ promptTokens: 1_000_000, completionTokens: 250_000 }, undefined)).toBe(0);
});

test('a conversation costs what those of its upstreams took that have a price', () => {
  const of = (upstream: string) => ({ upstream, promptTokens: 2000, completionTokens: 500 });
  const upstreams = { paid: { price }, own: {} };
  expect(moneyOfAll([of('paid'), of('own')], upstreams)).toBeCloseTo(0.002, 12);
  expect(moneyOfAll([of('own'), of('import'), of('constructor')], upstreams)).toBeNull();
  expect(moneyOfAll([], upstreams)).toBeNull();
});
