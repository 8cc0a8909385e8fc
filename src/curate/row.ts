/**
 * One conversation as training data sees it: messages with tool calls and results, what the agent wrote in them, and what
 * that was worth. No user, no time, nothing that a trainer does not need.
 *
 * thread   a run of turns each of which repeats all before it. Most conversations are one thread. Where an agent
 *          summarises its history, changes its tools or runs a sub-agent, another thread begins, so that what is learned is
 *          always what the model really saw
 * answer   one turn's message inside a thread, with its exact tokens where they were recorded
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { readMessage, type ToolCall, toolOf } from '../collect/message.ts';
import { normalForm } from '../collect/normal-form.ts';
import { normalise } from '../collect/thread.ts';
import type { Turn } from '../collect/turn.ts';
import { isObject, listOf } from '../collect/untrusted.ts';
import type { Score } from '../score/score.ts';

const toolCall = z.strictObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string(), arguments: z.string() }),
});
export const assistantMessage = z.strictObject({
  role: z.literal('assistant'),
  content: z.string().nullable(),
  tool_calls: z.array(toolCall).exactOptional(),
  /** Of an earlier answer, where the agent sends it back: then the model saw it. */
  reasoning_content: z.string().exactOptional(),
});
export const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: z.string() }),
  z.strictObject({ role: z.literal('user'), content: z.string() }),
  assistantMessage,
  z.strictObject({ role: z.literal('tool'), tool_call_id: z.string(), content: z.string() }),
]);
export type RowMessage = z.infer<typeof message>;

export const rowTool = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({
    name: z.string(),
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()),
  }),
});
export type RowTool = z.infer<typeof rowTool>;

const tokens = z.array(z.int().nonnegative());
const answer = z.strictObject({
  turn: z.string(),
  /** Index of its message in the thread's. */
  at: z.int().nonnegative(),
  /** What the turn alone was worth; null: nobody could tell. */
  score: z.number().min(0).max(1).nullable(),
  release: z.string(),
  /** What the model thought before it wrote the message, where the server said so. */
  reasoning: z.string().exactOptional(),
  /** As the server tokenised and sampled them. Only the model that wrote them may learn from them as they are. */
  exact: z
    .strictObject({
      model: z.string(),
      prompt: tokens,
      completion: tokens,
      logprobs: z.array(z.number()).exactOptional(),
    })
    .optional(),
});
export type RowAnswer = z.infer<typeof answer>;

const thread = z.strictObject({
  messages: z.array(message).min(1),
  tools: z.array(rowTool),
  answers: z.array(answer).min(1),
});
export type Thread = z.infer<typeof thread>;

export const row = z.strictObject({
  trajectory: z.string(),
  day: z.iso.date(),
  taskType: z.string().nullable(),
  score: z.number().min(0).max(1),
  threads: z.array(thread).min(1),
});
export type Row = z.infer<typeof row>;

export type Refused = { readonly kind: 'refused'; readonly reason: string };
export type Made = { readonly kind: 'row'; readonly row: Row } | Refused;
const refused = (reason: string): Refused => ({ kind: 'refused', reason });

/** null: it holds more than a trainer can be shown. */
function messageOf(value: unknown): RowMessage | null {
  const { role, parts, reasoning, refusal, toolCalls, toolCallId } = readMessage(value);
  if (!parts.every(({ type, text }) => type === 'text' && text !== null)) return null;
  const content = parts.map(({ text }) => text).join('');
  switch (role) {
    case 'system':
    case 'developer':
      return { role: 'system', content };
    case 'user':
      return { role, content };
    case 'tool':
      return toolCallId === null ? null : { role, tool_call_id: toolCallId, content };
    case 'assistant': {
      const calls = toolCalls.flatMap((call) => callOf(call) ?? []);
      if (calls.length < toolCalls.length || refusal !== '') return null;
      return {
        role,
        content: content === '' && calls.length > 0 ? null : content,
        ...(calls.length > 0 && { tool_calls: calls }),
        ...(reasoning !== '' && { reasoning_content: reasoning }),
      };
    }
    default:
      return null;
  }
}

/** null: a call of another kind (a custom tool's, the old `function_call`, which has no id). */
const callOf = ({ id, type, name, arguments: given }: ToolCall): z.infer<typeof toolCall> | null =>
  id !== null && type === 'function' && name !== null && typeof given === 'string'
    ? { id, type, function: { name, arguments: given } }
    : null;

function toolsOf(turn: Turn): RowTool[] | null {
  const tools = listOf(turn.request.tools).map(toolOf);
  const known = tools.flatMap(({ type, name, description, parameters }): RowTool[] =>
    type === 'function' && name !== null
      ? [{ type, function: { name, description, parameters: isObject(parameters) ? parameters : {} } }]
      : [],
  );
  return known.length === tools.length ? known : null;
}

function exactOf(turn: Turn): RowAnswer['exact'] {
  const { tokenIds, logprobs } = turn.choices[0]!;
  if (turn.promptTokenIds === undefined || tokenIds === undefined || turn.promptTokenIds.length === 0) return undefined;
  const whole = logprobs?.length === tokenIds.length && logprobs.every(Number.isFinite);
  return {
    model: turn.model,
    prompt: [...turn.promptTokenIds],
    completion: [...tokenIds],
    ...(whole && { logprobs: [...logprobs] }),
  };
}

/** The agent may say what kind of task this is, in the request's own `metadata.task_type`. */
export function taskTypeOf(turns: readonly Turn[]): string | null {
  for (const { request } of turns) {
    const type = isObject(request.metadata) ? request.metadata.task_type : undefined;
    if (typeof type === 'string' && /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(type)) return type;
  }
  return null;
}

export type AssistantMessage = z.infer<typeof assistantMessage>;

/** One turn as words: what the model was given, and what it said to that. */
export type Asked = {
  readonly prompt: readonly RowMessage[];
  readonly tools: readonly RowTool[];
  /** Without its reasoning. */
  readonly answer: AssistantMessage;
  readonly reasoning: string;
  /** Prompt and answer, message by message, as strings that are equal where a client would call them the same. */
  readonly said: readonly string[];
};

export function askedOf(turn: Turn): { readonly kind: 'asked'; readonly asked: Asked } | Refused {
  const given = turn.request.messages;
  if (turn.endpoint !== 'chat' || !Array.isArray(given) || given.length === 0) return refused('not a chat');
  const choice = turn.choices[0];
  if (choice === undefined) return refused('a turn without an answer');
  const prompt = given.map(messageOf);
  const answered = messageOf(choice.message);
  const tools = toolsOf(turn);
  if (tools === null || answered === null || !prompt.every((one) => one !== null))
    return refused('holds more than text and tool calls');
  if (answered.role !== 'assistant') return refused('an answer that is no assistant’s');
  const { reasoning_content: reasoning = '', ...answer } = answered;
  return {
    kind: 'asked',
    asked: { prompt, tools, answer, reasoning, said: [...given, choice.message].map(normalise) },
  };
}

type Growing = {
  messages: RowMessage[];
  said: readonly string[];
  tools: readonly RowTool[];
  toolsText: string;
  answers: RowAnswer[];
};

/** `turns` in order of their start. Turns that are no chat (embeddings) are no part of the conversation. */
export function makeRow(turns: readonly Turn[], score: Score & { readonly total: number }): Made {
  const worth = new Map(score.turns.map(({ turn, value }) => [turn, value]));
  const threads: Growing[] = [];
  for (const turn of turns) {
    if (turn.endpoint === 'embeddings') continue;
    const made = askedOf(turn);
    if (made.kind === 'refused') return made;
    const { prompt, tools, answer: said, reasoning, said: texts } = made.asked;
    const toolsText = JSON.stringify(tools);
    const continued = threads
      .filter((one) => one.toolsText === toolsText && one.said.length < texts.length)
      .filter((one) => one.said.every((text, i) => text === texts[i]))
      .sort((a, b) => b.said.length - a.said.length)[0];
    const into = continued ?? { messages: [], said: [], tools, toolsText, answers: [] };
    if (continued === undefined) threads.push(into);
    // What was recorded first stands: clients send it back trimmed or re-serialised. Reasoning is part of the history only
    // where it was sent back.
    for (const { at } of into.answers) {
      const [known, sent] = [into.messages[at]!, prompt[at]!];
      if (known.role === 'assistant' && sent.role === 'assistant' && sent.reasoning_content !== undefined)
        into.messages[at] = { ...known, reasoning_content: sent.reasoning_content };
    }
    for (const one of prompt.slice(into.messages.length)) into.messages.push(one); // there may be 100,000
    into.messages.push(said);
    into.said = texts;
    const exact = exactOf(turn);
    into.answers.push({
      turn: turn.id,
      at: prompt.length,
      score: worth.get(turn.id) ?? null,
      release: turn.release,
      ...(reasoning !== '' && { reasoning }),
      ...(exact && { exact }),
    });
  }
  if (threads.length === 0) return refused('not a chat');
  return {
    kind: 'row',
    row: {
      trajectory: score.trajectory,
      day: score.day,
      taskType: taskTypeOf(turns),
      score: score.total,
      threads: threads.map(({ messages, tools, answers }) => ({ messages, tools: [...tools], answers })),
    },
  };
}

const plainText = (text: string): string => normalForm(text).toLowerCase().replace(/\s+/gu, ' ').trim();

/** The same for the same question and the same answer, whatever the case and the spaces: everything users said and the agent did. */
export function fingerprint({ threads }: Row): string {
  const said = threads.map(({ messages }) =>
    messages.flatMap((one) => {
      if (one.role === 'user') return [['user', plainText(one.content)]];
      if (one.role !== 'assistant') return [];
      const calls = one.tool_calls?.map((call) => [call.function.name, plainText(call.function.arguments)]) ?? [];
      return [['assistant', plainText(one.content ?? ''), calls]];
    }),
  );
  return createHash('sha256').update(JSON.stringify(said)).digest('hex');
}
