import { describe, expect, test } from 'vitest';
import { createChat, defaultChatTemplate } from './chat.ts';
import { endTokens, stopTokens, turnEnd } from './stop-tokens.ts';
import { createTokenizer } from './tokenizer.ts';
import { tokenizerConfig, trainTokenizer } from './tokenizer-train.ts';

const tokenizer = createTokenizer(trainTokenizer([], { vocabulary: 280 }), tokenizerConfig(512));
const id = (word: string) => tokenizer.controls.get(word)!.id;
const generation = (value: unknown) => new Map([['generation_config.json', Buffer.from(JSON.stringify(value))]]);

describe('the end of a text', () => {
  test.each([
    ['config.json where nothing else is there', { eos_token_id: 5 }, new Map(), [5]],
    ['generation_config.json before it', { eos_token_id: 5 }, generation({ eos_token_id: [7, 8, 7] }), [7, 8]],
    ['config.json where the other is silent', { eos_token_id: [5, 6] }, generation({ pad_token_id: 1 }), [5, 6]],
    ['nobody', { eos_token_id: null }, generation({ eos_token_id: ['x', -1, 1.5] }), []],
  ] as const)('is named by %s', (_, config, files, expected) => {
    expect(endTokens(config, files as ReadonlyMap<string, Uint8Array>)).toEqual(expected);
  });

  test('a generation_config.json that is not JSON is refused', () => {
    expect(() => endTokens({}, new Map([['generation_config.json', Buffer.from('{')]]))).toThrow(/is not JSON/);
  });
});

describe('the end of a turn', () => {
  test('is the special token behind what the assistant said', () => {
    expect(turnEnd(createChat(tokenizer, defaultChatTemplate), tokenizer)).toBe(id('<|im_end|>'));
    const other =
      "{% for m in messages %}{{ '<|im_start|>' + m.content + '<think>!<|endoftext|><|im_end|>' }}{% endfor %}";
    expect(turnEnd(createChat(tokenizer, other), tokenizer)).toBe(id('<|endoftext|>'));
  });

  test.each([
    [
      'whose turns begin with a token and end with none',
      "{% for m in messages %}{{ '<|im_start|>' + m.content + '.' }}{% endfor %}",
    ],
    ['that refuses such a conversation', "{{ raise_exception('no') }}"],
    ['that shows no assistant', '<|im_start|>{{ messages[0].content }}'],
  ])('is not there in a template %s', (_, template) => {
    expect(turnEnd(createChat(tokenizer, template), tokenizer)).toBeUndefined();
  });
});

test('a model stops at all that its files name, each once', () => {
  const chat = createChat(tokenizer, defaultChatTemplate);
  const files = generation({ eos_token_id: [id('<|endoftext|>'), id('<|im_end|>')] });
  expect(stopTokens({}, files, tokenizer, chat)).toEqual([id('<|endoftext|>'), id('<|im_end|>')]);
  expect(stopTokens({}, new Map(), tokenizer, undefined)).toEqual([id('<|im_end|>')]);
  expect(stopTokens({ eos_token_id: 3 }, new Map(), undefined, undefined)).toEqual([3]);
});
