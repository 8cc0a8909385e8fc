/** Against @stdlib's distributions, over the range that evaluating and deploying use (docs/decisions/0007). */
import { describe, expect, it } from 'vitest';
import { binomialTail, normalQuantile, studentQuantile } from './statistics.ts';

const near = (value: number, expected: number, relative: number) =>
  expect(Math.abs(value / expected - 1)).toBeLessThan(relative);

describe('the distributions', () => {
  it.each([
    [1e-9, -5.997807010584735],
    [0.0001, -3.719016485455709],
    [0.005, -2.5758293035489004],
    [0.024, -1.9773684281819466],
    [0.1, -1.2815515655446006],
    [0.4, -0.2533471031357998],
    [0.975, 1.9599639845400538],
    [0.999999, 4.753424308817088],
  ])('have the normal’s quantile at %d', (p, z) => near(normalQuantile(p), z, 2e-9));

  it.each([
    [0.95, 1, 6.313751514675037],
    [0.975, 3, 3.182446305283708],
    [0.99, 5, 3.3649299989072174],
    [0.975, 149, 1.976013177689192],
    [0.9999, 30, 4.23398595727206],
    [0.999, 10_000, 3.091047516030612],
  ])('have Student’s quantile at %d with %d degrees of freedom', (p, freedom, t) =>
    near(studentQuantile(p, freedom), t, 1e-11),
  );

  it.each([
    [1, 5, 0.01, 0.04900995009999998],
    [80, 150, 0.5, 0.23127475893341642],
    [15, 1000, 0.01, 0.08241231951608885],
    [400, 5000, 0.0732, 0.03578076906325156],
    [18_100, 20_000, 0.9, 0.009144143718242015],
  ])('have the binomial’s tail from %d of %d at %d', (k, n, p, tail) => near(binomialTail(k, n, p), tail, 1e-8));
});
