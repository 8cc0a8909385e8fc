/**
 * Answer relevance as Ragas defines it (response relevancy): how near the questions that the answer would answer come to the one
 * that was asked. Three questions are made from the answer alone; the value is the mean cosine of their embeddings with the
 * question's, and 0 if all three times the answer was found to commit to nothing. A cosine below 0 counts as 0. Needs an
 * embedding model (`judge.embeddingModel`).
 */
import { z } from 'zod';
import { askingScorer, type JudgeChoice, noJudge } from './ask.ts';
import { exchangeOf } from './retrieval.ts';
import { mean, type Scorer, unmeasured } from './scorer.ts';

const count = 3;
const task = `Below is an answer. Write ${count} different questions that it could be the answer to, each as somebody would ask it who had not seen the answer. For each, say whether the answer is noncommittal: evasive, vague or ambiguous, such as "I don't know".`;
const answerShape = z.strictObject({
  questions: z.array(z.strictObject({ question: z.string().min(1), noncommittal: z.boolean() })).length(count),
});

export function cosine(a: readonly number[], b: readonly number[]): number {
  let [dot, ofA, ofB] = [0, 0, 0];
  for (const [i, x] of a.entries()) {
    const y = b[i]!;
    dot += x * y;
    ofA += x * x;
    ofB += y * y;
  }
  return ofA === 0 || ofB === 0 ? 0 : dot / Math.sqrt(ofA * ofB);
}

const clamp = (value: number): number => Math.min(1, Math.max(0, value));

export function answerRelevance(using: JudgeChoice = {}): Scorer {
  const score: Scorer['score'] = async ({ turns }, { ask }) => {
    const exchange = exchangeOf(turns);
    if (exchange === null) return unmeasured('there is no question with an answer');
    if (ask === undefined) return unmeasured(noJudge);
    const { question, answer } = exchange;
    const asked = { prompt: 'answer relevance 1', content: [question, answer], calls: 2, using, embeds: true };
    const { value, reason } = await ask(asked, async (call) => {
      const { questions } = await call({ task, material: [{ name: 'answer', text: answer }], answer: answerShape });
      if (questions.every((one) => one.noncommittal)) return { value: 0, reason: 'the answer commits to nothing' };
      const [own, ...others] = await call.embed([question, ...questions.map((one) => one.question)]);
      const near = mean(others.map((vector) => clamp(cosine(own!, vector))));
      return { value: clamp(near), reason: `the questions it answers are ${near.toFixed(2)} near to the one asked` };
    });
    return { value, reason, turns: new Map() };
  };
  return askingScorer({
    name: 'answer relevance',
    version: JSON.stringify(['answer-relevance', 1, using]),
    score,
  });
}
