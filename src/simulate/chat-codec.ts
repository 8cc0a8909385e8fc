/**
 * The chat codec of a checkpoint: its own chat template and tokenizer on the way in, tool calls as it was taught them on the
 * way out. The joint between simulate/, which speaks in messages, and engine/, which speaks in tokens.
 */
import { chatTemplateOf, createChat } from '../engine/chat.ts';
import { readModelFiles } from '../engine/checkpoint.ts';
import { turnEnd } from '../engine/stop-tokens.ts';
import { type Tokenizer, tokenizerFromFiles } from '../engine/tokenizer.ts';
import { createOutputParser } from '../engine/tool-calls.ts';
import { ConfigError } from '../errors.ts';
import type { ChatCodec } from './engine-player.ts';
import type { ToolCall } from './message.ts';

export function chatCodec(tokenizer: Tokenizer, template: string): ChatCodec {
  const chat = createChat(tokenizer, template);
  // A template that never shows the tools need not be handed them for every turn of every episode.
  const showsTools = /\btools\b/.test(template);
  const end = turnEnd(chat, tokenizer) ?? tokenizer.controls.get(tokenizer.named.eos_token ?? '')?.id;
  if (end === undefined) {
    throw new ConfigError(
      'The chat template ends no turn with a special token, and the tokenizer names no eos_token among its control tokens; set it in tokenizer_config.json.',
    );
  }
  return {
    encode: (messages, tools, { generate }) =>
      chat.encode(messages, { tools: showsTools ? tools : [], addGenerationPrompt: generate }).tokens,
    decode: (tokens) => {
      const parser = createOutputParser({ tools: true, bareCalls: chat.bareCalls });
      const parts = [...parser.push(tokenizer.decode(tokens)), ...parser.end()];
      const content = parts.map((part) => (part.kind === 'content' ? part.text : '')).join('');
      const calls = parts.flatMap((part, i): ToolCall[] =>
        part.kind === 'tool_call'
          ? [{ id: `call_${i}`, type: 'function', function: { name: part.name, arguments: part.arguments } }]
          : [],
      );
      return {
        message: {
          role: 'assistant',
          content: content === '' && calls.length > 0 ? null : content,
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
        },
        ...(parser.malformed === 0 ? {} : { malformed: 'a tool call that is not JSON with name and arguments' }),
      };
    },
    stopTokens: [end],
  };
}

/** From a checkpoint's folder. */
export async function loadChatCodec(folder: string): Promise<ChatCodec> {
  const files = await readModelFiles(folder);
  const tokenizer = tokenizerFromFiles(files);
  if (tokenizer === undefined) {
    throw new ConfigError(
      `${folder} has no tokenizer.json, so its model cannot be talked to; put the model's own beside it.`,
    );
  }
  const template = chatTemplateOf(files, tokenizer);
  if (template === undefined) {
    throw new ConfigError(
      `${folder} has no chat template, so its model cannot be talked to; put its chat_template.jinja there.`,
    );
  }
  return chatCodec(tokenizer, template);
}
