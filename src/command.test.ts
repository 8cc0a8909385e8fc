import { expect, test } from 'vitest';
import { explain, parseMoment, wholeNumber } from './command.ts';
import { ConfigError } from './errors.ts';

test('a moment is how long ago, a day, or a time', () => {
  const now = Date.UTC(2026, 0, 31, 12);
  const at = (text: string) => parseMoment(text, now).toISOString();
  expect(at('90m')).toBe('2026-01-31T10:30:00.000Z');
  expect(at('2h')).toBe('2026-01-31T10:00:00.000Z');
  expect(at('3d')).toBe('2026-01-28T12:00:00.000Z');
  expect(at('999999w')).toBe('2000-01-01T00:00:00.000Z'); // as far back as anything goes
  expect(at('2026-01-30')).toBe('2026-01-30T00:00:00.000Z');
  expect(at('2026-01-30T08:00:00+01:00')).toBe('2026-01-30T07:00:00.000Z');
  for (const wrong of ['soon', '2', 'h', '-2h', '2026-13-01', ''])
    expect(() => parseMoment(wrong, now)).toThrow(/2h or 3d/);
});

test('a number outside its bounds is refused with the bounds', () => {
  expect(wholeNumber(1, 200)('200')).toBe(200);
  for (const wrong of ['0', '201', '1.5', 'x', '']) expect(() => wholeNumber(1, 200)(wrong)).toThrow(/from 1 to 200/);
});

test('an error is its sentence; the stack is only for those who debug', () => {
  expect(explain(new ConfigError('No such port.'), false)).toBe('No such port.');
  expect(explain(new Error('odd'), false)).toMatch(/^odd\n`pawl doctor`/);
  expect(explain(new Error('odd'), true)).toMatch(/\n\s+at /);
  expect(explain(new Error('\u001b[2J'), false)).not.toContain('\u001b');
});
