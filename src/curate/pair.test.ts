import { expect, test } from 'vitest';
import { type Answer, compare } from './pair.ts';

const answer = (id: string, fields: Partial<Answer> = {}): Answer => ({
  id,
  group: 'g',
  said: id,
  vote: null,
  explored: null,
  ...fields,
});
const part = (value: number | null, weight = 1) => ({ value, weight, reason: '' });
const told = (answers: readonly Answer[], minGap = 0.2) => {
  const { pairs, left } = compare(answers, minGap);
  return {
    pairs: pairs.map(({ source, chosen, rejected, gap }) => [source, `${chosen.id}>${rejected.id}`, gap]),
    left: left.map(({ answer: { id }, reason }) => [id, reason]),
  };
};

test('the best answer by votes is compared with the worst, the next with the next, and each once', () => {
  const votes = { a: 0.5, b: 1, c: 0, d: 0.75, e: 0.25 };
  const answers = Object.entries(votes).map(([id, vote]) => answer(id, { vote }));
  expect(told(answers)).toEqual({
    pairs: [
      ['votes', 'b>c', 1],
      ['votes', 'd>e', 0.5],
    ],
    left: [['a', 'no clear difference']],
  });
  expect(told([...answers].reverse()).pairs).toEqual(told(answers).pairs);
});

test('answers to other questions, the same words and small differences make no pair', () => {
  expect(told([answer('a', { vote: 1 }), answer('b', { vote: 0, group: 'h' })])).toEqual({
    pairs: [],
    left: [
      ['a', 'no other answer to the question'],
      ['b', 'no other answer to the question'],
    ],
  });
  expect(told([answer('a', { vote: 1 }), answer('b', { vote: 0, said: 'a' })]).pairs).toEqual([]);
  expect(told([answer('a', { vote: 0.6 }), answer('b', { vote: 0.5 })]).pairs).toEqual([]);
});

test('explored answers are compared with those of the same turn, over the parts that both have', () => {
  const explored = (turn: string, parts: Record<string, ReturnType<typeof part>>) => ({ explored: { turn, parts } });
  const answers = [
    answer('a', explored('t', { judge: part(0.9), tools: part(null, 3) })),
    answer('b', explored('t', { judge: part(0.4), tools: part(1, 3) })),
    answer('c', explored('u', { judge: part(0) })),
  ];
  // Only the judge has seen both: 0.9 against 0.4. What b's tools were worth says nothing about a.
  expect(told(answers)).toEqual({
    pairs: [['exploration', 'a>b', 0.5]],
    left: [['c', 'no clear difference']],
  });
  expect(told([answers[0]!, answer('d', explored('t', { tools: part(0) }))]).pairs).toEqual([]);
});
