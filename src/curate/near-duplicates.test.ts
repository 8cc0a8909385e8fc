import { expect, test } from 'vitest';
import { firstOfAlike, wordingOf } from './near-duplicates.ts';

const long = Array.from({ length: 200 }, (_, i) => `word${i}`).join(' ');
const said = (question: string, answer: string) =>
  wordingOf({
    threads: [
      {
        messages: [
          { role: 'system', content: 'ignored' },
          { role: 'user', content: question },
          { role: 'assistant', content: answer },
        ],
        tools: [],
        answers: [],
      },
    ],
  });

test('of conversations that differ in a word the first is kept; another question, or another order, is another one', () => {
  const wordings = [
    said(`Hello. ${long}`, 'Yes.'),
    said(`Hello! ${long}`, 'yes'), // the same words
    said(`Hallo. ${long}`, 'Yes.'), // one run of three in two hundred differs
    said(`Hello. ${long.split(' ').reverse().join(' ')}`, 'Yes.'),
    said('Where is order 7?', 'Sent.'),
    said('Where is order 8?', 'Sent.'),
  ];
  expect(firstOfAlike(wordings, 0.9)).toEqual([true, false, false, true, true, true]);
  expect(firstOfAlike([...wordings].reverse(), 0.9)).toEqual([true, true, true, true, false, false]);
});
