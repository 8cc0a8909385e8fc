/**
 * Exchange → the turn's content: parses the request, joins a streamed answer's fragments (or reads the JSON one), and
 * says what became of the call. Pure, and it never throws for what came over the wire: whatever cannot be read is said
 * in `status` and `error`. Redaction and threading come after; nothing here is fit for disk yet.
 *
 * Wire facts: OpenAI's chat.completion.chunk; vLLM's `return_token_ids` (prompt ids in the first chunk, then deltas);
 * servers that omit a tool call's index, or give every parallel call index 0.
 */
import { readMessagesJson, readMessagesStream } from './assemble-messages.ts';
import { readResponsesJson, readResponsesStream } from './assemble-responses.ts';
import type { Exchange } from './exchange.ts';
import { parseSse, type SseEvent } from './sse.ts';
import type { Choice, Turn, TurnStatus } from './turn.ts';
import { isObject, type JsonObject, parseUntrusted } from './untrusted.ts';

/** Everything of a Turn but what threading and redaction add. */
export type Assembled = Omit<Turn, 'trajectory' | 'threadKey' | 'redactions'>;

/** Choices and tool calls with an index at or above this are dropped and said so: an index is a memory promise. */
export const MAX_INDEX = 1024;

/** `parse` reads a request's text; by itself every part of it is read anew. */
export function assemble(exchange: Exchange, parse: (text: string) => unknown = parseUntrusted): Assembled {
  const answer = readAnswer(exchange);
  const { status, error } = outcome(exchange, answer);
  const usage = answer.usage;
  const promptTokenIds = answer.promptTokenIds;
  // The rare ones last: what is spread into an object makes it one of the slow kind.
  const assembled: { -readonly [Field in keyof Assembled]: Assembled[Field] } = {
    id: exchange.id,
    agent: exchange.agent,
    user: exchange.user,
    origin: exchange.origin,
    keys: exchange.keys,
    endpoint: exchange.endpoint,
    startedAt: exchange.startedAt,
    firstTokenMs: exchange.firstTokenMs,
    latencyMs: exchange.latencyMs,
    upstream: exchange.upstream,
    release: exchange.release,
    model: answer.model ?? exchange.requestedModel,
    status,
    httpStatus: exchange.httpStatus,
    error,
    attempts: exchange.attempts,
    stream: exchange.stream,
    request: readRequest(exchange.requestBody, parse),
    choices: answer.choices,
    promptTokens: count(usage?.prompt_tokens),
    completionTokens: count(usage?.completion_tokens),
    reasoningTokens: isObject(usage?.completion_tokens_details)
      ? count(usage.completion_tokens_details.reasoning_tokens)
      : null,
    usage,
  };
  if (exchange.assigned !== undefined) assembled.assigned = exchange.assigned;
  if (exchange.clientKey !== undefined) assembled.clientKey = exchange.clientKey;
  if (promptTokenIds !== undefined) assembled.promptTokenIds = promptTokenIds;
  return assembled;
}

function readAnswer(exchange: Exchange): Answer {
  const { endpoint, stream } = exchange;
  if (endpoint !== 'responses' && endpoint !== 'messages') return stream ? readStream(exchange) : readJson(exchange);
  const answer = emptyAnswer();
  const wire = join(exchange.responseChunks);
  // Servers answer a refused streaming request with a JSON error, some under the stream's content type.
  const isStream = stream && !wire.trimStart().startsWith('{');
  if (endpoint === 'responses') (isStream ? readResponsesStream : readResponsesJson)(answer, wire);
  else (isStream ? readMessagesStream : readMessagesJson)(answer, wire);
  return answer;
}

/** The event that says a stream is whole. */
const lastEvent: Readonly<Partial<Record<Exchange['endpoint'], string>>> = {
  responses: 'response.completed',
  messages: 'message_stop',
};

/** What was read of the answer, and everything that was wrong with it. */
export type Answer = {
  model: string | null;
  choices: Choice[];
  usage: JsonObject | null;
  promptTokenIds?: readonly number[] | undefined;
  /** An error object or event from the upstream. */
  error: string | null;
  /** The end was seen: a parsed JSON body, or `[DONE]`. */
  complete: boolean;
  malformed: number;
  dropped: number;
};

function emptyAnswer(): Answer {
  return { model: null, choices: [], usage: null, error: null, complete: false, malformed: 0, dropped: 0 };
}

/** Precedence: what the gateway saw go wrong, an upstream error, a cut, then damage inside the stream. */
function outcome(exchange: Exchange, answer: Answer): { status: TurnStatus; error: string | null } {
  const found: string[] = [];
  if (answer.error !== null) found.push(answer.error);
  if (answer.malformed > 0) {
    found.push(`The upstream sent ${answer.malformed} malformed SSE event(s), which are missing from this turn.`);
  }
  if (answer.dropped > 0) {
    found.push(`${answer.dropped} choice(s) or tool call(s) with an index of ${MAX_INDEX} or more were not recorded.`);
  }
  if (exchange.responseTruncated) found.push('The answer was larger than the recorder keeps; its end is missing.');
  const error = exchange.error ?? (found.length > 0 ? found.join(' ') : null);

  if (exchange.status !== 'ok') return { status: exchange.status, error };
  if (answer.error !== null) return { status: 'error', error };
  if (exchange.httpStatus >= 400) {
    return { status: 'error', error: error ?? `The upstream answered with HTTP status ${exchange.httpStatus}.` };
  }
  if (exchange.responseTruncated) return { status: 'truncated', error };
  if (!answer.complete) {
    return exchange.stream
      ? { status: 'truncated', error: error ?? `The stream ended without ${lastEvent[exchange.endpoint] ?? '[DONE]'}.` }
      : { status: 'error', error: error ?? 'The upstream answered with a body that is not a JSON object.' };
  }
  if (answer.malformed > 0) return { status: 'error', error };
  return { status: 'ok', error };
}

const decoder = new TextDecoder();

function readRequest(body: Uint8Array, parse: (text: string) => unknown): JsonObject {
  const value = parse(decoder.decode(body));
  return isObject(value) ? value : {};
}

function join(chunks: readonly Uint8Array[]): string {
  return decoder.decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
}

function readJson(exchange: Exchange): Answer {
  const answer = emptyAnswer();
  const body = parseUntrusted(join(exchange.responseChunks));
  if (!isObject(body)) return answer;
  answer.complete = true;
  readEnvelope(answer, body);
  if (exchange.endpoint === 'embeddings') {
    answer.usage = embeddingSizes(answer.usage, body.data);
    return answer;
  }
  if (!Array.isArray(body.choices)) return answer;
  body.choices.forEach((raw: unknown, position: number) => {
    if (!isObject(raw)) return;
    const index = indexOf(raw.index, position);
    if (index === null || answer.choices.length >= MAX_INDEX) {
      answer.dropped++;
      return;
    }
    const message = isObject(raw.message) ? raw.message : textMessage(raw.text);
    answer.choices.push(choice(index, message, raw.finish_reason, integers(raw.token_ids), logprobs(raw.logprobs)));
    answer.promptTokenIds ??= integers(raw.prompt_token_ids);
  });
  return answer;
}

function textMessage(text: unknown): JsonObject {
  return { role: 'assistant', content: typeof text === 'string' ? text : null };
}

function choice(
  index: number,
  message: JsonObject,
  finish: unknown,
  tokenIds: number[] | undefined,
  logprobs: number[] | undefined,
): Choice {
  const made: { -readonly [Field in keyof Choice]: Choice[Field] } = {
    index,
    message,
    finishReason: typeof finish === 'string' ? finish : null,
  };
  if (tokenIds !== undefined) made.tokenIds = tokenIds;
  if (logprobs !== undefined) made.logprobs = logprobs;
  return made;
}

/** What chunks and whole bodies have in common. */
function readEnvelope(answer: Answer, body: JsonObject): void {
  if (typeof body.model === 'string' && body.model !== '') answer.model = body.model;
  if (isObject(body.usage)) answer.usage = body.usage;
  answer.promptTokenIds ??= integers(body.prompt_token_ids);
  const error = errorMessage(body);
  if (error !== null) answer.error ??= error;
}

/** OpenAI's `{error: {message}}`, plain `{error: "…"}`, and `{object: "error", message}` of older vLLM servers. */
function errorMessage(body: JsonObject): string | null {
  const error = body.error;
  if (typeof error === 'string' && error !== '') return error;
  if (isObject(error)) {
    return typeof error.message === 'string' ? error.message : JSON.stringify(error);
  }
  if (body.object === 'error' && typeof body.message === 'string') return body.message;
  return null;
}

/** Vectors are bulky and say nothing to a reader: how many and how long is kept with the usage. */
function embeddingSizes(usage: JsonObject | null, data: unknown): JsonObject | null {
  if (!Array.isArray(data)) return usage;
  const first: unknown = isObject(data[0]) ? data[0].embedding : undefined;
  // Base64 answers hold 4-byte floats.
  const dimensions = Array.isArray(first)
    ? first.length
    : typeof first === 'string'
      ? Math.floor(Buffer.byteLength(first, 'base64') / 4)
      : null;
  return { ...usage, embeddings: data.length, dimensions };
}

/** A choice while its stream is being joined. */
type Growing = {
  message: JsonObject;
  /** By position; a server's own index maps to one through `slots`. */
  toolCalls: { index: number | null; call: JsonObject }[];
  finish: unknown;
  tokenIds: number[] | undefined;
  logprobs: number[] | undefined;
};

function readStream(exchange: Exchange): Answer {
  const answer = emptyAnswer();
  const wire = join(exchange.responseChunks);
  // Servers answer a refused streaming request with a JSON error, some under the stream's content type.
  if (wire.trimStart().startsWith('{')) return readJson(exchange);
  const { events, strange, open } = parseSse(wire);
  answer.malformed = strange;
  const growing = new Map<number, Growing>();
  let pattern: Pattern | null = null;
  for (let position = 0; position < events.length; position++) {
    const event = events[position] as SseEvent;
    const line = event.data[0] as string;
    if (pattern !== null && event.data.length === 1 && event.event === '') {
      const text = fragment(pattern, line);
      if (text !== null) {
        mergeString(pattern.at.message, pattern.key, text);
        continue;
      }
    }
    const bodies = eventBodies(event.data, answer, open && position === events.length - 1);
    for (const body of bodies) {
      if (event.event === 'error') answer.error ??= errorMessage(body) ?? JSON.stringify(body);
      readEnvelope(answer, body);
      if (!Array.isArray(body.choices)) continue;
      body.choices.forEach((raw: unknown, place: number) => {
        if (!isObject(raw)) return;
        const index = indexOf(raw.index, place);
        if (index === null) {
          answer.dropped++;
          return;
        }
        let at = growing.get(index);
        if (at === undefined) {
          at = { message: {}, toolCalls: [], finish: null, tokenIds: undefined, logprobs: undefined };
          growing.set(index, at);
        }
        answer.dropped += grow(at, raw);
        answer.promptTokenIds ??= integers(raw.prompt_token_ids);
      });
    }
    pattern = bodies.length === 1 && event.data.length === 1 ? learn(line, bodies[0] as JsonObject, growing) : null;
  }
  answer.choices = [...growing.entries()]
    .sort(([a], [b]) => a - b)
    .map(([index, at]) => choice(index, finished(at), at.finish, at.tokenIds, at.logprobs));
  return answer;
}

/**
 * Most events of a stream differ from the one before in nothing but one string. Once an event has been parsed, a later
 * line with the same text around that string says the same thing with another fragment, so only the fragment is parsed;
 * JSON.parse of whole events is most of what assembling costs.
 */
type Pattern = { readonly before: string; readonly after: string; readonly key: string; readonly at: Growing };

function learn(line: string, body: JsonObject, growing: ReadonlyMap<number, Growing>): Pattern | null {
  const raw: unknown = Array.isArray(body.choices) && body.choices.length === 1 ? body.choices[0] : null;
  if (!isObject(raw) || !isObject(raw.delta)) return null;
  // Lists would have to be appended again, so events that carry any are always parsed.
  if (isObject(raw.logprobs) || Array.isArray(raw.token_ids) || isObject(raw.message) || 'text' in raw) return null;
  const at = growing.get(indexOf(raw.index, 0) ?? -1);
  const [key, ...others] = Object.keys(raw.delta);
  if (at === undefined || key === undefined || others.length > 0 || labels.has(key)) return null;
  const text = raw.delta[key];
  if (typeof text !== 'string') return null;
  // Inside a JSON string these quotes would be escaped, so a single hit is the delta itself.
  const opening = `"delta":{${JSON.stringify(key)}:`;
  const start = line.indexOf(opening);
  if (start < 0 || line.indexOf(opening, start + 1) >= 0) return null;
  const before = line.slice(0, start + opening.length);
  const end = line.indexOf('"}', before.length);
  if (end < 0 || line.charAt(before.length) !== '"') return null;
  const pattern = { before, after: line.slice(end + 1), key, at };
  return fragment(pattern, line) === text ? pattern : null;
}

/** A JSON string without escapes: what it says is what stands between the quotes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these
const plainString = /^"[^"\\\x00-\x1f]*"$/;

/** The text between, if the line fits the pattern and what is between is exactly one JSON string. */
function fragment({ before, after }: Pattern, line: string): string | null {
  const end = line.length - after.length;
  // Slices are compared because startsWith and endsWith take three times as long on them (V8 of Node 20).
  if (end < before.length + 2 || line.slice(0, before.length) !== before || line.slice(end) !== after) return null;
  const literal = line.slice(before.length, end);
  if (plainString.test(literal)) return literal.slice(1, -1);
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}

/** The JSON objects of one event: usually one; lines are tried singly for servers that leave out blank lines. */
function eventBodies(data: readonly string[], answer: Answer, last: boolean): JsonObject[] {
  const bodies: JsonObject[] = [];
  const whole = data.length === 1 ? undefined : parseUntrusted(data.join('\n'));
  if (isObject(whole)) return [whole];
  for (const line of data) {
    if (line.trim() === '[DONE]') {
      answer.complete = true;
      continue;
    }
    if (line === '') continue;
    const body = parseUntrusted(line);
    if (isObject(body)) bodies.push(body);
    // Half an event at the very end is a cut, which the missing [DONE] already says.
    else if (!last) answer.malformed++;
  }
  return bodies;
}

/** Adds one chunk's choice; returns how many tool calls had to be dropped. */
function grow(at: Growing, raw: JsonObject): number {
  let dropped = 0;
  if (typeof raw.text === 'string') mergeString(at.message, 'content', raw.text);
  if (isObject(raw.delta)) {
    for (const [key, value] of Object.entries(raw.delta)) {
      if (key === 'tool_calls') {
        if (!Array.isArray(value)) continue;
        for (const part of value) if (isObject(part) && !growToolCall(at, part)) dropped++;
      } else if (key === 'function_call' && isObject(value)) {
        const call = isObject(at.message.function_call) ? at.message.function_call : {};
        at.message.function_call = call;
        mergeFunction(call, value);
      } else mergeField(at.message, key, value);
    }
  }
  if (isObject(raw.message)) Object.assign(at.message, raw.message); // some servers end with the whole message
  if (typeof raw.finish_reason === 'string') at.finish = raw.finish_reason;
  at.tokenIds = append(at.tokenIds, integers(raw.token_ids));
  at.logprobs = append(at.logprobs, logprobs(raw.logprobs));
  return dropped;
}

/** Names, not text: a repeat replaces, it does not continue. */
const labels = new Set(['role', 'name', 'id', 'type', 'object']);

function mergeField(target: JsonObject, key: string, value: unknown): void {
  const before = target[key];
  if (typeof value === 'string') {
    if (!labels.has(key)) mergeString(target, key, value);
    else if (value !== '') target[key] = value;
  } else if (Array.isArray(value)) {
    // Lists such as reasoning_details and annotations arrive in pieces.
    if (Array.isArray(before)) for (const item of value) pushPart(before, item);
    else target[key] = value;
  } else if (value !== null || before === undefined) target[key] = value;
}

/** A part that goes on with the text of the one before is joined to it: an address must not lie in two pieces. */
function pushPart(parts: unknown[], part: unknown): void {
  const last = parts.at(-1);
  const goesOn = isObject(last) && isObject(part) && last.type === part.type && last.index === part.index;
  const others = goesOn ? Object.keys(part).filter((key) => !partLabels.has(key)) : [];
  if (goesOn && others.length === 1 && typeof part[others[0]!] === 'string' && typeof last[others[0]!] === 'string')
    mergeString(last, others[0]!, part[others[0]!] as string);
  else parts.push(part);
}
const partLabels = new Set(['type', 'index', 'id', 'format']);

function mergeString(target: JsonObject, key: string, value: string): void {
  const before = target[key];
  target[key] = typeof before === 'string' ? before + value : value;
}

function mergeFunction(target: JsonObject, part: JsonObject): void {
  for (const [key, value] of Object.entries(part)) {
    if (key === 'name') {
      if (typeof value === 'string' && value !== '') target.name = value;
    } else mergeField(target, key, value);
  }
}

function growToolCall(at: Growing, part: JsonObject): boolean {
  const index = part.index === undefined || part.index === null ? null : indexOf(part.index, -1);
  if (index === null && part.index !== undefined && part.index !== null) return false;
  const id = typeof part.id === 'string' && part.id !== '' ? part.id : null;
  const named = isObject(part.function) && typeof part.function.name === 'string' && part.function.name !== '';
  let slot =
    index === null
      ? id === null
        ? named
          ? undefined
          : at.toolCalls.at(-1)
        : at.toolCalls.find((known) => known.call.id === id)
      : at.toolCalls.findLast((known) => known.index === index);
  // Every parallel call under index 0: another id together with another name starts another call.
  if (slot !== undefined && id !== null && named && typeof slot.call.id === 'string' && slot.call.id !== id) {
    slot = undefined;
  }
  if (slot === undefined) {
    if (at.toolCalls.length >= MAX_INDEX) return false;
    slot = { index, call: {} };
    at.toolCalls.push(slot);
  }
  for (const [key, value] of Object.entries(part)) {
    if (key === 'index') continue;
    if (key === 'function' && isObject(value)) {
      const call = isObject(slot.call.function) ? slot.call.function : {};
      slot.call.function = call;
      mergeFunction(call, value);
    } else mergeField(slot.call, key, value);
  }
  return true;
}

function finished(at: Growing): JsonObject {
  const message: JsonObject = at.message;
  message.role ??= 'assistant';
  if (message.content === undefined) message.content = null;
  if (at.toolCalls.length > 0) {
    const order = at.toolCalls.map((slot, position) => ({ ...slot, position }));
    order.sort((a, b) => (a.index ?? a.position) - (b.index ?? b.position) || a.position - b.position);
    message.tool_calls = order.map((slot) => slot.call);
  }
  return message;
}

/** Chat gives `{content: [{logprob}]}`, completions `{token_logprobs: []}`. A hole spoils the list, so it is left out. */
function logprobs(value: unknown): number[] | undefined {
  if (!isObject(value)) return undefined;
  const list: unknown = Array.isArray(value.content)
    ? value.content.map((token: unknown) => (isObject(token) ? token.logprob : undefined))
    : value.token_logprobs;
  return Array.isArray(list) && list.every((item) => Number.isFinite(item)) ? (list as number[]) : undefined;
}

function integers(value: unknown): number[] | undefined {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item)) ? (value as number[]) : undefined;
}

function append(list: number[] | undefined, more: number[] | undefined): number[] | undefined {
  if (more === undefined) return list;
  if (list === undefined) return [...more];
  for (const item of more) list.push(item);
  return list;
}

/** The index given, the position if none is, null if it is not acceptable. */
function indexOf(value: unknown, position: number): number | null {
  const index = value === undefined || value === null ? position : value;
  return Number.isInteger(index) && (index as number) >= 0 && (index as number) < MAX_INDEX ? (index as number) : null;
}

/** A token count, if it is one. */
function count(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}
