/**
 * Context precision as Ragas defines it: whether the passages that were of use stand before those that were not. Each passage is
 * judged on its own, useful for arriving at the answer or not; the value is the average precision,
 *
 *     Σ precision@k · v_k / Σ v_k,   v_k: whether passage k is useful, precision@k: the useful share of the first k
 *
 * and 0 where none is. The answer that it is held against is what a person wrote, where there is a correction (Ragas' variant with
 * reference), else the assistant's own (the one without).
 */
import { z } from 'zod';
import { askingScorer, noJudge } from './ask.ts';
import { correctionIn } from './context-recall.ts';
import type { RetrievalScorerOptions } from './faithfulness.ts';
import { exchangeOf } from './retrieval.ts';
import { type Scorer, unmeasured } from './scorer.ts';

const task =
  'Below are a question, an answer to it, and one passage that was retrieved for it. Was the passage useful in arriving at the answer? Give a reason of a few words first.';
const answerShape = z.strictObject({ reason: z.string(), useful: z.boolean() });
/** One call each; what came first was held to be the most relevant. */
const mostPassages = 20;

export function averagePrecision(useful: readonly boolean[]): number {
  let [hits, sum] = [0, 0];
  for (const [i, is] of useful.entries()) if (is) sum += ++hits / (i + 1);
  return hits === 0 ? 0 : sum / hits;
}

export function contextPrecision(options: RetrievalScorerOptions = {}): Scorer {
  const { tools, ...using } = options;
  const score: Scorer['score'] = async ({ turns, signals }, { ask }) => {
    const exchange = exchangeOf(turns, options);
    if (exchange === null) return unmeasured('there is no question with an answer');
    const { question } = exchange;
    const contexts = exchange.contexts.slice(0, mostPassages);
    if (contexts.length === 0) return unmeasured('nothing was retrieved');
    if (ask === undefined) return unmeasured(noJudge);
    const answer = correctionIn(signals) ?? exchange.answer;
    const content = [question, answer, ...contexts];
    const asked = { prompt: 'context precision 1', content, calls: contexts.length, using };
    const { value, reason } = await ask(asked, async (call) => {
      const verdicts = await Promise.all(
        contexts.map((text) =>
          call({
            task,
            material: [
              { name: 'question', text: question },
              { name: 'answer', text: answer },
              { name: 'passage', text },
            ],
            answer: answerShape,
          }),
        ),
      );
      const useful = verdicts.map((one) => one.useful);
      const count = useful.filter(Boolean).length;
      return {
        value: averagePrecision(useful),
        reason: `${count} of ${useful.length} retrieved passages were of use${count > 0 ? `, the first at place ${useful.indexOf(true) + 1}` : ''}`,
      };
    });
    return { value, reason, turns: new Map() };
  };
  return askingScorer({
    name: 'context precision',
    version: JSON.stringify(['context-precision', 2, tools ?? null, using]),
    usesLabels: 'corrections', // a label may say what the answer should have been
    score,
  });
}
