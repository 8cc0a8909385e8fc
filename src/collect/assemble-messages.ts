/**
 * Anthropic's messages, in chat form: what a request says, and what an answer said. Pure, and lenient about what came over the
 * wire. A block that chat has no place for (server tools, images of an answer) is kept under `blocks`, so nothing is lost.
 *
 * An assistant's blocks become one message by the same function on both sides: an answer and the history that repeats it
 * are then the same words to threading.
 */
import type { Answer } from './assemble.ts';
import { parseSse } from './sse.ts';
import { isObject, type JsonObject, parseUntrusted } from './untrusted.ts';

/** Blocks with an index at or above this are dropped and counted: an index is a memory promise. */
const maxBlocks = 1024;

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const blocksOf = (content: unknown): JsonObject[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content).filter(isObject);
const textOf = (content: unknown): string =>
  blocksOf(content)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('');

/** The request's `system` and `messages` as chat messages. */
export function messagesInChat({ system, messages }: Readonly<Record<string, unknown>>): JsonObject[] {
  const out: JsonObject[] = [];
  if (system !== undefined && system !== null) out.push({ role: 'system', content: textOf(system) });
  for (const message of listOf(messages)) {
    if (!isObject(message)) continue;
    if (message.role === 'assistant') out.push(assistantOf(blocksOf(message.content)));
    else out.push(...userOf(message));
  }
  return out;
}

/** Results of tools stand inside a user's message, before what the user says. */
function userOf({ role, content }: JsonObject): JsonObject[] {
  const blocks = blocksOf(content);
  const results = blocks.filter(({ type }) => type === 'tool_result');
  if (results.length === 0) return [{ role, content }];
  const said = blocks.filter(({ type }) => type !== 'tool_result');
  return [...results.map(resultOf), ...(said.length === 0 ? [] : [{ role, content: said }])];
}

function resultOf({ tool_use_id, content, is_error }: JsonObject): JsonObject {
  const text = typeof content === 'string' ? content : textOf(content);
  const said = text === '' && content !== undefined && content !== '' ? JSON.stringify(content) : text;
  // Chat has no other place for it than the words.
  const marked = is_error === true && !/^\s*error\b/i.test(said) ? `Error: ${said}` : said;
  return { role: 'tool', tool_call_id: tool_use_id, content: marked };
}

function assistantOf(blocks: readonly JsonObject[]): JsonObject {
  let text = '';
  let thinking = '';
  const calls: JsonObject[] = [];
  const others: JsonObject[] = [];
  for (const block of blocks) {
    if (block.type === 'text') text += typeof block.text === 'string' ? block.text : '';
    else if (block.type === 'thinking') thinking += typeof block.thinking === 'string' ? block.thinking : '';
    else if (block.type === 'tool_use') {
      const given = typeof block.input === 'string' ? block.input : JSON.stringify(block.input ?? {});
      calls.push({ id: block.id, type: 'function', function: { name: block.name, arguments: given } });
    } else others.push(block);
  }
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    ...(thinking === '' ? {} : { reasoning_content: thinking }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(others.length === 0 ? {} : { blocks: others }),
  };
}

const finishes: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};

/** Anthropic counts cached tokens beside `input_tokens`, chat inside `prompt_tokens`. */
function usageInChat(usage: JsonObject): JsonObject {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = usage;
  const parts = [input_tokens, cache_creation_input_tokens, cache_read_input_tokens].filter(Number.isSafeInteger);
  const prompt = parts.length === 0 ? undefined : (parts as number[]).reduce((sum, n) => sum + n, 0);
  return { ...usage, prompt_tokens: prompt, completion_tokens: output_tokens };
}

/** What both a whole message and the end of a stream come to. */
function finish(answer: Answer, message: JsonObject, blocks: readonly JsonObject[]): void {
  if (typeof message.model === 'string' && message.model !== '') answer.model = message.model;
  if (isObject(message.usage)) answer.usage = usageInChat(message.usage);
  const reason = typeof message.stop_reason === 'string' ? message.stop_reason : null;
  const finishReason = reason === null ? null : (finishes[reason] ?? reason);
  answer.choices.push({ index: 0, message: assistantOf(blocks), finishReason });
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
  else finish(answer, body, blocksOf(body.content));
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
