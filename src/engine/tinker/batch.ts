/**
 * Training data as a server gets them, and what it answers as an engine's result: the one place that makes a server's way of
 * reducing a loss into the plain sum of engine.ts. Pure.
 *
 * A server that takes means (dialects.ts) applies G = (1/N) Σ_i (1/n_i) Σ_t f'_it with N data since the last step, of n_i tokens each
 * if all weights are 1. So every datum goes out with weights of 1 and coefficients multiplied by n_i · K, which makes the gradient
 * (K/N) · sum. K is the number of data in the first call since the last step: where a step has one call, K/N is 1; where it has more,
 * all of them are off by the same factor, which Adam cancels when its eps is multiplied by it too (`stepScale`).
 * Cross-entropy with weights of any sign goes out as cispo with the ratio clipped to 1, whose loss is −A·lp.
 */
import type { z } from 'zod';
import { EngineError } from '../../errors.ts';
import type { Datum, ForwardResult, Loss, PerToken } from '../engine.ts';
import { totalLoss } from '../losses.ts';
import type { Dialect } from './dialects.ts';
import { roundUp } from './shapes.ts';
import { floats, integers, numbersIn, type passed, type WireDatum, type WirePass } from './wire.ts';

/** What has been added to a model's gradient since its last step. */
export type Pending = {
  /** Data at the server, those that only fill a batch up included. */
  readonly rows: number;
  /** K of the above. */
  readonly scale: number;
};

export const nothingPending: Pending = { rows: 0, scale: 0 };

export type Batch = {
  /** One request each, in order. */
  readonly passes: readonly WirePass[];
  readonly pending: Pending;
};

export function backwardBatch(dialect: Dialect, data: readonly Datum[], loss: Loss, before: Pending): Batch {
  const rows = rowsFor(dialect, data.length);
  const scale = before.rows === 0 ? rows : before.scale;
  const send = dialect.reduction === 'sum' ? asSum : asMeans(scale);
  const inputs = data.map((datum) => send.inputs(datum, loss));
  return {
    passes: split(dialect, filled(data, inputs, rows), send.loss(loss)),
    pending: { rows: before.rows + rows, scale },
  };
}

/** Logprobs only: a cross-entropy that weighs nothing. */
export function forwardBatch(dialect: Dialect, data: readonly Datum[]): readonly WirePass[] {
  const inputs = data.map(({ targets }) => ({
    target_tokens: integers(targets),
    weights: floats(new Float32Array(targets.length)),
  }));
  return split(dialect, filled(data, inputs, rowsFor(dialect, data.length)), { loss_fn: 'cross_entropy' });
}

/** What the server's gradient is, of what engine.ts says it is. */
export const stepScale = (dialect: Dialect, { rows, scale }: Pending): number =>
  dialect.reduction === 'sum' || rows === 0 ? 1 : scale / rows;

type Inputs = WireDatum['loss_fn_inputs'];
type Form = {
  readonly inputs: (datum: Datum, loss: Loss) => Inputs;
  readonly loss: (loss: Loss) => Omit<WirePass, 'data'>;
};

const withClip = (loss: Loss): Omit<WirePass, 'data'> =>
  loss.kind === 'ppo' || loss.kind === 'cispo'
    ? {
        loss_fn: loss.kind,
        loss_fn_config: { clip_low_threshold: loss.clipLow, clip_high_threshold: loss.clipHigh },
      }
    : { loss_fn: loss.kind };

const asSum: Form = {
  inputs: ({ targets, weights, logprobs, advantages }, loss) =>
    loss.kind === 'cross_entropy'
      ? { target_tokens: integers(targets), weights: floats(weights!) }
      : { target_tokens: integers(targets), logprobs: floats(logprobs!), advantages: floats(advantages!) },
  loss: withClip,
};

const asMeans = (scale: number): Form => ({
  inputs: ({ targets, weights, logprobs, advantages }, loss) => {
    const size = targets.length;
    const coefficients: PerToken = loss.kind === 'cross_entropy' ? weights! : advantages!;
    return {
      target_tokens: integers(targets),
      weights: floats(new Float32Array(size).fill(1)),
      logprobs: floats(loss.kind === 'cross_entropy' ? new Float32Array(size) : logprobs!),
      advantages: floats(scaled(coefficients, size * scale)),
    };
  },
  loss: (loss) => withClip(loss.kind === 'cross_entropy' ? { kind: 'cispo', clipLow: 1, clipHigh: 1 } : loss),
});

function scaled(values: PerToken, by: number): Float32Array {
  const out = new Float32Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = values[i]! * by;
  return out;
}

const rowsFor = ({ compiles }: Dialect, size: number): number => (compiles ? roundUp(size) : size);

/** The data, and as many copies of the shortest of them, none of which pushes anywhere, as it takes to fill the rows. */
function filled(data: readonly Datum[], inputs: readonly Inputs[], rows: number): WireDatum[] {
  const out = data.map(({ tokens }, i) => wireDatum(tokens, inputs[i]!));
  if (out.length === rows) return out;
  let shortest = 0;
  for (const [i, { tokens }] of data.entries()) if (tokens.length < data[shortest]!.tokens.length) shortest = i;
  const { advantages, ...rest } = inputs[shortest]!;
  const idle = advantages ? { ...rest, advantages: floats(new Float32Array(data[shortest]!.tokens.length)) } : rest;
  const filler = wireDatum(data[shortest]!.tokens, idle);
  while (out.length < rows) out.push(filler);
  return out;
}

const wireDatum = (tokens: Datum['tokens'], inputs: Inputs): WireDatum => ({
  model_input: { chunks: [{ type: 'encoded_text', tokens }] },
  loss_fn_inputs: inputs,
});

/** What a number takes in JSON at most, with its comma: an id, and a float32 in all the digits it has as a double. */
const jsonBytes = { int64: 7, float32: 22 } as const;

/** As few requests of equal size as the server's limits allow. */
function split(dialect: Dialect, data: readonly WireDatum[], loss: Omit<WirePass, 'data'>): WirePass[] {
  let bytes = 0;
  for (const { model_input, loss_fn_inputs } of data) {
    bytes += jsonBytes.int64 * model_input.chunks[0].tokens.length;
    for (const { data: numbers, dtype } of Object.values(loss_fn_inputs)) bytes += jsonBytes[dtype] * numbers.length;
  }
  const parts = Math.max(Math.ceil(data.length / dialect.maxRows), Math.ceil(bytes / dialect.maxBytes), 1);
  const size = Math.ceil(data.length / parts);
  return Array.from({ length: Math.ceil(data.length / size) }, (_, i) => ({
    data: data.slice(i * size, (i + 1) * size),
    ...loss,
  }));
}

/** What the server says of the data, without what only filled up; the loss is computed here, from its logprobs. */
export function resultOf(
  data: readonly Datum[],
  answers: readonly z.infer<typeof passed>[],
  loss: Loss | undefined,
): ForwardResult {
  const outputs = answers.flatMap(({ loss_fn_outputs: all }) => all).slice(0, data.length);
  if (outputs.length < data.length)
    throw new EngineError(`The server answered for ${outputs.length} data of ${data.length}.`);
  const logprobs = outputs.map(({ logprobs: { data: found } }, i) => {
    const size = data[i]!.tokens.length;
    if (found.length !== size)
      throw new EngineError(`The server gave ${found.length} logprobs for the ${size} tokens of datum ${i}.`);
    const values = numbersIn(found);
    if (values.some(Number.isNaN))
      throw new EngineError('The model computes NaN: its weights have diverged. Go back to an earlier checkpoint.');
    return values;
  });
  return { loss: loss === undefined ? 0 : totalLoss(data, loss, logprobs), logprobs };
}
