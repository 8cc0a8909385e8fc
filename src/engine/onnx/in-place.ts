/**
 * Runs a graph whose outputs the caller has allocated, without copying them. ONNX Runtime writes given outputs where they
 * are, but its Node binding (1.30) then also copies every one into a new JavaScript array, in the order of the graph's
 * outputs: for a key-value cache of 32 MiB that costs three times what decoding does. An output that the binding cannot
 * turn into a JavaScript value ends that pass. So a graph made with `runsInPlace` has, as its first output, an empty list
 * of tensors; the binding stops there, after the run, with every output in place and nothing copied.
 *
 * Correct with or without the trick: a binding that learns lists, or stops copying, returns normally with the same outputs
 * in place. Only the one message that says "the run is over, and the first output is a list" is taken for success.
 */
import type * as ort from 'onnxruntime-node';
import type { Graph } from './graph.ts';
import type { Values } from './session.ts';

const BARRIER = 'in place';

/** Declares that this graph is run by `runInPlace`. */
export function runsInPlace(graph: Graph): void {
  graph.emptySequenceOutput(BARRIER);
}

/** `outputs` are written where they are. One of them may share memory with an input if the operators allow it. */
export async function runInPlace(session: ort.InferenceSession, inputs: Values, outputs: Values): Promise<void> {
  try {
    await session.run(inputs, { ...outputs, [BARRIER]: null });
  } catch (error) {
    if (!(error instanceof Error && error.message.includes('Non tensor type is temporarily not supported')))
      throw error;
  }
}
