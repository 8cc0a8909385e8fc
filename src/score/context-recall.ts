/**
 * Context recall as Ragas defines it: the share of the sentences of the reference, the answer that should have been given, which
 * can be attributed to what was retrieved. In production the reference is what a person wrote: a correction (`signals`), the
 * newest one. Without one it is unmeasured. The answer itself may stand in where that is asked for, but then this measures
 * nearly what faithfulness does.
 */
import { z } from 'zod';
import type { Signal } from '../collect/signal.ts';
import { askingScorer, noJudge } from './ask.ts';
import { passageBlocks, type RetrievalScorerOptions } from './faithfulness.ts';
import { exchangeOf } from './retrieval.ts';
import { type Scorer, unmeasured } from './scorer.ts';

export type ContextRecallOptions = RetrievalScorerOptions & {
  /** What is held against the passages: only what people wrote, or else the answer. */
  readonly reference?: 'correction' | 'answer'; // correction
};

const task =
  'Below are a question, passages, and a reference answer to the question. Go through the reference sentence by sentence. For each sentence say whether it can be attributed to the passages. Give a reason of a few words first.';
const answerShape = z.strictObject({
  sentences: z.array(z.strictObject({ reason: z.string(), attributed: z.boolean() })).max(200),
});

/** What a person wrote as the right answer, the newest. */
export const correctionIn = (signals: readonly Signal[]): string | null =>
  [...signals]
    .filter(({ correction }) => correction !== null && correction.trim() !== '')
    .sort((a, b) => b.at - a.at || (a.identity < b.identity ? 1 : -1))[0]?.correction ?? null;

export function contextRecall(options: ContextRecallOptions = {}): Scorer {
  const { tools, reference: from = 'correction', ...using } = options;
  const score: Scorer['score'] = async ({ turns, signals }, { ask }) => {
    const exchange = exchangeOf(turns, options);
    if (exchange === null) return unmeasured('there is no question with an answer');
    const { question, answer, contexts } = exchange;
    if (contexts.length === 0) return unmeasured('nothing was retrieved');
    const reference = correctionIn(signals) ?? (from === 'answer' ? answer : null);
    if (reference === null) return unmeasured('nobody wrote what the answer should have been');
    if (ask === undefined) return unmeasured(noJudge);
    const content = [question, reference, ...contexts];
    const { value, reason } = await ask({ prompt: 'context recall 1', content, calls: 1, using }, async (call) => {
      const { sentences } = await call({
        task,
        material: [
          { name: 'question', text: question },
          ...passageBlocks(contexts),
          { name: 'reference', text: reference },
        ],
        answer: answerShape,
      });
      if (sentences.length === 0) return { value: null, reason: 'the reference states nothing' };
      const attributed = sentences.filter((one) => one.attributed).length;
      const why = sentences.find((one) => !one.attributed)?.reason;
      return {
        value: attributed / sentences.length,
        reason: `${attributed} of ${sentences.length} sentences of the right answer were in what was retrieved${why === undefined ? '' : `; not: ${why}`}`,
      };
    });
    return { value, reason, turns: new Map() };
  };
  return askingScorer({
    name: 'context recall',
    version: JSON.stringify(['context-recall', 2, tools ?? null, from, using]),
    usesLabels: 'corrections', // a label may say what the answer should have been
    score,
  });
}
