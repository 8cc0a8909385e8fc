import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createCrowd, type Pattern, patternOf, questionOf } from './k-anonymity.ts';
import { hashWord, jaccard } from './minhash.ts';
import { createNames } from './names.ts';
import { openShelf, type Shelf } from './shelf.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-crowd-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const crowdOf = (k: number, ...asked: [question: string, ...people: string[]][]) => {
  const crowd = createCrowd(k, (held) => openShelf(folder, held));
  const names = createNames();
  for (const [question, ...people] of asked) crowd.add(patternOf(question), people.map(names.numberOf));
  return async (question: string) => {
    const number = crowd.add(patternOf(question), []);
    return (await crowd.sizes([number]))[number];
  };
};

test('a pattern is the same whatever the numbers, masks, names, case and endings', () => {
  const pattern = patternOf('Where is the order 4711 of Maria Lopez? Mail [email], ship to [PERSON_2].');
  expect(patternOf('where are orders AB-99 of Jon Smith? mail [email] ship to [PERSON_1]')).toEqual(pattern);
  expect(patternOf('')).toHaveLength(0);
  expect(patternOf('4711')).toHaveLength(0);
});

test('five people who say the same in their own words are a crowd; four are not', async () => {
  const size = crowdOf(
    5,
    ['Where is my order 1?', 'ann'],
    ['where’s order 22', 'bob'],
    ['Order 333: where?', 'cleo'],
    ['I ordered. Where is order 4444 now?', 'dan', 'ann'],
    ['Please cancel my subscription', 'eve'],
  );
  expect(await size('WHERE IS ORDER 9')).toBe(4);
  expect(await size('cancel subscription')).toBe(1);
  const five = crowdOf(5, ...['ann', 'bob', 'cleo', 'dan', 'eve'].map((name): [string, string] => ['Refund 7?', name]));
  expect(await five('a refund, please')).toBe(5);
});

test('one person who asks a hundred times in many words stays one person', async () => {
  const asked = Array.from({ length: 100 }, (_, i): [string, string] => [
    `launch date of the heron engine ${i}`,
    'ann',
  ]);
  expect(await crowdOf(5, ...asked)('launch date of the heron engine')).toBe(1);
});

test('neighbours of neighbours do not carry a rare question along', async () => {
  // Each shares half with the next; the last has nothing of the first.
  const size = crowdOf(3, ['alpha beta', 'ann'], ['beta', 'bob'], ['beta gamma', 'cleo'], ['gamma', 'dan']);
  expect(await size('alpha beta')).toBe(2);
});

test('Korean particles make no other question of it', async () => {
  expect(await crowdOf(3, ['배송이 언제 와요', 'ann'], ['배송은 언제', 'bob'])('배송을 언제')).toBe(2);
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

test('words that only ask are no part of a question, whatever their endings', async () => {
  const asked = [
    'Where is my order?',
    'My order, please, where is it?',
    'Does this order have these?',
    'Those orders, there?',
  ];
  for (const question of asked) expect([question, patternOf(question)]).toEqual([question, patternOf('order')]);
  const ways = [
    'Where is it, my order?',
    'When will my order arrive?',
    'Where is the order I made?',
    'Where did my order go?',
  ];
  const told = [...ways, 'My order, where is it?'].map((question, i): [string, string] => [question, `user ${i}`]);
  const size = crowdOf(5, ...told);
  expect(await size('Where is my order?')).toBe(5);
  // Two that share only one of their three words are two questions.
  expect(await size('When will my order arrive?')).toBeLessThan(5);
});

test('among thousands of questions the count is what comparing each with each gives, on shelves that hold four pages', async () => {
  let state = 7;
  const draw = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const [k, questions] = [4, 2000];
  // Four words of sixty; where two share three of them they share more than half.
  const patterns = Array.from({ length: questions }, () =>
    Uint32Array.from(new Set(Array.from({ length: 4 }, () => hashWord(`word ${draw(60)}`)))).sort(),
  );
  const people = patterns.map(() => [draw(30), draw(30)]);
  const shelves: Shelf[] = [];
  const crowd = createCrowd(k, () => {
    shelves.push(openShelf(folder, 4));
    return shelves.at(-1)!;
  });
  const numbers = patterns.map((pattern, i) => crowd.add(pattern, people[i]!));
  const sizes = await crowd.sizes();
  for (const shelf of shelves) shelf.drop();
  const expected = (pattern: Pattern) =>
    Math.min(k, new Set(patterns.flatMap((other, i) => (jaccard(pattern, other) >= 0.5 ? people[i]! : []))).size);
  expect(numbers.map((number) => sizes[number])).toEqual(patterns.map(expected));
  expect(new Set(sizes)).toEqual(new Set([1, 2, 3, 4]));
});
