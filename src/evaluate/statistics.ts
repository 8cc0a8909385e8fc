/**
 * The few distributions that evaluating and deploying need: binomial tails, the normal's and Student's quantiles. Exact
 * sums where sums are short, textbook series elsewhere (Lanczos; Acklam; the incomplete beta's continued fraction as in
 * Numerical Recipes). No test is decided here.
 */
const lanczos = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** ln Γ(x) for x > 0. */
export function logGamma(x: number): number {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const y = x - 1;
  const sum = lanczos.reduce((s, c, i) => (i === 0 ? c : s + c / (y + i)), 0);
  const t = y + 7.5;
  return 0.5 * Math.log(2 * Math.PI) + (y + 0.5) * Math.log(t) - t + Math.log(sum);
}

/** ln P(X = k), X ~ Binomial(n, p). */
export function logBinomial(k: number, n: number, p: number): number {
  if (p <= 0) return k === 0 ? 0 : Number.NEGATIVE_INFINITY;
  if (p >= 1) return k === n ? 0 : Number.NEGATIVE_INFINITY;
  const ways = logGamma(n + 1) - logGamma(k + 1) - logGamma(n - k + 1);
  return ways + k * Math.log(p) + (n - k) * Math.log1p(-p);
}

/** P(X ≥ k), X ~ Binomial(n, p). */
export function binomialTail(k: number, n: number, p: number): number {
  if (k <= 0) return 1;
  if (k > n) return 0;
  let sum = 0;
  for (let i = k; i <= n; i++) {
    const term = Math.exp(logBinomial(i, n, p));
    sum += term;
    // Past the mode the terms only shrink.
    if (i > n * p && term < 1e-18) break;
  }
  return Math.min(1, sum);
}

/** The z with P(Z ≤ z) = p. Acklam's approximation, relative error below 1.2e-9. */
export function normalQuantile(p: number): number {
  if (!(p > 0 && p < 1)) throw new Error(`A normal quantile needs a probability between 0 and 1, got ${p}.`);
  const a = [
    -39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239,
  ];
  const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572];
  const c = [
    -0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968,
    2.938163982698783,
  ];
  const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416];
  const series = (coefficients: readonly number[], x: number) => coefficients.reduce((sum, one) => sum * x + one, 0);
  const tail = (q: number) => series(c, q) / (series(d, q) * q + 1);
  if (p < 0.02425) return tail(Math.sqrt(-2 * Math.log(p)));
  if (p > 1 - 0.02425) return -tail(Math.sqrt(-2 * Math.log(1 - p)));
  const q = p - 0.5;
  const r = q * q;
  return (series(a, r) * q) / (series(b, r) * r + 1);
}

/** I_x(a, b), the regularised incomplete beta function. */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const tiny = 1e-300;
  let c = 1;
  let d = 1 / (1 - ((a + b) * x) / (a + 1) || tiny);
  let h = d;
  for (let m = 1; m < 500; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + even * d || tiny);
    c = 1 + even / c || tiny;
    h *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / (1 + odd * d || tiny);
    c = 1 + odd / c || tiny;
    const change = d * c;
    h *= change;
    if (Math.abs(change - 1) < 1e-14) break;
  }
  return front * h;
}

/** P(T > t), t ≥ 0, with `freedom` degrees of freedom. */
export const studentTail = (t: number, freedom: number): number =>
  incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2;

/** The t with P(T ≤ t) = p, p > ½; by halving, which is quick enough for one interval. */
export function studentQuantile(p: number, freedom: number): number {
  let low = 0;
  let high = 1;
  while (studentTail(high, freedom) > 1 - p) high *= 2;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if (studentTail(middle, freedom) > 1 - p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
