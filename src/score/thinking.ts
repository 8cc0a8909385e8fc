/**
 * Thinking that pays (S8): how many tokens a conversation spent on reasoning, against the agent's own median of conversations
 * that are not known to have failed, and how much of the reasoning repeats itself:
 *
 *     value = min(1, median / tokens) × (1 − share of words in repeated spans) × share of tokens that an answer or a call followed
 *
 * so the usual amount is worth full marks, twice that one half, a loop next to nothing, and thinking that was cut off nothing. The median is a norm (norms.ts) or,
 * with `median`, a number that somebody chose. Servers that do not count reasoning are counted for: four characters a token.
 * `of: 'completion'` counts everything the model wrote, for models that think aloud or not at all.
 */
import { argumentsText } from '../collect/message.ts';
import type { Turn } from '../collect/turn.ts';
import { repeatedShare } from './repeats.ts';
import { type ComputingScorer, type ScorerInput, unmeasured } from './scorer.ts';
import { saidBy, storyOf } from './story.ts';

export type ThinkingOptions = {
  readonly of?: 'reasoning' | 'completion';
  /** Tokens of a usual conversation; without it the agent's own median. */
  readonly median?: number;
};

const estimate = (text: string): number => Math.ceil(text.length / 4);

type Thought = {
  readonly turn: Turn;
  readonly tokens: number;
  readonly text: string;
  /** Nothing was said or called in the end. */
  readonly isVain: boolean;
};

function thoughtsOf(turns: readonly Turn[], of: 'reasoning' | 'completion'): Thought[] {
  return storyOf(turns).map((step) => {
    const said = saidBy(step);
    const { turn } = step;
    const reasoning = said?.reasoning ?? '';
    const isVain = said === null || (said.text.trim() === '' && said.toolCalls.length === 0);
    if (of === 'reasoning')
      return { turn, text: reasoning, tokens: turn.reasoningTokens ?? estimate(reasoning), isVain };
    const text = [reasoning, said?.text ?? '', ...(said?.toolCalls ?? []).map(argumentsText)].join('\n');
    return { turn, text, tokens: turn.completionTokens ?? estimate(text), isVain };
  });
}

const tokensOf = (thoughts: readonly Thought[]): number => thoughts.reduce((sum, { tokens }) => sum + tokens, 0);

/** A vote or an outcome says so. */
const isKnownFailure = ({ signals }: ScorerInput): boolean =>
  signals.some(({ kind, value }) => (kind === 'feedback' || kind === 'outcome') && value === 0);

export function thinking({ of = 'reasoning', median }: ThinkingOptions = {}): ComputingScorer {
  if (median !== undefined && !(median > 0 && Number.isFinite(median)))
    throw new Error(`The median of thinking is ${median}; give a number of tokens above 0.`);
  const norm = `${of} tokens`;
  return {
    name: 'thinking',
    version: JSON.stringify(['thinking', 2, of, median ?? null]),
    inProcess: true,
    ...(median === undefined && {
      norm: {
        name: norm,
        of: (input) => (isKnownFailure(input) ? null : tokensOf(thoughtsOf(input.turns, of)) || null),
      },
    }),
    score({ turns, norms }) {
      const thoughts = thoughtsOf(turns, of);
      const tokens = tokensOf(thoughts);
      if (tokens === 0) return unmeasured('no thinking was recorded');
      const usual = median ?? norms?.get(norm);
      if (usual === undefined) return unmeasured('too few conversations with thinking to compare with');
      const repeated = repeatedShare(thoughts.map(({ text }) => text).join('\n'));
      const loop = repeated > 0.05 ? `; ${Math.round(repeated * 100)}% of it repeats itself` : '';
      const vain = tokensOf(thoughts.filter(({ isVain }) => isVain)) / tokens;
      const end = vain > 0 ? `; ${Math.round(vain * 100)}% of it without an answer` : '';
      return {
        value: Math.min(1, usual / tokens) * (1 - repeated) * (1 - vain),
        reason: `${tokens} tokens of thinking, usually ${Math.round(usual)}${loop}${end}`,
        turns: new Map(
          thoughts.flatMap(({ turn, tokens: own, text, isVain }): [string, number][] =>
            own === 0 ? [] : [[turn.id, isVain ? 0 : 1 - repeatedShare(text)]],
          ),
        ),
      };
    },
  };
}
