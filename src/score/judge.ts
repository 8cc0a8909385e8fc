/**
 * A model's opinion of a whole conversation (S2): accurate, complete, clear, concise; one number in 0–1 with the reason. Where the
 * user has said how it was, nobody else is asked. What the judge is told is part of the version: another prompt, other scores.
 */
import { z } from 'zod';
import { askingScorer, type JudgeChoice, noJudge } from './ask.ts';
import { rankBy } from './judge-rank.ts';
import { type Scorer, unmeasured } from './scorer.ts';
import { transcriptOf, withoutAnswer } from './transcript.ts';

export type JudgeOptions = JudgeChoice & {
  /** What a good answer is, in place of accuracy, completeness, clarity and conciseness. */
  readonly criteria?: string;
  /** Answers to the same turn (docs/explore.md): each for itself, or each against each, in both orders. */
  readonly siblings?: 'alone' | 'rank'; // alone
  /** Judge also where the user has spoken. */
  readonly alsoWithFeedback?: boolean; // false
};

export const defaultCriteria = `Accuracy: what the assistant said and did is right, and fits what its tools returned.
Completeness: everything that was asked for is answered or done.
Clarity: the user can follow it at once.
Conciseness: nothing is there that the user does not need.`;

export const judgeTask = (
  criteria: string,
): string => `Below is a conversation between a user and an assistant, message by message, with the calls of tools and their results. How well did the assistant serve the user? Judge by these criteria:

${criteria}

First write your reasoning, in at most three sentences without personal data. Then give the score: 0 is useless or harmful, 0.5 half of what a good assistant would have done, 1 as good as it can be.`;

export const judgeAnswer = z.strictObject({ reasoning: z.string(), score: z.number().min(0).max(1) });

export function judge(options: JudgeOptions = {}): Scorer {
  const { criteria = defaultCriteria, alsoWithFeedback = false, siblings = 'alone', ...using } = options;
  const prompt = `judge 1 ${criteria}`;
  const score: Scorer['score'] = async ({ turns, signals }, { ask }) => {
    if (!alsoWithFeedback && signals.some(({ kind, value }) => kind === 'feedback' && value !== null))
      return unmeasured('the user has spoken');
    const without = withoutAnswer(turns);
    if (without !== null) return without;
    if (ask === undefined) return unmeasured(noJudge);
    const material = transcriptOf(turns);
    const content = material.flatMap(({ name, text }) => [name, text]);
    const { value, reason } = await ask({ prompt, content, calls: 1, using }, async (call) => {
      const { reasoning, score } = await call({ task: judgeTask(criteria), material, answer: judgeAnswer });
      return { value: score, reason: reasoning };
    });
    return { value, reason, turns: new Map() };
  };
  return askingScorer({
    name: 'judge',
    version: JSON.stringify(['judge', 1, criteria, alsoWithFeedback, siblings, using]),
    score,
    ...(siblings === 'rank' ? { rank: rankBy(criteria, using) } : {}),
  });
}
