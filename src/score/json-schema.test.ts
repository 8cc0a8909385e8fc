import { describe, expect, test } from 'vitest';
import { misfit, misfitIfKnown, schemaProblem } from './json-schema.ts';
import { OutOfTime, withinTime } from './time-limit.ts';

describe('fitting a schema', () => {
  const schema = {
    type: 'object',
    properties: {
      kind: { enum: ['refund', 'exchange'] },
      items: { type: 'array', minItems: 1, items: { $ref: '#/$defs/item' } },
      note: { type: ['string', 'null'], maxLength: 3 },
      amount: { type: 'number', minimum: 0, exclusiveMaximum: 100 },
      either: { anyOf: [{ type: 'string' }, { const: 1 }] },
    },
    required: ['kind'],
    additionalProperties: false,
    $defs: { item: { type: 'object', required: ['id'] } },
  };
  test.each([
    [{ kind: 'refund' }, null],
    [{ kind: 'refund', items: [{ id: 1 }], note: null, amount: 99.5, either: 1 }, null],
    [{}, 'Instance does not have required property "kind".'],
    [{ kind: 'steal' }, 'kind: Instance does not match any of ["refund","exchange"].'],
    [{ kind: 'refund', items: [] }, 'items: Array has too few items (0 < 1).'],
    [{ kind: 'refund', items: [{ id: 1 }, {}] }, 'items.1: Instance does not have required property "id".'],
    [{ kind: 'refund', note: 'long' }, 'note: String is too long (4 > 3).'],
    [{ kind: 'refund', other: 1 }, 'other: False boolean schema.'],
    [[], 'Instance type "array" is invalid. Expected "object".'],
  ])('%j: %s', (value, why) => {
    expect(misfit(value, schema)).toBe(why);
  });

  test.each([{ amount: 100 }, { either: 2 }])('%j does not fit', (more) => {
    expect(misfit({ kind: 'refund', ...more }, schema)).not.toBeNull();
  });

  test('is not misled by names every object has', () => {
    expect(misfit({}, { type: 'object', required: ['toString'] })).toContain('toString');
    expect(misfit({ toString: 1 }, { properties: {}, additionalProperties: false })).toContain('toString');
  });

  test('takes any value where there is no schema', () => {
    expect(misfit({ any: 1 }, undefined)).toBeNull();
    expect(misfit({ any: 1 }, false)).not.toBeNull();
  });
});

/** Each level refers twice to the next: 2⁴⁰ paths in forty lines. */
const branching = {
  $ref: '#/$defs/0',
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [
      i,
      i === 39 ? {} : { allOf: [{ $ref: `#/$defs/${i + 1}` }, { $ref: `#/$defs/${i + 1}` }] },
    ]),
  ),
};

describe('a schema that nobody should have written', () => {
  test.each([
    ['branches without end', branching, 'longer than'],
    ['refers to itself', { $ref: '#' }, 'call stack'],
    ['refers to what is not there', { properties: { a: { $ref: '#/$defs/a' } } }, '#/$defs/a leads nowhere'],
    ['refers to another site', { $ref: 'https://example.com/schema.json' }, 'leads nowhere'],
    ['has an enum that is no list', { enum: 7 }, 'not a function'],
    ['is a number', 7, 'is an object'],
  ])('%s', (_, schema, why) => {
    expect(schemaProblem(schema)).toContain(why);
    expect(misfitIfKnown({ a: 1 }, schema)).toBeNull();
  });

  test('does not keep anybody waiting with its pattern', () => {
    const schema = { properties: { a: { pattern: '^(a+)+$' } } };
    expect(schemaProblem(schema)).toBeNull();
    expect(() => misfit({ a: `${'a'.repeat(60)}!` }, schema)).toThrow(OutOfTime);
  });
});

test('work within its time is as it would be without', () => {
  expect(withinTime(1000, () => withinTime(1000, () => 1) + 1)).toBe(2);
  expect(() =>
    withinTime(1000, () => {
      throw new RangeError('its own');
    }),
  ).toThrow(RangeError);
});
