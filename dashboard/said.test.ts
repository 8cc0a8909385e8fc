import { expect, test } from 'vitest';
import { newIn, saidBy, shownTo } from './said.ts';

const nothing = { text: '', reasoning: '', calls: [], other: [] };

test('words, reasoning and calls are found in each wire format', () => {
  const call = { id: 'c', type: 'function', function: { name: 'find', arguments: '{"order":7}' } };
  const calls = [{ name: 'find', input: { order: 7 } }];
  expect(saidBy({ role: 'assistant', content: null, tool_calls: [call], reasoning_content: 'Hm.' })).toEqual({
    ...{ ...nothing, role: 'assistant', reasoning: 'Hm.', calls },
  });
  const blocks = [
    { type: 'thinking', thinking: 'Hm.' },
    { type: 'text', text: 'I look.' },
    { type: 'tool_use', name: 'find', input: { order: 7 } },
  ];
  expect(saidBy({ role: 'assistant', content: blocks })).toEqual({
    ...{ ...nothing, role: 'assistant', text: 'I look.', reasoning: 'Hm.', calls },
  });
  expect(saidBy({ role: 'user', content: [{ type: 'tool_result', content: 'shipped' }] })).toMatchObject({
    ...{ role: 'tool', text: 'shipped' },
  });
  expect(saidBy({ type: 'function_call', name: 'find', arguments: '{"order":7}' })).toMatchObject({ calls });
  expect(saidBy({ type: 'function_call_output', output: 'shipped' })).toMatchObject({ role: 'tool', text: 'shipped' });
});

test('what nobody knows is handed on as it is', () => {
  const picture = { type: 'image_url', image_url: { url: 'data:,' } };
  expect(saidBy({ role: 'user', content: [picture] }).other).toEqual([picture]);
  expect(saidBy(7).other).toEqual([7]);
  const odd = { function: { name: 'find', arguments: 'no JSON' } };
  expect(saidBy({ role: 'assistant', tool_calls: [odd] }).calls).toEqual([{ name: 'find', input: 'no JSON' }]);
});

test('instructions come first, whatever the format calls them', () => {
  const said = { role: 'user', content: 'Hello' };
  expect(shownTo({ system: 'Be kind.', messages: [said] })).toEqual([{ role: 'system', content: 'Be kind.' }, said]);
  expect(shownTo({ instructions: 'Be kind.', input: 'Hello' })).toHaveLength(2);
  expect(shownTo({ prompt: 'Hello' })).toEqual([said]);
  expect(shownTo(null)).toEqual([]);
});

test('of a turn only what the turn before had neither shown nor said is new', () => {
  const [question, more] = [
    { role: 'user', content: 'Where?' },
    { role: 'user', content: 'And when?' },
  ];
  const answer = { role: 'assistant', content: 'Here.' };
  const before = { request: { messages: [question] }, answer: { ...answer, reasoning_content: 'left out by agents' } };
  expect(newIn({ messages: [question, answer, more] }, before)).toEqual({ known: 2, fresh: [more] });
  expect(newIn({ messages: [more] }, before)).toEqual({ known: 0, fresh: [more] });
  expect(newIn({ messages: [question] }, null)).toEqual({ known: 0, fresh: [question] });
});
