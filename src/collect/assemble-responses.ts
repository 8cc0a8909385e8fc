/**
 * An answer of OpenAI's responses, joined from its stream or read whole. Pure, and lenient about what came over the wire. A
 * stream's last event carries the whole response; only if it never came are the fragments before it put together.
 */
import type { Answer } from './assemble.ts';
import { answerOfItems } from './chat-form.ts';
import { refusalOf, textOf } from './message.ts';
import { parseSse, type SseEvent } from './sse.ts';
import { isObject, type JsonObject, listOf, parseUntrusted } from './untrusted.ts';

/** Items with an index at or above this are dropped and counted: an index is a memory promise. */
const maxItems = 1024;

const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

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
  const message = answerOfItems(output.slice(0, maxItems));
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
  const message = answerOfItems([...items].sort(([a], [b]) => a - b).map(([, item]) => item));
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
      item.content = textOf(item.content) + more;
      break;
    case 'response.refusal.delta':
      item.content = [{ type: 'refusal', refusal: refusalOf(item) + more }];
      break;
    case 'response.function_call_arguments.delta':
      item.arguments = stringOf(item.arguments) + more;
      break;
    case 'response.custom_tool_call_input.delta':
      item.input = stringOf(item.input) + more;
      break;
    case 'response.reasoning_text.delta':
      item.type ??= 'reasoning';
      item.content = textOf(item.content) + more;
      break;
    case 'response.reasoning_summary_text.delta':
      item.type ??= 'reasoning';
      item.summary = textOf(item.summary) + more;
      break;
  }
  return true;
}
