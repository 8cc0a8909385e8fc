import { expect, test } from 'vitest';
import { checkAdamParams } from '../check-training.ts';
import { adamStep, newAdamState } from './adam.ts';

const params = (p = {}) => checkAdamParams({ learningRate: 0.1, ...p });

test('the first step is the learning rate against the sign of the gradient, whatever its size', () => {
  const weights = Float32Array.of(1, 1, 1);
  const norm = adamStep(weights, Float32Array.of(3, -0.04, 0), newAdamState(3), params({ eps: 1e-12 }));
  expect(norm).toBeCloseTo(Math.hypot(3, 0.04), 6);
  expect(weights[0]).toBeCloseTo(0.9, 6);
  expect(weights[1]).toBeCloseTo(1.1, 6);
  expect(weights[2]).toBe(1);
});

test('the second step follows the bias-corrected moments', () => {
  const weights = Float32Array.of(0);
  const state = newAdamState(1);
  adamStep(weights, Float32Array.of(1), state, params({ beta1: 0.5, beta2: 0.75, eps: 1e-12 }));
  adamStep(weights, Float32Array.of(-1), state, params({ beta1: 0.5, beta2: 0.75, eps: 1e-12 }));
  // m = (0.5·0.5 − 0.5) / (1 − 0.25) = −1/3; v = (0.75·0.25 + 0.25) / (1 − 0.5625) = 1
  expect(weights[0]).toBeCloseTo(-0.1 + 0.1 / 3, 6);
});

test('decay is decoupled: it shrinks a weight that has no gradient, by rate times decay', () => {
  const weights = Float32Array.of(2);
  adamStep(weights, Float32Array.of(0), newAdamState(1), params({ weightDecay: 0.5 }));
  expect(weights[0]).toBeCloseTo(2 * (1 - 0.1 * 0.5), 6);
});

test('clipping scales the whole gradient to the norm, and reports the norm before it', () => {
  const [clipped, whole] = [newAdamState(2), newAdamState(2)];
  const norm = adamStep(new Float32Array(2), Float32Array.of(30, 40), clipped, params({ gradClipNorm: 5 }));
  adamStep(new Float32Array(2), Float32Array.of(3, 4), whole, params({ gradClipNorm: 5 }));
  expect(norm).toBe(50);
  expect(clipped.m[0]).toBeCloseTo(whole.m[0]!, 6);
  expect(clipped.v[1]).toBeCloseTo(whole.v[1]!, 6);
});
