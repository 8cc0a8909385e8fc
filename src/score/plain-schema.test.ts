import { expect, test } from 'vitest';
import { misfit } from './json-schema.ts';
import { nodesOfPlain, sizeOf } from './plain-schema.ts';

const tool = {
  type: 'object',
  properties: {
    pattern: { type: 'string', description: 'a property of this name is no pattern' },
    kind: { enum: ['refund', 'exchange'] },
    on: { type: 'string', format: 'date' },
    items: { type: 'array', items: { type: 'object', properties: { id: { type: 'integer' } } } },
    either: { anyOf: [{ type: 'string' }, { type: 'null' }] },
  },
  required: ['kind'],
  additionalProperties: false,
};

test('what a tool asks for is plain, and its nodes are counted', () => {
  // The object, its one required name, `false`; pattern 1, kind 1 + 5, on 1, items 3, either 3.
  expect(nodesOfPlain(tool)).toBe(1 + 1 + 1 + (1 + 6 + 1 + 3 + 3));
});

test.each([
  ['a reference', { $ref: '#/$defs/a', $defs: { a: true } }],
  ['a pattern', { properties: { a: { pattern: '^(a+)+$' } } }],
  ['patterns of names', { patternProperties: { '^(a+)+$': true } }],
  ['items compared with each other', { type: 'array', uniqueItems: true }],
  ['a format whose expression is not known', { type: 'string', format: 'email' }],
  ['a keyword that is not known', { frobnicate: 1 }],
  ['a list where one schema belongs', { not: [true] }],
  ['a tree deeper than anybody writes', Array.from({ length: 30 }).reduce((inner) => ({ not: inner }), true)],
])('%s is not', (_, schema) => {
  expect(nodesOfPlain(schema as Record<string, unknown>)).toBeNull();
});

test('a long text counts as much', () => {
  expect(sizeOf({ a: 'x'.repeat(6400), b: [1, null] })).toBe(1 + (1 + 101) + (1 + 5));
});

test('a plain schema is checked the same with a clock and without one', () => {
  const timed = { ...tool, properties: { ...tool.properties, never: { pattern: 'x' } } };
  for (const value of [
    { kind: 'refund' },
    { kind: 'no' },
    { kind: 'refund', on: '2026-13-40' },
    { kind: 'refund', x: 1 },
    7,
  ])
    expect(misfit(value, tool)).toBe(misfit(value, timed));
  expect(misfit({ kind: 'refund', on: '2026-13-40' }, tool)).toContain('on');
});
