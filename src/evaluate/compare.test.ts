import { describe, expect, it } from 'vitest';
import { compare, detectable, mcnemar, newcombe, type Pair, signFlip } from './compare.ts';
import { binomialTail, normalQuantile, studentQuantile, studentTail } from './statistics.ts';

/** Counts of tasks: both solved, only the baseline, only the candidate, neither. */
const pairs = (both: number, lost: number, won: number, neither: number): Pair[] => [
  ...Array.from({ length: both }, () => ({ baseline: 1, candidate: 1 })),
  ...Array.from({ length: lost }, () => ({ baseline: 1, candidate: 0 })),
  ...Array.from({ length: won }, () => ({ baseline: 0, candidate: 1 })),
  ...Array.from({ length: neither }, () => ({ baseline: 0, candidate: 0 })),
];

describe('distributions', () => {
  it('sums binomial tails: of 4 fair coins, 3 or more are heads in 5 of 16 cases', () => {
    expect(binomialTail(3, 4, 0.5)).toBeCloseTo(5 / 16, 12);
    expect(binomialTail(0, 4, 0.5)).toBe(1);
    expect(binomialTail(5, 4, 0.5)).toBe(0);
    expect(binomialTail(1, 10, 0.01)).toBeCloseTo(1 - 0.99 ** 10, 12);
  });

  it('knows the quantiles every table has', () => {
    expect(normalQuantile(0.975)).toBeCloseTo(1.959964, 6);
    expect(normalQuantile(0.01)).toBeCloseTo(-2.326348, 6);
    expect(studentQuantile(0.975, 1)).toBeCloseTo(12.7062, 3);
    expect(studentQuantile(0.975, 10)).toBeCloseTo(2.228139, 5);
    // With one degree of freedom T is Cauchy: P(T > 1) = 1/4.
    expect(studentTail(1, 1)).toBeCloseTo(0.25, 10);
  });
});

describe('McNemar', () => {
  it('asks how fair the coin is among tasks only one model solved', () => {
    // 6 wins to 0: 2 · (1/2)^6
    expect(mcnemar(6, 0)).toBeCloseTo(2 / 64, 12);
    // 9 to 1: 2 · (10 + 1) / 1024
    expect(mcnemar(9, 1)).toBeCloseTo(22 / 1024, 12);
    expect(mcnemar(1, 9)).toBeCloseTo(22 / 1024, 12);
  });

  it('finds nothing where nothing differs, and never more than certainty', () => {
    expect(mcnemar(0, 0)).toBe(1);
    expect(mcnemar(3, 3)).toBe(1);
  });
});

describe('flipping signs', () => {
  it('is McNemar when every difference is a whole task', () => {
    const differences = [...Array(9).fill(1), -1, 0, 0];
    expect(signFlip(differences, 0)).toBeCloseTo(mcnemar(9, 1), 12);
  });

  it('is exact for few differences: of 8 sign patterns of (1, ½, ½), 2 reach the sum of 2', () => {
    expect(signFlip([1, 0.5, 0.5], 0)).toBe(2 / 8);
  });

  it('draws for many, the same draws for the same seed, close to the exact answer', () => {
    const differences = [...Array(15).fill(1), ...Array(5).fill(-1)];
    expect(signFlip(differences, 3)).toBe(signFlip(differences, 3));
    expect(Math.abs(signFlip(differences, 3) - mcnemar(15, 5))).toBeLessThan(0.005);
  });
});

describe('the interval of a difference', () => {
  it('is not a point when two models agree on everything: z² / (n + z²) either way', () => {
    const [low, high] = newcombe(pairs(20, 0, 0, 0));
    const z2 = normalQuantile(0.975) ** 2;
    expect(low).toBeCloseTo(-z2 / (20 + z2), 10);
    expect(high).toBeCloseTo(z2 / (20 + z2), 10);
  });

  it('turns round when the models do', () => {
    const [low, high] = newcombe(pairs(36, 4, 12, 8));
    const [mirroredLow, mirroredHigh] = newcombe(pairs(36, 12, 4, 8));
    expect(low).toBeCloseTo(-mirroredHigh, 12);
    expect(high).toBeCloseTo(-mirroredLow, 12);
    expect(low).toBeLessThan(8 / 60);
    expect(high).toBeGreaterThan(8 / 60);
  });

  it('covers a known difference in about 95 of 100 samples', () => {
    // 60 tasks: both 50%, lost 10%, won 20%, neither 20%; the true difference is 0.1. A fixed generator, 2000 samples.
    let state = 12345;
    const next = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
    let covered = 0;
    for (let sample = 0; sample < 2000; sample++) {
      const drawn = Array.from({ length: 60 }, (): Pair => {
        const u = next();
        return { baseline: u < 0.6 ? 1 : 0, candidate: u < 0.5 || (u >= 0.6 && u < 0.8) ? 1 : 0 };
      });
      const [low, high] = newcombe(drawn);
      if (low <= 0.1 && 0.1 <= high) covered++;
    }
    expect(covered / 2000).toBeGreaterThan(0.93);
    expect(covered / 2000).toBeLessThan(0.98);
  });

  it('with several attempts treats the task as the unit: four copies of one attempt say no more than one', () => {
    // Differences ½, ½, 0, 0: mean ¼, standard deviation √(1/12), t with 3 degrees of freedom 3.1824.
    const compared = compare([
      { baseline: 0, candidate: 0.5 },
      { baseline: 0.5, candidate: 1 },
      { baseline: 1, candidate: 1 },
      { baseline: 0, candidate: 0 },
    ])!;
    expect(compared.test).toBe('sign-flip');
    expect(compared.difference).toBe(0.25);
    expect(compared.interval[1]).toBeCloseTo(0.25 + 3.182446 * Math.sqrt(1 / 12 / 4), 5);
  });
});

describe('power', () => {
  it('says what a golden set can show: the usual tables, read backwards', () => {
    // 864 tasks of which 10% differ show 3 points; 228 of which 30% differ show 10 points.
    expect(detectable(0.1, 864)).toBeCloseTo(0.03, 4);
    expect(detectable(0.3, 228)).toBeCloseTo(0.1, 3);
  });

  it('is unknown when nothing differed', () => {
    expect(detectable(0, 150)).toBeNull();
  });
});

describe('comparing', () => {
  it('counts a small table by hand', () => {
    const compared = compare(pairs(5, 1, 9, 5))!;
    expect(compared).toMatchObject({ n: 20, baseline: 0.3, candidate: 0.7, better: 9, worse: 1, test: 'mcnemar' });
    expect(compared.difference).toBeCloseTo(0.4, 12);
    expect(compared.p).toBeCloseTo(22 / 1024, 12);
  });

  it('of nothing is nothing', () => {
    expect(compare([])).toBeNull();
  });
});
