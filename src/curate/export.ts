/**
 * A dataset in the formats that other trainers read, line by line. Pure: an example or a pair in, a line out, or the reason why
 * there is none. Text is filled and consent asked for anew, as when training reads (examples.ts, consented.ts).
 *
 * trl-sft          {messages, tools?}                    TRL, conversational language modelling
 * trl-preference   {prompt, chosen, rejected, tools?}    TRL, conversational preference with an explicit prompt
 * trl-prompts      {prompt, tools?}                      TRL, conversational prompt-only
 * openai-chat      {messages, tools?}                    OpenAI's fine-tuning of chat models
 *
 * TRL wants the arguments of tool calls as objects and tool results by the tool's name; OpenAI wants JSON text and the call's
 * id. What the model thought goes under `reasoning_content`, which chat templates of reasoning models read; OpenAI's format has
 * no key for it and refuses unknown ones, so there it is left out, and counted.
 */
import { isObject, parseUntrusted } from '../collect/untrusted.ts';
import type { CuratedExample, CuratedPair } from './examples.ts';
import type { AssistantMessage, RowMessage, RowTool } from './row.ts';

export const exportFormats = ['trl-sft', 'trl-preference', 'trl-prompts', 'openai-chat'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export type Exported =
  | { readonly kind: 'line'; readonly line: Readonly<Record<string, unknown>>; readonly thoughtsLost: number }
  | { readonly kind: 'left'; readonly reason: string };

type Item = { readonly example: CuratedExample } | { readonly pair: CuratedPair };

/** null: this kind of item is not what the format is about. */
export function exported(format: ExportFormat, item: Item): Exported | null {
  switch (format) {
    case 'trl-sft':
      return 'example' in item
        ? inTrl(({ messages }) => ({ messages }), item.example.tools, thought(item.example))
        : null;
    case 'trl-preference':
      return 'pair' in item ? preference(item.pair) : null;
    case 'trl-prompts': {
      const asked = 'pair' in item ? item.pair.prompt : item.example.messages.slice(0, item.example.answers[0]!.at);
      const { tools } = 'pair' in item ? item.pair : item.example;
      return asked.length === 0
        ? { kind: 'left', reason: 'begins with an answer' }
        : inTrl(({ messages }) => ({ prompt: messages }), tools, asked);
    }
    case 'openai-chat':
      return 'example' in item ? openAiChat(item.example) : null;
    default:
      return format satisfies never;
  }
}

/** The conversation with what the model thought before each of its answers. */
const thought = ({ messages, answers }: CuratedExample): RowMessage[] => {
  const whole = [...messages];
  for (const { at, reasoning } of answers)
    if (reasoning !== '') whole[at] = { ...(whole[at] as AssistantMessage), reasoning_content: reasoning };
  return whole;
};

const withTools = (tools: readonly RowTool[]) => (tools.length === 0 ? {} : { tools });

function inTrl(
  line: (of: { readonly messages: readonly unknown[] }) => Record<string, unknown>,
  tools: readonly RowTool[],
  messages: readonly RowMessage[],
): Exported {
  const named = trlMessages(messages);
  if (typeof named === 'string') return { kind: 'left', reason: named };
  return { kind: 'line', line: { ...line({ messages: named }), ...withTools(tools) }, thoughtsLost: 0 };
}

function preference({ prompt, chosen, rejected, tools }: CuratedPair): Exported {
  const whole = [...prompt, chosen, rejected];
  return inTrl(
    ({ messages }) => ({ prompt: messages.slice(0, -2), chosen: messages.slice(-2, -1), rejected: messages.slice(-1) }),
    tools,
    whole,
  );
}

/** As TRL documents them; a string is the reason why they cannot be written so. */
function trlMessages(messages: readonly RowMessage[]): readonly unknown[] | string {
  const names = new Map<string, string>();
  const out: unknown[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      const name = names.get(message.tool_call_id);
      if (name === undefined) return 'a tool result without its call';
      out.push({ role: 'tool', name, content: message.content });
    } else if (message.role === 'assistant') {
      const calls: unknown[] = [];
      for (const call of message.tool_calls ?? []) {
        const args = parseUntrusted(call.function.arguments || '{}');
        if (!isObject(args)) return 'a tool call whose arguments are no JSON object';
        names.set(call.id, call.function.name);
        calls.push({ type: 'function', function: { name: call.function.name, arguments: args } });
      }
      out.push({
        role: 'assistant',
        content: message.content ?? '',
        ...(message.reasoning_content === undefined ? {} : { reasoning_content: message.reasoning_content }),
        ...(calls.length === 0 ? {} : { tool_calls: calls }),
      });
    } else out.push({ role: message.role, content: message.content });
  }
  return out;
}

/** Assistant messages that the agent did not write are context: weight 0. */
function openAiChat({ messages, tools, answers }: CuratedExample): Exported {
  const own = new Set(answers.map(({ at }) => at));
  const last = answers.at(-1)!.at;
  const line = messages.slice(0, last + 1).map((message, i) => {
    if (message.role !== 'assistant') return message;
    const { reasoning_content: _, ...plain } = message;
    return own.has(i) ? plain : { ...plain, weight: 0 };
  });
  const thoughtsLost = answers.filter(({ reasoning }) => reasoning !== '').length;
  return { kind: 'line', line: { messages: line, ...withTools(tools) }, thoughtsLost };
}
