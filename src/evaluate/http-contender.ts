/**
 * A contender behind the gateway: one release, addressed by name, over the path that users' calls take. Cases are one answer
 * each, graded here; an environment's tasks are played to their end.
 */

import type { Turn } from '../collect/turn.ts';
import { unrecordedTurn } from '../collect/unrecorded-turn.ts';
import { uuidv7 } from '../collect/uuid.ts';
import type { Services } from '../score/scorer.ts';
import type { RewardSpec } from '../score/weighted.ts';
import type { Environment } from '../simulate/environment.ts';
import { play } from '../simulate/episode.ts';
import { httpPlayer } from '../simulate/http-player.ts';
import type { AssistantMessage, Message } from '../simulate/message.ts';
import type { Conversation, PlayedTurn, Player, TurnTokens } from '../simulate/player.ts';
import { hash } from '../simulate/random.ts';
import { type Answer, answerOf } from './answer.ts';
import type { Case } from './case.ts';
import type { Door } from './door.ts';
import type { WrittenTokens } from './drift.ts';
import { attemptOf } from './engine-contender.ts';
import { grade } from './grade.ts';
import { scoreTurn } from './graders/score.ts';
import type { Attempt, Contender } from './match.ts';
import type { CaseSuite, TaskSuite } from './suite.ts';

export type ThroughDoor = {
  readonly door: Door;
  readonly agent: string;
  /** Name of the release. */
  readonly name: string;
  readonly temperature: number;
  /** Of one answer to a case; an environment has limits of its own. */
  readonly maxTokens?: number | undefined;
  readonly timeoutSeconds: number;
  readonly concurrency: number;
  /** Whether its server says which tokens it wrote, and how likely each was. */
  readonly tokens: boolean;
  /** What its trajectories' ids begin with. */
  readonly prefix: string;
};

const retries = 4;

function playerOf(through: ThroughDoor): Player {
  const { door, agent, name, temperature, timeoutSeconds, concurrency, tokens, prefix } = through;
  return httpPlayer({
    baseUrl: `${door.url}/t/{trajectory}/v1`,
    model: agent,
    key: door.key,
    temperature,
    timeoutSeconds,
    concurrency,
    ...{ retries, tokens },
    trajectory: ({ task, attempt }) => `${prefix}-${hash(task).toString(36)}-${attempt}`,
    headers: () => ({ 'x-pawl-release': name, 'x-pawl-origin': 'evaluation' }),
    // A limit that nobody set is the model's own, and some servers refuse the field.
    fields: ({ maxTokens: most }) => ({ max_tokens: Number.isFinite(most) ? most : undefined }),
  });
}

export function taskContender<Data, Database>(
  through: ThroughDoor,
  environment: Environment<Data, Database>,
  suite: TaskSuite<Data>,
  /** Told what was written in the first attempt at each task, where the server says so. */
  onWritten: (written: readonly WrittenTokens[]) => void,
): Contender {
  return {
    name: through.name,
    async play({ attempts, seed, signal, onProgress }) {
      let played = 0;
      const onEpisode = () => onProgress(++played);
      const how = { attempts, seed, ...(signal ? { signal } : {}), onEpisode };
      const episodes = await play(environment, plainly(playerOf(through)), suite.tasks, how);
      onWritten(episodes.flatMap(([first]) => first!.turns.flatMap(({ tokens }) => (tokens === null ? [] : [tokens]))));
      return episodes.map((group) => group.map(attemptOf));
    },
  };
}

/** Tokens are asked for at temperature 1 alone, where what they were drawn from is the plain model. */
const plainly =
  (player: Player): Player =>
  async (conversations, signal) =>
    (await player(conversations, signal)).map((answer) =>
      answer.kind === 'said' && answer.tokens !== undefined
        ? { ...answer, tokens: { ...answer.tokens, rawLogprobs: answer.tokens.logprobs } }
        : answer,
    );

/** What answers are scored by where a case expects a score. */
export type Rewarded = { readonly reward: RewardSpec; readonly services: Services };

export function caseContender(through: ThroughDoor, rewarded: Rewarded, { cases }: CaseSuite): Contender {
  return {
    name: through.name,
    async play({ attempts, seed, signal, onProgress }) {
      const player = playerOf(through);
      const done: Attempt[][] = cases.map(() => new Array(attempts));
      const total = cases.length * attempts;
      let next = 0;
      let played = 0;
      const worker = async (): Promise<void> => {
        for (let i = next++; i < total; i = next++) {
          signal?.throwIfAborted();
          const at = Math.floor(i / attempts);
          const one = conversationOf(cases[at]!, i % attempts, seed, through.maxTokens);
          const [answer] = await player([one], signal);
          done[at]![one.attempt] = await gradeAnswer(cases[at]!, one, answer!, through, rewarded);
          onProgress(++played);
        }
      };
      await Promise.all(Array.from({ length: Math.min(through.concurrency, total) }, worker));
      return done;
    },
  };
}

function conversationOf(
  { id, messages, tools = [] }: Case,
  attempt: number,
  seed: number,
  maxTokens = Number.POSITIVE_INFINITY,
): Conversation {
  return {
    id: `${id}:${seed}:${attempt}`,
    task: id,
    attempt,
    turn: 0,
    seed: hash(`${id}\u0000${seed}\u0000${attempt}`) >>> 1, // servers take a signed 32-bit number
    groupSeed: hash(`${id}\u0000${seed}`) >>> 1,
    // Richer than what episodes say (parts of content, developer messages), and only ever sent on as it is.
    messages: messages as unknown as readonly Message[],
    tools,
    previous: null,
    maxTokens,
    context: Number.POSITIVE_INFINITY,
  };
}

async function gradeAnswer(
  asked: Case,
  one: Conversation,
  answer: PlayedTurn,
  through: ThroughDoor,
  rewarded: Rewarded,
): Promise<Attempt> {
  if (answer.kind !== 'said') return { solved: null, reasons: [answer.detail] };
  const { message, finish, malformed, tokens } = answer;
  const turn = turnOf(asked, one, through, malformed === undefined ? message : { ...message, malformed_tool_calls: 1 });
  try {
    const reasons = await within(through.timeoutSeconds, grade(asked.expect, { message, turn, ...rewarded }));
    const cut = finish === 'length' && reasons.length > 0 ? ['The answer was cut at its limit of tokens.'] : [];
    return {
      solved: reasons.length === 0,
      reasons: [...reasons, ...cut],
      answer: answerOf([message], { ...(await paidFor(turn, rewarded, through.timeoutSeconds)), ...writtenOf(tokens) }),
      ...(tokens === undefined || one.attempt > 0 ? {} : { tokens: [kept(tokens)] }),
    };
  } catch (error) {
    return { solved: null, reasons: [`Grading: ${error instanceof Error ? error.message : String(error)}`] };
  }
}

const kept = ({ prompt, completion, logprobs }: TurnTokens): WrittenTokens => ({
  ...{ prompt: [...prompt], completion: [...completion], logprobs: [...logprobs] },
});

const writtenOf = (tokens: TurnTokens | undefined): Pick<Answer, 'written'> | Record<string, never> =>
  tokens === undefined
    ? {}
    : {
        written: {
          tokens: tokens.logprobs.length,
          surprise: [...tokens.logprobs].reduce((sum, logprob) => sum - logprob, 0),
        },
      };

/** What the agent's reward says of the exchange, which is what training would have paid; nothing where it cannot tell in time. */
async function paidFor(
  turn: Turn,
  { reward, services }: Rewarded,
  seconds: number,
): Promise<Partial<Pick<Answer, 'reward' | 'parts'>>> {
  try {
    const { total, parts } = await within(seconds, scoreTurn(reward, turn, services));
    const known = Object.entries(parts).flatMap(([name, { value }]) =>
      value === null ? [] : [[name, value] as const],
    );
    return { reward: total, parts: Object.fromEntries(known) };
  } catch {
    return {};
  }
}

/** The exchange as the recorder would have it, for scorers. */
function turnOf(asked: Case, one: Conversation, { agent, name }: ThroughDoor, message: object): Turn {
  const startedAt = Date.now();
  return unrecordedTurn({
    ...{ id: uuidv7(startedAt), trajectory: one.id, agent, origin: 'evaluation', startedAt, release: name },
    request: { model: agent, messages: asked.messages, ...(asked.tools ? { tools: asked.tools } : {}) },
    choices: [
      { index: 0, message: { ...message } as AssistantMessage & Record<string, unknown>, finishReason: 'stop' },
    ],
  });
}

async function within<T>(seconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const alarm = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done in ${seconds} s`)), seconds * 1000);
  });
  try {
    return await Promise.race([work, alarm]);
  } finally {
    clearTimeout(timer);
  }
}
