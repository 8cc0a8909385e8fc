import { expect, test } from 'vitest';
import { phraseFinder } from './phrases.ts';

test('finds each phrase of a list, whatever its case, width and spaces, and only whole words', () => {
  const find = phraseFinder(['Project Heron', 'ham', 'heron', '프로젝트 학']);
  expect(find('the PROJECT\n  heron is late')).toEqual([0, 2]);
  expect(find('a hamster, a sham')).toEqual([]);
  expect(find('ham.')).toEqual([1]);
  expect(find('ｐroject ｈeron')).toEqual([0, 2]);
  // Korean puts particles behind the word.
  expect(find('프로젝트 학은 늦었다')).toEqual([3]);
  expect(phraseFinder([])('anything')).toEqual([]);
  expect(phraseFinder(['', '  '])('anything')).toEqual([]);
});

test('falls back to a shorter phrase inside a longer one that was not completed', () => {
  const find = phraseFinder(['a b c d', 'b c', 'c e']);
  expect(find('a b c e')).toEqual([1, 2]);
});
