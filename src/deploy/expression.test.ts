import { expect, it } from 'vitest';
import { namesIn, parseExpression, valueWith } from './expression.ts';

const value = (text: string, signals: Record<string, number> = {}) => {
  const parsed = parseExpression(text);
  if ('problem' in parsed) throw new Error(parsed.problem);
  return valueWith(parsed, new Map(Object.entries(signals)));
};

it('computes as one does by hand', () => {
  const signals = { a: 2, b: 3, 'first-contact': 1 };
  expect(value('a + b * 4 - 1', signals)).toBe(13);
  expect(value('(a + b) * 4 / 2', signals)).toBe(10);
  expect(value('a - b - 1', signals)).toBe(-2);
  expect(value('-a * -b', signals)).toBe(6);
  expect(value('min(a, b, 1) + max(a, b)', signals)).toBe(4);
  expect(value('a < b and not b <= a or a = 9', signals)).toBe(1);
  expect(value('"first-contact" * .5', signals)).toBe(0.5);
  expect(value('a != 2', signals)).toBe(0);
});

it('has no value where a signal is missing or something is divided by nothing', () => {
  expect(value('a + b', { a: 1 })).toBeNull();
  expect(value('not b', { a: 1 })).toBeNull();
  expect(value('1 / a', { a: 0 })).toBeNull();
  expect(value('min(1, 1 / a)', { a: 0 })).toBeNull();
  expect(value('a', { a: Number.POSITIVE_INFINITY })).toBeNull();
});

it('names the signals it needs', () => {
  const parsed = parseExpression('feedback < 0.5 and feedback > escalated');
  expect('problem' in parsed ? [] : namesIn(parsed)).toEqual(['feedback', 'escalated']);
});

it.each([
  ['', 'a number or the name of a signal is missing at its end'],
  ['a +', 'a number or the name of a signal is missing at its end'],
  ['a b', 'a sign is missing before "b", character 3'],
  ['(a', ') is missing at its end'],
  ['min a', '( is missing before "a", character 5'],
  ['a; drop table', 'cannot be read at "; drop tab"'],
  ['a || 1', 'cannot be read at "|| 1"'],
  ['1 + 1', 'names no signal'],
  [`${'('.repeat(60)}a${')'.repeat(60)}`, 'is nested too deep: at most 20'],
  [`${'-'.repeat(60)}a`, 'is nested too deep: at most 20'],
  ['a'.repeat(501), 'has 501 characters; at most 500'],
  [Array.from({ length: 100 }, () => 'a').join('+'), 'is too long: at most 150 names, numbers and signs'],
  [Array.from({ length: 11 }, (_, i) => `a${i}`).join('+'), 'names 11 signals; at most 10'],
])('says what is wrong with %j', (text, problem) => {
  expect(parseExpression(text)).toEqual({ problem });
});

it('reads no property of what objects have by themselves', () => {
  expect(value('constructor + __proto__', {})).toBeNull();
});
