/**
 * Any wire format in chat form: what a request says, as chat messages, and what an assistant said, as one of them. Anthropic
 * writes blocks, OpenAI's responses write items; both become a message by the same function in requests and in answers, so an
 * answer and the history that repeats it are the same words to threading. What chat has no place for (searches, interpreters,
 * images) is kept under `blocks` or `items`, so nothing is lost.
 */
import {
  argumentsText,
  reasoningOf,
  refusalOf,
  type ToolCall,
  type ToolResult,
  textOf,
  toolCallOf,
  toolResultOf,
} from './message.ts';
import type { Turn } from './turn.ts';
import { isObject, type JsonObject, listOf } from './untrusted.ts';

/** Messages of a request, whichever wire format it came in; undefined where nobody talks. */
export function chatMessages({ endpoint, request }: Pick<Turn, 'endpoint' | 'request'>): unknown {
  switch (endpoint) {
    case 'chat':
      return request.messages;
    case 'responses':
      return fromResponses(request);
    case 'messages':
      return fromAnthropic(request);
    case 'completions':
    case 'embeddings':
      return undefined;
    default:
      endpoint satisfies never;
  }
}

type Request = Turn['request'];

function fromResponses({ instructions, input }: Request): JsonObject[] {
  const out: JsonObject[] = [];
  if (typeof instructions === 'string') out.push({ role: 'system', content: instructions });
  if (typeof input === 'string') return [...out, { role: 'user', content: input }];
  let answer: JsonObject[] = [];
  const close = () => {
    if (answer.length > 0) out.push(answerOfItems(answer));
    answer = [];
  };
  for (const item of listOf(input).filter(isObject)) {
    const result = toolResultOf(item);
    if (result === null && isAssistants(item)) {
      answer.push(item);
      continue;
    }
    close();
    out.push(result === null ? { role: item.role ?? 'user', content: item.content } : inChat(result));
  }
  close();
  return out;
}

/** Whatever is no message is something that the assistant did. */
const isAssistants = ({ type, role }: JsonObject): boolean =>
  type === undefined || type === 'message' ? role === 'assistant' : true;

function fromAnthropic({ system, messages }: Request): JsonObject[] {
  const out: JsonObject[] = [];
  if (system !== undefined && system !== null) out.push({ role: 'system', content: textOf(system) });
  for (const message of listOf(messages).filter(isObject)) {
    if (message.role === 'assistant') out.push(answerOfBlocks(message.content));
    else for (const one of withoutResults(message)) out.push(one);
  }
  return out;
}

/** Results of tools stand inside a user's message, before what the user says. */
function withoutResults({ role, content }: JsonObject): JsonObject[] {
  const results: JsonObject[] = [];
  const said: JsonObject[] = [];
  for (const block of listOf(content).filter(isObject)) {
    const result = toolResultOf(block);
    if (result === null) said.push(block);
    else results.push(inChat(result));
  }
  if (results.length === 0) return [{ role, content }];
  return said.length === 0 ? results : [...results, { role, content: said }];
}

const inChat = ({ id, text }: ToolResult): JsonObject => ({ role: 'tool', tool_call_id: id, content: text });

/** The content of an assistant's message of Anthropic's. */
export const answerOfBlocks = (content: unknown): JsonObject =>
  answerOf(typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content).filter(isObject), {
    between: '',
    rest: 'blocks',
  });

/** What an assistant did in one turn of OpenAI's responses; each message begins on a line of its own. */
export const answerOfItems = (items: readonly JsonObject[]): JsonObject =>
  answerOf(items, { between: '\n', rest: 'items' });

function answerOf(
  pieces: readonly JsonObject[],
  { between, rest }: { readonly between: string; readonly rest: string },
): JsonObject {
  const said: string[] = [];
  const thought: string[] = [];
  let refusal = '';
  const calls: JsonObject[] = [];
  const others: JsonObject[] = [];
  for (const piece of pieces) {
    // An item that says neither its type nor anything else is no message.
    switch (piece.type ?? (piece.content === undefined ? 'unknown' : 'message')) {
      case 'text':
        said.push(textOf([piece]));
        break;
      case 'message':
        said.push(textOf(piece.content));
        refusal += refusalOf(piece);
        break;
      case 'thinking':
      case 'reasoning':
        thought.push(reasoningOf(piece));
        break;
      case 'tool_use':
      case 'function_call':
      case 'custom_tool_call':
        calls.push(callInChat(toolCallOf(piece)));
        break;
      default:
        others.push(piece);
    }
  }
  const joined = (texts: readonly string[]): string => texts.filter((text) => text !== '').join(between);
  const [text, reasoning] = [joined(said), joined(thought)];
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    ...(refusal === '' ? {} : { refusal }),
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(others.length === 0 ? {} : { [rest]: others }),
  };
}

function callInChat(call: ToolCall): JsonObject {
  const { id, name } = call;
  return call.type === 'custom'
    ? { id, type: 'custom', custom: { name, input: argumentsText(call) } }
    : { id, type: 'function', function: { name, arguments: argumentsText(call) } };
}
