/**
 * Faithfulness as Ragas defines it: the share of the statements in the answer that can be inferred from what was retrieved. First
 * the answer is taken apart into statements that stand on their own, without sight of the passages; then each is held against
 * them. An answer that states nothing (a question back, a greeting) is unmeasured, as Ragas' NaN is, and not 0.
 */
import { z } from 'zod';
import { askingScorer, type Block, type JudgeChoice, noJudge } from './ask.ts';
import { numbered } from './ask-answer.ts';
import { exchangeOf, type RetrievalOptions } from './retrieval.ts';
import { type Scorer, unmeasured } from './scorer.ts';

export type RetrievalScorerOptions = JudgeChoice & RetrievalOptions;

const mostStatements = 40;

const statementsTask =
  'Below are a question and the answer to it. Take the answer apart into simple statements of fact: every sentence into one or more, each understandable on its own, with names in place of pronouns. Add nothing. Questions, greetings and offers of help state nothing; if there is no statement, the list is empty.';
const statementsAnswer = z.strictObject({ statements: z.array(z.string()).max(mostStatements) });

const supportTask =
  'Below are passages, and statements by number. For each statement, in the order of the numbers, say whether it can be directly inferred from the passages. What is true but not in the passages is not supported. Give a reason of a few words first.';
const supportAnswer = (count: number) =>
  z.strictObject({ verdicts: numbered(count, { reason: z.string(), supported: z.boolean() }) });

export const passageBlocks = (contexts: readonly string[]): Block[] =>
  contexts.map((text, i) => ({ name: `passage ${i + 1}`, text }));

export function faithfulness(options: RetrievalScorerOptions = {}): Scorer {
  const { tools, ...using } = options;
  const score: Scorer['score'] = async ({ turns }, { ask }) => {
    const exchange = exchangeOf(turns, options);
    if (exchange === null) return unmeasured('there is no question with an answer');
    const { question, answer, contexts } = exchange;
    if (contexts.length === 0) return unmeasured('nothing was retrieved');
    if (ask === undefined) return unmeasured(noJudge);
    const content = [question, answer, ...contexts];
    const { value, reason } = await ask({ prompt: 'faithfulness 1', content, calls: 2, using }, async (call) => {
      const { statements } = await call({
        task: statementsTask,
        material: [
          { name: 'question', text: question },
          { name: 'answer', text: answer },
        ],
        answer: statementsAnswer,
      });
      if (statements.length === 0) return { value: null, reason: 'the answer states nothing' };
      const { verdicts } = await call({
        task: supportTask,
        material: [...passageBlocks(contexts), ...statements.map((text, i) => ({ name: `statement ${i + 1}`, text }))],
        answer: supportAnswer(statements.length),
      });
      const supported = verdicts.filter((one) => one.supported).length;
      const why = verdicts.find((one) => !one.supported)?.reason;
      return {
        value: supported / verdicts.length,
        reason: `${supported} of ${verdicts.length} statements rest on what was retrieved${why === undefined ? '' : `; not: ${why}`}`,
      };
    });
    return { value, reason, turns: new Map() };
  };
  return askingScorer({
    name: 'faithfulness',
    version: JSON.stringify(['faithfulness', 1, tools ?? null, using]),
    score,
  });
}
