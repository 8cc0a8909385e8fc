import { describe, expect, test } from 'vitest';
import { createOutputParser, type OutputPart } from './tool-calls.ts';

/** Parts of the same kind joined, as a client joins them. */
function joined(parts: OutputPart[]): OutputPart[] {
  const result: OutputPart[] = [];
  for (const part of parts) {
    const last = result.at(-1);
    if (part.kind !== 'tool_call' && last?.kind === part.kind)
      result[result.length - 1] = { ...part, text: last.text + part.text };
    else result.push(part);
  }
  return result;
}

function parse(
  text: string,
  options: { tools?: boolean; inReasoning?: boolean; bareCalls?: boolean; step?: number } = {},
) {
  const parser = createOutputParser({ tools: true, ...options });
  const parts: OutputPart[] = [];
  const step = options.step ?? text.length;
  for (let i = 0; i < text.length; i += step) parts.push(...parser.push(text.slice(i, i + step)));
  parts.push(...parser.end());
  return { parts: joined(parts), malformed: parser.malformed };
}

const content = (text: string): OutputPart => ({ kind: 'content', text });
const reasoning = (text: string): OutputPart => ({ kind: 'reasoning', text });
const call = (name: string, args: object): OutputPart => ({ kind: 'tool_call', name, arguments: JSON.stringify(args) });

const find = '<tool_call>\n{"name": "find", "arguments": {"id": "12"}}\n</tool_call>';

describe.each([1, 2, 7, 1000])('in pieces of %i characters', (step) => {
  test.each<[string, string, OutputPart[], number]>([
    ['plain text comes through unchanged', ' Hello,\n\n< world > \n', [content(' Hello,\n\n< world > \n')], 0],
    ['a call', find, [call('find', { id: '12' })], 0],
    [
      'text, then two calls',
      `Let me look.\n${find}\n${find}`,
      [content('Let me look.'), call('find', { id: '12' }), call('find', { id: '12' })],
      0,
    ],
    ['text after a call', `${find}\nDone.`, [call('find', { id: '12' }), content('Done.')], 0],
    [
      'reasoning, then an answer',
      '<think>\nHm, a < b.\n</think>\n\nYes.',
      [reasoning('Hm, a < b.'), content('Yes.')],
      0,
    ],
    [
      'reasoning, then a call',
      `<think>\nLook it up.\n</think>\n\n${find}`,
      [reasoning('Look it up.'), call('find', { id: '12' })],
      0,
    ],
    ['empty reasoning leaves nothing', '<think>\n\n</think>\n\nYes.', [content('Yes.')], 0],
    ['reasoning that never ends', '<think>\nand then', [reasoning('and then')], 0],
    ['<think> in the middle of an answer is text', 'Write <think> first.', [content('Write <think> first.')], 0],
    ['a tag cut off at the end is text', 'a <tool_ca', [content('a <tool_ca')], 0],
    [
      'broken JSON stays as it was and is counted',
      '<tool_call>{"name": "find",</tool_call>',
      [content('<tool_call>{"name": "find",</tool_call>')],
      1,
    ],
    [
      'a call without arguments is malformed',
      '<tool_call>{"name": "find"}</tool_call>',
      [content('<tool_call>{"name": "find"}</tool_call>')],
      1,
    ],
    [
      'arguments that are no object are malformed',
      '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
      [content('<tool_call>{"name": "f", "arguments": [1]}</tool_call>')],
      1,
    ],
    [
      'a good call after a broken one',
      `<tool_call>{</tool_call>\n${find}`,
      [content('<tool_call>{</tool_call>'), call('find', { id: '12' })],
      1,
    ],
    [
      'a call that was cut off is malformed',
      'Ok.\n<tool_call>{"name": "fi',
      [content('Ok.<tool_call>{"name": "fi')],
      1,
    ],
    ['a whole call with no closing tag counts', '<tool_call>{"name": "f", "arguments": {}}', [call('f', {})], 0],
    [
      'braces and tags inside strings do not confuse',
      '<tool_call>{"name": "f", "arguments": {"a": "}<think>"}}</tool_call>',
      [call('f', { a: '}<think>' })],
      0,
    ],
    [
      '__proto__ as an argument is data',
      '<tool_call>{"name": "f", "arguments": {"__proto__": 1}}</tool_call>',
      [{ kind: 'tool_call', name: 'f', arguments: '{"__proto__":1}' }],
      0,
    ],
  ])('%s', (_, text, parts, malformed) => {
    expect(parse(text, { step })).toEqual({ parts, malformed });
  });
});

test('without tools a call is content', () => {
  expect(parse(find, { tools: false }).parts).toEqual([content(find)]);
});

test('a prompt that opened <think> makes the first words reasoning', () => {
  expect(parse('\nwell\n</think>\n\nYes.', { inReasoning: true }).parts).toEqual([reasoning('well'), content('Yes.')]);
});

test('text that cannot become a tag comes out at once', () => {
  const parser = createOutputParser({ tools: true });
  expect(parser.push('Hello')).toEqual([content('Hello')]);
  expect(parser.push(' <to')).toEqual([]);
  expect(parser.push('day>')).toEqual([content(' <today>')]);
});

describe.each([1, 5, 1000])('where calls come without tags, in pieces of %i characters,', (step) => {
  test.each<[string, string, OutputPart[], number]>([
    ['an answer that is a call', '{"name": "find", "parameters": {"id": "12"}}', [call('find', { id: '12' })], 0],
    ['space around it is layout', '\n {"name": "find", "arguments": {}}\n', [call('find', {})], 0],
    ['a call that breaks off', '{"name": "find", "param', [content('{"name": "find", "param')], 1],
    ['other JSON is an answer', '{"state": "sent"}', [content('{"state": "sent"}')], 0],
    [
      'a brace further on is text',
      'Use {"name": "f", "parameters": {}}',
      [content('Use {"name": "f", "parameters": {}}')],
      0,
    ],
    [
      'a call after reasoning',
      '<think>\nHm.\n</think>\n\n{"name": "find", "parameters": {}}',
      [reasoning('Hm.'), call('find', {})],
      0,
    ],
  ])('%s', (_, text, parts, malformed) => {
    expect(parse(text, { bareCalls: true, step })).toEqual({ parts, malformed });
  });

  test('and without tools they are text', () => {
    const text = '{"name": "find", "parameters": {}}';
    expect(parse(text, { bareCalls: true, tools: false, step }).parts).toEqual([content(text)]);
  });
});

test('a list between the tags is that many calls, or none', () => {
  const list = (more: string) => `<tool_call>[{"name": "a", "arguments": {}}, ${more}]</tool_call>`;
  expect(parse(list('{"name": "b", "arguments": {"x": 1}}'))).toEqual({
    parts: [call('a', {}), call('b', { x: 1 })],
    malformed: 0,
  });
  expect(parse(list('5'))).toEqual({ parts: [content(list('5'))], malformed: 1 });
  expect(parse('<tool_call>[]</tool_call>').malformed).toBe(1);
});

/** Processor time in ms of reading so many tokens; short runs say more about the machine. */
function timeOf(before: string, token: string, count: number): number {
  const parser = createOutputParser({ tools: true });
  const started = process.cpuUsage();
  parser.push(before);
  for (let i = 0; i < count; i++) parser.push(token);
  parser.end();
  const { user, system } = process.cpuUsage(started);
  return Math.max(4, (user + system) / 1000);
}

test.each([
  ['white space', '', ' '],
  ['white space where a thought begins', '<think>', '\n'],
  ['a call that does not end', '<tool_call>', '</tool_cal'],
])('%s takes time in proportion to its length', (_, before, token) => {
  const [few, many] = [2_000, 16_000].map((count) =>
    Math.min(timeOf(before, token, count), timeOf(before, token, count)),
  );
  expect(many! / few!).toBeLessThan(24); // 8 in proportion, 64 where every token has all of it looked through again
});
