import { expect, test } from 'vitest';
import { createCrowd, patternOf, questionOf } from './k-anonymity.ts';

const crowdOf = (k: number, ...asked: [question: string, ...people: string[]][]) => {
  const crowd = createCrowd(k);
  for (const [question, ...people] of asked) crowd.add(patternOf(question), people);
  return (question: string) => crowd.size(patternOf(question));
};

test('a pattern is the same whatever the numbers, masks, names, case and endings', () => {
  const pattern = patternOf('Where is the order 4711 of Maria Lopez? Mail [email], ship to [PERSON_2].');
  expect(patternOf('where are orders AB-99 of Jon Smith? mail [email] ship to [PERSON_1]')).toEqual(pattern);
  expect(patternOf('')).toHaveLength(0);
  expect(patternOf('4711')).toHaveLength(0);
});

test('five people who say the same in their own words are a crowd; four are not', () => {
  const size = crowdOf(
    5,
    ['Where is my order 1?', 'ann'],
    ['where’s order 22', 'bob'],
    ['Order 333: where?', 'cleo'],
    ['I ordered. Where is order 4444 now?', 'dan', 'ann'],
    ['Please cancel my subscription', 'eve'],
  );
  expect(size('WHERE IS ORDER 9')).toBe(4);
  expect(size('cancel subscription')).toBe(1);
  const five = crowdOf(5, ...['ann', 'bob', 'cleo', 'dan', 'eve'].map((name): [string, string] => ['Refund 7?', name]));
  expect(five('a refund, please')).toBe(5);
});

test('one person who asks a hundred times in many words stays one person', () => {
  const asked = Array.from({ length: 100 }, (_, i): [string, string] => [
    `launch date of the heron engine ${i}`,
    'ann',
  ]);
  expect(crowdOf(5, ...asked)('launch date of the heron engine')).toBe(1);
});

test('neighbours of neighbours do not carry a rare question along', () => {
  // Each shares half with the next; the last has nothing of the first.
  const size = crowdOf(3, ['alpha beta', 'ann'], ['beta', 'bob'], ['beta gamma', 'cleo'], ['gamma', 'dan']);
  expect(size('alpha beta')).toBe(2);
});

test('Korean particles make no other question of it', () => {
  expect(crowdOf(3, ['배송이 언제 와요', 'ann'], ['배송은 언제', 'bob'])('배송을 언제')).toBe(2);
});

test('the question is the first thing the user says', () => {
  expect(
    questionOf([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'x' },
      { role: 'user', content: 'second' },
    ]),
  ).toBe('first');
  expect(questionOf([{ role: 'system', content: 'x' }])).toBe('');
});

test('words that only ask are no part of a question, whatever their endings', () => {
  const asked = [
    'Where is my order?',
    'My order, please, where is it?',
    'Does this order have these?',
    'Those orders, there?',
  ];
  for (const question of asked) expect([question, patternOf(question)]).toEqual([question, patternOf('order')]);
  const crowd = createCrowd(5);
  const ways = [
    'Where is it, my order?',
    'When will my order arrive?',
    'Where is the order I made?',
    'Where did my order go?',
  ];
  for (const [i, question] of [...ways, 'My order, where is it?'].entries())
    crowd.add(patternOf(question), [`user ${i}`]);
  expect(crowd.size(patternOf('Where is my order?'))).toBe(5);
  // Two that share only one of their three words are two questions.
  expect(crowd.size(patternOf('When will my order arrive?'))).toBeLessThan(5);
});
