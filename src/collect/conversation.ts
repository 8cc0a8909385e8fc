/**
 * A recorded conversation as one line of JSON → the turns and signals that it is made of. Two formats, told apart line by line
 * where nobody says which:
 *
 *   openai   messages and, where there are any, tools, model, id, user, at, task_type, keys, reward, outcomes, feedback, label
 *   tau      what tau-bench writes: task_id, trial, reward, and messages (or traj)
 *
 * Each message of the assistant is a turn that saw all messages before it. Pure: the same line gives the same ids, so that
 * reading a file twice adds nothing. Fields of other names are left alone; a field of a wrong kind makes the line a bad one.
 */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { labelFields, labelSignals } from './label.ts';
import type { Signal } from './signal.ts';
import { type Origin, trajectoryId } from './trajectory.ts';
import type { TurnInput } from './turn-input.ts';
import { isObject, type JsonObject, parseUntrusted } from './untrusted.ts';
import { uuidOf } from './uuid.ts';

export const formats = ['openai', 'tau'] as const;
export type Format = (typeof formats)[number];

/** Of one line. */
export const maxLineBytes = 8 * 1024 * 1024;
/** A turn each; as many as are ever scored. */
const maxAnswers = 1000;
/** What all turns of a conversation saw, added up: each is read by itself on the way in. */
const maxSeen = 128 * 1024 * 1024;

const outcomeName = z.string().regex(/^[a-z][a-z0-9_.-]{0,63}$/, 'lower-case letters, digits and _ . - only');
const value = z.union([z.number(), z.boolean()]);
const words = (max: number) => z.string().min(1).max(max);
const messages = z.array(z.record(z.string(), z.unknown())).min(1).max(10_000);
const when = z.union([z.iso.datetime({ offset: true }), z.number()]);

const openaiLine = z.object({
  messages,
  tools: z.array(z.record(z.string(), z.unknown())).max(1000).optional(),
  model: words(256).optional(),
  id: trajectoryId.optional(),
  user: words(256).optional(),
  at: when.optional(),
  task_type: words(64).optional(),
  keys: z.array(words(256)).max(16).optional(),
  reward: value.optional(),
  outcomes: z.record(outcomeName, value).optional(),
  feedback: z.union([z.enum(['up', 'neutral', 'down']), z.number().min(0).max(1)]).optional(),
  label: z.union([labelFields.score, z.strictObject(labelFields)]).optional(),
});
type OpenAiLine = z.output<typeof openaiLine>;

const tauLine = z.object({
  task_id: z.union([z.int(), words(128)]),
  trial: z.int().min(0).default(0),
  reward: z.number(),
  messages: messages.optional(),
  traj: messages.optional(),
});

export type ConversationContext = {
  readonly agent: string;
  readonly origin: Origin;
  readonly secret: string;
  readonly format?: Format | undefined;
  /** What the file is called where curating bounds what one source may bring; without it `import`. */
  readonly source?: string | undefined;
};

/** As which upstream it answered that nobody here asked: names of upstreams have no colon. */
export const importedFrom = (source: string | undefined): string =>
  source === undefined ? 'import' : `import:${source}`;
export const sourceName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'lower-case letters, digits and _ . - only, at most 63');

export type Conversation = {
  readonly trajectory: string;
  /** When it began, if the line says so: milliseconds since 1970. */
  readonly at: number | null;
  /** Its turns and signals, as if it had begun then. */
  entries(at: number): { readonly turns: TurnInput[]; readonly signals: Signal[] };
};

/** Why a line is none that can be imported. */
export class BadLine extends Error {}

const votes = { up: 1, neutral: 0.5, down: 0 } as const;

export function readConversation(text: string, context: ConversationContext): Conversation {
  if (text.length > maxLineBytes) throw new BadLine(`it has more than ${maxLineBytes / 1024 / 1024} MB`);
  const read = parseUntrusted(text);
  if (!isObject(read)) throw new BadLine('it is no JSON object, or one with too many values');
  const format = context.format ?? ('task_id' in read ? 'tau' : 'openai');
  const line = format === 'tau' ? fromTau(parsed(tauLine, read)) : parsed(openaiLine, read);
  const said = line.messages as readonly JsonObject[];
  const answers = said.flatMap(({ role }, i) => (role === 'assistant' ? [i] : []));
  if (answers.length === 0) throw new BadLine('no message of it is the assistant’s');
  if (answers.length > maxAnswers)
    throw new BadLine(`it has ${answers.length} answers; ${maxAnswers} are read at most`);
  const sizes = said.map((message) => JSON.stringify(message).length);
  let before = 0;
  let seen = 0;
  for (const [i, { role }] of said.entries()) {
    before += sizes[i]!;
    if (role === 'assistant') seen += before;
  }
  if (seen > maxSeen) throw new BadLine('it is too long to be read turn by turn');
  const { secret } = context;
  const digest = (...parts: readonly unknown[]) =>
    createHmac('sha256', secret).update(JSON.stringify(parts)).digest('hex');
  const trajectory = line.id ?? `import-${digest('conversation', context.agent, line.user ?? null, said).slice(0, 32)}`;
  return {
    trajectory,
    at: line.at === undefined ? null : timeOf(line.at),
    entries: (at) => ({
      turns: answers.map((position, k) => turnOf(line, { ...context, trajectory, at, position, k, digest })),
      // Said when the conversation was over.
      signals: signalsOf(line, { ...context, trajectory, at: at + answers.length * spacingMs, digest }),
    }),
  };
}

/** Between two turns of a conversation of which nobody knows when they were. */
const spacingMs = 1000;

function parsed<T>(schema: z.ZodType<T>, read: JsonObject): T {
  const result = schema.safeParse(read);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => `${path.slice(0, 3).join('.') || 'it'}: ${message}`);
  throw new BadLine(problems.slice(0, 3).join('; ').slice(0, 300));
}

function fromTau({ task_id, trial, reward, messages: given, traj }: z.output<typeof tauLine>): OpenAiLine {
  const said = given ?? traj;
  if (said === undefined) throw new BadLine('messages: there are none');
  // Tries of one task are told from tries of another suite's by what was said in them.
  return { messages: said, reward, keys: [`task:${task_id}`, `trial:${trial}`] };
}

function timeOf(at: string | number): number {
  const time = typeof at === 'string' ? Date.parse(at) : at < 1e11 ? at * 1000 : at; // OpenAI’s logs count seconds
  if (Number.isFinite(time) && time >= Date.UTC(2000, 0, 1) && time <= Date.now() + 86_400_000) return time;
  throw new BadLine(`at: ${at} is not between 2000 and a day from now`);
}

type Place = ConversationContext & {
  readonly trajectory: string;
  readonly at: number;
  readonly digest: (...parts: readonly unknown[]) => string;
};

function turnOf(line: OpenAiLine, place: Place & { readonly position: number; readonly k: number }): TurnInput {
  const { agent, origin, trajectory, at, position, k, digest, source } = place;
  const message = line.messages[position]!;
  const startedAt = at + k * spacingMs;
  const calls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
  const { task_type: taskType, model = '' } = line;
  return {
    id: uuidOf(startedAt, digest('turn', agent, trajectory, k, message)),
    ...{ agent, trajectory, user: line.user ?? null, origin, keys: line.keys ?? [], endpoint: 'chat', startedAt },
    ...{ firstTokenMs: null, latencyMs: 0, upstream: importedFrom(source), release: 'imported' },
    ...{ status: 'ok', httpStatus: 200, error: null, attempts: 1, stream: false },
    content: {
      model,
      request: {
        model,
        messages: line.messages.slice(0, position),
        ...(line.tools === undefined ? {} : { tools: line.tools }),
        ...(taskType === undefined ? {} : { metadata: { task_type: taskType } }),
      },
      choices: [{ index: 0, message, finishReason: calls ? 'tool_calls' : 'stop' }],
      ...{ promptTokens: null, completionTokens: null, reasoningTokens: null, usage: null },
    },
  };
}

function signalsOf(line: OpenAiLine, { agent, trajectory, at, digest, secret }: Place): Signal[] {
  const target = { kind: 'trajectory' as const, id: trajectory };
  const signal = (kind: 'outcome' | 'feedback', name: string, given: number, user: string | null): Signal => {
    const identity = JSON.stringify([
      kind,
      agent,
      target.kind,
      target.id,
      ...(kind === 'outcome' ? [name, null] : [user]),
    ]);
    return {
      id: uuidOf(at, digest('signal', identity, given)),
      ...{ identity, agent, target, kind, name, value: given, unit: null, user, key: null },
      ...{ comment: null, correction: null, at, receivedAt: at },
    };
  };
  const { reward, feedback, label, outcomes = {}, user = null } = line;
  const measured = Object.entries({ ...outcomes, ...(reward === undefined ? {} : { reward }) });
  return [
    ...measured.map(([name, given]) => signal('outcome', name, Number(given), user)),
    ...(feedback === undefined
      ? []
      : [signal('feedback', 'vote', typeof feedback === 'number' ? feedback : votes[feedback], user)]),
    ...(label === undefined
      ? []
      : labelSignals(
          { trajectory, ...(typeof label === 'number' ? { score: label } : label) },
          { agent, at, receivedAt: at, secret },
        )),
  ];
}
