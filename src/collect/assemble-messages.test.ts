import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { assemble } from './assemble.ts';
import { chatMessages } from './chat-form.ts';
import type { Exchange } from './exchange.ts';
import { bytes, exchange } from './fixtures/exchange.ts';

const wire = readFileSync(new URL('./fixtures/messages-tools.sse', import.meta.url));
const assembled = (answer: Uint8Array | object, fields: Partial<Exchange> = {}) =>
  assemble(
    exchange({
      endpoint: 'messages',
      stream: answer instanceof Uint8Array,
      responseChunks: [answer instanceof Uint8Array ? answer : bytes(JSON.stringify(answer))],
      ...fields,
    }),
  );

const whole = {
  role: 'assistant',
  content: 'Let me look, Zoë.',
  reasoning_content: 'The order must be looked up.',
  tool_calls: [{ id: 'toolu_01', type: 'function', function: { name: 'find_order', arguments: '{"order":"A-17"}' } }],
};

describe('an answer in Anthropic’s form', () => {
  test('is joined from its stream, with thinking, tool calls and all tokens', () => {
    const turn = assembled(wire);
    expect(turn.status).toBe('ok');
    expect(turn.model).toBe('claude-opus-4-7');
    expect(turn.choices).toEqual([{ index: 0, finishReason: 'tool_calls', message: whole }]);
    // 12 new and 460 cached ones
    expect([turn.promptTokens, turn.completionTokens]).toEqual([472, 89]);
  });

  test('is the same however the bytes were cut into chunks', () => {
    const turn = JSON.stringify(assembled(wire).choices);
    for (let at = 1; at < wire.length; at++)
      expect(
        JSON.stringify(assembled(wire, { responseChunks: [wire.subarray(0, at), wire.subarray(at)] }).choices),
      ).toBe(turn);
  });

  test('that broke off says so and keeps what came', () => {
    const cut = assembled(wire.subarray(0, wire.indexOf('17\\"}')));
    expect(cut).toMatchObject({ status: 'truncated', error: 'The stream ended without message_stop.' });
    expect(cut.choices[0]?.finishReason).toBeNull();
    expect(cut.choices[0]?.message).toMatchObject({
      content: 'Let me look, Zoë.',
      tool_calls: [{ function: { name: 'find_order', arguments: '{"order": "A-' } }],
    });
  });

  test('is read whole, with what chat has no place for kept beside it', () => {
    const turn = assembled({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
        { type: 'text', text: 'Found it.' },
      ],
      stop_reason: 'max_tokens',
      usage: { input_tokens: 3, output_tokens: 4 },
    });
    expect(turn).toMatchObject({ status: 'ok', promptTokens: 3, completionTokens: 4 });
    expect(turn.choices[0]).toMatchObject({
      finishReason: 'length',
      message: { content: 'Found it.', blocks: [{ type: 'server_tool_use' }] },
    });
  });

  test('that ends for a reason nobody knows keeps it as it is', () => {
    const reason = (stop_reason: string) =>
      assembled({ type: 'message', model: 'claude', content: [], stop_reason, usage: {} }).choices[0]?.finishReason;
    expect(['pause_turn', 'constructor'].map(reason)).toEqual(['pause_turn', 'constructor']);
  });

  test('that is an error is one, in JSON and in a stream', () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    expect(assembled(error, { httpStatus: 529 })).toMatchObject({ status: 'error', error: 'Overloaded', choices: [] });
    const event = bytes(`event: error\ndata: ${JSON.stringify(error)}\n\n`);
    expect(assembled(event)).toMatchObject({ status: 'error', error: 'Overloaded' });
  });

  test('of blocks beyond any reason is cut and said to be', () => {
    const event = { type: 'content_block_start', index: 1e9, content_block: { type: 'text', text: 'x' } };
    expect(assembled(bytes(`data: ${JSON.stringify(event)}\n\n`)).error).toMatch(/not recorded/);
    const strange = ['null', '[]', '{"type":"content_block_delta","index":"x","delta":7}', '{"type":"message_delta"}'];
    expect(() => assembled(bytes(strange.map((data) => `data: ${data}\n\n`).join('')))).not.toThrow();
  });
});

describe('a request in Anthropic’s form', () => {
  const request = {
    system: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }],
    messages: [
      { role: 'user', content: 'Where is A-17?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'The order must be looked up.', signature: 'x' },
          { type: 'text', text: 'Let me look, Zoë.' },
          { type: 'tool_use', id: 'toolu_01', name: 'find_order', input: { order: 'A-17' } },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_01',
            content: [{ type: 'text', text: 'no such order' }],
            is_error: true,
          },
          { type: 'text', text: 'And now?' },
        ],
      },
    ],
  };

  test('reads as chat, its history in the words of the answer it repeats', () => {
    expect(chatMessages({ endpoint: 'messages', request })).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Where is A-17?' },
      whole,
      { role: 'tool', tool_call_id: 'toolu_01', content: 'Error: no such order' },
      { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
    ]);
  });

  test('may be anything at all', () => {
    for (const messages of [null, 'x', [null, 7, {}], [{ role: 'assistant', content: [null, { type: 'tool_use' }] }]])
      expect(() => chatMessages({ endpoint: 'messages', request: { messages, system: 7 } })).not.toThrow();
  });
});
