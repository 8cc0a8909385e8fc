import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { assemble } from './assemble.ts';
import { chatMessages } from './chat-form.ts';
import type { Exchange } from './exchange.ts';
import { bytes, exchange } from './fixtures/exchange.ts';

const wire = readFileSync(new URL('./fixtures/responses-tools.sse', import.meta.url));
const assembled = (answer: Uint8Array | object, fields: Partial<Exchange> = {}) =>
  assemble(
    exchange({
      endpoint: 'responses',
      stream: answer instanceof Uint8Array,
      responseChunks: [answer instanceof Uint8Array ? answer : bytes(JSON.stringify(answer))],
      ...fields,
    }),
  );

const whole = {
  role: 'assistant',
  content: 'One moment, Zoë.',
  reasoning_content: 'Look it up.',
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'find_order', arguments: '{"order":"A-17"}' } }],
};

describe('an answer in the form of OpenAI’s responses', () => {
  test('is taken from the last event of its stream', () => {
    const turn = assembled(wire);
    expect(turn).toMatchObject({ status: 'ok', error: null, model: 'gpt-oss-20b' });
    expect(turn.choices).toEqual([{ index: 0, finishReason: 'tool_calls', message: whole }]);
    expect([turn.promptTokens, turn.completionTokens, turn.reasoningTokens]).toEqual([36, 87, 20]);
  });

  test('that broke off is put together from its fragments', () => {
    const events = wire.toString().split('\n\n');
    const cut = assembled(bytes(`${events.slice(0, -2).join('\n\n')}\n\n`));
    expect(cut).toMatchObject({ status: 'truncated', error: 'The stream ended without response.completed.' });
    expect(cut.model).toBe('gpt-oss-20b');
    expect(cut.choices).toEqual([{ index: 0, finishReason: null, message: whole }]);
    const earlier = assembled(bytes(`${events.slice(0, 14).join('\n\n')}\n\n`)).choices[0]!.message;
    expect(earlier).toMatchObject({
      content: 'One moment, Zoë.',
      tool_calls: [{ id: 'call_1', function: { name: 'find_order', arguments: '{"order":' } }],
    });
    for (let at = 0; at < wire.length; at += 7) expect(() => assembled(wire.subarray(0, at))).not.toThrow();
  });

  test('is read whole', () => {
    const turn = assembled({
      id: 'resp_1',
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      error: null,
      model: 'm',
      output: [
        { type: 'reasoning', id: 'rs', summary: [{ type: 'summary_text', text: 'Thinking.' }] },
        { type: 'web_search_call', id: 'ws', status: 'completed' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Half an ans' }] },
      ],
      usage: { input_tokens: 1, output_tokens: 2 },
    });
    expect(turn).toMatchObject({ status: 'ok', promptTokens: 1, completionTokens: 2, reasoningTokens: null });
    expect(turn.choices[0]).toEqual({
      index: 0,
      finishReason: 'length',
      message: {
        role: 'assistant',
        content: 'Half an ans',
        reasoning_content: 'Thinking.',
        items: [{ type: 'web_search_call', id: 'ws', status: 'completed' }],
      },
    });
  });

  test('that failed is an error, in JSON and in a stream', () => {
    const failed = {
      id: 'resp_1',
      status: 'failed',
      error: { code: 'server_error', message: 'It broke.' },
      output: [],
    };
    expect(assembled(failed)).toMatchObject({ status: 'error', error: 'It broke.' });
    const event = bytes(`data: ${JSON.stringify({ type: 'response.failed', response: failed })}\n\n`);
    expect(assembled(event)).toMatchObject({ status: 'error', error: 'It broke.' });
    const error = bytes(`event: error\ndata: {"type":"error","code":"x","message":"It broke.","param":null}\n\n`);
    expect(assembled(error)).toMatchObject({ status: 'error', error: 'It broke.' });
    expect(assembled({ error: { message: 'No such model.' } }, { httpStatus: 404 })).toMatchObject({
      status: 'error',
      error: 'No such model.',
    });
  });
});

describe('a request in the form of OpenAI’s responses', () => {
  test('reads as chat, its history in the words of the answer it repeats', () => {
    const input = [
      { role: 'user', content: [{ type: 'input_text', text: 'Where is A-17?' }] },
      { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'Look it up.' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'One moment, Zoë.' }] },
      { type: 'function_call', call_id: 'call_1', name: 'find_order', arguments: '{"order":"A-17"}' },
      { type: 'function_call_output', call_id: 'call_1', output: '{"state":"lost"}' },
      { role: 'user', content: 'And now?' },
    ];
    expect(chatMessages({ endpoint: 'responses', request: { instructions: 'Be kind.', input } })).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Where is A-17?' }] },
      whole,
      { role: 'tool', tool_call_id: 'call_1', content: '{"state":"lost"}' },
      { role: 'user', content: 'And now?' },
    ]);
  });

  test('may be a plain string, or anything at all', () => {
    expect(chatMessages({ endpoint: 'responses', request: { input: 'Hello' } })).toEqual([
      { role: 'user', content: 'Hello' },
    ]);
    for (const input of [null, 7, [null, 7, {}, { type: 7 }, { type: 'function_call' }, { type: 'x_call_output' }]])
      expect(() => chatMessages({ endpoint: 'responses', request: { input } })).not.toThrow();
  });
});
