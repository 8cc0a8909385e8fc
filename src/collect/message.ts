/**
 * What a message says, whatever shape it came in. Whoever reads recorded messages reads them with these functions.
 *
 * message       who speaks, in which words, after which thoughts, and which tools are called; a tool's result is one too
 * part          a piece of content: words, or anything else (a picture, a file)
 * tool call     chat's `tool_calls` and the older `function_call`; Anthropic's `tool_use`; `function_call` and
 *               `custom_tool_call` of OpenAI's responses
 * tool result   chat's message of role `tool`, Anthropic's `tool_result`, an item `…_call_output` of OpenAI's responses
 * reasoning     what the model thought before it spoke: three names in chat, blocks of Anthropic's, items of OpenAI's
 * tool          what a request offers to be called
 *
 * Pure, and fit for JSON from strangers: any value is read, at most once, and what makes no sense reads as if it were not
 * there. What a reader demands beyond that (a trainer wants text alone, a judge wants arguments that parse) it asks of the
 * reading.
 */
import { isObject, type JsonObject, listOf } from './untrusted.ts';

export type Part = {
  /** As the wire calls it: `text`, `image_url`, …; `text` for a bare string, '' where it does not say. */
  readonly type: string;
  /** null: it is no words. */
  readonly text: string | null;
  /** As it came. */
  readonly value: unknown;
};

export type ToolCall = {
  readonly id: string | null;
  /** `function` or `custom`, '' where it does not say. */
  readonly type: string;
  readonly name: string | null;
  /** As they came: JSON text mostly, an object from some servers, any text for a custom tool. */
  readonly arguments: unknown;
};

export type ToolResult = { readonly id: string | null; readonly text: string };

export type Tool = {
  readonly type: string;
  readonly name: string | null;
  readonly description: string;
  /** A JSON schema, if the tool has one. */
  readonly parameters: unknown;
};

export type Message = {
  /** '' where it does not say. */
  readonly role: string;
  readonly parts: readonly Part[];
  readonly reasoning: string;
  readonly refusal: string;
  readonly toolCalls: readonly ToolCall[];
  /** Of a tool's result: the call that it answers. */
  readonly toolCallId: string | null;
  readonly name: string | null;
};

type Plain = Readonly<JsonObject>;
const nothing: Plain = Object.freeze({});
const objectOf = (value: unknown): Plain => (isObject(value) ? value : nothing);
const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const jsonText = (value: unknown): string => JSON.stringify(value) ?? '';

/** A message in chat form. */
export function readMessage(value: unknown): Message {
  const message = objectOf(value);
  return {
    role: textOrNull(message.role) ?? '',
    parts: partsOf(message.content),
    reasoning: reasoningOf(message),
    refusal: refusalOf(message),
    toolCalls: toolCallsOf(message),
    toolCallId: textOrNull(message.tool_call_id),
    name: textOrNull(message.name),
  };
}

export function partsOf(content: unknown): Part[] {
  if (content === null || content === undefined) return [];
  if (typeof content === 'string') return [partOf(content)];
  return Array.isArray(content) ? content.map(partOf) : [{ type: '', text: null, value: content }];
}

function partOf(value: unknown): Part {
  if (typeof value === 'string') return { type: 'text', text: value, value };
  const { type, text } = objectOf(value);
  return { type: textOrNull(type) ?? '', text: textOrNull(text), value };
}

/** The words of content, one part after the other; `other` says what stands for a part that has none. */
export function textOf(content: unknown, other: (part: Part) => string = () => ''): string {
  if (typeof content === 'string') return content;
  let text = '';
  for (const part of partsOf(content)) text += part.text ?? other(part);
  return text;
}

/** Of a message, of Anthropic's block of type `thinking`, or of an item of type `reasoning`. */
export function reasoningOf(value: Plain): string {
  return value.type === 'reasoning'
    ? textOf(value.content) || textOf(value.summary)
    : textOf(value.reasoning_content ?? value.reasoning ?? value.thinking);
}

/** A message's own, or that of its parts. */
export function refusalOf({ refusal, content }: Plain): string {
  if (typeof refusal === 'string' && refusal !== '') return refusal;
  return listOf(content)
    .map((part) => textOrNull(objectOf(part).refusal) ?? '')
    .join('');
}

/** The calls of a message in chat form. */
export function toolCallsOf(message: Plain): ToolCall[] {
  const calls = listOf(message.tool_calls).map(toolCallOf);
  if (isObject(message.function_call)) calls.push(toolCallOf({ type: 'function', function: message.function_call }));
  return calls;
}

/** Of any shape. */
export function toolCallOf(value: unknown): ToolCall {
  const call = objectOf(value);
  switch (call.type) {
    case 'tool_use':
      return callFrom(call.id, 'function', call.name, call.input ?? {});
    case 'function_call':
      return callFrom(call.call_id, 'function', call.name, call.arguments);
    case 'custom_tool_call':
      return callFrom(call.call_id, 'custom', call.name, call.input);
    default: {
      const body = objectOf(call.function ?? call.custom);
      return callFrom(call.id, call.type, body.name, body.arguments ?? body.input);
    }
  }
}

const callFrom = (id: unknown, type: unknown, name: unknown, given: unknown): ToolCall => ({
  id: textOrNull(id),
  type: textOrNull(type) ?? '',
  name: textOrNull(name),
  arguments: given,
});

/** As chat writes them. */
export const argumentsText = ({ arguments: given }: Pick<ToolCall, 'arguments'>): string =>
  typeof given === 'string' ? given : given === null ? '' : jsonText(given);

/** Of any shape; null: it is no result. */
export function toolResultOf(value: unknown): ToolResult | null {
  const result = objectOf(value);
  if (result.role === 'tool') return resultFrom(result.tool_call_id, result.content);
  if (result.type === 'tool_result') return resultFrom(result.tool_use_id, result.content, result.is_error === true);
  if (typeof result.type === 'string' && result.type.endsWith('_call_output'))
    return resultFrom(result.call_id, result.output);
  return null;
}

/** A result without a word, such as a picture, is told by its JSON; that it is an error has no other place than the words. */
function resultFrom(id: unknown, content: unknown, isError = false): ToolResult {
  const said = textOf(content);
  const text = said === '' && content !== '' ? jsonText(content) : said;
  return { id: textOrNull(id), text: isError && !saysError(text) ? `Error: ${text}` : text };
}

/** Whether a text that is no JSON tells of an error. */
export const saysError = (text: string): boolean => /^\s*error\b/i.test(text);

/** A tool as any request offers it, or one of the older `functions`. */
export function toolOf(value: unknown): Tool {
  const tool = objectOf(value);
  const body = objectOf(tool.function ?? tool.custom ?? tool);
  return {
    type: textOrNull(tool.type) ?? '',
    name: textOrNull(body.name),
    description: textOrNull(body.description) ?? '',
    parameters: body.parameters ?? body.input_schema,
  };
}
