/**
 * A trajectory as a story: for every turn only what is new in it. Chat requests repeat the whole conversation each time,
 * and the answer of one turn comes back as history of the next, often in another shape (content null for '', reasoning
 * left out). So messages are compared by what they say, and as a multiset: a changed system prompt or a summary in place
 * of old messages shows as itself, not as everything once more. Pure; recorded bodies are untrusted and only read.
 */
import { chatMessages } from './chat-form.ts';
import { argumentsText, type Message, readMessage } from './message.ts';
import type { Sibling } from './sibling.ts';
import type { Signal } from './signal.ts';
import type { Choice, Turn } from './turn.ts';
import { listOf } from './untrusted.ts';

/** A message with its words in one text. */
export type Shown = Message & {
  readonly text: string;
  /** For a tool's result: the tool's name, where the call was seen. */
  readonly toolName: string | null;
};

export type Step = {
  readonly turn: Turn;
  /** Milliseconds after the start of the first turn. */
  readonly offsetMs: number;
  /** What the caller added since the turn before, in order. */
  readonly news: readonly Shown[];
  /** Messages of the turn before that this request no longer has. */
  readonly dropped: number;
  readonly answers: readonly { readonly choice: Choice; readonly message: Shown }[];
  readonly signals: readonly Signal[];
  /** Other answers to the same prompt, which nobody was shown. */
  readonly siblings: readonly { readonly sibling: Sibling; readonly messages: readonly Shown[] }[];
};

export type Timeline = {
  readonly steps: readonly Step[];
  /** Signals about the whole, or about a turn that is not among these. */
  readonly signals: readonly Signal[];
};

/** Parts that are no words are named; what has no name is shown as it is. */
function shown(value: unknown, toolNames: ReadonlyMap<string, string> = new Map()): Shown {
  const message = readMessage(value);
  const said = message.parts
    .filter(({ type }) => type !== 'refusal')
    .map(({ type, text, value: part }) => text ?? (type === '' ? JSON.stringify(part) : `[${type}]`));
  return {
    ...message,
    text: [said.join('\n'), message.refusal].filter((text) => text !== '').join('\n'),
    toolName: toolNames.get(message.toolCallId ?? '') ?? message.name,
  };
}

/** Learns the names of tools as their calls pass. */
function learn(toolNames: Map<string, string>, { toolCalls }: Message): void {
  for (const { id, name } of toolCalls) if (id !== null && name !== null) toolNames.set(id, name);
}

/** What a request says, whichever endpoint it went to. */
function requestMessages(turn: Turn, toolNames: Map<string, string>): Shown[] {
  if (turn.endpoint !== 'completions' && turn.endpoint !== 'embeddings')
    return listOf(chatMessages(turn)).map((value) => {
      const message = shown(value, toolNames);
      learn(toolNames, message);
      return message;
    });
  const [role, given] =
    turn.endpoint === 'completions' ? ['prompt', turn.request.prompt] : ['input', turn.request.input];
  const texts = Array.isArray(given) && given.every((item) => typeof item === 'string') ? given : [given];
  return texts.map((text) => shown({ role, content: typeof text === 'string' ? text : text && JSON.stringify(text) }));
}

/** What a message says. Reasoning is not part of it: clients leave it out when they send an answer back. */
const saying = ({ role, text, toolCalls, toolCallId }: Shown): string =>
  JSON.stringify([role, text, toolCalls.map((call) => [call.id, call.name, argumentsText(call)]), toolCallId]);

const countOf = (messages: readonly Shown[]): Map<string, number> => {
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
    const answers = turn.choices.map((choice) => ({ choice, message: shown(choice.message) }));
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
        messages: sibling.choices.map(({ message }) => shown(message)),
      })),
    });
    for (const [key, count] of countOf([...asked, ...answers.map(({ message }) => message)]))
      seen.set(key, Math.max(count, seen.get(key) ?? 0));
    for (const { message } of answers) learn(toolNames, message);
    askedBefore = counts;
  }
  const ids = new Set(turns.map(({ id }) => id));
  return { steps, signals: signals.filter(({ target }) => target.kind !== 'turn' || !ids.has(target.id)) };
}
