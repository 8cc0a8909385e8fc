import { expect, test } from 'vitest';
import { reachesStop } from './reaches-stop.ts';

const VOCABULARY = ['a', 'b', 'END', 'E', 'N', 'D', '', 'a long token that says END inside', 'ND'];
const decodeText = (tokens: readonly number[]) => tokens.map((id) => VOCABULARY[id]).join('');
const reaches = (tokens: number[]) => reachesStop(tokens, ['END', '!!!!!!'], decodeText);

test('a stop string is found in one token, across tokens, and inside a longer token', () => {
  expect(reaches([0, 2])).toBe(true);
  expect(reaches([0, 3, 4, 5])).toBe(true);
  expect(reaches([3, 8])).toBe(true);
  expect(reaches([0, 7])).toBe(true);
  expect(reaches([3, 4, 0, 5])).toBe(false);
});

test('tokens without text do not hide the beginning of a stop string, however many there are', () => {
  expect(reaches([0, 3, 4, ...new Array(100).fill(6), 5])).toBe(true);
});

test('a long answer is not decoded whole with every token', () => {
  let decoded = 0;
  const counting = (tokens: readonly number[]) => {
    decoded += tokens.length;
    return decodeText(tokens);
  };
  expect(reachesStop(new Array(10_000).fill(0), ['END'], counting)).toBe(false);
  expect(decoded).toBeLessThan(50);
});
