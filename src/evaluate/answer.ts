/**
 * What a model said and did in one attempt, apart from whether that solved the case: what the gates compare, and what a person
 * is shown. It is kept with the report's evidence, so it is capped; what is cut is cut for both models alike.
 */
import { z } from 'zod';
import type { Episode } from '../simulate/episode.ts';
import type { AssistantMessage } from '../simulate/message.ts';

export const answerSchema = z.strictObject({
  /** The agent's words to the user, message by message. */
  said: z.array(z.string()),
  /** Its tool calls in order; arguments as it wrote them. */
  calls: z.array(z.strictObject({ name: z.string(), arguments: z.string() })),
  /** What the grader, or the agent's reward, pays for it in the end, 0–1; null where nothing could tell. */
  reward: z.number().nullable(),
  /** What is paid for its turns, in the mean, where turns are graded. */
  turnReward: z.number().nullable(),
  /** Parts of either by name, 0–1; those of turns in the mean, as `turn.NAME`. */
  parts: z.record(z.string(), z.number()),
  /** How many tokens it wrote, and the sum of −log p of them under the model itself; null where tokens are not known. */
  written: z.strictObject({ tokens: z.int(), surprise: z.number() }).nullable(),
});
export type Answer = Readonly<z.infer<typeof answerSchema>>;

const most = { messages: 64, characters: 8_000, calls: 256, argument: 2_000, parts: 64 };

/** Of one message, or of several in a row. */
export function answerOf(
  messages: readonly AssistantMessage[],
  graded: Partial<Pick<Answer, 'reward' | 'turnReward' | 'parts' | 'written'>> = {},
): Answer {
  const parts = Object.entries(graded.parts ?? {}).filter(([, value]) => Number.isFinite(value));
  return {
    said: messages
      .flatMap(({ content }) => (typeof content === 'string' && content.trim() !== '' ? [content] : []))
      .slice(0, most.messages)
      .map((text) => text.slice(0, most.characters)),
    calls: messages
      .flatMap(({ tool_calls: calls = [] }) => calls.map((call) => call.function))
      .slice(0, most.calls)
      .map((call) => ({ name: call.name.slice(0, 256), arguments: call.arguments.slice(0, most.argument) })),
    reward: graded.reward ?? null,
    turnReward: graded.turnReward ?? null,
    parts: Object.fromEntries(parts.slice(0, most.parts)),
    written: graded.written ?? null,
  };
}

export function answerOfEpisode({ messages, turns, reward, parts }: Episode): Answer {
  const byName = new Map<string, number[]>();
  for (const turn of turns)
    for (const [name, value] of Object.entries(turn.parts)) {
      const known = byName.get(name);
      if (known === undefined) byName.set(name, [value]);
      else known.push(value);
    }
  const ofTurns = [...byName].map(([name, values]): [string, number] => [`turn.${name}`, mean(values)]);
  const own = turns.flatMap(({ tokens }) => tokens?.rawLogprobs ?? []);
  return answerOf(
    messages.filter((one): one is AssistantMessage => one.role === 'assistant'),
    {
      reward,
      turnReward: turns.length === 0 || byName.size === 0 ? null : mean(turns.map((turn) => turn.reward)),
      parts: Object.fromEntries([...Object.entries(parts), ...ofTurns]),
      written: own.length === 0 ? null : { tokens: own.length, surprise: own.reduce((sum, lp) => sum - lp, 0) },
    },
  );
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** All its words in one line, as a person is shown them. */
export function shownAnswer({ said, calls }: Answer): string {
  const did = calls.map((call) => `${call.name}(${call.arguments})`);
  return [...did, ...said].join(' · ').replace(/\s+/g, ' ').slice(0, 240);
}
