/**
 * Answers to the same turn, compared by a judge. Each pair is shown twice, once in each order, because judges favour a place: where
 * the two verdicts do not agree, it is a tie. An answer is worth the mean over its opponents: 1 for each it beats, 0.5 for a tie
 * (Copeland's rule). All comparisons of a group are one verdict, kept together.
 */
import { z } from 'zod';
import { type Block, type Call, type JudgeChoice, noJudge } from './ask.ts';
import { mean, type Scorer, type ScorerInput, unmeasured } from './scorer.ts';
import { messagesOf, saidBy, transcriptOf } from './transcript.ts';

const task = (
  criteria: string,
): string => `Below is a conversation, and two answers that an assistant could give next, first and second. Which serves the user better? Judge by these criteria:

${criteria}

First write your reasoning, in at most two sentences without personal data. Then say which is better: first, second, or tie.`;
const answerShape = z.strictObject({ reasoning: z.string(), better: z.enum(['first', 'second', 'tie']) });

/** Of a pair shown in both orders: 1 where the first of them is better, 0 where the other is, 0.5 where the orders disagree. */
export function fromBothOrders(shown: 'first' | 'second' | 'tie', swapped: 'first' | 'second' | 'tie'): number {
  if (shown === 'first' && swapped === 'second') return 1;
  if (shown === 'second' && swapped === 'first') return 0;
  return 0.5;
}

/** wins[i][j]: how answer i fared against j. */
export const worthOf = (wins: readonly (readonly number[])[]): number[] =>
  wins.map((row, i) => mean(row.filter((_, j) => j !== i)));

async function compareAll(call: Call, criteria: string, before: readonly Block[], answers: readonly string[]) {
  const better = async (first: string, second: string) => {
    const material = [...before, { name: 'first answer', text: first }, { name: 'second answer', text: second }];
    return (await call({ task: task(criteria), material, answer: answerShape })).better;
  };
  const wins = answers.map(() => answers.map(() => 0.5));
  await Promise.all(
    answers.flatMap((a, i) =>
      answers.slice(i + 1).map(async (b, k) => {
        const [shown, swapped] = await Promise.all([better(a, b), better(b, a)]);
        wins[i]![i + 1 + k] = fromBothOrders(shown, swapped);
        wins[i + 1 + k]![i] = 1 - fromBothOrders(shown, swapped);
      }),
    ),
  );
  return wins;
}

/** The answer of an input of one turn. */
const answerOf = ({ turns }: ScorerInput): string => {
  const last = messagesOf(turns).at(-1);
  return last === undefined ? '' : saidBy(last);
};

export const rankBy =
  (criteria: string, using: JudgeChoice): NonNullable<Scorer['rank']> =>
  async (inputs, { ask }) => {
    const answers = inputs.map(answerOf);
    const alike = (reason: string) => inputs.map(() => unmeasured(reason));
    if (answers.length < 2) return alike('there is nothing to compare it with');
    if (ask === undefined) return alike(noJudge);
    const before = transcriptOf(inputs[0]!.turns).slice(0, -1);
    const { reason, details } = await ask(
      {
        prompt: `judge-rank 1 ${criteria}`,
        content: [...before.flatMap(({ name, text }) => [name, text]), '', ...answers],
        calls: answers.length * (answers.length - 1),
        using,
      },
      async (call) => {
        const wins = await compareAll(call, criteria, before, answers);
        const count = (row: readonly number[], i: number, value: number) =>
          row.filter((one, j) => j !== i && one === value).length;
        const details = worthOf(wins).map((value, i) => ({
          name: `answer ${i + 1}`,
          value,
          reason: `better than ${count(wins[i]!, i, 1)}, level with ${count(wins[i]!, i, 0.5)} of ${answers.length - 1} others`,
        }));
        return { value: null, reason: `${answers.length} answers compared with each other`, details };
      },
    );
    if (details === undefined) return alike(reason);
    return inputs.map((_, i) => {
      const { value, reason } = details[i]!;
      return { value, reason, turns: new Map() };
    });
  };
