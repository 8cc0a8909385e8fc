/**
 * Plays episodes in which the user's own agent acts. It is started for each attempt at a task with a base URL and a key of that
 * episode; what it asks the model there becomes a conversation for the player, so that whatever plays (an engine that is being
 * trained, a release behind the gateway) answers, and the turn keeps the player's exact tokens.
 *
 * A call that begins with an earlier call's messages and its answer goes on from that call's tokens. Any other call (a
 * sub-agent, an edited history) begins a token sequence of its own in the same episode.
 *
 * What an agent does is data: one that hangs, crashes or asks without end has an outcome and a reward. Only a player that
 * cannot answer, or an agent that cannot be reached, is nobody's policy (`failed`).
 */
import { createHash } from 'node:crypto';
import { normalise } from '../collect/thread.ts';
import type { ChatRequest } from '../engine/openai.ts';
import { RequestError } from '../errors.ts';
import { type AgentDoor, type Answer, type DoorPlace, openDoor } from './agent-door.ts';
import type { Environment, Limits, Outcome, Task } from './environment.ts';
import type { Episode, PlayOptions } from './episode.ts';
import type { AssistantMessage, Message, ToolSpec } from './message.ts';
import type { Conversation, PlayedTurn, Player, TurnTokens } from './player.ts';
import { hash } from './random.ts';
import { close, message, type Session } from './session.ts';

/** One call of the model, as the agent made it. */
export type AgentCall = {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  readonly answer: AssistantMessage;
  readonly finish: 'stop' | 'length';
};

/** What an agent left behind in one episode: what there is to grade. */
export type AgentRun = {
  /** What it printed or responded; '' where it did not come to that. */
  answer: string;
  /** What it posted to /outcomes, by name; the last value stands. */
  readonly outcomes: Map<string, number>;
  /** In the order in which they were answered. */
  readonly calls: AgentCall[];
};

/** What an agent is started with. */
export type Start = {
  readonly episode: string;
  readonly task: { readonly id: string; readonly type: string; readonly split: string; readonly input: unknown };
  readonly seed: number;
  readonly baseUrl: string;
  readonly key: string;
};

/** How an agent ended: by itself, with an error, when it was told to stop, or it never ran. */
export type AgentEnd =
  | { readonly kind: 'done' | 'stopped'; readonly answer: string }
  | { readonly kind: 'died'; readonly answer: string; readonly detail: string }
  | { readonly kind: 'unreachable'; readonly detail: string };

export type OwnAgent<Data> = {
  /** What the agent gets to see of a task. */
  readonly input: (task: Task<Data>) => unknown;
  /** Resolves when nothing of it runs any more, which is soon after `signal`. Never throws. */
  readonly run: (start: Start, limits: { readonly characters: number }, signal: AbortSignal) => Promise<AgentEnd>;
  /** Agents under way at once. */
  readonly concurrency: number;
  readonly door: DoorPlace;
};

/** [task][attempt]. The environment's database is what agents leave behind, an AgentRun. */
export async function playAgents<Data, Database>(
  environment: Environment<Data, Database>,
  agent: OwnAgent<Data>,
  player: Player,
  tasks: readonly Task<Data>[],
  options: PlayOptions,
): Promise<Episode[][]> {
  const { attempts = 1, seed = 0, signal, onEpisode, now = () => performance.now() } = options;
  const limits: Limits = { ...environment.limits, ...options.limits };
  const done: Episode[][] = tasks.map(() => new Array<Episode>(attempts));
  const waiting = tasks.flatMap((task, t) => Array.from({ length: attempts }, (_, attempt) => ({ task, t, attempt })));
  const door = await openDoor(agent.door);
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      signal?.throwIfAborted();
      const { task, t, attempt } = next;
      const session = opened(environment, task, attempt, seed, now());
      await act(session as Session<Data, AgentRun>, agent, door, player, limits, signal);
      signal?.throwIfAborted();
      const episode = await close(environment, session, now() - session.started);
      done[t]![attempt] = episode;
      onEpisode?.(episode);
    }
  };
  try {
    const workers = Array.from({ length: Math.min(agent.concurrency, waiting.length) }, worker);
    // All of them, so that no agent runs any more when this throws.
    for (const ended of await Promise.allSettled(workers)) if (ended.status === 'rejected') throw ended.reason;
    return done;
  } finally {
    await door.close();
  }
}

function opened<Data, Database>(
  environment: Environment<Data, Database>,
  task: Task<Data>,
  attempt: number,
  seed: number,
  started: number,
): Session<Data, Database> {
  return {
    id: `${environment.name}:${task.id}:${seed}:${attempt}`,
    task,
    attempt,
    seed: hash(`${seed}/${task.id}/${attempt}`),
    groupSeed: hash(`${seed}/${task.id}`),
    started,
    database: environment.database(task),
    user: environment.user(task),
    messages: [],
    turns: [],
    previous: null,
    usage: { context: 0, completion: 0 },
    end: null,
  };
}

/** From the agent's start until nothing of it is left; the session then has its end. */
async function act<Data>(
  session: Session<Data, AgentRun>,
  agent: OwnAgent<Data>,
  door: AgentDoor,
  player: Player,
  limits: Limits,
  signal: AbortSignal | undefined,
): Promise<void> {
  const over = new AbortController();
  const stop = (outcome: Outcome, detail: string): void => {
    session.end ??= { outcome, detail };
    over.abort();
  };
  const aborted = (): void => stop('failed', 'the player was stopped');
  signal?.addEventListener('abort', aborted, { once: true });
  const alarm = setTimeout(
    () => stop('limit', `out of time after ${limits.seconds} s`),
    Math.min(limits.seconds * 1000, 2 ** 31 - 1),
  );
  const ask = caller(session, player, limits, over.signal, stop);
  const asking = new Set<Promise<unknown>>();
  const lease = door.admit({
    ask: (request, left) => {
      const answer = ask(request, left);
      asking.add(answer);
      const forget = () => asking.delete(answer);
      answer.then(forget, forget);
      return answer;
    },
    outcome: (name, value) => {
      const { outcomes } = session.database;
      if (outcomes.size >= 100 && !outcomes.has(name))
        throw new RequestError(400, 'too_many_outcomes', 'An episode has at most 100 outcomes.');
      outcomes.set(name, value);
    },
  });
  try {
    const { task } = session;
    const start: Start = {
      episode: session.id,
      task: { id: task.id, type: task.type, split: task.split, input: agent.input(task) },
      seed: session.seed,
      baseUrl: door.baseUrl,
      key: lease.key,
    };
    const end = await agent.run(start, limits, over.signal);
    if (end.kind !== 'unreachable') session.database.answer = end.answer;
    if (end.kind === 'done') session.end ??= { outcome: 'done', detail: '' };
    if (end.kind === 'died') session.end ??= { outcome: 'died', detail: end.detail };
    if (end.kind === 'unreachable') session.end ??= { outcome: 'failed', detail: end.detail };
  } catch (error) {
    session.end ??= { outcome: 'crashed', detail: `starting the agent: ${message(error)}` };
  } finally {
    clearTimeout(alarm);
    signal?.removeEventListener('abort', aborted);
    lease.leave();
    over.abort(); // what it asked and did not wait for
    await Promise.allSettled(asking);
  }
}

/** A place in the episode from which a later call may go on: the end of an answer. */
type Point = { readonly messages: number; readonly tokens: TurnTokens };

/** Answers the calls of one episode and writes them down in its session. */
function caller<Data>(
  session: Session<Data, AgentRun>,
  player: Player,
  limits: Limits,
  over: AbortSignal,
  stop: (outcome: Outcome, detail: string) => void,
): (request: ChatRequest, left: AbortSignal) => Promise<Answer> {
  const points = new Map<string, Point>();
  const asked = new Map<string, number>();
  let calls = 0;
  let mainThread: string | null = null;
  return async (request, left) => {
    if (++calls > limits.turns) {
      const detail = `the agent asked the model more than ${limits.turns} times`;
      stop('limit', detail);
      throw new RequestError(403, 'episode_limit', `This episode is over: ${detail}.`);
    }
    // Richer than what players say (names, developer messages as system), and only ever rendered or sent on as it is.
    const messages = request.messages as unknown as readonly Message[];
    const tools = request.tools as unknown as readonly ToolSpec[];
    const links = chainOf(tools, messages);
    const whole = links.at(-1)!;
    const repeat = asked.get(whole) ?? 0;
    asked.set(whole, repeat + 1);
    const point = links.findLast((link) => points.has(link));
    // From what was asked and not from when: agents that ask several things at once get the same answers again.
    const seed = hash(`${session.seed}/${whole}/${repeat}`);
    const conversation: Conversation = {
      id: session.id,
      task: session.task.id,
      attempt: session.attempt,
      turn: calls - 1,
      seed,
      groupSeed: seed,
      messages,
      tools,
      previous: point === undefined ? null : points.get(point)!,
      maxTokens: Math.min(request.maxTokens ?? limits.tokensPerTurn, limits.tokensPerTurn),
      context: limits.tokens,
    };
    const said = await played(player, conversation, AbortSignal.any([over, left]));
    if (over.aborted) throw new RequestError(403, 'episode_over', 'This episode is over.');
    if (said.kind === 'full') throw new RequestError(400, 'context_length_exceeded', `${said.detail}.`);
    if (said.kind === 'failed') {
      if (!left.aborted) stop('failed', said.detail);
      throw new RequestError(503, 'no_answer', said.detail);
    }
    if (left.aborted) throw new RequestError(499, 'caller_left', 'The agent did not wait for the answer.');
    const answer = withOwnIds(said.message, whole, repeat);
    const tokens = said.tokens ?? null;
    const end = link(whole, answer);
    if (tokens !== null) points.set(end, { messages: messages.length + 1, tokens });
    const usage = tokens
      ? { prompt: tokens.prompt.length, completion: tokens.completion.length }
      : (said.usage ?? { prompt: 0, completion: 0 });
    session.database.calls.push({ messages, tools, answer, finish: said.finish });
    session.turns.push({ tokens, finish: said.finish, steps: [], reward: 0, parts: {}, reasons: [] });
    session.usage.context = Math.max(session.usage.context, usage.prompt + usage.completion);
    session.usage.completion += usage.completion;
    // The episode's messages are those of its first call and of what went on from there; sub-agents' are in `calls`.
    if (mainThread === null || links.includes(mainThread)) {
      session.messages.splice(0, session.messages.length, ...messages, answer);
      mainThread = end;
    }
    return { message: answer, malformed: said.malformed !== undefined, finish: said.finish, tokens, usage };
  };
}

async function played(player: Player, conversation: Conversation, signal: AbortSignal): Promise<PlayedTurn> {
  try {
    const [answer] = await player([conversation], signal);
    return answer ?? { kind: 'failed', detail: 'The player was given a conversation and did not answer.' };
  } catch (error) {
    return { kind: 'failed', detail: message(error) };
  }
}

/** A codec numbers the tool calls of a turn; an agent may keep them by id over many turns. */
function withOwnIds(said: AssistantMessage, whole: string, repeat: number): AssistantMessage {
  if (said.tool_calls === undefined) return said;
  const name = `${whole.slice(0, 12)}${repeat || ''}`;
  return { ...said, tool_calls: said.tool_calls.map((call, i) => ({ ...call, id: `call_${name}_${i}` })) };
}

/** [message]: what stands for the tools and all messages up to it, so that "begins with" is a lookup. */
function chainOf(tools: readonly ToolSpec[], messages: readonly Message[]): string[] {
  let before = JSON.stringify(tools);
  return messages.map((one) => {
    before = link(before, one);
    return before;
  });
}

const link = (before: string, one: Message): string =>
  createHash('sha256').update(before).update('\u0000').update(canonical(one)).digest('hex');

/** An answer comes back as its client keeps it; everything else was rendered into tokens as it stands. */
const canonical = (one: Message): string => (one.role === 'assistant' ? normalise(one) : JSON.stringify(one));
