import { describe, expect, test } from 'vitest';
import type { Loss } from './engine.ts';
import { tokenGradient, tokenLoss } from './losses.ts';

const ppo: Loss = { kind: 'ppo', clipLow: 0.8, clipHigh: 1.2 };
const cispo: Loss = { kind: 'cispo', clipLow: 0.5, clipHigh: 2 };
const ln = Math.log;

describe('with a token sampled at probability 1/2', () => {
  test('cross_entropy is the weighted negative logprob', () => {
    expect(tokenLoss({ kind: 'cross_entropy' }, -3, 0, 2)).toBe(6);
    expect(tokenGradient({ kind: 'cross_entropy' }, -3, 0, 2)).toBe(-2);
    expect(tokenLoss({ kind: 'cross_entropy' }, -3, 0, -1)).toBe(-3);
  });

  test('importance_sampling weighs the advantage by the ratio', () => {
    expect(tokenLoss({ kind: 'importance_sampling' }, ln(0.75), ln(0.5), 2)).toBeCloseTo(-3);
    expect(tokenGradient({ kind: 'importance_sampling' }, ln(0.75), ln(0.5), 2)).toBeCloseTo(-3);
  });

  test('ppo stops where the ratio has gone far enough in the direction of the advantage', () => {
    expect(tokenLoss(ppo, ln(0.75), ln(0.5), 1)).toBeCloseTo(-1.2);
    expect(tokenGradient(ppo, ln(0.75), ln(0.5), 1)).toBe(0);
    expect(tokenLoss(ppo, ln(0.25), ln(0.5), -1)).toBeCloseTo(0.8);
    expect(tokenGradient(ppo, ln(0.25), ln(0.5), -1)).toBe(0);
  });

  test('ppo still pulls back a ratio that went the wrong way', () => {
    expect(tokenLoss(ppo, ln(0.75), ln(0.5), -1)).toBeCloseTo(1.5);
    expect(tokenGradient(ppo, ln(0.75), ln(0.5), -1)).toBeCloseTo(1.5);
    expect(tokenGradient(ppo, ln(0.25), ln(0.5), 1)).toBeCloseTo(-0.5);
  });

  test('cispo bounds the weight and keeps every gradient', () => {
    expect(tokenLoss(cispo, ln(0.75), ln(0.5), 1)).toBeCloseTo(-1.5 * ln(0.75));
    expect(tokenGradient(cispo, ln(0.75), ln(0.25), 1)).toBeCloseTo(-2);
    expect(tokenGradient(cispo, ln(0.05), ln(0.5), 1)).toBeCloseTo(-0.5);
  });
});

test('every derivative is the slope of its loss, cispo with its weight held still', () => {
  const h = 1e-5;
  for (const loss of [{ kind: 'cross_entropy' }, { kind: 'importance_sampling' }, ppo] as Loss[])
    for (const lp of [-3, -1.1, -0.7, -0.55, -0.1])
      for (const a of [-2, -0.5, 0.3, 1]) {
        const slope = (tokenLoss(loss, lp + h, ln(0.5), a) - tokenLoss(loss, lp - h, ln(0.5), a)) / (2 * h);
        expect(tokenGradient(loss, lp, ln(0.5), a)).toBeCloseTo(slope, 4);
      }
  for (const lp of [-3, -1, -0.1]) {
    const weight = Math.min(Math.max(Math.exp(lp) / 0.5, 0.5), 2);
    expect(tokenGradient(cispo, lp, ln(0.5), 3)).toBeCloseTo(-3 * weight);
  }
});

test('a token with advantage zero costs nothing, however unlikely it was when sampled', () => {
  for (const loss of [{ kind: 'importance_sampling' }, ppo, cispo] as Loss[]) {
    expect(tokenLoss(loss, -1, -1000, 0)).toBe(0);
    expect(tokenGradient(loss, -1, -1000, 0)).toBe(0);
  }
});
