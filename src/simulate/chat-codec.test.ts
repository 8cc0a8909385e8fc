import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { chatTemplateOf, defaultChatTemplate } from '../engine/chat.ts';
import { createTokenizer, tokenizerFromFiles } from '../engine/tokenizer.ts';
import { smallestVocabulary, tokenizerConfig, trainTokenizer } from '../engine/tokenizer-train.ts';
import { chatCodec } from './chat-codec.ts';
import { promptTokens } from './engine-player.ts';
import type { Message } from './message.ts';
import type { Conversation } from './player.ts';

const json = trainTokenizer(['find the order, find the order'], { vocabulary: smallestVocabulary + 20 });
const tokenizer = createTokenizer(json, tokenizerConfig(256));
const codec = chatCodec(tokenizer, defaultChatTemplate);
/** A second turn is due: the first wrote `completion`, which is the second of the messages. */
const afterTurn = (
  messages: readonly Message[],
  prompt: readonly number[],
  completion: readonly number[],
): Conversation => ({
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
});
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
  const conversation = afterTurn(messages, prompt, completion);
  expect(promptTokens(codec, conversation)).toEqual(codec.encode(messages, [], { generate: true }));
});

const { families } = JSON.parse(
  readFileSync(new URL('../engine/fixtures/tokenizers.json', import.meta.url), 'utf8'),
) as { families: Record<string, { files: Record<string, string> }> };

describe.each([
  ['SmolLM2', '<|im_end|>', 'Sent.'],
  ['Qwen2.5', '<|im_end|>', '<tool_call>\n{"name": "find", "arguments": {"order": "4821"}}\n</tool_call>'],
  ['Llama 3', '<|eot_id|>', '{"name": "find", "parameters": {"order": "4821"}}'],
])('a conversation with a model of the kind of %s', (family, end, answer) => {
  const files = new Map(Object.entries(families[family]!.files).map(([name, text]) => [name, Buffer.from(text)]));
  const own = tokenizerFromFiles(files)!;
  const its = chatCodec(own, chatTemplateOf(files, own)!);

  test('goes on from the very tokens the model wrote', () => {
    const asked: Message[] = [{ role: 'user', content: 'Where is 4821?' }];
    const prompt = its.encode(asked, [], { generate: true });
    const completion = [...own.encodePlain(answer), own.controls.get(end)!.id];
    expect(its.stopTokens).toEqual([own.controls.get(end)!.id]);
    const { message } = its.decode(completion.slice(0, -1));
    const messages: Message[] = [...asked, message, { role: 'user', content: 'And now?' }];
    const next = promptTokens(its, afterTurn(messages, prompt, completion));
    expect(next.slice(0, prompt.length + completion.length)).toEqual([...prompt, ...completion]);
    expect(own.decode(next, { skipSpecial: false })).toContain('And now?');
  });

  test('reads a call as its template shows one', () => {
    const calls = its.decode(own.encodePlain(answer)).message.tool_calls?.map((one) => one.function);
    expect(calls).toEqual(family === 'SmolLM2' ? undefined : [{ name: 'find', arguments: '{"order":"4821"}' }]);
  });
});
