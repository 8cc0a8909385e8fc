/** kl, clip, entropy, schedule and order: numbers a reader can check by hand, and gradients by finite differences. */
import { describe, expect, it } from 'vitest';
import { seeded } from '../score/resample.ts';
import { clipBounds, clippedSurrogate, truncatedWeight } from './clip.ts';
import { entropyBonus } from './entropy.ts';
import { klEstimate, klPenalty } from './kl.ts';
import { draw, mixSeed, shuffled } from './order.ts';
import { learningRate } from './schedule.ts';

describe('KL', () => {
  it('is estimated as log 2 − 1/2 for a token twice as likely as under the reference', () => {
    expect(klEstimate(Math.log(0.5), Math.log(0.25))).toBeCloseTo(Math.LN2 - 0.5, 12);
  });

  it('averages to the true divergence over the policy’s own tokens', () => {
    const [p, r] = [
      [0.7, 0.2, 0.1],
      [0.3, 0.3, 0.4],
    ];
    const truth = p!.reduce((sum, x, i) => sum + x * Math.log(x / r![i]!), 0);
    expect(p!.reduce((s, x, i) => s + x * klEstimate(Math.log(x), Math.log(r![i]!)), 0)).toBeCloseTo(truth, 12);
  });

  it('the penalty takes from tokens the policy overrates and gives to the others, and sums to 0', () => {
    expect([...klPenalty(Float64Array.of(-1, -1), Float64Array.of(-3, -1), 0.5)]).toEqual([-0.5, 0.5]);
  });
});

describe('clipping', () => {
  const bounds = clipBounds(0.2, 0.28);

  it('leaves a good token room up to 1.28 and cuts it off beyond', () => {
    expect(clippedSurrogate(Math.log(1.25), 0, 1, bounds)).toMatchObject({ clipped: false });
    expect(clippedSurrogate(Math.log(1.5), 0, 1, bounds)).toMatchObject({ loss: -1.28, gradient: 0, clipped: true });
  });

  it('cuts a bad token off below 0.8 but lets it be pushed down from above', () => {
    expect(clippedSurrogate(Math.log(0.5), 0, -1, bounds)).toMatchObject({ loss: 0.8, clipped: true });
    const above = clippedSurrogate(Math.log(2), 0, -1, bounds);
    expect(above.clipped).toBe(false);
    expect(above.gradient).toBeCloseTo(2, 12);
  });

  it('caps importance weights', () => {
    expect(truncatedWeight(Math.log(5), 0, 2)).toBe(2);
    expect(truncatedWeight(Math.log(0.5), 0, 2)).toBeCloseTo(0.5, 12);
  });

  it('refuses epsilons that make no sense', () => {
    expect(() => clipBounds(1.5, 0.2)).toThrow(/1.5/);
  });
});

describe('the entropy bonus', () => {
  it('is an unbiased estimate of the gradient of the entropy', () => {
    const logits = [0.3, -0.5, 1.1];
    const softmax = (z: readonly number[]) => {
      const e = z.map(Math.exp);
      const sum = e.reduce((a, b) => a + b);
      return e.map((x) => x / sum);
    };
    const entropy = (z: readonly number[]) => -softmax(z).reduce((s, p) => s + p * Math.log(p), 0);
    const p = softmax(logits);
    const h = entropy(logits);
    const bonus = entropyBonus(Float64Array.from(p, Math.log), 1, [h, h, h]);
    for (const j of [0, 1, 2]) {
      // E over tokens i of bonus(i) · ∂log p(i)/∂z(j)
      const estimate = p.reduce((s, pi, i) => s + pi * bonus[i]! * ((i === j ? 1 : 0) - p[j]!), 0);
      const [up, down] = [1e-6, -1e-6].map((d) => entropy(logits.map((z, k) => (k === j ? z + d : z))));
      expect(estimate).toBeCloseTo((up! - down!) / 2e-6, 6);
    }
  });

  it('raises rare tokens and lowers common ones around the batch mean', () => {
    expect(Array.from(entropyBonus(Float64Array.of(-1, -3), 0.1), (x) => Number(x.toFixed(12)))).toEqual([-0.1, 0.1]);
  });
});

describe('schedules', () => {
  it('warm up, then fall to the floor', () => {
    const cosine = { peak: 1, shape: 'cosine', warmup: 0.2, floor: 0.1 } as const;
    const rates = Array.from({ length: 10 }, (_, i) => learningRate(cosine, i, 10));
    expect(rates[0]).toBeCloseTo(1 / 3, 12);
    expect(rates[2]).toBe(1);
    expect(rates[9]).toBeCloseTo(0.1, 12);
    expect(learningRate({ peak: 2, shape: 'linear', warmup: 0, floor: 0 }, 1, 3)).toBe(1);
    expect(learningRate({ peak: 2, shape: 'constant', warmup: 0, floor: 0 }, 2, 3)).toBe(2);
  });
});

describe('order', () => {
  it('draws every item once before any twice, and the same for the same position', () => {
    const whole = draw(5, 0, 10, 7);
    expect([...whole.slice(0, 5)].sort()).toEqual([0, 1, 2, 3, 4]);
    expect([...whole.slice(5)].sort()).toEqual([0, 1, 2, 3, 4]);
    expect(draw(5, 3, 4, 7)).toEqual(whole.slice(3, 7));
    expect(shuffled(20, 1)).not.toEqual(shuffled(20, 2));
  });

  it('mixes seeds so that neighbours have nothing in common, and draws evenly', () => {
    expect(mixSeed(1, 2)).not.toBe(mixSeed(2, 1));
    const next = seeded(mixSeed(3));
    const mean = Array.from({ length: 10_000 }, next).reduce((a, b) => a + b) / 10_000;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.02);
  });
});
