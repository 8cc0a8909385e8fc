import { expect, test } from 'vitest';
import { dialects } from './dialects.ts';
import { sampleResult, seedOf, wireSampling } from './sampling.ts';

const { skyrl, tinker } = dialects;
const sequence = { tokens: [1, 2, 3, 4], logprobs: [-1, -2, -3, -4], stop_reason: 'length' as const };
const letters = () => ({ push: (token: number) => 'abcdef'[token]!, end: () => '' });
const ends = { stopTokens: [], textStream: letters };
const asked = { promptSize: 3, version: 5, ends };

test('a compiling server is asked for few lengths, never more than fit, and what is too much is cut off', () => {
  const ask = (maxTokens: number, room = 1000) =>
    wireSampling(skyrl, { maxTokens }, { seed: 1, stopTokens: [], room }).max_tokens;
  expect([ask(3), ask(5), ask(50), ask(50, 60), ask(0)]).toEqual([3, 6, 64, 60, 1]);
  expect(wireSampling(tinker, { maxTokens: 50 }, { seed: 1, stopTokens: [], room: 99 }).max_tokens).toBe(50);
  const [cut] = sampleResult(skyrl, { sequences: [sequence] }, { ...asked, params: { maxTokens: 2 } }).samples;
  expect([[...cut!.tokens], [...cut!.rawLogprobs], cut!.finish]).toEqual([[1, 2], [-1, -2], 'length']);
});

test('text ends where a stop string is complete', () => {
  const params = { maxTokens: 4, stop: ['cd'] };
  const [one] = sampleResult(tinker, { sequences: [sequence] }, { ...asked, params }).samples;
  expect([[...one!.tokens], one!.finish]).toEqual([[1, 2, 3], 'stop']);
});

test('prompt logprobs begin with the one that nothing predicts, whether the server sends it or not', () => {
  const params = { maxTokens: 4, promptLogprobs: true };
  const of = (dialect: typeof skyrl | typeof tinker, prompt_logprobs: (number | null)[]) =>
    sampleResult(dialect, { sequences: [sequence], prompt_logprobs }, { ...asked, params }).promptLogprobs!;
  expect([...of(skyrl, [-1, -2])]).toEqual([Number.NaN, -1, -2]);
  expect([...of(tinker, [null, -1, -2])]).toEqual([Number.NaN, -1, -2]);
  expect(() => of(skyrl, [null, -1, -2])).toThrow(/3 logprobs for a prompt of 3 tokens/);
});

test('what a server does not give, or does not know, is an error', () => {
  const params = { maxTokens: 4 };
  expect(() => sampleResult(tinker, { sequences: [] }, { ...asked, params })).toThrow(/0 samples where 1/);
  const bare = { ...sequence, logprobs: null };
  expect(() => sampleResult(tinker, { sequences: [bare] }, { ...asked, params })).toThrow(/no logprobs for 4/);
  expect(() => wireSampling(tinker, { maxTokens: 1, minP: 0.1 }, { seed: 1, stopTokens: [], room: 9 })).toThrow(/minP/);
});

test('prompts of a call have seeds that lie far apart', () => {
  const seeds = Array.from({ length: 2000 }, (_, i) => seedOf(7, i)).sort((a, b) => a - b);
  const near = seeds.filter((seed, i) => i > 0 && seed - seeds[i - 1]! < 16);
  expect(near.length).toBeLessThan(3);
  expect(seeds.every((seed) => seed >= 0 && seed < 2 ** 30)).toBe(true);
});
