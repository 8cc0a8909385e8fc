/**
 * One trainable model: its weights, the gradient summed since the last step, the optimizer's moments, and the two graphs
 * that compute with them. Trainable weights, gradients and moments are flat arrays with a view per tensor; ONNX Runtime
 * reads and writes the views in place, so no call copies a parameter. Checks its input before it touches any state.
 *
 * Calls must not overlap; engine.ts queues them.
 */
import type * as ort from 'onnxruntime-node';
import { EngineError } from '../../errors.ts';
import { checkAdamParams, checkData } from '../check-training.ts';
import type { AdamParams, Datum, ForwardResult, LoraSpec, Loss, StepResult } from '../engine.ts';
import { lossShape, totalLoss } from '../losses.ts';
import { type AdamState, adamStep, newAdamState } from './adam.ts';
import { type ModelConfig, parameterShapes } from './config.ts';
import { runInPlace } from './in-place.ts';
import { type AdapterShape, adapterShape, adapterShapes, mergeAdapter, randomAdapter } from './lora.ts';
import { batchBytes, modelBytes } from './memory.ts';
import { backwardGraph, forwardGraph, gradientIn, gradientOut } from './model.ts';
import { type Batch, fillBatch, type Plan, planBatches } from './pack.ts';
import { rotaryTables } from './rotary-tables.ts';
import { createSession, float32, int32, type SessionOptions, type Values } from './session.ts';
import { checkWeights, type Weights } from './weights.ts';

/** Most tokens of one batch. Bounds the memory of activations; between 640 and 2560 speed was the same. */
const BATCH_TOKENS = 1280;
/** Most logits of one batch, 256 MiB: a large vocabulary makes batches smaller. */
const BATCH_LOGITS = 64 * 2 ** 20;

/** The optimizer's state by tensor name, as it is saved. */
export type OptimizerState = {
  readonly steps: number;
  readonly version: number;
  readonly m: ReadonlyMap<string, Float32Array>;
  readonly v: ReadonlyMap<string, Float32Array>;
};

export type TrainerParts = {
  readonly config: ModelConfig;
  readonly weights: Weights;
  readonly lora?: { readonly spec: LoraSpec; readonly weights?: Weights };
  readonly optimizer?: OptimizerState;
};

/** The summed gradient, flat; the same memory as the graph takes and returns it; and the optimizer's moments. */
type Training = {
  readonly gradient: Float32Array;
  readonly adam: AdamState;
  readonly feeds: Values;
  readonly fetches: Values;
};

export type TrainerOptions = SessionOptions & {
  /** Most memory for the model and one batch together, in bytes. */
  readonly memory?: number; // no bound
  /** Most tokens of one batch. */
  readonly batchTokens?: number; // 1280
};

export class Trainer {
  readonly config: ModelConfig;
  readonly lora: LoraSpec | undefined;
  readonly #adapter: AdapterShape | undefined;
  readonly #options: TrainerOptions;
  /** Trainable weights, flat, and the views of the same memory by name. */
  readonly #flat: Float32Array;
  readonly #shapes: ReadonlyMap<string, readonly number[]>;
  readonly #trainable: Weights;
  readonly #frozen: Weights;
  readonly #feeds: Values = {};
  /** Made by the first backward pass: a model that is only read costs its weights and no more. */
  #training: Training | undefined;
  #forward: ort.InferenceSession | undefined;
  #backward: ort.InferenceSession | undefined;
  #tables: { readonly positions: number; readonly values: Values } | undefined;
  #version: number;

  constructor({ config, weights, lora, optimizer }: TrainerParts, options: TrainerOptions) {
    checkWeights(config, weights);
    this.config = config;
    this.lora = lora?.spec;
    this.#options = { spin: false, ...options };
    this.#adapter = lora === undefined ? undefined : adapterShape(lora.spec);
    const base = parameterShapes(config);
    const shapes = this.#adapter === undefined ? base : adapterShapes(config, this.#adapter);
    this.#shapes = shapes;
    const initial =
      this.#adapter === undefined
        ? weights
        : (lora?.weights ?? randomAdapter(config, this.#adapter, lora?.spec.seed ?? 0));
    this.#flat = allocate(total(shapes));
    this.#trainable = views(this.#flat, shapes);
    for (const [name, view] of this.#trainable) {
      const values = initial.get(name);
      if (values?.length !== view.length)
        throw new EngineError(`Tensor ${name} has ${values?.length ?? 'no'} numbers where ${view.length} are needed.`);
      view.set(values);
    }
    this.#frozen = this.#adapter === undefined ? new Map() : weights;
    this.#version = optimizer?.version ?? 0;
    if (optimizer !== undefined) this.#restore(optimizer);
    for (const [name, values] of this.#frozen) this.#feeds[name] = float32(values, base.get(name)!);
    for (const [name, values] of this.#trainable) this.#feeds[name] = float32(values, shapes.get(name)!);
  }

  #train(): Training {
    if (this.#training !== undefined) return this.#training;
    const gradient = allocate(this.#flat.length);
    const feeds: Values = {};
    const fetches: Values = {};
    for (const [name, values] of views(gradient, this.#shapes)) {
      // One tensor both ways: the graph adds to the sum where it lies.
      const tensor = float32(values, this.#shapes.get(name)!);
      feeds[gradientIn(name)] = tensor;
      fetches[gradientOut(name)] = tensor;
    }
    this.#training = { gradient, adam: newAdamState(this.#flat.length), feeds, fetches };
    return this.#training;
  }

  #restore(optimizer: OptimizerState): void {
    const { adam } = this.#train();
    for (const key of ['m', 'v'] as const)
      for (const [name, view] of views(adam[key], this.#shapes)) {
        const values = optimizer[key].get(name);
        if (values?.length !== view.length)
          throw new EngineError(`The optimizer state of ${name} does not fit the model; load without it.`);
        view.set(values);
      }
    adam.steps = optimizer.steps;
  }

  get version(): number {
    return this.#version;
  }

  get parameters(): number {
    let count = this.#flat.length;
    for (const values of this.#frozen.values()) count += values.length;
    return count;
  }

  get trainableParameters(): number {
    return this.#flat.length;
  }

  /** Bytes of weights, gradient and moments. */
  get bytes(): number {
    return 4 * (this.parameters + (this.#training === undefined ? 0 : 3 * this.#flat.length));
  }

  /** A copy of the weights as one full model, the adapter merged in. */
  merged(): Weights {
    if (this.#adapter !== undefined) return mergeAdapter(this.config, this.#adapter, this.#frozen, this.#trainable);
    return copyOf(this.#trainable);
  }

  /** The weights as they are, for saving: `base` without the adapter, `adapter` beside it. Live views, not copies. */
  weights(): { readonly base: Weights; readonly adapter?: Weights } {
    if (this.#adapter === undefined) return { base: this.#trainable };
    return { base: this.#frozen, adapter: this.#trainable };
  }

  /** The optimizer's state, as live views. */
  optimizer(): OptimizerState {
    const { m, v, steps } = this.#train().adam;
    return { steps, version: this.#version, m: views(m, this.#shapes), v: views(v, this.#shapes) };
  }

  /** The gradient summed since the last step, by tensor; live views. */
  gradients(): Weights {
    return views(this.#train().gradient, this.#shapes);
  }

  async forward(data: readonly Datum[]): Promise<ForwardResult> {
    checkData(this.config, data);
    const plans = this.#plan(data, false);
    this.#forward ??= await createSession(forwardGraph(this.config, this.#adapter), 'forward', this.#options);
    return this.#run(this.#forward, data, plans, undefined);
  }

  async forwardBackward(data: readonly Datum[], loss: Loss): Promise<ForwardResult> {
    checkData(this.config, data, loss);
    const plans = this.#plan(data, true);
    this.#backward ??= await createSession(backwardGraph(this.config, this.#adapter), 'backward', this.#options);
    try {
      return await this.#run(this.#backward, data, plans, loss);
    } catch (cause) {
      // Some batches may have been added already. A gradient nobody can describe is worse than none.
      this.#train().gradient.fill(0);
      const detail = cause instanceof Error ? cause.message : String(cause);
      throw new EngineError(
        `${detail} The gradient summed since the last step was cleared; the weights are unchanged.`,
        {
          cause,
        },
      );
    }
  }

  optimStep(adam: AdamParams): StepResult {
    const params = checkAdamParams(adam);
    const { gradient, adam: state } = this.#train();
    try {
      const gradNorm = adamStep(this.#flat, gradient, state, params);
      this.#version++;
      return { gradNorm, version: this.#version };
    } finally {
      gradient.fill(0);
    }
  }

  async close(): Promise<void> {
    await this.#forward?.release();
    await this.#backward?.release();
    this.#forward = undefined;
    this.#backward = undefined;
  }

  /** The batches of some data, none of which is too large for the memory. */
  #plan(data: readonly Datum[], backward: boolean): Plan[] {
    const sizes = data.map(({ tokens }) => tokens.length);
    const plans = planBatches(
      sizes,
      Math.min(this.#options.batchTokens ?? BATCH_TOKENS, Math.floor(BATCH_LOGITS / this.config.vocab_size)),
    );
    const model = modelBytes(this.config, backward ? this.trainableParameters : 0);
    for (const { rows, length } of plans) {
      const needed = model + batchBytes(this.config, rows, length, backward);
      if (needed > (this.#options.memory ?? Number.POSITIVE_INFINITY))
        throw new EngineError(
          `A sequence of ${length} tokens needs ${Math.ceil(needed / 2 ** 20)} MiB with the model, more than the ` +
            `${Math.floor(this.#options.memory! / 2 ** 20)} MiB this engine may use; cut or split it.`,
        );
    }
    return plans;
  }

  async #run(
    session: ort.InferenceSession,
    data: readonly Datum[],
    plans: readonly Plan[],
    loss: Loss | undefined,
  ): Promise<ForwardResult> {
    const sizes = data.map(({ tokens }) => tokens.length);
    const logprobs = sizes.map((size) => new Float32Array(size));
    const entropies = sizes.map((size) => new Float32Array(size));
    for (const plan of plans) {
      const batch = fillBatch(plan, data, loss);
      const found = await this.#runBatch(session, plan, batch, loss);
      if (found.logprobs.some(Number.isNaN))
        throw new EngineError('The model computes NaN: its weights have diverged. Go back to an earlier checkpoint.');
      for (const { datum, row, start, size } of plan.places) {
        const from = row * plan.length + start;
        logprobs[datum]!.set(found.logprobs.subarray(from, from + size));
        entropies[datum]!.set(found.entropies.subarray(from, from + size));
      }
    }
    return { loss: loss === undefined ? 0 : totalLoss(data, loss, logprobs), logprobs, entropies };
  }

  async #runBatch(session: ort.InferenceSession, plan: Plan, batch: Batch, loss: Loss | undefined) {
    const shape = [plan.rows, plan.length];
    const feeds: Values = {
      ...this.#feeds,
      ...this.#rotary(plan.length),
      tokens: int32(batch.tokens, shape),
      targets: int32(batch.targets, shape),
      positions: int32(batch.positions, shape),
      mask: float32(batch.mask, [batch.maskRows, 1, plan.length, plan.length]),
    };
    const count = plan.rows * plan.length;
    const logprobs = new Float32Array(count);
    const entropies = new Float32Array(count);
    const fetches: Values = { logprobs: float32(logprobs, [count, 1]), entropies: float32(entropies, [count, 1]) };
    if (loss !== undefined) {
      const training = this.#train();
      Object.assign(feeds, training.feeds);
      Object.assign(fetches, training.fetches);
      feeds.sampled = float32(batch.sampled, shape);
      feeds.advantages = float32(batch.advantages, shape);
      for (const [name, value] of Object.entries(lossShape(loss))) feeds[name] = float32(Float32Array.of(value), []);
    }
    await runInPlace(session, feeds, fetches);
    return { logprobs, entropies };
  }

  /** Tables grow by doubling, so that a longer batch seldom makes new ones. */
  #rotary(length: number): Values {
    if (this.#tables === undefined || this.#tables.positions < length) {
      const positions = Math.max(128, 2 ** Math.ceil(Math.log2(length)));
      const { cos, sin } = rotaryTables(this.config, positions);
      const shape = [positions, this.config.head_dim / 2];
      this.#tables = { positions, values: { cos: float32(cos, shape), sin: float32(sin, shape) } };
    }
    return this.#tables.values;
  }
}

const sizeOf = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);

function total(shapes: ReadonlyMap<string, readonly number[]>): number {
  let sum = 0;
  for (const shape of shapes.values()) sum += sizeOf(shape);
  return sum;
}

/** One array holds all trainable weights; JavaScript bounds how long an array can be. */
function allocate(size: number): Float32Array {
  try {
    return new Float32Array(size);
  } catch (cause) {
    const message = `${size} trainable parameters are more than this engine can hold in one array; train an adapter instead.`;
    throw new EngineError(message, { cause });
  }
}

/** Views of a flat array, one behind the other. */
function views(flat: Float32Array, shapes: ReadonlyMap<string, readonly number[]>): Weights {
  const found: Weights = new Map();
  let offset = 0;
  for (const [name, shape] of shapes) {
    found.set(name, flat.subarray(offset, offset + sizeOf(shape)));
    offset += sizeOf(shape);
  }
  return found;
}

const copyOf = (weights: Weights): Weights => new Map([...weights].map(([name, values]) => [name, values.slice()]));
