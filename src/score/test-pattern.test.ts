import { expect, it } from 'vitest';
import { testPattern } from './test-pattern.ts';
import { OutOfTime } from './time-limit.ts';

it('says what the expression says, with a clock beside it or without', () => {
  for (const [pattern, yes, no] of [
    [/order \d+/i, 'Order 17', 'order seventeen'],
    [/^(yes|no)$/, 'no', 'none'],
    [/\(\d{3}\) \d{4}/, '(030) 1234', '030 1234'],
    [/[*+?]{2}/, 'a*+b', 'a*b'],
    [/(a)\1/, 'aa', 'ab'],
    [/a(?=b)/, 'ab', 'ba'],
  ] as const)
    for (const rest of ['', ' '.repeat(5000)])
      expect([pattern.source, testPattern(pattern, yes, 200), testPattern(pattern, `${rest}${no}`, 200)]).toEqual([
        ...[pattern.source, true, false],
      ]);
});

it('stops an expression that never ends, however short the text and however it hides', () => {
  const text = `${'a'.repeat(40)}!`;
  for (const pattern of [/(a+)+$/, /(a|a)*$/, /(?:a|aa){2,}$/, /a*a*a*a*a*a*a*a*a*a*b/, /(a?){40}a{40}$/, /([a])+\1+$/])
    for (const given of [text, text.repeat(200)])
      try {
        testPattern(pattern, given, 50);
      } catch (error) {
        expect(error).toBeInstanceOf(OutOfTime);
      }
  expect(() => testPattern(/(a+)+$/, text, 50)).toThrow(OutOfTime);
});
