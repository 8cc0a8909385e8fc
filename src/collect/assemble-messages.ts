/** An answer of Anthropic's messages, joined from its stream or read whole. Pure, and lenient about what came over the wire. */
import type { Answer } from './assemble.ts';
import { answerOfBlocks } from './chat-form.ts';
import { parseSse } from './sse.ts';
import { isObject, type JsonObject, parseUntrusted } from './untrusted.ts';

/** Blocks with an index at or above this are dropped and counted: an index is a memory promise. */
const maxBlocks = 1024;

const finishes: ReadonlyMap<string, string> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

/** Anthropic counts cached tokens beside `input_tokens`, chat inside `prompt_tokens`. */
function usageInChat(usage: JsonObject): JsonObject {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = usage;
  const parts = [input_tokens, cache_creation_input_tokens, cache_read_input_tokens].filter(Number.isSafeInteger);
  const prompt = parts.length === 0 ? undefined : (parts as number[]).reduce((sum, n) => sum + n, 0);
  return { ...usage, prompt_tokens: prompt, completion_tokens: output_tokens };
}

/** What both a whole message and the end of a stream come to. */
function finish(answer: Answer, message: JsonObject, content: unknown): void {
  if (typeof message.model === 'string' && message.model !== '') answer.model = message.model;
  if (isObject(message.usage)) answer.usage = usageInChat(message.usage);
  const reason = typeof message.stop_reason === 'string' ? message.stop_reason : null;
  const finishReason = reason === null ? null : (finishes.get(reason) ?? reason);
  answer.choices.push({ index: 0, message: answerOfBlocks(content), finishReason });
}

function errorOf(body: JsonObject): string {
  const said = isObject(body.error) ? body.error.message : undefined;
  return typeof said === 'string' ? said : JSON.stringify(body.error ?? body);
}

export function readMessagesJson(answer: Answer, wire: string): void {
  const body = parseUntrusted(wire);
  if (!isObject(body)) return;
  answer.complete = true;
  if (body.type === 'error' || isObject(body.error)) answer.error = errorOf(body);
  else finish(answer, body, body.content);
}

export function readMessagesStream(answer: Answer, wire: string): void {
  const { events, strange, open } = parseSse(wire);
  answer.malformed = strange;
  let message: JsonObject | null = null;
  const blocks = new Map<number, Growing>();
  for (const [position, { data }] of events.entries()) {
    const event = parseUntrusted(data.join('\n'));
    if (!isObject(event)) {
      // Half an event at the very end is a cut, which the missing message_stop already says.
      if (!open || position < events.length - 1) answer.malformed++;
      continue;
    }
    if (event.type === 'message_start' && isObject(event.message)) message = event.message;
    else if (event.type === 'message_delta') message = grown(message ?? {}, event);
    else if (event.type === 'message_stop') answer.complete = true;
    else if (event.type === 'error' || isObject(event.error)) answer.error ??= errorOf(event);
    else if (event.type === 'content_block_start' || event.type === 'content_block_delta')
      if (!growBlock(blocks, event)) answer.dropped++;
  }
  if (message !== null || blocks.size > 0)
    finish(
      answer,
      message ?? {},
      [...blocks].sort(([a], [b]) => a - b).map(([, block]) => finished(block)),
    );
}

/** The end of a message: its reason to stop, and counts that replace those of its start. */
function grown(message: JsonObject, { delta, usage }: JsonObject): JsonObject {
  const counts = isObject(usage) ? Object.entries(usage).filter(([, value]) => value !== null) : [];
  return {
    ...message,
    ...(isObject(delta) ? delta : {}),
    usage: { ...(isObject(message.usage) ? message.usage : {}), ...Object.fromEntries(counts) },
  };
}

/** `json`: a tool's input as it arrives. */
type Growing = { readonly block: JsonObject; json: string; readonly citations: unknown[] };

/** False when the block had to be dropped. */
function growBlock(blocks: Map<number, Growing>, { index, content_block, delta }: JsonObject): boolean {
  if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= maxBlocks) return false;
  let growing = blocks.get(index as number);
  if (growing === undefined) {
    growing = { block: isObject(content_block) ? { ...content_block } : {}, json: '', citations: [] };
    blocks.set(index as number, growing);
  }
  if (!isObject(delta)) return true;
  const { block } = growing;
  if (delta.type === 'text_delta') append(block, 'text', 'text', delta.text);
  else if (delta.type === 'thinking_delta') append(block, 'thinking', 'thinking', delta.thinking);
  else if (delta.type === 'signature_delta') block.signature = delta.signature;
  else if (delta.type === 'citations_delta') growing.citations.push(delta.citation);
  else if (delta.type === 'input_json_delta' && typeof delta.partial_json === 'string')
    growing.json += delta.partial_json;
  return true;
}

function append(block: JsonObject, type: string, key: string, more: unknown): void {
  block.type ??= type;
  if (typeof more === 'string') block[key] = (typeof block[key] === 'string' ? block[key] : '') + more;
}

/** An input that broke off stays the text it is. */
const finished = ({ block, json, citations }: Growing): JsonObject => ({
  ...block,
  ...(json === '' ? {} : { input: parseUntrusted(json) ?? json }),
  ...(citations.length === 0 ? {} : { citations }),
});
