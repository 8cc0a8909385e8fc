/**
 * A small differentiable graph builder. Operations append ONNX nodes and record how to pass a gradient back; `gradients`
 * walks the record in reverse and appends the nodes of the backward pass to the same graph, so that forward and backward
 * are one ONNX model. Knows nothing of transformers; ops.ts has the operations, model.ts the model.
 *
 * Shapes are lists of numbers and symbols ('rows', 'length' …); a symbol gets its value when the graph runs.
 */
import {
  type Attribute,
  type Dim,
  type ElementType,
  encodeModel,
  type InitializerProto,
  type NodeProto,
} from './proto.ts';

export type Tensor = { readonly name: string; readonly type: ElementType; readonly shape: readonly Dim[] };

/** Adds one path's gradient to what other paths gave so far. Some operations add for free (Gemm's C). */
export type Contribution = (sum: Tensor | undefined) => Tensor;

/** From the output's gradient to a contribution for each input; undefined where the input is not asked for or not smooth. */
export type Vjp = (dy: Tensor, wanted: readonly boolean[]) => readonly (Contribution | undefined)[];

type TapeEntry = { readonly inputs: readonly Tensor[]; readonly output: Tensor; readonly vjp: Vjp };

type NodeOptions = {
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, Attribute>>;
};

const OPSETS = { '': 18, 'com.microsoft': 1 };

export class Graph {
  readonly #nodes: NodeProto[] = [];
  readonly #inputs: Tensor[] = [];
  readonly #outputs: (Tensor & { readonly sequence?: true })[] = [];
  readonly #initializers = new Map<string, InitializerProto>();
  readonly #constants = new Map<string, Tensor>();
  readonly #symbols = new Map<string, () => Tensor>();
  readonly #tape: TapeEntry[] = [];
  /** Tensors that became outputs: the name they were made with → the output's. */
  readonly #names = new Map<string, string>();
  #count = 0;

  /** A value given at every run. Symbols of its shape can be used in `reshape` targets. */
  input(name: string, type: ElementType, shape: readonly Dim[]): Tensor {
    const tensor = { name, type, shape };
    this.#inputs.push(tensor);
    for (const [axis, dim] of shape.entries()) {
      if (typeof dim !== 'string' || this.#symbols.has(dim)) continue;
      let size: Tensor | undefined;
      this.#symbols.set(dim, () => {
        size ??= this.node('Shape', [tensor], 'int64', [1], {
          attributes: { start: { int: axis }, end: { int: axis + 1 } },
        });
        return size;
      });
    }
    return tensor;
  }

  /** A value fixed in the graph. Equal constants are stored once. */
  constant(type: ElementType, shape: readonly number[], values: readonly number[]): Tensor {
    const key = `${type}[${shape}]${values}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const array = type === 'int64' ? BigInt64Array.from(values, BigInt) : typed(type, values);
    const name = `constant_${this.#constants.size}`;
    const data = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    this.#initializers.set(name, { name, type, shape, data });
    const tensor = { name, type, shape };
    this.#constants.set(key, tensor);
    return tensor;
  }

  scalar(value: number): Tensor {
    return this.constant('float32', [], [value]);
  }

  /** Appends a node with one output, without a gradient. */
  node(
    type: string,
    inputs: readonly (Tensor | undefined)[],
    elements: ElementType,
    shape: readonly Dim[],
    options: NodeOptions = {},
  ): Tensor {
    return this.nodes(type, inputs, [{ type: elements, shape }], options)[0]!;
  }

  /** Appends a node with any number of outputs, without a gradient. */
  nodes(
    type: string,
    inputs: readonly (Tensor | undefined)[],
    outputs: readonly (Omit<Tensor, 'name'> | undefined)[],
    options: NodeOptions = {},
  ): Tensor[] {
    const named = outputs.map((o) => ({ name: o === undefined ? '' : `${type}_${this.#count++}`, ...(o ?? EMPTY) }));
    this.#nodes.push({
      type,
      domain: options.domain ?? '',
      inputs: inputs.map((t) => t?.name ?? ''),
      outputs: named.map((t) => t.name),
      attributes: options.attributes ?? {},
    });
    return named;
  }

  /** The size of a symbol as an int64 tensor of shape [1]. */
  symbol(name: string): Tensor {
    const size = this.#symbols.get(name);
    if (size === undefined) throw new Error(`No input of the graph has a dimension called ${name}.`);
    return size();
  }

  /** An int64 vector for ONNX's Reshape: one symbol is inferred, if need be one no input has; others are read at run time. */
  shapeVector(shape: readonly Dim[]): Tensor {
    const unknown = shape.findIndex((dim) => typeof dim === 'string' && !this.#symbols.has(dim));
    const inferred = unknown === -1 ? shape.findIndex((dim) => typeof dim === 'string') : unknown;
    const parts = shape.map((dim, i) => (i === inferred ? -1 : dim));
    if (parts.every((dim) => typeof dim === 'number')) return this.constant('int64', [parts.length], parts);
    const tensors = parts.map((dim) =>
      typeof dim === 'number' ? this.constant('int64', [1], [dim]) : this.symbol(dim),
    );
    return this.node('Concat', tensors, 'int64', [shape.length], { attributes: { axis: { int: 0 } } });
  }

  /** Records how `output` passes its gradient to `inputs`. */
  differentiable(output: Tensor, inputs: readonly Tensor[], vjp: Vjp): Tensor {
    this.#tape.push({ inputs, output, vjp });
    return output;
  }

  /**
   * Appends the backward pass. `seeds` are outputs with their gradients; the result has, for each of `targets`, the
   * gradient added to `into`'s tensor for it, if there is one. Branches that reach no target cost nothing.
   */
  gradients(
    seeds: readonly { readonly of: Tensor; readonly gradient: Tensor }[],
    targets: readonly Tensor[],
    into: ReadonlyMap<Tensor, Tensor> = new Map(),
  ): Map<Tensor, Tensor> {
    const tape = [...this.#tape]; // the backward pass itself is not differentiated
    const reaches = new Set<Tensor>(targets);
    for (const entry of tape) if (entry.inputs.some((t) => reaches.has(t))) reaches.add(entry.output);
    const sums = new Map<Tensor, Tensor>(into);
    for (const { of, gradient } of seeds) {
      const sum = sums.get(of);
      sums.set(of, sum === undefined ? gradient : addTensors(this, sum, gradient));
    }
    for (const { inputs, output, vjp } of tape.reverse()) {
      const dy = sums.get(output);
      if (dy === undefined || !reaches.has(output)) continue;
      const contributions = vjp(
        dy,
        inputs.map((t) => reaches.has(t)),
      );
      for (const [i, input] of inputs.entries()) {
        const contribution = contributions[i];
        if (contribution === undefined || !reaches.has(input)) continue;
        sums.set(input, contribution(sums.get(input)));
      }
    }
    const found = new Map<Tensor, Tensor>();
    for (const target of targets) {
      const gradient = sums.get(target);
      if (gradient === undefined) throw new Error(`No seed depends on ${target.name}, so it has no gradient.`);
      found.set(target, gradient);
    }
    return found;
  }

  /** Makes a tensor an output of the graph under a name of its own. */
  output(name: string, tensor: Tensor): void {
    // An Identity would copy the tensor at every run; a rename costs nothing, where the tensor can bear one.
    const made = this.#nodes.some((node) => node.outputs.includes(tensor.name));
    if (made && !this.#names.has(tensor.name)) this.#names.set(tensor.name, name);
    else this.#nodes.push({ type: 'Identity', domain: '', inputs: [tensor.name], outputs: [name], attributes: {} });
    this.#outputs.push({ ...tensor, name });
  }

  /** Makes an empty list of tensors the graph's first output; in-place.ts has the use of it. */
  emptySequenceOutput(name: string): void {
    this.#nodes.push({ type: 'SequenceEmpty', domain: '', inputs: [], outputs: [name], attributes: {} });
    this.#outputs.unshift({ name, type: 'float32', shape: [], sequence: true });
  }

  get inputs(): readonly Tensor[] {
    return this.#inputs;
  }

  get outputs(): readonly Tensor[] {
    return this.#outputs;
  }

  /** The ONNX file. */
  encode(name: string): Uint8Array {
    const rename = (old: string) => this.#names.get(old) ?? old;
    const nodes = this.#nodes.map((n) => ({ ...n, inputs: n.inputs.map(rename), outputs: n.outputs.map(rename) }));
    const initializers = [...this.#initializers.values()];
    return encodeModel({ name, nodes, inputs: this.#inputs, outputs: this.#outputs, initializers }, OPSETS);
  }
}

const EMPTY = { type: 'float32', shape: [] } as const;

function typed(type: Exclude<ElementType, 'int64'>, values: readonly number[]) {
  if (type === 'float32') return Float32Array.from(values);
  return type === 'int32' ? Int32Array.from(values) : Uint8Array.from(values);
}

export function addTensors(graph: Graph, a: Tensor, b: Tensor): Tensor {
  return graph.node('Add', [a, b], 'float32', a.shape);
}

/** The contribution of a gradient that exists as a tensor already. */
export function adding(graph: Graph, gradient: Tensor): Contribution {
  return (sum) => (sum === undefined ? gradient : addTensors(graph, sum, gradient));
}
