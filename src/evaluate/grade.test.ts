import { describe, expect, it, test } from 'vitest';
import { deskReward } from '../score/fixtures.ts';
import { OutOfTime } from '../score/time-limit.ts';
import { weighted } from '../score/weighted.ts';
import type { AssistantMessage } from '../simulate/message.ts';
import { turn } from '../store/fixtures.ts';
import { expectSchema, grade } from './grade.ts';

const lookup = {
  id: 'c1',
  type: 'function',
  function: { name: 'lookup', arguments: '{"order":"4711","deep":{"a":1,"b":[1,2]}}' },
} as const;
const tools = [
  {
    type: 'function',
    function: { name: 'lookup', parameters: { type: 'object', properties: { order: { type: 'string' } } } },
  },
];

function played(message: AssistantMessage) {
  const choices = [{ index: 0, message, finishReason: 'stop' }];
  return { message, turn: turn({ request: { tools }, choices }), reward: deskReward };
}
const said = (content: string) => played({ role: 'assistant', content });
const called = () => played({ role: 'assistant', content: null, tool_calls: [lookup] });

describe('an expectation holds', () => {
  test.each([
    [{ equals: 'Yes.' }, said(' Yes.\n')],
    [{ contains: 'refund' }, said('A refund is on its way.')],
    [{ contains: ['refund', 'way'] }, said('A refund is on its way.')],
    [{ matches: '^A ref' }, said('A refund.')],
    [{ matches: { pattern: '^a REF', flags: 'i' } }, said('A refund.')],
    [{ schema: { $ref: '#/$defs/o', $defs: { o: { type: 'object', required: ['ok'] } } } }, said('{"ok": true}')],
    [{ tool: { name: 'lookup' } }, called()],
    [{ tool: { name: 'lookup', arguments: { order: '4711' } } }, called()],
    [{ tool: [{ name: 'lookup', arguments: { deep: { b: [1, 2] } } }, { name: 'lookup' }] }, called()],
    [{ score: { part: 'tools', min: 1 } }, called()],
    [{ score: { min: 0.9 } }, called()],
    [{ contains: 'a', matches: 'b', equals: 'ab' }, said('ab')],
  ])('%j', async (expected, answer) => {
    expect(await grade(expectSchema.parse(expected), answer)).toEqual([]);
  });
});

describe('an expectation does not hold, and says why', () => {
  test.each([
    [{ equals: 'yes' }, said('Yes'), 'equals: The answer is "Yes", not "yes".'],
    [{ contains: ['refund', 'sorry'] }, said('refund'), 'contains: The answer does not contain "sorry".'],
    [{ matches: '^x' }, said('y'), 'matches: The answer "y" does not match /^x/.'],
    [{ schema: { type: 'object' } }, said('Sure: {}'), 'schema: The answer "Sure: {}" is not JSON.'],
    [{ schema: { required: ['ok'] } }, said('{}'), 'required property "ok"'],
    [
      { tool: { name: 'lookup', arguments: { order: '1' } } },
      called(),
      'does not call lookup({"order":"1"}); it calls',
    ],
    [{ tool: { name: 'lookup', arguments: { deep: { b: [1] } } } }, called(), 'does not call lookup'],
    [{ tool: { name: 'refund' } }, said('Done.'), 'tool: The answer does not call refund(); it calls no tool.'],
    [{ score: { part: 'tools', min: 0.5 } }, said('Done.'), 'part tools could not be measured: no tool calls.'],
  ])('%j', async (expected, answer, why) => {
    const reasons = await grade(expectSchema.parse(expected), answer);
    expect(reasons).toHaveLength(1);
    expect(reasons[0]).toContain(why);
  });

  it('each on its own', async () => {
    expect(await grade({ contains: 'a', equals: 'b', matches: 'c' }, said('a'))).toHaveLength(2);
  });
});

describe('an expectation that cannot be told is no verdict on the answer', () => {
  it('because its expression never ends', async () => {
    const answer = said(`${'a'.repeat(60)}!`);
    await expect(grade({ matches: '^(a+)+$' }, answer)).rejects.toThrow(OutOfTime);
  });

  it('because its scorer is down, or not there', async () => {
    const score = async () => {
      throw new Error('The judge is down.');
    };
    const judge = { name: 'judge', version: '1', score: score as never };
    const reward = weighted({ judge: [1, judge] });
    await expect(grade({ score: { part: 'judge', min: 0.5 } }, { ...said('x'), reward })).rejects.toThrow('is down');
    await expect(grade({ score: { min: 0.5 } }, { ...said('x'), reward })).rejects.toThrow('is down');
    await expect(grade({ score: { part: 'tone', min: 0.5 } }, said('x'))).rejects.toThrow('no part tone');
  });
});

test('scorers may take their time', async () => {
  const score = (async () => ({ value: 0.75, reason: 'so-so', turns: new Map() })) as never;
  const reward = weighted({ judge: [1, { name: 'judge', version: '1', score }] });
  expect(await grade({ score: { part: 'judge', min: 0.7 } }, { ...said('x'), reward })).toEqual([]);
  expect(await grade({ score: { part: 'judge', min: 0.8 } }, { ...said('x'), reward })).toEqual([
    'score: The reward’s part judge is 0.75, below 0.8: so-so.',
  ]);
});
