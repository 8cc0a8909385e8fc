/**
 * A trajectory as a story: for every turn only what is new in it. Chat requests repeat the whole conversation each time,
 * and the answer of one turn comes back as history of the next, often in another shape (content null for '', reasoning
 * left out). So messages are compared by what they say, and as a multiset: a changed system prompt or a summary in place
 * of old messages shows as itself, not as everything once more. Pure; recorded bodies are untrusted and only read.
 */
import { chatMessages } from './chat-form.ts';
import type { Sibling } from './sibling.ts';
import type { Signal } from './signal.ts';
import type { Choice, Turn } from './turn.ts';

export type ToolCall = { readonly id: string | null; readonly name: string; readonly arguments: string };

export type Message = {
  readonly role: string;
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** For a tool's result: the call it answers, and the tool's name where that call was seen. */
  readonly toolCallId: string | null;
  readonly toolName: string | null;
};

export type Step = {
  readonly turn: Turn;
  /** Milliseconds after the start of the first turn. */
  readonly offsetMs: number;
  /** What the caller added since the turn before, in order. */
  readonly news: readonly Message[];
  /** Messages of the turn before that this request no longer has. */
  readonly dropped: number;
  readonly answers: readonly { readonly choice: Choice; readonly message: Message }[];
  readonly signals: readonly Signal[];
  /** Other answers to the same prompt, which nobody was shown. */
  readonly siblings: readonly { readonly sibling: Sibling; readonly messages: readonly Message[] }[];
};

export type Timeline = {
  readonly steps: readonly Step[];
  /** Signals about the whole, or about a turn that is not among these. */
  readonly signals: readonly Signal[];
};

type Plain = Readonly<Record<string, unknown>>;
const objectOf = (value: unknown): Plain =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Plain) : {};
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const stringOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

/** Text of a content field: a string, or parts of which what is not text is named. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return stringOf(content);
  return content
    .map((part) => {
      const { type, text, refusal } = objectOf(part);
      if (typeof text === 'string') return text;
      if (typeof refusal === 'string') return refusal;
      return typeof part === 'string' ? part : `[${typeof type === 'string' ? type : 'part'}]`;
    })
    .join('\n');
}

function readMessage(value: unknown, toolNames: ReadonlyMap<string, string> = new Map()): Message {
  const message = objectOf(value);
  const toolCalls = listOf(message.tool_calls).map((item): ToolCall => {
    const call = objectOf(item);
    const body = objectOf(call.function ?? call.custom);
    return {
      id: typeof call.id === 'string' ? call.id : null,
      name: stringOf(body.name) || '(unnamed tool)',
      arguments: stringOf(body.arguments ?? body.input),
    };
  });
  const legacy = objectOf(message.function_call);
  if (typeof legacy.name === 'string')
    toolCalls.push({ id: null, name: legacy.name, arguments: stringOf(legacy.arguments) });
  const toolCallId = typeof message.tool_call_id === 'string' ? message.tool_call_id : null;
  const text = contentText(message.content);
  return {
    role: stringOf(message.role) || 'unknown',
    text: text === '' && typeof message.refusal === 'string' ? message.refusal : text,
    reasoning: contentText(message.reasoning_content ?? message.reasoning ?? message.thinking),
    toolCalls,
    toolCallId,
    toolName: toolNames.get(toolCallId ?? '') ?? (typeof message.name === 'string' ? message.name : null),
  };
}

/** What a request says, whichever endpoint it went to. Learns the names of tools as their calls pass. */
function requestMessages(turn: Turn, toolNames: Map<string, string>): Message[] {
  if (turn.endpoint !== 'completions' && turn.endpoint !== 'embeddings')
    return listOf(chatMessages(turn)).map((value) => {
      const message = readMessage(value, toolNames);
      for (const call of message.toolCalls) if (call.id !== null) toolNames.set(call.id, call.name);
      return message;
    });
  const [role, given] =
    turn.endpoint === 'completions' ? ['prompt', turn.request.prompt] : ['input', turn.request.input];
  const texts = Array.isArray(given) && given.every((item) => typeof item === 'string') ? given : [given];
  return texts.map((content) => readMessage({ role, content: stringOf(content) }));
}

/** What a message says. Reasoning is not part of it: clients leave it out when they send an answer back. */
const saying = ({ role, text, toolCalls, toolCallId }: Message): string =>
  JSON.stringify([role, text, toolCalls.map((call) => [call.id, call.name, call.arguments]), toolCallId]);

const countOf = (messages: readonly Message[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const message of messages) counts.set(saying(message), (counts.get(saying(message)) ?? 0) + 1);
  return counts;
};

/** `turns` in the order they started. */
export function timelineOf(
  turns: readonly Turn[],
  signals: readonly Signal[] = [],
  siblings: ReadonlyMap<string, readonly Sibling[]> = new Map(),
): Timeline {
  const toolNames = new Map<string, string>();
  const steps: Step[] = [];
  /** How often each thing was said in the one turn that said it most. Calls of several sub-agents may interleave. */
  const seen = new Map<string, number>();
  let askedBefore = new Map<string, number>();
  for (const turn of turns) {
    const answers = turn.choices.map((choice) => ({ choice, message: readMessage(choice.message) }));
    const asked = requestMessages(turn, toolNames);
    const counts = countOf(asked);
    const left = new Map(seen);
    const news = asked.filter((message) => {
      const count = left.get(saying(message)) ?? 0;
      if (count > 0) left.set(saying(message), count - 1);
      return count === 0;
    });
    let dropped = 0;
    for (const [key, count] of askedBefore) dropped += Math.max(0, count - (counts.get(key) ?? 0));
    steps.push({
      turn,
      offsetMs: turn.startedAt - (turns[0]?.startedAt ?? turn.startedAt),
      news,
      dropped: news.length < asked.length ? dropped : 0,
      answers,
      signals: signals.filter(({ target }) => target.kind === 'turn' && target.id === turn.id),
      siblings: (siblings.get(turn.id) ?? []).map((sibling) => ({
        sibling,
        messages: sibling.choices.map(({ message }) => readMessage(message)),
      })),
    });
    for (const [key, count] of countOf([...asked, ...answers.map(({ message }) => message)]))
      seen.set(key, Math.max(count, seen.get(key) ?? 0));
    for (const { message } of answers)
      for (const call of message.toolCalls) if (call.id !== null) toolNames.set(call.id, call.name);
    askedBefore = counts;
  }
  const ids = new Set(turns.map(({ id }) => id));
  return { steps, signals: signals.filter(({ target }) => target.kind !== 'turn' || !ids.has(target.id)) };
}
