import { expect, test } from 'vitest';
import { fillBatch, planBatches } from './pack.ts';

test('sequences that fit share a row, and every sequence is placed once', () => {
  const plans = planBatches([8, 3, 5, 2, 6], 1000);
  expect(plans).toEqual([
    {
      rows: 3,
      length: 8,
      places: [
        { datum: 0, row: 0, start: 0, size: 8 },
        { datum: 4, row: 1, start: 0, size: 6 },
        { datum: 2, row: 2, start: 0, size: 5 },
        { datum: 1, row: 2, start: 5, size: 3 },
        { datum: 3, row: 1, start: 6, size: 2 },
      ],
    },
  ]);
});

test('a long sequence does not widen the batches of short ones', () => {
  const plans = planBatches([100, ...Array.from({ length: 40 }, () => 8)], 104);
  expect(plans.map(({ rows, length }) => [rows, length])).toEqual([
    [1, 104],
    [13, 8],
    [13, 8],
    [13, 8],
    [1, 8],
  ]);
  const placed = plans.flatMap((p) => p.places.map((x) => x.datum)).sort((a, b) => a - b);
  expect(placed).toEqual(Array.from({ length: 41 }, (_, i) => i));
});

test('padding is a small part of random lengths', () => {
  const sizes = Array.from({ length: 300 }, (_, i) => 10 + ((i * 7919) % 190));
  const plans = planBatches(sizes, 1280);
  const paid = plans.reduce((sum, p) => sum + p.rows * p.length, 0);
  expect(sizes.reduce((a, b) => a + b) / paid).toBeGreaterThan(0.93);
});

test('packed sequences see themselves up to each token, and positions start over', () => {
  const datum = (n: number) => ({ tokens: Array(n).fill(1), targets: Array(n).fill(2), weights: Array(n).fill(0.5) });
  const data = [datum(5), datum(2)];
  const [plan] = planBatches([5, 2], 100);
  const batch = fillBatch(plan!, data, { kind: 'cross_entropy' });
  expect([...batch.positions]).toEqual([0, 1, 2, 3, 4, 0, 1, 0]);
  expect([...batch.advantages]).toEqual([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0]);
  const sees = Array.from({ length: 8 }, (_, i) =>
    [...batch.mask.subarray(i * 8, i * 8 + 8)].map((x) => (x === 0 ? 'o' : '.')).join(''),
  );
  expect(sees.slice(0, 7)).toEqual([
    'o.......',
    'oo......',
    'ooo.....',
    'oooo....',
    'ooooo...',
    '.....o..',
    '.....oo.',
  ]);
});

test('rows of one sequence each share one causal mask', () => {
  const datum = { tokens: Array(8).fill(1), targets: Array(8).fill(2) };
  const [plan] = planBatches([8, 8, 8], 100);
  const { maskRows, mask } = fillBatch(plan!, [datum, datum, datum]);
  expect(maskRows).toBe(1);
  expect(mask.filter((x) => x === 0).length).toBe(36);
});
