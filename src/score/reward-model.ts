/**
 * A reward model as any engine can train and ask it: a language model reads the conversation and is asked for one more token, `+` or `-`.
 *
 *     r = logprob(+) − logprob(−)          its opinion, without bounds
 *     value = σ(a·r + b)                   calibrated on labels it was not trained on (Platt)
 *
 * Trained by regression (cross-entropy of σ(r) with labels in 0–1) or on pairs (Bradley and Terry: −ln σ(r of the better − r of the
 * worse)); both are losses of logprobs, so they go through `forwardBackwardCustom` and need no head that an engine would have to
 * know. The idea is that of generative verifiers and rerankers that answer yes or no. Pure; train-reward-model.ts acts.
 */

import type { Turn } from '../collect/turn.ts';
import type { Datum } from '../engine/engine.ts';
import { transcriptOf } from './transcript.ts';

/** What the model reads; the end of it where the context is short. */
export const modelText = (turns: readonly Turn[]): string =>
  `${transcriptOf(turns)
    .map(({ name, text }) => `${name.replace(/^message \d+ /, '')}: ${text}`)
    .join('\n')}\nverdict: `;

export type Verdicts = { readonly plus: number; readonly minus: number };

/** Two data, which differ in the last target: what the model thinks of either verdict. */
export function verdictData(tokens: readonly number[], { plus, minus }: Verdicts): [Datum, Datum] {
  const shifted = tokens.slice(1);
  const with_ = (verdict: number): Datum => ({ tokens, targets: [...shifted, verdict] });
  return [with_(plus), with_(minus)];
}

export const sigmoid = (x: number): number => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));

/** [example]: r, of the logprobs of `verdictData` one after the other. */
export const opinions = (logprobs: readonly Float32Array[]): number[] =>
  Array.from({ length: logprobs.length / 2 }, (_, i) => logprobs[2 * i]!.at(-1)! - logprobs[2 * i + 1]!.at(-1)!);

export type LossAndSlopes = { readonly loss: number /** [example] ∂loss/∂r */; readonly slopes: readonly number[] };

export function regressionLoss(r: readonly number[], labels: readonly number[]): LossAndSlopes {
  // ln(1 + e^r) − y·r, which is the cross-entropy without a logarithm of 0
  const loss = r.reduce((sum, x, i) => sum + Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))) - labels[i]! * x, 0);
  return { loss, slopes: r.map((x, i) => sigmoid(x) - labels[i]!) };
}

/** Examples come as better, worse, better, worse, … */
export function pairLoss(r: readonly number[]): LossAndSlopes {
  let loss = 0;
  const slopes = new Array<number>(r.length).fill(0);
  for (let i = 0; i + 1 < r.length; i += 2) {
    const lead = r[i]! - r[i + 1]!;
    loss += Math.max(-lead, 0) + Math.log1p(Math.exp(-Math.abs(lead)));
    slopes[i] = -sigmoid(-lead);
    slopes[i + 1] = sigmoid(-lead);
  }
  return { loss, slopes };
}

/** ∂loss/∂logprob for every token of `verdictData`: only the verdict's has any. */
export const tokenGradients = (data: readonly Datum[], slopes: readonly number[]): Float32Array[] =>
  data.map(({ tokens }, k) => {
    const gradient = new Float32Array(tokens.length);
    gradient[tokens.length - 1] = (k % 2 === 0 ? 1 : -1) * slopes[k >> 1]!;
    return gradient;
  });

export type Calibration = { readonly a: number; readonly b: number };

/**
 * Platt's logistic fit of labels to opinions, by Newton's steps with a little ridge; a ≥ 0, so that order is kept. Opinions are centred
 * and scaled first: those of a model that was trained on pairs may lie anywhere.
 */
export function calibrate(r: readonly number[], labels: readonly number[]): Calibration {
  const n = r.length;
  if (n === 0) return { a: 1, b: 0 };
  const middle = r.reduce((sum, x) => sum + x, 0) / n;
  const spread = Math.sqrt(r.reduce((sum, x) => sum + (x - middle) ** 2, 0) / n) || 1;
  let [a, b] = [0, 0];
  for (let k = 0; k < 100; k++) {
    let [ga, gb, aa, ab, bb] = [1e-2 * a, 1e-2 * b, 1e-2, 0, 1e-2];
    for (const [i, opinion] of r.entries()) {
      const x = (opinion - middle) / spread;
      const p = sigmoid(a * x + b);
      const w = p * (1 - p);
      ga += (p - labels[i]!) * x;
      gb += p - labels[i]!;
      aa += w * x * x;
      ab += w * x;
      bb += w;
    }
    const determinant = aa * bb - ab * ab;
    const [da, db] = [(bb * ga - ab * gb) / determinant, (aa * gb - ab * ga) / determinant];
    const size = Math.max(1, Math.abs(da), Math.abs(db)); // a step of one spread at most
    a = Math.max(0, a - da / size);
    b -= db / size;
    if (Math.abs(da) + Math.abs(db) < 1e-9) break;
  }
  return { a: a / spread, b: b - (a * middle) / spread };
}

export const calibrated = (r: number, { a, b }: Calibration): number => sigmoid(a * r + b);

/** Expected calibration error: how far the mean of what was said is from the mean of what was so, in ten bins by what was said. */
export function calibrationError(values: readonly number[], labels: readonly number[]): number | null {
  if (values.length === 0) return null;
  const bins = Array.from({ length: 10 }, () => ({ n: 0, said: 0, was: 0 }));
  for (const [i, value] of values.entries()) {
    const bin = bins[Math.min(9, Math.floor(value * 10))]!;
    bin.n++;
    bin.said += value;
    bin.was += labels[i]!;
  }
  return bins.reduce((sum, { n, said, was }) => sum + (n === 0 ? 0 : Math.abs(said - was)), 0) / values.length;
}
