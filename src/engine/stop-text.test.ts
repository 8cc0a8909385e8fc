import { expect, test } from 'vitest';
import { createStopText, createStopWatch, stopStrings } from './stop-text.ts';
import type { TextStream } from './tokenizer.ts';

function cut(text: string, stops: readonly string[], step: number) {
  const reader = createStopText(stopStrings(stops));
  let out = '';
  for (let at = 0; at < text.length; at += step) out += reader.push(text.slice(at, at + step));
  return { text: out + reader.end(), stopped: reader.stopped };
}

test.each([1, 2, 3, 100])('in pieces of %i characters, text ends before the first stop string', (step) => {
  expect(cut('one END two', ['END'], step)).toEqual({ text: 'one ', stopped: true });
  expect(cut('one EN two', ['END'], step)).toEqual({ text: 'one EN two', stopped: false });
  expect(cut('aabaabaaab', ['aabaaab'], step)).toEqual({ text: 'aab', stopped: true }); // begins inside a failed beginning
  expect(cut('abababac', ['ababac', 'zz'], step)).toEqual({ text: 'ab', stopped: true });
  expect(cut('one\n\nUser: two', ['User:', '\n\nUser'], step).text).toBe('one');
  expect(cut('aaaa', ['aaaaa'], step)).toEqual({ text: 'aaaa', stopped: false });
});

test('what cannot be the beginning of a stop string comes out at once', () => {
  const reader = createStopText(stopStrings(['END', 'Ex']));
  expect(['one E', 'N', 'O', 'E', 'x'].map((text) => reader.push(text))).toEqual(['one ', '', 'ENO', '', '']);
});

const VOCABULARY = ['a', 'b', 'END', 'E', 'N', 'D', '', 'a long token that says END inside', 'ND'];
const decoded = (): TextStream => ({ push: (token) => VOCABULARY[token]!, end: () => '' });
function reaches(tokens: readonly number[]): boolean {
  const watch = createStopWatch(stopStrings(['END', '!!!!!!']), decoded());
  return tokens.map(watch).includes(true);
}

test('a stop string is found in one token, across tokens, inside a longer token, and behind tokens without text', () => {
  expect(reaches([0, 2])).toBe(true);
  expect(reaches([0, 3, 4, 5])).toBe(true);
  expect(reaches([3, 8])).toBe(true);
  expect(reaches([0, 7])).toBe(true);
  expect(reaches([0, 3, 4, ...new Array(100).fill(6), 5])).toBe(true);
  expect(reaches([3, 4, 0, 5])).toBe(false);
});

/** Processor time in ms; short runs say more about the machine. */
function timeOf(length: number): number {
  const nearly = `${'ab'.repeat(length / 4)}c${'ab'.repeat(length / 4)}`;
  const stops = stopStrings([`b${nearly}`, `${nearly}d`, `${'ab'.repeat(length)}c`]);
  const text = createStopText(stops);
  const started = process.cpuUsage();
  for (let i = 0; i < length; i++) text.push(i % 2 === 0 ? 'a' : 'b');
  const { user, system } = process.cpuUsage(started);
  return Math.max(4, (user + system) / 1000);
}

test('long stop strings that nearly fit take time in proportion to the text', () => {
  const [few, many] = [4_000, 32_000].map((length) => Math.min(timeOf(length), timeOf(length)));
  expect(many! / few!).toBeLessThan(24); // 8 in proportion, 64 and more where every token looks again at what came before
});
