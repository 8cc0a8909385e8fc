import { expect, test } from 'vitest';
import { searchPlanted } from './planted.ts';

const passage = Array.from({ length: 24 }, (_, i) => `planted${i}`).join(' ');

test('a phrase of the list is found wherever it stands, and named by its number alone', () => {
  const search = searchPlanted(['blue heron at noon', 'never said']);
  search.look(['{"result": "Blue  HERON at noon"}'], 'conversation a');
  search.look(['hm', 'blue heron at noon'], 'comment b');
  expect(search.found().canaries).toEqual([{ phrase: 0, found: 2, first: 'conversation a' }]);
});

test('a passage that one owner brings five times and nobody else ever is reported without its words', () => {
  const search = searchPlanted([]);
  for (let i = 0; i < 5; i++) search.look([`my order ${i}. ${passage}`, passage], `a${i}`, ['key mallory']);
  for (let i = 0; i < 4; i++) search.look([passage.replaceAll('planted', 'seldom')], `b${i}`, ['key bob']);
  expect(search.found().repeated).toEqual([{ owner: 'key mallory', conversations: 5, first: 'a0' }]);
});

test('what several say is a manner of speaking', () => {
  const search = searchPlanted([]);
  for (let i = 0; i < 9; i++) search.look([passage], `a${i}`, [i === 8 ? 'key bob' : 'key ann']);
  expect(search.found().repeated).toEqual([]);
});
