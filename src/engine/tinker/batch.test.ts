import { expect, test } from 'vitest';
import type { Datum } from '../engine.ts';
import { backwardBatch, forwardBatch, nothingPending, resultOf, stepScale } from './batch.ts';
import { dialects } from './dialects.ts';
import { roundUp } from './shapes.ts';

const { skyrl, tinker } = dialects;
const datum: Datum = { tokens: [1, 2, 3, 4], targets: [2, 3, 4, 5], weights: [0, 1, -1, 0.5] };
const ce = { kind: 'cross_entropy' } as const;
const inputs = (batch: { passes: readonly { data: readonly { loss_fn_inputs: object }[] }[] }, i = 0) =>
  batch.passes[0]!.data[i]!.loss_fn_inputs as Record<string, { data: Iterable<number> }>;

test('sizes are rounded up to two significant bits', () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 24, 25, 64, 65, 100].map(roundUp)).toEqual([
    1, 2, 3, 4, 6, 6, 8, 8, 12, 16, 24, 24, 32, 64, 96, 128,
  ]);
});

test('a server that sums gets what was given', () => {
  const batch = backwardBatch(tinker, [datum], ce, nothingPending);
  expect(batch.passes[0]!.loss_fn).toBe('cross_entropy');
  expect([...inputs(batch).weights!.data]).toEqual([0, 1, -1, 0.5]);
  expect(stepScale(tinker, batch.pending)).toBe(1);
});

test('a server that takes means gets coefficients times tokens times data, and weights of 1', () => {
  const batch = backwardBatch(skyrl, [datum, datum], ce, nothingPending);
  const { loss_fn, loss_fn_config } = batch.passes[0]!;
  expect([loss_fn, loss_fn_config]).toEqual(['cispo', { clip_low_threshold: 1, clip_high_threshold: 1 }]);
  expect([...inputs(batch).advantages!.data]).toEqual([0, 8, -8, 4]);
  expect([...inputs(batch).weights!.data]).toEqual([1, 1, 1, 1]);
  expect(stepScale(skyrl, batch.pending)).toBe(1);
});

test('later calls of a step are scaled as its first, and the step knows by how much', () => {
  const first = backwardBatch(skyrl, [datum, datum], ce, nothingPending);
  const second = backwardBatch(skyrl, [datum, datum, datum, datum], ce, first.pending);
  expect([...inputs(second).advantages!.data]).toEqual([0, 8, -8, 4]);
  expect(stepScale(skyrl, second.pending)).toBeCloseTo(2 / 6, 12);
});

test('what fills a batch up is the shortest datum without a push', () => {
  const short: Datum = { tokens: [7, 8], targets: [8, 9], weights: [1, 1] };
  const batch = backwardBatch(skyrl, [datum, short, datum, datum, datum], ce, nothingPending);
  expect(batch.passes[0]!.data).toHaveLength(6);
  expect(batch.passes[0]!.data[5]!.model_input.chunks[0].tokens).toEqual([7, 8]);
  expect([...inputs(batch, 5).advantages!.data]).toEqual([0, 0]);
});

test('a large batch goes out in requests of equal size', () => {
  const many = Array.from({ length: 10 }, () => datum);
  expect(forwardBatch({ ...tinker, maxRows: 4 }, many).map(({ data }) => data.length)).toEqual([4, 4, 2]);
  // A datum of 4 tokens, 4 targets and 4 weights is 144 bytes of JSON at most: of 1440, 400 are sent at a time.
  expect(forwardBatch({ ...tinker, maxBytes: 400 }, many).map(({ data }) => data.length)).toEqual([3, 3, 3, 1]);
});

test('the results of several requests are one, in order', () => {
  const of = (...logprobs: number[][]) => ({ loss_fn_outputs: logprobs.map((data) => ({ logprobs: { data } })) });
  const two: Datum[] = [datum, { tokens: [1], targets: [2], weights: [2] }];
  const result = resultOf(two, [of([-1, -2, -3, -4]), of([-0.5], [-9])], ce);
  expect(result.logprobs.map((lps) => [...lps])).toEqual([[-1, -2, -3, -4], [-0.5]]);
  expect(result.loss).toBe(2 - 3 + 2 + 1);
});
