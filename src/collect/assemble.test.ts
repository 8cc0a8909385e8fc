import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Assembled, assemble, MAX_INDEX } from './assemble.ts';
import type { Exchange } from './exchange.ts';
import { bytes, chatAnswer, exchange } from './fixtures/exchange.ts';

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}.sse`, import.meta.url));
const streamed = (wire: Uint8Array | string, fields: Partial<Exchange> = {}): Assembled =>
  assemble(
    exchange({ id: 'x', stream: true, responseChunks: [typeof wire === 'string' ? bytes(wire) : wire], ...fields }),
  );
const event = (body: unknown) => `data: ${JSON.stringify(body)}\n\n`;
const DONE = 'data: [DONE]\n\n';

describe('streams', () => {
  test('parallel tool calls are joined by index, with usage from the last chunk', () => {
    const turn = streamed(fixture('openai-tools'));
    expect(turn.status).toBe('ok');
    expect(turn.model).toBe('gpt-4.1-mini-2025-04-14');
    expect(turn.choices).toEqual([
      {
        index: 0,
        finishReason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          refusal: null,
          tool_calls: [
            { id: 'call_A', type: 'function', function: { name: 'get_order', arguments: '{"id":"A-17"}' } },
            { id: 'call_B', type: 'function', function: { name: 'get_user', arguments: '{"name":"김"}' } },
          ],
        },
      },
    ]);
    expect([turn.promptTokens, turn.completionTokens, turn.reasoningTokens]).toEqual([82, 34, 5]);
  });

  test('vLLM’s token ids, logprobs and reasoning are joined, through CRLF and keep-alive comments', () => {
    const turn = streamed(fixture('vllm-reasoning'));
    expect(turn.status).toBe('ok');
    expect(turn.promptTokenIds).toEqual([151644, 872, 198, 13048]);
    expect(turn.choices[0]).toEqual({
      index: 0,
      message: { role: 'assistant', content: 'Grüße 😀!', reasoning_content: 'The user greets.' },
      finishReason: 'stop',
      tokenIds: [785, 1196, 1, 2, 3, 4, 151645],
      logprobs: [-0.5, -0.25, -1.5, -0.125, 0],
    });
  });

  test('the same turn comes out however the bytes were cut into chunks', () => {
    for (const name of ['openai-tools', 'vllm-reasoning', 'n-two', 'malformed', 'cut', 'completions']) {
      const wire = fixture(name);
      const whole = streamed(wire);
      for (let at = 1; at < wire.length; at++) {
        const split = streamed(wire, { responseChunks: [wire.subarray(0, at), wire.subarray(at)] });
        if (JSON.stringify(split) !== JSON.stringify(whole)) expect(split, `${name} cut at ${at}`).toEqual(whole);
      }
      const single = Array.from(wire, (_, i) => wire.subarray(i, i + 1));
      expect(streamed(wire, { responseChunks: single })).toEqual(whole);
    }
  });

  test('fragments are joined exactly, whatever characters they hold', () => {
    const pieces = [
      'a',
      '"',
      '\\',
      '\n',
      '"}',
      '"},{"delta":{"content":"x"}',
      '😀',
      '\u2028',
      '',
      ' [DONE]',
      '}]}',
      '\ud83d',
      'z',
    ];
    const chunk = (content: string, index = 0) => ({
      id: 'c',
      choices: [{ index, delta: { content }, finish_reason: null }],
    });
    let wire = '';
    let expected = '';
    for (const first of pieces) {
      for (const second of pieces) {
        wire += event(chunk(first)) + event(chunk(second)) + event(chunk('other', 1));
        expected += first + second;
      }
    }
    const turn = streamed(wire + DONE);
    expect([turn.status, turn.error]).toEqual(['ok', null]);
    expect(turn.choices[0]?.message.content).toBe(expected);
    expect(turn.choices[1]?.message.content).toBe('other'.repeat(pieces.length ** 2));
  });

  test('events that differ in more than the fragment are read in full', () => {
    const chunk = (content: string, more: object) =>
      event({ id: 'c', choices: [{ index: 0, delta: { content }, ...more }] });
    const turn = streamed(
      chunk('a', { token_ids: [1] }) +
        chunk('b', { token_ids: [2] }) +
        chunk('c', { finish_reason: null }) +
        chunk('d', { finish_reason: null }) +
        chunk('e', { finish_reason: 'stop' }) +
        DONE,
    );
    expect(turn.choices[0]).toMatchObject({ tokenIds: [1, 2], finishReason: 'stop', message: { content: 'abcde' } });
  });

  test('n choices grow side by side', () => {
    const turn = streamed(fixture('n-two'));
    expect(turn.choices.map((c) => [c.index, c.message.content, c.message.refusal ?? null, c.finishReason])).toEqual([
      [0, 'A1', null, 'stop'],
      [1, 'B1', 'I cannot.', 'content_filter'],
    ]);
  });

  test.each(['tools-no-index', 'tools-index-zero'])(
    'servers that number tool calls badly are understood: %s',
    (name) => {
      expect(streamed(fixture(name)).choices[0]?.message.tool_calls).toEqual([
        { id: 'a', type: 'function', function: { name: 'one', arguments: '{}' } },
        { id: 'b', type: 'function', function: { name: 'two', arguments: '{"x":1}' } },
      ]);
    },
  );

  test('a stream that breaks off is truncated and keeps what came', () => {
    const turn = streamed(fixture('cut'));
    expect(turn.status).toBe('truncated');
    expect(turn.error).toBe('The stream ended without [DONE].');
    expect(turn.choices[0]?.message.content).toBe('It is on its');
  });

  test('an error event makes the turn an error with the upstream’s words', () => {
    const turn = streamed(fixture('error-event'));
    expect([turn.status, turn.error]).toEqual(['error', 'CUDA out of memory']);
    expect(turn.choices[0]?.message.content).toBe('Let me');
    const named = streamed(`event: error\ndata: {"message":"overloaded"}\n\n${DONE}`);
    expect([named.status, named.error]).toEqual(['error', '{"message":"overloaded"}']);
  });

  test('a JSON error in place of a stream is read as one', () => {
    const turn = streamed('{"error":{"message":"max_tokens is too large"}}', { httpStatus: 400 });
    expect([turn.status, turn.error]).toEqual(['error', 'max_tokens is too large']);
  });

  test('malformed lines are counted, and the rest is still read', () => {
    const turn = streamed(fixture('malformed'));
    expect(turn.status).toBe('error');
    expect(turn.error).toMatch(/2 malformed SSE/);
    expect(turn.choices[0]?.message.content).toBe('One three');
  });

  test('text completions carry prompt ids in the choice', () => {
    const turn = streamed(fixture('completions'), { endpoint: 'completions' });
    expect(turn.promptTokenIds).toEqual([1, 2]);
    expect(turn.choices[0]).toEqual({
      index: 0,
      message: { role: 'assistant', content: 'Once upon' },
      finishReason: 'length',
      tokenIds: [10, 11],
      logprobs: [-0.5, -0.75],
    });
  });

  test('one event over several data lines, events without blank lines, and a byte order mark are read', () => {
    const multi = 'data: {"choices":[{"index":0,\ndata: "delta":{"content":"a"}}]}\n\n';
    const glued = `data: ${JSON.stringify({ choices: [{ delta: { content: 'b' } }] })}\ndata: [DONE]\n\n`;
    const turn = streamed(`\ufeff${multi}${glued}`);
    expect([turn.status, turn.choices[0]?.message.content]).toEqual(['ok', 'ab']);
  });

  test('unknown text fields are joined, lists are collected, other values are replaced', () => {
    const turn = streamed(
      event({ choices: [{ delta: { thought: 'x', details: [1], level: 1, role: 'assistant' } }] }) +
        event({ choices: [{ delta: { thought: 'y', details: [2], level: 2, role: 'assistant' } }] }) +
        DONE,
    );
    expect(turn.choices[0]?.message).toEqual({
      role: 'assistant',
      content: null,
      thought: 'xy',
      details: [1, 2],
      level: 2,
    });
  });

  test('an index that would cost memory is dropped and said', () => {
    const turn = streamed(
      event({ choices: [{ index: 1e9, delta: { content: 'far' } }] }) +
        event({ choices: [{ index: 0, delta: { tool_calls: [{ index: MAX_INDEX, id: 'z' }] } }] }) +
        DONE,
    );
    expect(turn.choices).toHaveLength(1);
    expect(turn.choices[0]?.message.tool_calls).toBeUndefined();
    expect(turn.error).toMatch(/^2 choice\(s\) or tool call\(s\)/);
  });

  test('keys that reach for the prototype never get there', () => {
    const turn = streamed(
      'data: {"__proto__":{"polluted":1},"choices":[{"index":0,"delta":{"__proto__":{"polluted":1},' +
        '"constructor":{"prototype":{"polluted":1}},"content":"ok"}}]}\n\n' +
        DONE,
      { requestBody: bytes('{"messages":[{"role":"user","__proto__":{"polluted":1},"constructor":"Ferrari"}]}') },
    );
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(turn.choices[0]?.message.polluted).toBeUndefined();
    expect(Object.keys(turn.choices[0]?.message ?? {}).sort()).toEqual(['content', 'role']);
    expect(JSON.stringify(turn.request)).toBe('{"messages":[{"role":"user","constructor":"Ferrari"}]}');
  });

  test('what the gateway saw goes before what the bytes say', () => {
    expect(streamed(fixture('cut'), { status: 'disconnected' }).status).toBe('disconnected');
    const cut = streamed(fixture('cut'), { responseTruncated: true });
    expect([cut.status, cut.error]).toEqual([
      'truncated',
      'The answer was larger than the recorder keeps; its end is missing.',
    ]);
  });
});

describe('JSON answers', () => {
  const json = (body: unknown, fields: Partial<Exchange> = {}) =>
    assemble(exchange({ responseChunks: [bytes(JSON.stringify(body))], ...fields }));

  test('message, usage, token ids and logprobs are read', () => {
    const turn = json({
      ...chatAnswer('Hi'),
      prompt_token_ids: [1, 2],
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hi', reasoning: 'greet' },
          finish_reason: 'stop',
          token_ids: [7],
          logprobs: { content: [{ token: 'Hi', logprob: -0.5 }] },
        },
      ],
    });
    expect(turn.status).toBe('ok');
    expect(turn.promptTokenIds).toEqual([1, 2]);
    expect(turn.choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: 'Hi', reasoning: 'greet' },
        finishReason: 'stop',
        tokenIds: [7],
        logprobs: [-0.5],
      },
    ]);
    expect(turn.promptTokens).toBe(9);
  });

  test.each([
    [{ error: { message: 'No such model', code: 404 } }, 'No such model'],
    [{ error: 'plain' }, 'plain'],
    [{ object: 'error', message: 'old vLLM' }, 'old vLLM'],
    [{ detail: 'Not Found' }, 'The upstream answered with HTTP status 404.'],
  ])('an error body %j becomes the turn’s error', (body, message) => {
    expect(json(body, { httpStatus: 404 })).toMatchObject({ status: 'error', error: message, choices: [] });
  });

  test('a body that is no JSON is an error, not a crash', () => {
    const turn = assemble(exchange({ responseChunks: [bytes('<html>Bad gateway</html>')] }));
    expect(turn.error).toBe('The upstream answered with a body that is not a JSON object.');
    expect(assemble(exchange({ responseChunks: [], requestBody: new Uint8Array([0xff, 0xfe]) })).request).toEqual({});
  });

  test('embeddings keep their number and size, not the vectors', () => {
    const data = [{ embedding: [0.1, 0.2, 0.3] }, { embedding: [0.4, 0.5, 0.6] }];
    const turn = json({ data, usage: { prompt_tokens: 5 } }, { endpoint: 'embeddings' });
    expect(turn.usage).toEqual({ prompt_tokens: 5, embeddings: 2, dimensions: 3 });
    expect(turn.choices).toEqual([]);
    const packed = [{ embedding: Buffer.from(new Float32Array([1, 2]).buffer).toString('base64') }];
    expect(json({ data: packed }, { endpoint: 'embeddings' }).usage).toMatchObject({ dimensions: 2 });
  });

  test('deep nesting is cut, so that nothing later overflows', () => {
    const deep = `{"messages":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    const turn = assemble(exchange({ requestBody: bytes(deep) }));
    expect(JSON.stringify(turn.request)).toBe(`{"messages":${'['.repeat(99)}"[too deep]"${']'.repeat(99)}}`);
  });

  test('a hole in the logprobs leaves them out rather than shifting them', () => {
    const choices = [{ index: 0, text: 'ab', logprobs: { token_logprobs: [null, -1] }, token_ids: [1, 'x'] }];
    const turn = json({ choices }, { endpoint: 'completions' });
    expect(turn.choices).toEqual([{ index: 0, message: { role: 'assistant', content: 'ab' }, finishReason: null }]);
  });
});
