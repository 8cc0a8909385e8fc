import { expect, it } from 'vitest';
import { exampleOf } from './material.ts';
import { type Example, supervisedData } from './sft.ts';

const example = (worths: readonly (number | undefined)[]): Example => ({
  id: 'e',
  taskType: 'x',
  quality: 1,
  // Each turn sees one more token and writes two.
  turns: worths.map((worth, k) => ({
    prompt: Array.from({ length: 1 + 3 * k }, (_, i) => i),
    completion: [1 + 3 * k, 2 + 3 * k],
    ...(worth === undefined ? {} : { worth }),
  })),
});
const weights = (batch: readonly Example[], credit?: 'attempt' | 'turn') =>
  supervisedData(batch, credit).data.map((one) => [...one.weights!].map((w) => Math.round(1000 * w) / 1000));

it('every own token weighs the same, whatever its turn was worth', () => {
  expect(weights([example([1, 0])])).toEqual([[0.25, 0.25, 0, 0.25, 0.25]]);
});

it('with credit per turn a token weighs what its turn was worth, and a batch as much as before', () => {
  expect(weights([example([1, 0.25])], 'turn')).toEqual([[0.4, 0.4, 0, 0.1, 0.1]]);
  // A turn worth nothing is context; one of which nobody speaks counts whole.
  expect(weights([example([0, undefined])], 'turn')).toEqual([[0, 0, 0, 0.5, 0.5]]);
  expect(weights([example([1]), example([0.5])], 'turn')).toEqual([
    [0.333, 0.333],
    [0.167, 0.167],
  ]);
  expect(weights([example([0, 0])], 'turn')).toEqual([[0, 0, 0, 0, 0]]);
});

it('the turns of a dataset bring the values that their scores gave them', () => {
  const codec = {
    stopTokens: [9],
    encode: (messages: readonly { content: string }[]) => [...messages.flatMap(({ content }) => [content.length, 9])],
  };
  const messages = ['a', 'bb', 'ccc', 'dddd'].map((content, i) => ({
    ...{ role: i % 2 === 0 ? 'user' : 'assistant', content },
  }));
  const answers = [
    { at: 1, score: 0.25, reasoning: '' },
    { at: 3, score: null, reasoning: '' },
  ];
  const about = { id: 'a', taskType: 'x', quality: 0.9, tools: [], exact: null };
  const made = exampleOf(codec as never, { ...about, messages: messages as never, answers });
  expect(made.turns.map(({ worth }) => worth)).toEqual([0.25, undefined]);
});
