/**
 * An environment: a small world in which an agent can be practised and measured. Its author writes one readable file:
 *
 * task       one case, as plain JSON data; made by a generator that is pure in a seed and a split
 * split      train | validation | golden. The author keeps their entities and wording apart
 * database   the world's state; a fresh private one per episode, in memory
 * tool       a zod schema and a function over the database; JSON Schema for the model is derived from the former
 * user       who the agent talks with: opens, answers, and leaves when there is nothing more to say
 * grader     a reward per turn and one in the end, 0–1, with named parts and reasons
 *
 * This file only describes; episode.ts plays. The split into task data (goes on the wire) and environment (behaviour)
 * follows verifiers; grading the database's final state follows τ-bench.
 */
import { z } from 'zod';
import type { OwnAgent } from './agent-episode.ts';
import type { AssistantMessage, Message, ToolSpec } from './message.ts';
import { type Random, random } from './random.ts';

export const splits = ['train', 'validation', 'golden'] as const;
export type Split = (typeof splits)[number];

/** JSON through and through: a golden set is a file of these. */
export type Task<Data = unknown> = {
  readonly id: string;
  readonly type: string;
  readonly split: Split;
  readonly seed: number;
  readonly data: Data;
};

export type Tool<Database> = {
  readonly name: string;
  readonly description: string;
  readonly parameters: z.ZodObject;
  /**
   * A refusal the agent should see ("no such order") is a returned value. What is thrown is a defect of the tool: it ends
   * the episode as `crashed`.
   */
  readonly run: (args: Readonly<Record<string, unknown>>, database: Database) => unknown | Promise<unknown>;
};

/** Gives `run` the types of its schema. */
export function tool<Database, Shape extends z.ZodRawShape>(
  name: string,
  description: string,
  shape: Shape,
  run: (args: z.infer<z.ZodObject<Shape>>, database: Database) => unknown | Promise<unknown>,
): Tool<Database> {
  return { name, description, parameters: z.strictObject(shape), run: run as unknown as Tool<Database>['run'] };
}

export function toolSpec(one: Tool<never>): ToolSpec {
  const { $schema: _, ...parameters } = z.toJSONSchema(one.parameters) as Record<string, unknown>;
  return { type: 'function', function: { name: one.name, description: one.description, parameters } };
}

/** What the user sees is the talk between user and agent; tool traffic is not theirs to read. */
export type User = {
  readonly open: () => string | Promise<string>;
  /** The next message, or null to leave. `spoken` holds the user's and the agent's texts so far. */
  readonly answer: (spoken: readonly Spoken[]) => string | null | Promise<string | null>;
};
export type Spoken = { readonly who: 'user' | 'agent'; readonly text: string };

/** What became of one tool call. A `mistake` is the model's; the result it was shown says what was wrong. */
export type ToolStep = {
  readonly name: string;
  /** null when the JSON or the schema did not hold. */
  readonly arguments: Readonly<Record<string, unknown>> | null;
  readonly result: unknown;
  readonly mistake: 'unknown-tool' | 'bad-arguments' | null;
};

/** Everything a grader may look at after a turn. `steps` are this turn's tool calls in order. */
export type TurnView<Data, Database> = {
  readonly task: Task<Data>;
  readonly database: Database;
  /** The whole conversation so far, this turn's message and tool results included. */
  readonly messages: readonly Message[];
  readonly turn: number;
  readonly message: AssistantMessage;
  readonly steps: readonly ToolStep[];
  /** Steps of the turns before this one. */
  readonly before: readonly ToolStep[];
  /** Why the message cannot be taken at its word: a tool call nobody can read, or cut at the token limit. */
  readonly broken: string | null;
};

export const outcomes = ['done', 'limit', 'malformed', 'died', 'crashed', 'failed'] as const;
/**
 * done        the user left, or the user's own agent ended by itself
 * limit       out of steps, tokens, mistakes or time; `detail` says which
 * malformed   the model wrote a tool call nobody can read
 * died        the user's own agent ended with an error; what the model wrote may have led it there, so it counts
 * crashed     a tool, the user or the grader threw: the environment's fault, not the model's
 * failed      the player could not answer (a server down, a context too small): nobody's policy is to blame
 */
export type Outcome = (typeof outcomes)[number];

export type EndView<Data, Database> = {
  readonly task: Task<Data>;
  readonly database: Database;
  readonly messages: readonly Message[];
  /** [turn][call] */
  readonly steps: readonly (readonly ToolStep[])[];
  readonly outcome: Outcome;
  /** Says more about an outcome other than `done`. */
  readonly detail: string;
};

export type Grade = {
  /** 0–1. */
  readonly reward: number;
  /** Each part 0–1, by name. */
  readonly parts: Readonly<Record<string, number>>;
  /** Why it is not 1; empty for a perfect one. */
  readonly reasons: readonly string[];
};

export type EndGrade = Grade & { readonly success: boolean };

export type Limits = {
  /** Turns of the model. */
  readonly turns: number;
  /** Tool calls in one turn; the rest are not run. */
  readonly callsPerTurn: number;
  /** Unknown tools and bad arguments before the episode ends. */
  readonly mistakes: number;
  readonly tokensPerTurn: number;
  /** Prompt and completion together, at the last turn: the model's context. */
  readonly tokens: number;
  /** Wall time of the whole episode. */
  readonly seconds: number;
  /** Characters of one tool result or user message; more is cut. */
  readonly characters: number;
};

export type Environment<Data, Database> = {
  readonly name: string;
  readonly system: string;
  /** By task type. Pure: the same random and split give the same data. */
  readonly types: Readonly<Record<string, (random: Random, split: Split) => Data>>;
  readonly data: z.ZodType<Data>;
  readonly database: (task: Task<Data>) => Database;
  readonly tools: readonly Tool<Database>[];
  readonly user: (task: Task<Data>) => User;
  readonly gradeTurn: (view: TurnView<Data, Database>) => Grade;
  readonly gradeEnd: (view: EndView<Data, Database>) => EndGrade | Promise<EndGrade>;
  readonly limits: Limits;
  /** The user's own agent, which plays in place of `system`, `tools` and `user` (agent-environment.ts). */
  readonly agent?: OwnAgent<Data>;
};

/** The task of one type for a seed. Its id says how to make it again. */
export function makeTask<Data, Database>(
  environment: Environment<Data, Database>,
  type: string,
  split: Split,
  seed: number,
): Task<Data> {
  const make = Object.hasOwn(environment.types, type) ? environment.types[type] : undefined;
  if (make === undefined) {
    const known = Object.keys(environment.types).join(', ');
    throw new Error(`Environment ${environment.name} has no task type '${type}'; it has ${known}.`);
  }
  const data = make(random(environment.name, type, split, seed), split);
  return { id: `${split}-${type}-${seed}`, type, split, seed, data };
}

/** `count` tasks, the types taking turns, so that no type is short by more than one. Types may be a subset. */
export function makeTasks<Data, Database>(
  environment: Environment<Data, Database>,
  split: Split,
  count: number,
  seed: number,
  types: readonly string[] = Object.keys(environment.types),
): Task<Data>[] {
  return Array.from({ length: count }, (_, i) =>
    makeTask(environment, types[i % types.length]!, split, seed * 1_000_000 + Math.floor(i / types.length)),
  );
}

/** A task from outside, such as a line of a golden set, checked against the environment. */
export function parseTask<Data, Database>(environment: Environment<Data, Database>, json: unknown): Task<Data> {
  const task = z
    .strictObject({
      id: z.string().min(1).max(200),
      type: z.string(),
      split: z.enum(splits),
      seed: z.number().int(),
      data: environment.data,
    })
    .parse(json) as Task<Data>;
  if (!Object.hasOwn(environment.types, task.type)) {
    throw new Error(`Task ${task.id} has type '${task.type}', which ${environment.name} does not know.`);
  }
  return task;
}

/** A grade as the weighted mean of its parts. Each: [weight, score 0–1, reason when the score is below 1]. */
export function weigh(parts: Readonly<Record<string, readonly [number, number, string?]>>): Grade {
  const entries = Object.entries(parts);
  const total = entries.reduce((sum, [, [weight]]) => sum + weight, 0);
  const sum = entries.reduce((s, [, [weight, score]]) => s + weight * score, 0);
  return {
    reward: total > 0 ? sum / total : 0,
    parts: Object.fromEntries(entries.map(([name, [, score]]) => [name, score])),
    reasons: entries.flatMap(([name, [, score, reason]]) => (score < 1 ? [reason ?? `${name} is ${score}`] : [])),
  };
}
