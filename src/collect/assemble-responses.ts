/**
 * OpenAI's responses, in chat form: what a request says, and what an answer said. Pure, and lenient about what came over the
 * wire. Items of one assistant's turn (reasoning, messages, calls) become one message by the same function on both sides:
 * an answer and the history that repeats it are then the same words to threading. Items that chat has no place for (searches,
 * interpreters, images) are kept under `items`, so nothing is lost.
 *
 * A stream's last event carries the whole response; only if it never came are the fragments before it put together.
 */
import type { Answer } from './assemble.ts';
import { parseSse, type SseEvent } from './sse.ts';
import { isObject, type JsonObject, parseUntrusted } from './untrusted.ts';

/** Items with an index at or above this are dropped and counted: an index is a memory promise. */
const maxItems = 1024;

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The request's `instructions` and `input` as chat messages. */
export function responsesInChat({ instructions, input }: Readonly<Record<string, unknown>>): JsonObject[] {
  const out: JsonObject[] = [];
  if (typeof instructions === 'string') out.push({ role: 'system', content: instructions });
  if (typeof input === 'string') return [...out, { role: 'user', content: input }];
  let assistants: JsonObject[] = [];
  const close = () => {
    if (assistants.length > 0) out.push(assistantOf(assistants));
    assistants = [];
  };
  for (const item of listOf(input)) {
    if (!isObject(item)) continue;
    if (isAssistants(item)) {
      assistants.push(item);
      continue;
    }
    close();
    out.push(isResult(item) ? resultOf(item) : { role: item.role ?? 'user', content: item.content });
  }
  close();
  return out;
}

const isResult = ({ type }: JsonObject): boolean => typeof type === 'string' && type.endsWith('_call_output');
const isAssistants = (item: JsonObject): boolean =>
  item.type === undefined || item.type === 'message' ? item.role === 'assistant' : !isResult(item);

function resultOf({ call_id, output }: JsonObject): JsonObject {
  const parts = listOf(output).map((part) => (isObject(part) ? stringOf(part.text) : ''));
  const content = Array.isArray(output) ? parts.join('') : output;
  return {
    role: 'tool',
    tool_call_id: call_id,
    content: typeof content === 'string' ? content : JSON.stringify(content),
  };
}

const partsText = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : listOf(content)
        .map((part) => (isObject(part) ? stringOf(part.text) : ''))
        .join('');

function assistantOf(items: readonly JsonObject[]): JsonObject {
  const said: string[] = [];
  const thought: string[] = [];
  let refusal = '';
  const calls: JsonObject[] = [];
  const others: JsonObject[] = [];
  for (const item of items) {
    if (item.type === undefined || item.type === 'message') {
      said.push(partsText(item.content));
      for (const part of listOf(item.content)) if (isObject(part)) refusal += stringOf(part.refusal);
    } else if (item.type === 'reasoning') thought.push(partsText(item.content) || partsText(item.summary));
    else if (item.type === 'function_call')
      calls.push({
        id: item.call_id,
        type: 'function',
        function: { name: item.name, arguments: stringOf(item.arguments) },
      });
    else if (item.type === 'custom_tool_call')
      calls.push({ id: item.call_id, type: 'custom', custom: { name: item.name, input: stringOf(item.input) } });
    else others.push(item);
  }
  const text = said.filter((part) => part !== '').join('\n');
  const thinking = thought.filter((part) => part !== '').join('\n');
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    ...(refusal === '' ? {} : { refusal }),
    ...(thinking === '' ? {} : { reasoning_content: thinking }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(others.length === 0 ? {} : { items: others }),
  };
}

function usageInChat(usage: JsonObject): JsonObject {
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  return {
    ...usage,
    prompt_tokens: usage.input_tokens,
    completion_tokens: usage.output_tokens,
    completion_tokens_details: { reasoning_tokens: details.reasoning_tokens },
  };
}

function finishOf(response: JsonObject, message: JsonObject): string | null {
  if (response.status === 'incomplete') {
    const reason = isObject(response.incomplete_details) ? response.incomplete_details.reason : null;
    return reason === 'max_output_tokens' ? 'length' : typeof reason === 'string' ? reason : null;
  }
  if (response.status !== 'completed') return null;
  return message.tool_calls === undefined ? 'stop' : 'tool_calls';
}

function errorOf(error: unknown): string {
  const said = isObject(error) ? error.message : undefined;
  return typeof said === 'string' ? said : JSON.stringify(error);
}

function readResponse(answer: Answer, response: JsonObject): void {
  if (typeof response.model === 'string' && response.model !== '') answer.model = response.model;
  if (isObject(response.usage)) answer.usage = usageInChat(response.usage);
  if (response.error !== undefined && response.error !== null) answer.error ??= errorOf(response.error);
  const output = listOf(response.output).filter(isObject);
  if (output.length > maxItems) answer.dropped += output.length - maxItems;
  if (output.length === 0) return;
  const message = assistantOf(output.slice(0, maxItems));
  answer.choices = [{ index: 0, message, finishReason: finishOf(response, message) }];
}

export function readResponsesJson(answer: Answer, wire: string): void {
  const body = parseUntrusted(wire);
  if (!isObject(body)) return;
  answer.complete = true;
  readResponse(answer, body);
}

const isLast = /^response\.(?:completed|incomplete|failed|cancelled)$/;

/** The response that the last event carries; `[DONE]` and the like may follow it. */
function lastResponse(events: readonly SseEvent[]): JsonObject | null {
  for (const { data } of events.slice(-4).reverse()) {
    const event = parseUntrusted(data.join('\n'));
    if (isObject(event) && isLast.test(stringOf(event.type)) && isObject(event.response)) return event.response;
  }
  return null;
}

export function readResponsesStream(answer: Answer, wire: string): void {
  const { events, strange, open } = parseSse(wire);
  answer.malformed = strange;
  const last = lastResponse(events);
  if (last !== null) {
    answer.complete = true;
    readResponse(answer, last);
    if (answer.choices.length > 0 || answer.error !== null) return;
  }
  const items = new Map<number, JsonObject>();
  for (const [position, { data }] of events.entries()) {
    if (data[0] === '[DONE]') continue;
    const event = parseUntrusted(data.join('\n'));
    if (!isObject(event)) {
      if (!open || position < events.length - 1) answer.malformed++;
      continue;
    }
    if (event.type === 'error' || isObject(event.error)) answer.error ??= errorOf(event.error ?? event);
    else if (!grow(items, event)) answer.dropped++;
    if (isObject(event.response) && typeof event.response.model === 'string') answer.model ??= event.response.model;
  }
  if (items.size === 0) return;
  const message = assistantOf([...items].sort(([a], [b]) => a - b).map(([, item]) => item));
  answer.choices = [{ index: 0, message, finishReason: last === null ? null : finishOf(last, message) }];
}

/** Fragments of items, by the place of the item in the output. False when one had to be dropped. */
function grow(items: Map<number, JsonObject>, event: JsonObject): boolean {
  const at = event.output_index;
  if (at === undefined) return true;
  if (!Number.isInteger(at) || (at as number) < 0 || (at as number) >= maxItems) return false;
  const item = items.get(at as number) ?? {};
  items.set(at as number, item);
  const more = stringOf(event.delta);
  switch (event.type) {
    case 'response.output_item.added':
    case 'response.output_item.done':
      if (isObject(event.item)) items.set(at as number, { ...event.item });
      break;
    case 'response.output_text.delta':
      item.type ??= 'message';
      item.content = partsText(item.content) + more;
      break;
    case 'response.refusal.delta':
      item.content = [{ type: 'refusal', refusal: refusalIn(item.content) + more }];
      break;
    case 'response.function_call_arguments.delta':
      item.arguments = stringOf(item.arguments) + more;
      break;
    case 'response.custom_tool_call_input.delta':
      item.input = stringOf(item.input) + more;
      break;
    case 'response.reasoning_text.delta':
      item.type ??= 'reasoning';
      item.content = partsText(item.content) + more;
      break;
    case 'response.reasoning_summary_text.delta':
      item.type ??= 'reasoning';
      item.summary = partsText(item.summary) + more;
      break;
  }
  return true;
}

const refusalIn = (content: unknown): string => {
  const [part] = listOf(content);
  return isObject(part) ? stringOf(part.refusal) : '';
};
