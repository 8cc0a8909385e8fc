/**
 * Plays episodes: groups of attempts at tasks, in lockstep, so that a player sees all waiting conversations at once. Each
 * episode has its own database and its own copy of the user. Whatever goes wrong inside one, be it a tool that throws, a
 * model that never stops or a server that is down, is that episode's recorded outcome; the others go on. The same seed,
 * tasks and player give the same episodes, whatever the batch size.
 *
 * One turn: the player writes a message → its tool calls are run, or the user answers → the turn is graded. An episode
 * moves from playing to one of the outcomes in environment.ts and never back.
 */
import {
  type Environment,
  type Limits,
  type Outcome,
  type Split,
  type Spoken,
  type Task,
  type Tool,
  type ToolStep,
  toolSpec,
  type User,
} from './environment.ts';
import type { Message, ToolCall } from './message.ts';
import type { Conversation, PlayedTurn, Player, TurnTokens } from './player.ts';
import { hash } from './random.ts';
import { clamp, close, message, type Session } from './session.ts';

export type EpisodeTurn = {
  readonly tokens: TurnTokens | null;
  readonly finish: 'stop' | 'length';
  readonly steps: readonly ToolStep[];
  readonly reward: number;
  readonly parts: Readonly<Record<string, number>>;
  readonly reasons: readonly string[];
};

export type Episode = {
  readonly id: string;
  readonly environment: string;
  readonly task: string;
  readonly type: string;
  readonly split: Split;
  readonly seed: number;
  readonly attempt: number;
  readonly messages: readonly Message[];
  readonly turns: readonly EpisodeTurn[];
  readonly reward: number;
  readonly success: boolean;
  readonly parts: Readonly<Record<string, number>>;
  readonly reasons: readonly string[];
  readonly outcome: Outcome;
  /** Says more about an outcome other than `done`. */
  readonly detail: string;
  readonly counts: {
    readonly toolCalls: number;
    readonly mistakes: number;
    /** Tokens of the last prompt and everything written: the context the episode took. 0 where unknown. */
    readonly contextTokens: number;
    readonly completionTokens: number;
  };
  readonly milliseconds: number;
};

export type PlayOptions = {
  /** Attempts at each task. */
  readonly attempts?: number; // 1
  readonly seed?: number; // 0
  readonly limits?: Partial<Limits>;
  /** Episodes under way at once; more wait. */
  readonly batch?: number; // 256
  readonly signal?: AbortSignal;
  /** Called once per episode as it ends. */
  readonly onEpisode?: (episode: Episode) => void;
  /** Milliseconds; only differences count. */
  readonly now?: () => number;
};

/** [task][attempt] */
export async function play<Data, Database>(
  environment: Environment<Data, Database>,
  player: Player,
  tasks: readonly Task<Data>[],
  options: PlayOptions = {},
): Promise<Episode[][]> {
  const { attempts = 1, seed = 0, batch = 256, signal, onEpisode, now = () => performance.now() } = options;
  if (!Number.isInteger(attempts) || attempts < 1) throw new Error(`attempts must be 1 or more, got ${attempts}.`);
  if (!Number.isInteger(batch) || batch < 1) throw new Error(`batch must be 1 or more, got ${batch}.`);
  if (environment.agent !== undefined) {
    const { playAgents } = await import('./agent-episode.ts'); // it listens; most environments need none of that
    return playAgents(environment, environment.agent, player, tasks, options);
  }
  const limits: Limits = { ...environment.limits, ...options.limits };
  const specs = environment.tools.map(toolSpec);
  const byName = new Map(environment.tools.map((one) => [one.name, one]));

  const waiting = tasks.flatMap((task, t) => Array.from({ length: attempts }, (_, attempt) => ({ task, t, attempt })));
  const done: Episode[][] = tasks.map(() => []);
  let active: { session: Session<Data, Database>; t: number }[] = [];

  const finish = async ({ session, t }: { session: Session<Data, Database>; t: number }): Promise<void> => {
    const episode = await close(environment, session, now() - session.started);
    done[t]![session.attempt] = episode;
    onEpisode?.(episode);
  };

  while (waiting.length > 0 || active.length > 0) {
    signal?.throwIfAborted();
    // A new group joins only whole, so that equal prompts of one group always meet in one call to the player.
    while (waiting.length > 0 && (active.length === 0 || active.length + attempts <= batch)) {
      const group = waiting.splice(0, attempts);
      for (const { task, t, attempt } of group) {
        active.push({ session: await open(environment, task, attempt, seed, limits, now), t });
      }
    }
    const playing = active.filter(({ session }) => session.end === null);
    const conversations = playing.map(({ session }) => conversation(session, specs, limits));
    const answers = conversations.length === 0 ? [] : await askPlayer(player, conversations, signal);
    await Promise.all(playing.map(({ session }, i) => advance(environment, byName, session, answers[i]!, limits, now)));
    const ended = active.filter(({ session }) => session.end !== null);
    active = active.filter(({ session }) => session.end === null);
    for (const one of ended) await finish(one);
  }
  return done;
}

async function open<Data, Database>(
  environment: Environment<Data, Database>,
  task: Task<Data>,
  attempt: number,
  seed: number,
  limits: Limits,
  now: () => number,
): Promise<Session<Data, Database>> {
  const session = {
    id: `${environment.name}:${task.id}:${seed}:${attempt}`,
    task,
    attempt,
    seed: hash(`${seed}/${task.id}/${attempt}`),
    groupSeed: hash(`${seed}/${task.id}`),
    started: now(),
    messages: [] as Message[],
    turns: [],
    previous: null,
    usage: { context: 0, completion: 0 },
  };
  try {
    const database = environment.database(task);
    const user = environment.user(task);
    const first = await within(limits.seconds * 1000, () => user.open());
    if (environment.system !== '') session.messages.push({ role: 'system', content: environment.system });
    session.messages.push({ role: 'user', content: cut(first, limits.characters) });
    return { ...session, database, user, end: null };
  } catch (error) {
    // Never read: the episode has ended before its first turn.
    const database = undefined as Database;
    const user: User = { open: () => '', answer: () => null };
    return { ...session, database, user, end: { outcome: 'crashed', detail: `opening: ${message(error)}` } };
  }
}

function conversation<Data, Database>(
  session: Session<Data, Database>,
  tools: Conversation['tools'],
  limits: Limits,
): Conversation {
  const turn = session.turns.length;
  return {
    id: session.id,
    task: session.task.id,
    attempt: session.attempt,
    turn,
    seed: hash(`${session.seed}/${turn}`),
    groupSeed: hash(`${session.groupSeed}/${turn}`),
    messages: [...session.messages],
    tools,
    previous: session.previous,
    maxTokens: limits.tokensPerTurn,
    context: limits.tokens,
  };
}

/** A player that throws, or answers the wrong number, fails all it was asked. */
async function askPlayer(
  player: Player,
  conversations: readonly Conversation[],
  signal: AbortSignal | undefined,
): Promise<readonly PlayedTurn[]> {
  try {
    const answers = await player(conversations, signal);
    if (answers.length === conversations.length) return answers;
    const detail = `The player was given ${conversations.length} conversations and answered ${answers.length}.`;
    return conversations.map(() => ({ kind: 'failed', detail }));
  } catch (error) {
    signal?.throwIfAborted();
    return conversations.map(() => ({ kind: 'failed', detail: message(error) }));
  }
}

/** One turn of one session, from the player's answer to the next thing the model will read. */
async function advance<Data, Database>(
  environment: Environment<Data, Database>,
  tools: ReadonlyMap<string, Tool<Database>>,
  session: Session<Data, Database>,
  answer: PlayedTurn,
  limits: Limits,
  now: () => number,
): Promise<void> {
  if (answer.kind !== 'said') {
    session.end = { outcome: answer.kind === 'full' ? 'limit' : 'failed', detail: answer.detail };
    return;
  }
  const before = session.turns.flatMap((turn) => turn.steps);
  const turn = session.turns.length;
  session.messages.push(answer.message);
  if (answer.tokens !== undefined) {
    session.previous = { tokens: answer.tokens, messages: session.messages.length };
    session.usage.context = answer.tokens.prompt.length + answer.tokens.completion.length;
    session.usage.completion += answer.tokens.completion.length;
  } else if (answer.usage !== undefined) {
    session.usage.context = answer.usage.prompt + answer.usage.completion;
    session.usage.completion += answer.usage.completion;
  }

  const left = (): number => limits.seconds * 1000 - (now() - session.started);
  const steps: ToolStep[] = [];
  let end: Session<Data, Database>['end'] = null;
  const calls = answer.message.tool_calls ?? [];
  let broken: string | null = null;
  if (answer.finish === 'length') {
    broken = `cut at ${limits.tokensPerTurn} tokens`;
    end = { outcome: 'limit', detail: `turn ${turn} was ${broken}` };
  } else if (answer.malformed !== undefined) {
    broken = answer.malformed;
    end = { outcome: 'malformed', detail: answer.malformed };
  } else if (calls.length > limits.callsPerTurn) {
    broken = `${calls.length} tool calls in one turn, where ${limits.callsPerTurn} are allowed`;
    end = { outcome: 'limit', detail: broken };
  } else {
    try {
      for (const call of calls) {
        const step = await runCall(tools, call, session.database, left());
        steps.push(step);
        const content = cut(typeof step.result === 'string' ? step.result : json(step.result), limits.characters);
        session.messages.push({ role: 'tool', tool_call_id: call.id, content });
      }
      if (calls.length === 0) {
        const next = await within(left(), () => session.user.answer(spoken(session.messages)));
        if (next === null) end = { outcome: 'done', detail: '' };
        else session.messages.push({ role: 'user', content: cut(next, limits.characters) });
      }
    } catch (error) {
      end =
        error instanceof OutOfTime
          ? { outcome: 'limit', detail: `out of time after ${limits.seconds} s` }
          : { outcome: 'crashed', detail: message(error) };
    }
  }

  let grade = { reward: 0, parts: {}, reasons: [] as readonly string[] };
  try {
    grade = environment.gradeTurn({
      task: session.task,
      database: session.database,
      messages: session.messages,
      turn,
      message: answer.message,
      steps,
      before,
      broken,
    });
  } catch (error) {
    end = { outcome: 'crashed', detail: `grading turn ${turn}: ${message(error)}` };
  }
  session.turns.push({
    tokens: answer.tokens ?? null,
    finish: answer.finish,
    steps,
    reward: clamp(grade.reward),
    parts: grade.parts,
    reasons: grade.reasons,
  });

  const mistakes = [...before, ...steps].filter((step) => step.mistake !== null).length;
  if (end === null && mistakes > limits.mistakes) {
    end = { outcome: 'limit', detail: `${mistakes} mistaken tool calls, where ${limits.mistakes} are forgiven` };
  }
  if (end === null && session.turns.length >= limits.turns) {
    end = { outcome: 'limit', detail: `still talking after ${limits.turns} turns` };
  }
  if (end === null && session.usage.context >= limits.tokens) {
    end = { outcome: 'limit', detail: `${session.usage.context} tokens, where ${limits.tokens} are allowed` };
  }
  if (end === null && left() <= 0) end = { outcome: 'limit', detail: `out of time after ${limits.seconds} s` };
  session.end = end;
}

/** Runs a call, or says what is wrong with it. Throws only for the tool's own defects and for time. */
async function runCall<Database>(
  tools: ReadonlyMap<string, Tool<Database>>,
  call: ToolCall,
  database: Database,
  milliseconds: number,
): Promise<ToolStep> {
  const name = call.function.name;
  const found = tools.get(name);
  if (found === undefined) {
    return { name, arguments: null, result: { error: 'unknown tool' }, mistake: 'unknown-tool' };
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(call.function.arguments);
  } catch {
    return { name, arguments: null, result: { error: 'arguments are not JSON' }, mistake: 'bad-arguments' };
  }
  const checked = found.parameters.safeParse(parsed);
  if (!checked.success) {
    const issue = checked.error.issues[0]!;
    const where = issue.code === 'unrecognized_keys' ? issue.keys[0] : issue.path.join('.');
    return { name, arguments: null, result: { error: `bad arguments: ${where}` }, mistake: 'bad-arguments' };
  }
  const args = checked.data as Readonly<Record<string, unknown>>;
  try {
    const result = await within(milliseconds, () => found.run(args, database));
    return { name, arguments: args, result, mistake: null };
  } catch (error) {
    if (error instanceof OutOfTime) throw error;
    throw new Error(`tool ${name}: ${message(error)}`, { cause: error });
  }
}

export function spoken(messages: readonly Message[]): Spoken[] {
  return messages.flatMap((one): Spoken[] => {
    if (one.role === 'user') return [{ who: 'user', text: one.content }];
    if (one.role === 'assistant' && one.content !== null && one.content !== '') {
      return [{ who: 'agent', text: one.content }];
    }
    return [];
  });
}

class OutOfTime extends Error {}

/** The work's value, or OutOfTime. Work that ignores the clock is left behind; its database is private, so no harm. */
async function within<T>(milliseconds: number, work: () => T | Promise<T>): Promise<T> {
  if (milliseconds <= 0) throw new OutOfTime();
  const started = work();
  if (!(started instanceof Promise)) return started;
  let timer: NodeJS.Timeout | undefined;
  const alarm = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new OutOfTime()), Math.min(milliseconds, 2 ** 31 - 1));
  });
  try {
    return await Promise.race([started, alarm]);
  } finally {
    clearTimeout(timer);
  }
}

const cut = (text: string, characters: number): string => text.slice(0, characters);
const json = (value: unknown): string => JSON.stringify(value) ?? 'null';
