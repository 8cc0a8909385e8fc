import { describe, expect, it } from 'vitest';
import { compareGraded, holm, pairedT } from './compare.ts';
import { bootstrapInterval, passK, passOf } from './pass-k.ts';

describe('pass^k', () => {
  it('is the chance that k attempts drawn from those made all solved the case', () => {
    // 3 of 4: C(3,2)/C(4,2) = 3/6.
    expect(passOf({ solved: 3, attempts: 4 }, 2)).toBeCloseTo(0.5);
    expect(passOf({ solved: 3, attempts: 4 }, 4)).toBe(0);
    expect(passOf({ solved: 4, attempts: 4 }, 4)).toBe(1);
    expect(passOf({ solved: 1, attempts: 1 }, 2)).toBeNull();
  });

  it('tells the dependable from the lucky, whose means are the same', () => {
    const of = (solved: number) => ({ solved, attempts: 4 });
    // Half the cases always, against every case half the time: 1/2, and C(2,2)/C(4,2) = 1/6.
    const cases = [0, 4, 0, 4].map((solved) => ({ baseline: of(2), candidate: of(solved) }));
    const [two, four] = passK(cases, 4, 1);
    expect(two).toMatchObject({ k: 2, baseline: expect.closeTo(1 / 6), candidate: 0.5 });
    expect(four).toMatchObject({ k: 4, baseline: 0, candidate: 0.5 });
    expect(passK(cases, 1, 1)).toEqual([]);
  });
});

describe('several p-values at once', () => {
  it('are corrected by Holm, smallest first, and never fall again', () => {
    // 0.01·4, max(0.04, 0.02·3), max(0.06, 0.03·2), 0.5
    const corrected = holm([0.02, 0.5, 0.01, 0.03]);
    for (const [i, expected] of [0.06, 0.5, 0.04, 0.06].entries()) expect(corrected[i]).toBeCloseTo(expected);
    expect(holm([])).toEqual([]);
  });
});

describe('graded scores', () => {
  it('are compared by a paired t-test over cases', () => {
    // Differences 1, 2, 3 of tenths: t = 0.2 / (0.1/√3) = 3.4641, two-sided p with 2 degrees = 0.0742.
    const { above, below } = pairedT([0.1, 0.2, 0.3]);
    expect(above).toBeCloseTo(0.0371, 4);
    expect(above + below).toBeCloseTo(1);
    const found = compareGraded(
      [0.1, 0.2, 0.3].map((d) => ({ baseline: [0.5, 0.5], candidate: [0.5 + d] })),
      1,
    )!;
    expect(found).toMatchObject({
      n: 3,
      baseline: 0.5,
      candidate: expect.closeTo(0.7),
      difference: expect.closeTo(0.2),
    });
    expect(found.p).toBeCloseTo(0.0742, 4);
    expect(compareGraded([{ baseline: [], candidate: [1] }], 1)).toBeNull();
  });

  it('have an interval that is drawn from cases, the same for the same seed', () => {
    const values = Array.from({ length: 100 }, (_, i) => (i < 50 ? 0 : 1));
    const [low, high] = bootstrapInterval(values, 1);
    // Standard error 0.05, so about 0.4 to 0.6.
    expect(low).toBeGreaterThan(0.36);
    expect(low).toBeLessThan(0.44);
    expect(high).toBeGreaterThan(0.56);
    expect(bootstrapInterval(values, 1)).toEqual([low, high]);
    expect(bootstrapInterval([0.5, 0.5], 1)).toEqual([0.5, 0.5]);
  });
});
