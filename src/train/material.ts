/**
 * What a run learns from, as training data: the examples and pairs of a dataset, or of a file from outside, which is parsed line
 * by line and refused with its line number. What is longer than the model's context cannot be learned and is left out, counted.
 */
import { createReadStream } from 'node:fs';
import { z } from 'zod';
import { cutLines } from '../collect/cut-lines.ts';
import { argumentsText, readMessage } from '../collect/message.ts';
import type { CuratedExample, CuratedPair } from '../curate/examples.ts';
import { ConfigError } from '../errors.ts';
import type { ChatCodec } from '../simulate/engine-player.ts';
import type { Message, ToolSpec } from '../simulate/message.ts';
import { sequences } from './datum.ts';
import type { Pair } from './dpo.ts';
import { exampleFrom, turnsFromMessages, writtenTurn } from './episodes.ts';
import type { Example } from './sft.ts';

/**
 * Written again from its words: what was redacted has no exact tokens, and the rest must look the same. Loss falls on what the
 * agent wrote, each answer with what the model thought before it; other assistants' words are context.
 */
export const exampleOf = (
  codec: ChatCodec,
  { id, taskType, quality, messages, tools, answers }: CuratedExample,
): Example => ({
  id,
  taskType,
  quality,
  turns: answers.map(({ at, reasoning, score }) => {
    const said = messages[at]!;
    const whole = reasoning === '' ? said : ({ ...said, reasoning_content: reasoning } as Message);
    return { ...writtenTurn(codec, messages.slice(0, at), whole, tools), ...(score === null ? {} : { worth: score }) };
  }),
});

export const pairOf = (
  codec: ChatCodec,
  { id, taskType, gap, prompt, tools, chosen, rejected }: CuratedPair,
): Pair => ({
  id,
  taskType,
  gap,
  chosen: [writtenTurn(codec, prompt, chosen, tools)],
  rejected: [writtenTurn(codec, prompt, rejected, tools)],
});

const longest = (turns: Example['turns']): number =>
  sequences(turns).reduce((most, { tokens }) => Math.max(most, tokens.length), 0);

export const fitsExample =
  (context: number) =>
  (one: Example): boolean =>
    longest(one.turns) <= context;
export const fitsPair =
  (context: number) =>
  (one: Pair): boolean =>
    Math.max(longest(one.chosen), longest(one.rejected)) <= context;

/** Words and tool calls of any shape; whatever else is there a chat template may want to see. */
const message = z
  .looseObject({
    role: z.enum(['system', 'user', 'assistant', 'tool']),
    tool_calls: z.array(z.unknown()).max(1000).nullish(),
  })
  .transform((value, context): Message => {
    const { parts, toolCalls } = readMessage(value);
    const other = parts.find(({ text }) => text === null);
    if (other) context.addIssue(`holds ${other.type || 'something'} that is no text; only text can be learned`);
    if (toolCalls.some(({ name }) => name === null)) context.addIssue('has a tool call without a name');
    const { tool_calls: _, function_call: __, ...rest } = value;
    const content = parts.length === 0 ? null : parts.map(({ text }) => text).join('');
    const calls = toolCalls.map((call) => ({
      ...(call.id === null ? {} : { id: call.id }),
      type: 'function',
      function: { name: call.name, arguments: argumentsText(call) },
    }));
    return { ...rest, content, ...(calls.length > 0 && { tool_calls: calls }) } as unknown as Message;
  });
const conversation = z.array(message).min(1).max(1000);
export const exampleLine = z.object({
  id: z.string().max(200).optional(),
  messages: conversation.min(2),
  quality: z.number().min(0).max(1).default(1),
  taskType: z.string().max(200).default('example'),
});
export const pairLine = z.object({
  id: z.string().max(200).optional(),
  prompt: conversation,
  chosen: conversation,
  rejected: conversation,
  gap: z.number().min(0).max(1).default(1),
  taskType: z.string().max(200).default('pair'),
});

export async function readExamples(
  path: string,
  codec: ChatCodec,
  tools: readonly ToolSpec[] = [],
): Promise<Example[]> {
  const out: Example[] = [];
  for await (const { value, line } of jsonLines(path)) {
    const { messages, quality, taskType, id } = parseLine(exampleLine, value, path, line);
    out.push(exampleFrom(codec, messages, { id: id ?? `${line}`, taskType, quality }, tools));
  }
  return out;
}

export async function readPairs(path: string, codec: ChatCodec, tools: readonly ToolSpec[] = []): Promise<Pair[]> {
  const out: Pair[] = [];
  for await (const { value, line } of jsonLines(path)) {
    const { prompt, chosen, rejected, gap, taskType, id } = parseLine(pairLine, value, path, line);
    // Only what comes after the shared prompt is the pair's; what the assistant said before is context.
    const side = (said: typeof chosen) => {
      const all = turnsFromMessages(codec, [...prompt, ...said], tools);
      return all.slice(prompt.filter((m) => m.role === 'assistant').length);
    };
    out.push({ id: id ?? `${line}`, taskType, gap, chosen: side(chosen), rejected: side(rejected) });
  }
  return out;
}

const longestLine = 4_000_000;

export async function* jsonLines(path: string): AsyncGenerator<{ value: unknown; line: number }> {
  let line = 0;
  for await (const text of cutLines(createReadStream(path), longestLine)) {
    line++;
    if (text.trim() === '') continue;
    if (text.length > longestLine) throw new ConfigError(`${path}, line ${line}: longer than 4 MB.`);
    try {
      yield { value: JSON.parse(text), line };
    } catch (error) {
      throw new ConfigError(`${path}, line ${line}: not JSON.`, { cause: error });
    }
  }
}

function parseLine<S extends z.ZodType>(schema: S, value: unknown, path: string, line: number): z.infer<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path: at, message: what } = parsed.error.issues[0]!;
  throw new ConfigError(`${path}, line ${line}: ${at.join('.') || 'the line'}: ${what}`);
}
