import { expect, test } from 'vitest';
import { defaultChatTemplate } from '../engine/chat.ts';
import { createTokenizer } from '../engine/tokenizer.ts';
import { smallestVocabulary, tokenizerConfig, trainTokenizer } from '../engine/tokenizer-train.ts';
import { chatCodec } from './chat-codec.ts';
import { promptTokens } from './engine-player.ts';
import type { Message } from './message.ts';
import type { Conversation } from './player.ts';

const json = trainTokenizer(['find the order, find the order'], { vocabulary: smallestVocabulary + 20 });
const tokenizer = createTokenizer(json, tokenizerConfig(256));
const codec = chatCodec(tokenizer, defaultChatTemplate);
const read = (text: string) => codec.decode(tokenizer.encode(text));

test('text comes out as content, a tool call as a call', () => {
  expect(read('Hello.')).toEqual({ message: { role: 'assistant', content: 'Hello.' } });
  expect(read('<tool_call>{"name":"find","arguments":{"order":"4821"}}</tool_call>')).toEqual({
    message: {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_0', type: 'function', function: { name: 'find', arguments: '{"order":"4821"}' } }],
    },
  });
});

test.each(['<tool_call>{"name":"find"', '<tool_call>{"name":5,"arguments":{}}</tool_call>', '<tool_call></tool_call>'])(
  '%s is malformed, and stays readable in the content',
  (text) => {
    const { message, malformed } = read(text);
    expect(malformed).toContain('not JSON');
    expect(message.content).toBe(text);
  },
);

test('the stop token is the one that ends a turn in the template', () => {
  const closed = codec.encode(
    [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
    ],
    [],
    { generate: false },
  );
  expect(closed).toContain(codec.stopTokens[0]);
});

test("a conversation's prompts extend one another, and equal what rendering all of it gives", () => {
  const first: Message[] = [{ role: 'user', content: 'find the order' }];
  const prompt = codec.encode(first, [], { generate: true });
  const call = '<tool_call>\n{"name": "find", "arguments": {"order": "4821"}}\n</tool_call>';
  const completion = [...tokenizer.encode(call), codec.stopTokens[0]!];
  const { message } = codec.decode(completion.slice(0, -1));
  const messages: Message[] = [...first, message, { role: 'tool', tool_call_id: 'call_0', content: '{"ok":true}' }];
  const conversation: Conversation = {
    id: 'e',
    task: 't',
    attempt: 0,
    turn: 1,
    seed: 0,
    groupSeed: 0,
    messages,
    tools: [],
    maxTokens: 9,
    context: 999,
    previous: { tokens: { prompt, completion, logprobs: [], rawLogprobs: null, version: 0 }, messages: 2 },
  };
  expect(promptTokens(codec, conversation)).toEqual(codec.encode(messages, [], { generate: true }));
});
