/** The statistics behind `pawl reward`, against values that can be checked by hand or in a textbook. */
import { describe, expect, test } from 'vitest';
import { combined, fitWeights, heldOut, type Sample, standings } from './fit-weights.ts';
import { auc, correlation, ranks, spearman } from './ranks.ts';
import { bootstrap, groupsOf, seeded, shuffled } from './resample.ts';

describe('ranks', () => {
  test('of equal values are the mean of their places', () => {
    expect(ranks([10, 20, 20, 5])).toEqual([2, 3.5, 3.5, 1]);
    expect(ranks([])).toEqual([]);
  });

  test('Spearman of the IQ and television example (Wikipedia) is −29/165', () => {
    const iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110];
    const hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17];
    expect(spearman(iq, hours)).toBeCloseTo(-29 / 165, 12);
  });

  test('a list agrees with itself, disagrees with its reverse, and a constant says nothing', () => {
    expect(spearman([1, 2, 3], [10, 100, 1000])).toBe(1);
    expect(spearman([1, 2, 3], [3, 2, 1])).toBe(-1);
    expect(spearman([1, 2, 3], [5, 5, 5])).toBeNull();
    expect(spearman([0.1 + 0.2, 0.3, 0.3], [1, 2, 3])).not.toBeNaN();
    expect(correlation([1, 2], [1, 2])).toBeNull();
    expect(correlation([1, 2, 3, 4], [2, 4, 6, 9])).toBeCloseTo(11.5 / Math.sqrt(5 * 26.75), 12);
  });

  test('AUC counts pairs, a tie half', () => {
    // true 0.8, 0.5; others 0.5, 0.2: of four pairs three are right and one is a tie
    expect(auc([0.8, 0.5, 0.5, 0.2], [true, true, false, false])).toBe(3.5 / 4);
    expect(auc([1, 2, 3, 4], [true, true, false, false])).toBe(0);
    expect(auc([1, 2], [true, true])).toBeNull();
  });
});

describe('the bootstrap', () => {
  const draw = seeded(7);
  const sample = Array.from({ length: 400 }, () => draw());

  test('gives the mean of 400 uniform numbers the interval that theory gives it', () => {
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const found = bootstrap(
      sample.map((value) => [value]),
      mean,
    )!;
    const half = (1.96 * Math.sqrt(1 / 12)) / 20;
    expect(found.high - found.low).toBeGreaterThan(2 * half * 0.9);
    expect(found.high - found.low).toBeLessThan(2 * half * 1.1);
    expect(
      bootstrap(
        sample.map((value) => [value]),
        mean,
      ),
    ).toEqual(found);
    // Drawn by tens that say the same, there is a tenth of the evidence.
    const tens = sample.slice(0, 40).map((value) => Array<number>(10).fill(value));
    const wide = bootstrap(tens, mean)!;
    expect(wide.high - wide.low).toBeGreaterThan(2 * (found.high - found.low));
  });

  test('says nothing of one group, or where the figure has no value', () => {
    expect(bootstrap([[1, 2, 3]], () => 1)).toBeNull();
    expect(bootstrap([[1], [2]], () => null)).toBeNull();
  });

  test('groups and orders', () => {
    expect(groupsOf(['a1', 'b1', 'a2'], (name) => name[0]!)).toEqual([['a1', 'a2'], ['b1']]);
    expect(shuffled([1, 2, 3, 4, 5], 3)).toEqual(shuffled([1, 2, 3, 4, 5], 3));
    expect(shuffled([1, 2, 3, 4, 5], 3).sort()).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('fitted weights', () => {
  const random = seeded(3);
  const made = (weights: readonly number[], { noise = 0, missing = 0, n = 300 } = {}): Sample[] =>
    Array.from({ length: n }, (_, i) => {
      const values = weights.map(() => random());
      const target = combined(values, weights)! + noise * (random() - 0.5);
      return { group: `g${i % 60}`, target, values: values.map((value) => (random() < missing ? null : value)) };
    });

  test('are those that made the target', () => {
    const found = fitWeights(made([0.5, 0.3, 0.2]))!;
    for (const [j, weight] of [0.5, 0.3, 0.2].entries()) expect(found[j]).toBeCloseTo(weight, 6);
    expect(found.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 12);
  });

  test('do not care how the target is scaled, and give nothing to a part that falls with it', () => {
    const samples = made([0.5, 0.5, 0]).map((sample) => ({ ...sample, target: 100 * sample.target - 3 }));
    const turned = samples.map(({ values: [a, b, c], ...rest }) => ({ ...rest, values: [a!, 1 - b!, c!] }));
    const found = fitWeights(turned)!;
    expect(found[1]).toBe(0);
    expect(found[0]).toBeGreaterThan(0.9);
    expect(fitWeights(samples.map((sample) => ({ ...sample, values: [1 - sample.values[0]!] })))).toBeNull();
    expect(fitWeights(samples.map((sample) => ({ ...sample, values: [0.5] })))).toBeNull();
    expect(fitWeights([])).toBeNull();
  });

  test('follow the target no worse than those that made it, with a third of the values missing', () => {
    const truth = [0.6, 0.3, 0.1];
    const samples = made(truth, { missing: 0.33, n: 1500 }).filter(({ values }) => values.some((one) => one !== null));
    const follows = (weights: readonly number[]) =>
      correlation(
        samples.map(({ values }) => combined(values, weights) ?? 0.5),
        samples.map(({ target }) => target),
      )!;
    expect(follows(fitWeights(samples)!)).toBeGreaterThan(follows(truth) - 0.002);
    expect(follows(fitWeights(samples)!)).toBeGreaterThan(follows([0.1, 0.3, 0.6]) + 0.1);
  });

  test('a part that always says the same where it speaks gets nothing, although it speaks where the target is high', () => {
    const samples = made([1, 0]).map(({ group, target, values: [a] }) => ({
      ...{ group, target, values: [a!, target > 0.5 ? 1 : null] },
    }));
    expect(fitWeights(samples)).toEqual([1, 0]);
  });

  test('held-out totals are made without the group they are judged on', () => {
    const samples = made([0.7, 0.3], { noise: 0.1 });
    const totals = heldOut(samples).map((total) => total!);
    expect(
      spearman(
        totals,
        samples.map(({ target }) => target),
      ),
    ).toBeGreaterThan(0.95);
    // A part that repeats the group's own target only there would predict it perfectly if a group were split.
    const noise = samples.map(({ group }) => ({ group, target: random(), values: [random(), random()] }));
    const blind = heldOut(noise).map((total) => total!);
    expect(
      Math.abs(
        spearman(
          blind,
          noise.map(({ target }) => target),
        )!,
      ),
    ).toBeLessThan(0.2);
    expect(heldOut([{ group: 'a', target: 1, values: [null] }])).toEqual([null]);
  });

  test('of folds with other weights only the place among all is compared', () => {
    const [first, second] = [
      [1, 0],
      [0, 1],
    ] as const;
    const values = [
      [0.1, 0.9],
      [0.2, 0.8],
      [0.3, 0.7],
    ];
    const placed = standings(values, [first, second, first], (one, weights) => combined(one, weights));
    // 0.1 is the lowest of 0.1, 0.2, 0.3; 0.8 is the middle of 0.7, 0.8, 0.9; 0.3 is the highest
    expect(placed.map((one) => Math.sign(Math.round(one! * 1e6)) + 0)).toEqual([-1, 0, 1]);
  });
});
