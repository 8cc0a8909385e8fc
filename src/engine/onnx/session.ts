/**
 * ONNX Runtime sessions as this engine uses them: one thread pool size for all, nodes in order, denormal numbers as zero
 * (softmax gradients are full of them, and each costs a hundred cycles). Fixed order and thread count make runs repeatable.
 */
import * as ort from 'onnxruntime-node';
import { EngineError } from '../../errors.ts';
import type { Graph } from './graph.ts';

export type SessionOptions = {
  /** Threads inside an operator. */
  readonly threads: number;
  /**
   * Whether threads wait for the next operator in a loop instead of asleep. Saves some microseconds an operator on idle
   * cores; on shared ones it burns what the others need: a training step then takes half as much processor time again.
   */
  readonly spin?: boolean; // true
  /** Writes ONNX Runtime's profile to a file with this prefix. */
  readonly profile?: string;
};

export type Values = Record<string, ort.Tensor>;

export async function createSession(
  graph: Graph,
  name: string,
  options: SessionOptions,
): Promise<ort.InferenceSession> {
  try {
    return await ort.InferenceSession.create(graph.encode(name), {
      executionProviders: ['cpu'],
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
      intraOpNumThreads: options.threads,
      interOpNumThreads: 1,
      logSeverityLevel: 3,
      ...(options.profile === undefined ? {} : { enableProfiling: true, profileFilePrefix: options.profile }),
      extra: {
        session: { set_denormal_as_zero: '1', intra_op: { allow_spinning: options.spin === false ? '0' : '1' } },
      },
    });
  } catch (cause) {
    throw new EngineError(`ONNX Runtime refused the ${name} graph: ${message(cause)}`, { cause });
  }
}

const message = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));

export const float32 = (data: Float32Array, shape: readonly number[]) => new ort.Tensor('float32', data, shape);
export const int32 = (data: Int32Array, shape: readonly number[]) => new ort.Tensor('int32', data, shape);
