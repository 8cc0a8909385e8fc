import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import type { Environment } from '../simulate/environment.ts';
import { limits, parseSuite, readSuite } from './read-suite.ts';

const line = (more: object = {}) =>
  JSON.stringify({
    id: 'a',
    type: 'refund',
    messages: [{ role: 'user', content: 'Money back.' }],
    expect: { contains: 'refund' },
    ...more,
  });
const parse = (...lines: string[]) => parseSuite('/suites/golden.jsonl', lines.join('\n'), 'desk', null);

const world = {
  name: 'tokens',
  types: { low: () => ({ token: 1 }) },
  data: z.strictObject({ token: z.int() }),
} as unknown as Environment<{ token: number }, null>;
const task = (id: string, more: object = {}) =>
  JSON.stringify({ id, type: 'low', split: 'golden', seed: 1, data: { token: 1 }, ...more });

describe('a suite of cases', () => {
  it('is one case a line, named after its file and known by its content', () => {
    const suite = parse(line(), '', line({ id: 'b', type: 'status' }), '');
    expect(suite).toMatchObject({ kind: 'cases', name: 'golden', cases: [{ id: 'a' }, { id: 'b', type: 'status' }] });
    expect(suite.hash).toBe(
      parseSuite('other.jsonl', [line(), line({ id: 'b', type: 'status' })].join('\n'), 'x', null).hash,
    );
    expect(suite.hash).not.toBe(parse(line(), line({ id: 'b' })).hash);
  });

  test.each([
    ['JSON that is none', [line(), '{"id": '], 'line 2: is no JSON object'],
    ['an id twice', [line(), '', line()], 'line 3: has the id a of line 1; ids must differ'],
    ['a field nobody knows', [line({ expected: {} })], 'line 1: the whole: Unrecognized key: "expected"'],
    ['a grader nobody knows', [line({ expect: { similar: 'x' } })], 'Unrecognized key: "similar"'],
    ['no expectation', [line({ expect: {} })], 'expect: expects nothing; give at least one of equals, contains'],
    ['an expression that is none', [line({ expect: { matches: '(' } })], 'is no regular expression'],
    ['a schema that leads nowhere', [line({ expect: { schema: { $ref: '#/a' } } })], 'leads nowhere'],
    ['a task among cases', [line(), task('t')], 'line 2: is a task, where line 1 is a case'],
    ['tasks without an environment', [task('t')], 'agent desk has none; set `environment`'],
    ['a line that is too long', [line({ id: 'x'.repeat(limits.lineCharacters) })], 'at most 1048576 are read'],
    ['nothing', [' ', ''], 'is empty'],
  ])('is refused for %s, with the line', (_, lines, why) => {
    expect(() => parse(...lines)).toThrow(why);
  });

  it('says everything that is wrong at once, within reason', () => {
    const bad = Array.from({ length: 15 }, (_, i) => line({ id: `c${i}`, expect: {} }));
    expect(() => parse(...bad)).toThrow(/line 1:.*line 10:.*and 5 more/s);
  });

  it('has an end', () => {
    expect(() => parse(...Array.from({ length: limits.lines + 1 }, (_, i) => line({ id: `c${i}` })))).toThrow('10000');
  });
});

describe('a suite of tasks', () => {
  it('is played in the agent’s environment', () => {
    const suite = parseSuite('golden.jsonl', [task('t1'), task('t2')].join('\n'), 'desk', world);
    expect(suite).toMatchObject({ kind: 'tasks', tasks: [{ id: 't1' }, { id: 't2' }] });
  });

  test.each([
    ['a case among tasks', [task('t'), line()], 'line 2: is a case, where line 1 is a task'],
    ['other data', [task('t', { data: {} })], 'line 1: data.token'],
    ['a type it does not know', [task('t', { type: 'odd' })], "has type 'odd'"],
    ['a task that is trained on', [task('t', { split: 'train' })], 'line 1: is from the train split'],
  ])('is refused for %s', (_, lines, why) => {
    expect(() => parseSuite('golden.jsonl', lines.join('\n'), 'desk', world)).toThrow(why);
  });
});

test('a file that is not there is named', async () => {
  await expect(readSuite('/nowhere/golden.jsonl', 'desk', null)).rejects.toThrow(
    'There is no suite /nowhere/golden.jsonl: no such file.',
  );
});
