/**
 * Which episodes of a training step people may read afterwards, and in what form: of one task the best and the worst attempts, for
 * they show side by side what the step could learn from. Personal data is masked before anything is written, and what is long is cut,
 * so that a run of any length keeps a bounded amount of text.
 */
import { redact } from '../collect/redact/redact.ts';
import type { Episode } from '../simulate/episode.ts';

/** One thing that was said, called or answered. */
export type KeptMessage = {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly text: string;
  readonly reasoning?: string;
  readonly calls?: readonly { readonly name: string; readonly input: string }[];
  /** Of the model's turns: what it earned, and why. */
  readonly reward?: number;
  readonly reasons?: readonly string[];
};

export type KeptEpisode = {
  readonly task: string;
  readonly taskType: string;
  readonly attempt: number;
  readonly reward: number;
  readonly success: boolean;
  readonly outcome: string;
  /** Why it earned what it did. */
  readonly reasons: readonly string[];
  readonly messages: readonly KeptMessage[];
  /** Messages that are not here, because there were too many. */
  readonly leftOut: number;
};

/** A step of which episodes are kept: attempts at one task, with what each earned, the best first. */
export type EpisodeStep = {
  readonly step: number;
  readonly task: string;
  readonly taskType: string;
  readonly rewards: readonly number[];
};

/** What a step played: [task][attempt]. */
export type Played = readonly (readonly Episode[])[];

/** Attempts of a task that are kept: half the best, half the worst. */
const attemptsKept = 4;
const messagesKept = 60;
const charactersKept = 4_000;
/** Steps of a run of which something is kept, about. */
const stepsKept = 200;

/** Steps between two of which something is kept. */
export const keepEvery = (steps: number): number => Math.max(1, Math.floor(steps / stepsKept));

/** The attempts worth reading of what was played, the best first; the task whose attempts differ most, the first of equals. */
export function keptOf(played: Played): KeptEpisode[] {
  const spread = (group: readonly Episode[]): number => {
    const rewards = group.map(({ reward }) => reward);
    return Math.max(...rewards) - Math.min(...rewards);
  };
  const [task] = played.filter((group) => group.length > 0).sort((a, b) => spread(b) - spread(a));
  if (task === undefined) return [];
  const sorted = [...task].sort((a, b) => b.reward - a.reward || a.attempt - b.attempt);
  const half = attemptsKept / 2;
  return (sorted.length <= attemptsKept ? sorted : [...sorted.slice(0, half), ...sorted.slice(-half)]).map(toKept);
}

const cut = (text: string): string =>
  text.length <= charactersKept ? text : `${text.slice(0, charactersKept)} … ${text.length - charactersKept} more`;

function toKept({
  task,
  type,
  attempt,
  reward,
  success,
  outcome,
  detail,
  reasons,
  messages,
  turns,
}: Episode): KeptEpisode {
  let turn = 0;
  const all = messages.map((message): KeptMessage => {
    if (message.role !== 'assistant') return { role: message.role, text: cut(message.content) };
    const earned = turns[turn++];
    const { content, reasoning_content: reasoning, tool_calls: calls = [] } = message;
    return {
      ...{ role: message.role, text: cut(content ?? '') },
      ...(reasoning === undefined ? {} : { reasoning: cut(reasoning) }),
      ...(calls.length === 0
        ? {}
        : { calls: calls.map(({ function: { name, arguments: input } }) => ({ name, input: cut(input) })) }),
      ...(earned === undefined ? {} : { reward: earned.reward, reasons: earned.reasons.slice(0, 10).map(cut) }),
    };
  });
  const about = [...(detail === '' ? [] : [detail]), ...reasons].slice(0, 20).map(cut);
  return {
    ...{ task, taskType: type, attempt, reward, success, outcome },
    // One value, so that the same address has the same number in all of it.
    ...redact({ reasons: about, messages: all.slice(0, messagesKept) }, {}),
    leftOut: Math.max(0, all.length - messagesKept),
  };
}
