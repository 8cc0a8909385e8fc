/**
 * Tokenizers and chat templates against Hugging Face transformers: what it makes of a table of texts and conversations, in
 * fixtures/tokenizers.json, recorded by scripts/record-tokenizer-fixture.py.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type ChatMessage, type ChatTool, chatTemplateOf, createChat } from './chat.ts';
import { stopTokens } from './stop-tokens.ts';
import { tokenizerFromFiles } from './tokenizer.ts';

type Message = Omit<ChatMessage, 'tool_calls'> & {
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: unknown } }[];
};
type Recorded = {
  files: Record<string, string>;
  texts: { text: string; ids: number[]; plain: number[]; decoded: string }[];
  chats: { messages: Message[]; tools: ChatTool[] | null; generate: boolean; text: string; ids: number[] }[];
};

const { families } = JSON.parse(readFileSync(new URL('fixtures/tokenizers.json', import.meta.url), 'utf8')) as {
  families: Record<string, Recorded>;
};

describe.each(Object.entries(families))('the tokenizer of %s', (family, { files, texts, chats }) => {
  const bytes = new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]));
  const tokenizer = tokenizerFromFiles(bytes)!;

  test.each(texts)('gives the ids of $text that transformers gives', ({ text, ids, plain, decoded }) => {
    expect(tokenizer.encode(text)).toEqual(ids);
    const spells = [...tokenizer.controls.keys()].some((word) => text.includes(word));
    if (!spells) expect(tokenizer.encodePlain(text)).toEqual(plain);
    expect(tokenizer.decode(ids, { skipSpecial: false })).toBe(decoded);
  });

  test.each(chats.map((chat, i) => ({ ...chat, i })))('and its template render conversation $i alike', (chat) => {
    const messages = chat.messages.map((message): ChatMessage => {
      const { tool_calls: calls, ...rest } = message;
      if (calls === undefined) return rest;
      return {
        ...rest,
        tool_calls: calls.map((call) => ({
          ...call,
          function: { ...call.function, arguments: JSON.stringify(call.function.arguments) },
        })),
      };
    });
    const { tokens } = createChat(tokenizer, chatTemplateOf(bytes, tokenizer)!).encode(messages, {
      ...(chat.tools === null ? {} : { tools: chat.tools }),
      addGenerationPrompt: chat.generate,
      variables: { date_string: '16 Nov 2026' },
    });
    expect(tokenizer.decode(tokens, { skipSpecial: false })).toBe(chat.text);
    expect(tokens).toEqual(chat.ids);
  });

  test('and its template say which token ends a turn, whatever the other files say', () => {
    const chat = createChat(tokenizer, chatTemplateOf(bytes, tokenizer)!);
    const end = tokenizer.controls.get(tokenizer.named.eos_token!)!.id;
    expect(stopTokens({}, new Map(), { ...tokenizer, named: {} }, chat)).toEqual([end]);
    expect(chat.bareCalls).toBe(family === 'Llama 3');
  });
});
