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
import { normalise } from '../collect/thread.ts';
import type { Turn } from '../collect/turn.ts';
import { isObject, type JsonObject } from '../collect/untrusted.ts';
import type { Score } from '../score/score.ts';

const toolCall = z.strictObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string(), arguments: z.string() }),
});
const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: z.string() }),
  z.strictObject({ role: z.literal('user'), content: z.string() }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.string().nullable(),
    tool_calls: z.array(toolCall).exactOptional(),
  }),
  z.strictObject({ role: z.literal('tool'), tool_call_id: z.string(), content: z.string() }),
]);
export type RowMessage = z.infer<typeof message>;

const rowTool = z.strictObject({
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

export type Made = { readonly kind: 'row'; readonly row: Row } | { readonly kind: 'refused'; readonly reason: string };
const refused = (reason: string): Made => ({ kind: 'refused', reason });

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Text of a content field; undefined when there is anything but text in it. */
function textOf(content: unknown): string | undefined {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((part) => (isObject(part) && part.type === 'text' ? part.text : part));
  return texts.every((text) => typeof text === 'string') ? texts.join('') : undefined;
}

function messageOf(value: unknown): RowMessage | null {
  if (!isObject(value)) return null;
  const content = textOf(value.content);
  if (content === undefined) return null;
  switch (value.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content };
    case 'user':
      return { role: 'user', content };
    case 'tool':
      return typeof value.tool_call_id === 'string'
        ? { role: 'tool', tool_call_id: value.tool_call_id, content }
        : null;
    case 'assistant': {
      const calls = listOf(value.tool_calls).map((call) => toolCall.strip().safeParse(call));
      // A refusal or a call of another kind (custom tools, the old function_call) is nothing we can show a trainer.
      if (calls.some(({ success }) => !success) || value.function_call || value.refusal) return null;
      const parsed = calls
        .map((call) => call.data!)
        .map(({ id, type, function: { name, arguments: args } }) => ({
          id,
          type,
          function: { name, arguments: args },
        }));
      return {
        role: 'assistant',
        content: content === '' && parsed.length > 0 ? null : content,
        ...(parsed.length > 0 && { tool_calls: parsed }),
      };
    }
    default:
      return null;
  }
}

function toolsOf(turn: Turn): RowTool[] | null {
  const tools = listOf(turn.request.tools).map((value) => {
    const body = isObject(value) && value.type === 'function' && isObject(value.function) ? value.function : null;
    if (body === null || typeof body.name !== 'string') return null;
    const description = typeof body.description === 'string' ? body.description : '';
    const parameters: JsonObject = isObject(body.parameters) ? body.parameters : {};
    return { type: 'function' as const, function: { name: body.name, description, parameters } };
  });
  return tools.every((tool) => tool !== null) ? tools : null;
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
function taskTypeOf(turns: readonly Turn[]): string | null {
  for (const { request } of turns) {
    const type = isObject(request.metadata) ? request.metadata.task_type : undefined;
    if (typeof type === 'string' && /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(type)) return type;
  }
  return null;
}

type Growing = { messages: RowMessage[]; said: string[]; tools: RowTool[]; toolsText: string; answers: RowAnswer[] };

/** `turns` in order of their start. Turns that are no chat (embeddings) are no part of the conversation. */
export function makeRow(turns: readonly Turn[], score: Score & { readonly total: number }): Made {
  const worth = new Map(score.turns.map(({ turn, value }) => [turn, value]));
  const threads: Growing[] = [];
  for (const turn of turns) {
    if (turn.endpoint === 'embeddings') continue;
    const given = turn.request.messages;
    if (turn.endpoint !== 'chat' || !Array.isArray(given) || given.length === 0) return refused('not a chat');
    const choice = turn.choices[0];
    if (choice === undefined) return refused('a turn without an answer');
    const raw = [...given, choice.message];
    const messages = raw.map(messageOf);
    const tools = toolsOf(turn);
    if (tools === null || !messages.every((one) => one !== null)) return refused('holds more than text and tool calls');
    if (messages.at(-1)!.role !== 'assistant') return refused('an answer that is no assistant’s');
    const said = raw.map(normalise);
    const toolsText = JSON.stringify(tools);
    const continued = threads
      .filter((one) => one.toolsText === toolsText && one.said.length < said.length)
      .filter((one) => one.said.every((text, i) => text === said[i]))
      .sort((a, b) => b.said.length - a.said.length)[0];
    const into = continued ?? { messages: [], said: [], tools, toolsText, answers: [] };
    if (continued === undefined) threads.push(into);
    // What was recorded first stands: clients send it back trimmed or re-serialised.
    for (const one of messages.slice(into.messages.length)) into.messages.push(one); // there may be 100,000
    into.said = said;
    const exact = exactOf(turn);
    into.answers.push({
      turn: turn.id,
      at: messages.length - 1,
      score: worth.get(turn.id) ?? null,
      release: turn.release,
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
      threads: threads.map(({ messages, tools, answers }) => ({ messages, tools, answers })),
    },
  };
}

const plainText = (text: string): string => text.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim();

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
