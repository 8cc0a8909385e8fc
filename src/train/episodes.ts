/**
 * Where simulation meets training: an environment as a source of attempts, an episode as an attempt, a conversation in words
 * as an example. Episodes that crashed or that no model answered are nobody's policy and are left out of their group.
 */
import type { Engine } from '../engine/engine.ts';
import { ConfigError } from '../errors.ts';
import { type ChatCodec, enginePlayer, watchEngine } from '../simulate/engine-player.ts';
import { type Environment, type Task, type Tool, toolSpec } from '../simulate/environment.ts';
import { type Episode, play } from '../simulate/episode.ts';
import type { Message, ToolSpec } from '../simulate/message.ts';
import type { Attempt, AttemptSource } from './attempt.ts';
import type { WrittenTurn } from './datum.ts';
import type { Example } from './sft.ts';
import { timedEnvironment } from './step-clock.ts';

/** null: the episode says nothing about the model. */
export function attemptFrom(episode: Episode): Attempt | null {
  if (episode.outcome === 'crashed' || episode.outcome === 'failed' || episode.turns.length === 0) return null;
  let version: number | null = null;
  const turns = episode.turns.map(({ tokens, reward }, k) => {
    const logprobs = tokens?.rawLogprobs;
    if (!tokens || !logprobs || tokens.version === null)
      throw new Error(
        `Turn ${k} of episode ${episode.id} has no exact tokens, logprobs and weights version; play it on an engine to train on it.`,
      );
    if (version !== null && version !== tokens.version)
      throw new Error(
        `Episode ${episode.id} was written by weights ${version} and ${tokens.version}; play it with one.`,
      );
    version = tokens.version;
    return { prompt: tokens.prompt, completion: tokens.completion, logprobs, reward };
  });
  return {
    id: episode.id,
    task: episode.task,
    taskType: episode.type,
    reward: episode.reward,
    success: episode.success,
    version: version!,
    turns,
  };
}

export function environmentSource<Data, Database>(
  environment: Environment<Data, Database>,
  tasks: readonly Task<Data>[],
  codec: ChatCodec,
): AttemptSource {
  return {
    tasks: tasks.length,
    async play({ engine, model, tasks: wanted, attempts, seed, signal, clock, onPlayed }) {
      const watched = watchEngine(engine);
      const playing = () =>
        play(
          clock ? timedEnvironment(environment, clock) : environment,
          enginePlayer(watched.engine, model, codec),
          wanted.map((i) => tasks[i]!),
          { attempts, seed, ...(signal ? { signal } : {}) },
        );
      const episodes = await (clock ? clock.during('environment', playing) : playing());
      watched.throwIfDied();
      if (environment.agent !== undefined) refuseSilence(episodes.flat());
      onPlayed?.(episodes);
      return episodes.map((group) => group.flatMap((episode) => attemptFrom(episode) ?? []));
    },
  };
}

/** What single agents do is data; when not one of them asked the model, something is set up wrongly. */
function refuseSilence(episodes: readonly Episode[]): void {
  const [first] = episodes;
  if (first === undefined || episodes.some(({ turns }) => turns.length > 0)) return;
  const why = first.detail === '' ? 'it ended by itself and never asked' : first.detail;
  throw new ConfigError(
    `Of ${episodes.length} attempts in ${first.environment} the agent asked the model in none, so there is nothing to learn from. In the first, ${first.id}: ${why}. It must use OPENAI_BASE_URL and OPENAI_API_KEY, or the base_url and api_key it is posted.`,
  );
}

export type Success = {
  readonly success: number;
  readonly episodes: number;
  /** Tokens the model wrote. */
  readonly tokens: number;
  /** [task]: share of its attempts that solved it. */
  readonly tasks: readonly number[];
  readonly types: Readonly<Record<string, { readonly success: number; readonly episodes: number }>>;
};

/** Share of tasks solved, overall and per type, each attempt counted. Crashed and failed episodes count as not solved. */
export async function measureSuccess<Data, Database>(
  environment: Environment<Data, Database>,
  tasks: readonly Task<Data>[],
  codec: ChatCodec,
  engine: Engine,
  model: string,
  options: { readonly attempts?: number; readonly seed?: number; readonly temperature?: number } = {},
): Promise<Success> {
  const { attempts = 1, seed = 0, temperature = 1 } = options;
  const player = enginePlayer(engine, model, codec, { temperature });
  const groups = await play(environment, player, tasks, { attempts, seed });
  const episodes = groups.flat();
  const types: Record<string, { success: number; episodes: number }> = Object.create(null);
  for (const { type, success } of episodes) {
    types[type] ??= { success: 0, episodes: 0 };
    const row = types[type];
    row.success += success ? 1 : 0;
    row.episodes++;
  }
  return {
    success: episodes.filter((e) => e.success).length / Math.max(1, episodes.length),
    episodes: episodes.length,
    tokens: episodes.reduce((n, e) => n + e.counts.completionTokens, 0),
    tasks: groups.map((group) => group.filter((e) => e.success).length / group.length),
    types: Object.fromEntries(
      Object.entries(types).map(([type, row]) => [type, { ...row, success: row.success / row.episodes }]),
    ),
  };
}

/**
 * What somebody wrote (an expert, a larger model, production) as a turn in tokens; its prompt is everything before it. This is
 * the one place where text is tokenised for training, because there nobody sampled tokens that could be kept.
 */
export function writtenTurn(
  codec: ChatCodec,
  before: readonly Message[],
  said: Message,
  tools: readonly ToolSpec[],
): WrittenTurn {
  const prompt = codec.encode(before, tools, { generate: true });
  const whole = codec.encode([...before, said], tools, { generate: false });
  if (prompt.some((token, k) => whole[k] !== token))
    throw new Error('The chat template does not render an assistant turn after its own opening; it must only append.');
  const after = whole.slice(prompt.length);
  const stop = after.findIndex((token) => codec.stopTokens.includes(token));
  return { prompt, completion: stop < 0 ? after : after.slice(0, stop + 1) };
}

/** A conversation as turns: one for each assistant message. */
export function turnsFromMessages(
  codec: ChatCodec,
  messages: readonly Message[],
  tools: readonly ToolSpec[],
): WrittenTurn[] {
  return messages.flatMap((message, i) =>
    message.role === 'assistant' ? [writtenTurn(codec, messages.slice(0, i), message, tools)] : [],
  );
}

export function exampleFrom(
  codec: ChatCodec,
  messages: readonly Message[],
  about: Pick<Example, 'id' | 'taskType' | 'quality'>,
  tools: readonly ToolSpec[] = [],
): Example {
  return { ...about, turns: turnsFromMessages(codec, messages, tools) };
}

export const toolSpecs = <Database>(tools: readonly Tool<Database>[]): ToolSpec[] =>
  tools.map((one) => toolSpec(one as Tool<never>));
