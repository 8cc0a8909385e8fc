import { describe, expect, test } from 'vitest';
import { boundedPattern } from './bounded-pattern.ts';
import { redact } from './redact.ts';
import { createRules } from './rules.ts';
import { piiSettings } from './settings.ts';

const clean = (text: string, given: object) =>
  redact(text, {}, { rules: createRules({ settings: piiSettings.parse(given), key: 'k' }) });

describe('recognizers of the settings', () => {
  test('are raised by words nearby, and checked by a validator', () => {
    const recognizers = [
      { kind: 'employee', pattern: 'E\\d{6}', score: 0.4, context: ['staff'] },
      { kind: 'loyalty', pattern: '\\d{4}/\\d{4}', validator: 'luhn' },
    ];
    expect(clean('E123456', { recognizers })).toBe('E123456');
    expect(clean('staff member E123456', { recognizers })).toBe('staff member [EMPLOYEE_1]');
    expect(clean('points 1234/5674 not 1234/5675', { recognizers })).toBe('points [LOYALTY_1] not 1234/5675');
  });

  test.each([
    ['\\d+', /upper bound/],
    ['(a{1,5}){1,5}', /itself repeats/],
    ['(a)\\1', /refers back/],
    ['a{0,99}b{0,99}c{0,99}', /too many ways/],
    ['(', /not a regular/],
  ])('%s is refused', (pattern, why) => {
    expect(boundedPattern(pattern)).toMatch(why);
    expect(() => piiSettings.parse({ recognizers: [{ kind: 'own', pattern }] })).toThrow(why);
  });

  test.each(['\\d{4}-?\\d{4}', '(?:AB|CD)[a-z+*]{2,8}\\*', 'E\\d{6}(?!\\d)'])('%s is taken', (pattern) => {
    expect(boundedPattern(pattern)).toBeNull();
  });
});

describe('policies', () => {
  test('hash is the same in every conversation, and another under another key', () => {
    const hashed = clean('bob@example.com', { policy: { email: 'hash' } });
    expect(hashed).toMatch(/^\[EMAIL_h[a-z0-9]{12}\]$/);
    expect(clean('amy@example.com BOB@example.com', { policy: { email: 'hash' } }).endsWith(hashed)).toBe(true);
    const rules = createRules({ settings: piiSettings.parse({ policy: { email: 'hash' } }), key: 'other' });
    expect(redact('bob@example.com', {}, { rules })).not.toBe(hashed);
  });

  test('drop lets nothing through, and resident numbers can be kept by no policy', () => {
    expect(() => clean('bob@example.com', { policy: { email: 'drop' } })).toThrow(/drops/);
    expect(() => piiSettings.parse({ policy: { 'kr-rrn': 'mask' } })).toThrow(/never or drop/);
  });
});
