import { describe, expect, test } from 'vitest';
import { chatMessages } from './chat-form.ts';
import {
  argumentsText,
  partsOf,
  readMessage,
  reasoningOf,
  textOf,
  toolCallOf,
  toolCallsOf,
  toolOf,
  toolResultOf,
} from './message.ts';
import type { Endpoint } from './turn.ts';

describe('content', () => {
  const picture = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
  test.each([
    ['a string', 'Hi', 'Hi', ['text']],
    ['nothing', null, '', []],
    ['no field at all', undefined, '', []],
    ['no parts', [], '', []],
    ['chat’s parts', [{ type: 'text', text: 'Hi' }, picture], 'Hi<image_url>', ['text', 'image_url']],
    ['parts of OpenAI’s responses', [{ type: 'output_text', text: 'Hi' }], 'Hi', ['output_text']],
    ['a bare string among parts', ['H', { type: 'text', text: 'i' }], 'Hi', ['text', 'text']],
    ['a part without a type', [{ text: 'Hi' }], 'Hi', ['']],
    ['a part whose text is none', [{ type: 'text', text: 7 }], '<text>', ['text']],
    ['what is no part', [null, 7, []], '<><><>', ['', '', '']],
    ['an object', { type: 'text', text: 'Hi' }, '<>', ['']],
  ])('%s', (_, content, text, types) => {
    expect(textOf(content, ({ type }) => `<${type}>`)).toBe(text);
    expect(partsOf(content).map(({ type }) => type)).toEqual(types);
  });

  test('a part that is no words is left out unless somebody says what stands for it', () => {
    expect(textOf(['a', picture, 'b'])).toBe('ab');
    expect(partsOf([picture])[0]?.value).toBe(picture);
  });
});

describe('a tool call', () => {
  test.each([
    [
      'chat’s',
      { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"id":7}' } },
      ['c1', 'function', 'look', '{"id":7}'],
    ],
    [
      'chat’s, with arguments as an object',
      { id: 'c1', type: 'function', function: { name: 'look', arguments: { id: 7 } } },
      ['c1', 'function', 'look', '{"id":7}'],
    ],
    [
      'chat’s custom tool',
      { id: 'c1', type: 'custom', custom: { name: 'python', input: 'x = 1' } },
      ['c1', 'custom', 'python', 'x = 1'],
    ],
    ['chat’s, without a type', { id: 'c1', function: { name: 'look', arguments: '' } }, ['c1', '', 'look', '']],
    [
      'Anthropic’s',
      { type: 'tool_use', id: 't1', name: 'look', input: { id: 7 } },
      ['t1', 'function', 'look', '{"id":7}'],
    ],
    ['Anthropic’s without input', { type: 'tool_use', id: 't1', name: 'now' }, ['t1', 'function', 'now', '{}']],
    [
      'Anthropic’s that broke off',
      { type: 'tool_use', id: 't1', name: 'look', input: '{"id":' },
      ['t1', 'function', 'look', '{"id":'],
    ],
    [
      'an item of OpenAI’s responses',
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'look', arguments: '{"id":7}' },
      ['c1', 'function', 'look', '{"id":7}'],
    ],
    [
      'an item of a custom tool',
      { type: 'custom_tool_call', call_id: 'c1', name: 'python', input: 'x = 1' },
      ['c1', 'custom', 'python', 'x = 1'],
    ],
    ['one that has nothing', {}, [null, '', null, '']],
    ['one that is none', 'call', [null, '', null, '']],
    ['one of odd values', { id: 7, type: [], function: { name: {}, arguments: null } }, [null, '', null, '']],
    ['one whose function is none', { id: 'c1', function: 'look' }, ['c1', '', null, '']],
  ])('%s', (_, value, reading) => {
    const call = toolCallOf(value);
    expect([call.id, call.type, call.name, argumentsText(call)]).toEqual(reading);
  });

  test('all of a message, the older form last and without an id', () => {
    const message = {
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'a' } }, null],
      function_call: { name: 'b', arguments: '{}' },
    };
    expect(toolCallsOf(message).map(({ id, name }) => [id, name])).toEqual([
      ['c1', 'a'],
      [null, null],
      [null, 'b'],
    ]);
    expect(toolCallsOf({ tool_calls: 'none', function_call: 'auto' })).toEqual([]);
  });
});

describe('a tool result', () => {
  const text = (words: string) => ({ type: 'text', text: words });
  const image = { type: 'image', source: { data: 'AAAA' } };
  test.each([
    ['chat’s', { role: 'tool', tool_call_id: 'c1', content: 'sent' }, 'c1', 'sent'],
    ['chat’s in parts', { role: 'tool', tool_call_id: 'c1', content: [text('se'), text('nt')] }, 'c1', 'sent'],
    ['chat’s as an object', { role: 'tool', tool_call_id: 'c1', content: { sent: 1 } }, 'c1', '{"sent":1}'],
    ['chat’s without a word', { role: 'tool', tool_call_id: 'c1' }, 'c1', ''],
    ['Anthropic’s', { type: 'tool_result', tool_use_id: 't1', content: 'sent' }, 't1', 'sent'],
    ['Anthropic’s in blocks', { type: 'tool_result', tool_use_id: 't1', content: [text('sent'), image] }, 't1', 'sent'],
    [
      'a picture alone',
      { type: 'tool_result', tool_use_id: 't1', content: [image] },
      't1',
      '[{"type":"image","source":{"data":"AAAA"}}]',
    ],
    ['an error', { type: 'tool_result', tool_use_id: 't1', content: 'gone', is_error: true }, 't1', 'Error: gone'],
    ['an error that says so', { type: 'tool_result', content: 'error: gone', is_error: true }, null, 'error: gone'],
    ['an item', { type: 'function_call_output', call_id: 'c1', output: 'sent' }, 'c1', 'sent'],
    ['an item in parts', { type: 'function_call_output', call_id: 'c1', output: [text('sent')] }, 'c1', 'sent'],
    ['of a custom tool', { type: 'custom_tool_call_output', call_id: 'c1', output: '1' }, 'c1', '1'],
    ['of a computer', { type: 'computer_call_output', call_id: 'c1', output: { image: 'u' } }, 'c1', '{"image":"u"}'],
  ])('%s', (_, value, id, said) => {
    expect(toolResultOf(value)).toEqual({ id, text: said });
  });

  test.each([null, 7, 'tool', [], {}, { role: 'user', content: 'sent' }, { type: 'text', text: 'sent' }])(
    'is not %j',
    (value) => {
      expect(toolResultOf(value)).toBeNull();
    },
  );
});

test.each([
  ['vLLM’s and DeepSeek’s name', { reasoning_content: 'Hm.' }],
  ['OpenRouter’s name', { reasoning: 'Hm.', reasoning_details: [] }],
  ['Ollama’s name', { thinking: 'Hm.' }],
  ['Anthropic’s block', { type: 'thinking', thinking: 'Hm.', signature: 'x' }],
  ['an item', { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Hm.' }], summary: [] }],
  ['an item with a summary alone', { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] }],
])('reasoning under %s', (_, value) => {
  expect(reasoningOf(value)).toBe('Hm.');
});

const parameters = { type: 'object', properties: {} };
test.each([
  ['chat', { type: 'function', function: { name: 'look', description: 'Looks.', parameters } }, 'function'],
  ['OpenAI’s responses', { type: 'function', name: 'look', description: 'Looks.', parameters }, 'function'],
  ['Anthropic', { name: 'look', description: 'Looks.', input_schema: parameters }, ''],
  ['the older `functions`', { name: 'look', description: 'Looks.', parameters }, ''],
])('a tool as %s offers it', (_, value, type) => {
  expect(toolOf(value)).toEqual({ type, name: 'look', description: 'Looks.', parameters });
});

describe('a message', () => {
  const call = { id: 'c1', type: 'function', name: 'look', arguments: '{"id":7}' };
  const spoken = [
    ['user', 'Where is 7?', []],
    ['assistant', 'Let me look.', [call]],
    ['tool', 'sent', []],
  ];
  const shapes: [string, Endpoint, Record<string, unknown>][] = [
    [
      'chat’s',
      'chat',
      {
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'Where is 7?' }] },
          {
            role: 'assistant',
            content: 'Let me look.',
            reasoning_content: 'Hm.',
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"id":7}' } }],
          },
          { role: 'tool', tool_call_id: 'c1', content: 'sent' },
        ],
      },
    ],
    [
      'Anthropic’s',
      'messages',
      {
        messages: [
          { role: 'user', content: 'Where is 7?' },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'Hm.', signature: 'x' },
              { type: 'text', text: 'Let me look.' },
              { type: 'tool_use', id: 'c1', name: 'look', input: { id: 7 } },
            ],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'sent' }] },
        ],
      },
    ],
    [
      'OpenAI’s responses’',
      'responses',
      {
        input: [
          { role: 'user', content: [{ type: 'input_text', text: 'Where is 7?' }] },
          { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] },
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Let me look.' }] },
          { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"id":7}' },
          { type: 'function_call_output', call_id: 'c1', output: 'sent' },
        ],
      },
    ],
  ];
  test.each(shapes)('says the same in %s form', (_, endpoint, request) => {
    const messages = (chatMessages({ endpoint, request }) as unknown[]).map(readMessage);
    expect(
      messages.map(({ role, parts, toolCalls }) => [role, parts.map(({ text }) => text).join(''), toolCalls]),
    ).toEqual(spoken);
    expect(messages.map(({ reasoning, toolCallId }) => reasoning || toolCallId)).toEqual([null, 'Hm.', 'c1']);
  });

  test('refuses in a field of its own or in a part', () => {
    expect(readMessage({ role: 'assistant', content: null, refusal: 'No.' }).refusal).toBe('No.');
    const parts = [{ type: 'refusal', refusal: 'No.' }];
    expect(readMessage({ role: 'assistant', content: parts, refusal: null }).refusal).toBe('No.');
  });

  test.each([null, undefined, 7, 'x', [], [null], {}, { role: 3, content: 7, tool_calls: {}, name: [] }])(
    'is read from %j as one that says nothing',
    (value) => {
      const { role, reasoning, refusal, toolCalls, toolCallId, name } = readMessage(value);
      expect([role, reasoning, refusal, toolCalls, toolCallId, name]).toEqual(['', '', '', [], null, null]);
    },
  );
});
