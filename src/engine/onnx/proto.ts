/**
 * Writes ONNX files: the few protobuf messages a graph needs, by field number (onnx.proto of the ONNX project, IR 10).
 * Only writing, only what graph.ts uses. A page of our own instead of the onnx-proto package, which brings a 40 000-line
 * generated module and an old protobufjs with an install script.
 */
export type ElementType = 'float32' | 'int32' | 'int64' | 'bool';
export type Dim = number | string;

export type Attribute =
  | { readonly float: number }
  | { readonly int: number }
  | { readonly ints: readonly number[] }
  | { readonly string: string }
  | { readonly graph: GraphProto };

export type NodeProto = {
  readonly type: string;
  readonly domain: string;
  /** '' stands for an optional input left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
};

export type ValueProto = {
  readonly name: string;
  readonly type: ElementType;
  readonly shape: readonly Dim[];
  /** A list of such tensors instead of one. */
  readonly sequence?: true;
};

export type InitializerProto = {
  readonly name: string;
  readonly type: ElementType;
  readonly shape: readonly number[];
  /** Little endian, as the format wants it. */
  readonly data: Uint8Array;
};

export type GraphProto = {
  readonly name: string;
  readonly nodes: readonly NodeProto[];
  readonly inputs: readonly ValueProto[];
  readonly outputs: readonly ValueProto[];
  readonly initializers: readonly InitializerProto[];
};

const ELEMENT_TYPES = { float32: 1, int32: 6, int64: 7, bool: 9 } as const;

export function encodeModel(graph: GraphProto, opsets: Readonly<Record<string, number>>): Uint8Array {
  return message(
    int(1, 10),
    text(2, 'pawl'),
    bytes(7, encodeGraph(graph)),
    ...Object.entries(opsets).map(([domain, version]) => bytes(8, message(text(1, domain), int(2, version)))),
  );
}

function encodeGraph(graph: GraphProto): Uint8Array {
  return message(
    ...graph.nodes.map((node) => bytes(1, encodeNode(node))),
    text(2, graph.name),
    ...graph.initializers.map((tensor) => bytes(5, encodeTensor(tensor))),
    ...graph.inputs.map((value) => bytes(11, encodeValue(value))),
    ...graph.outputs.map((value) => bytes(12, encodeValue(value))),
  );
}

function encodeNode(node: NodeProto): Uint8Array {
  return message(
    ...node.inputs.map((name) => text(1, name)),
    ...node.outputs.map((name) => text(2, name)),
    text(4, node.type),
    ...Object.entries(node.attributes).map(([name, value]) => bytes(5, encodeAttribute(name, value))),
    text(7, node.domain),
  );
}

function encodeAttribute(name: string, value: Attribute): Uint8Array {
  if ('float' in value) return message(text(1, name), float(2, value.float), int(20, 1));
  if ('int' in value) return message(text(1, name), int(3, value.int), int(20, 2));
  if ('string' in value) return message(text(1, name), text(4, value.string), int(20, 3));
  if ('graph' in value) return message(text(1, name), bytes(6, encodeGraph(value.graph)), int(20, 5));
  return message(text(1, name), ...value.ints.map((i) => int(8, i)), int(20, 7));
}

function encodeTensor(tensor: InitializerProto): Uint8Array {
  return message(
    ...tensor.shape.map((dim) => int(1, dim)),
    int(2, ELEMENT_TYPES[tensor.type]),
    text(8, tensor.name),
    bytes(9, tensor.data),
  );
}

function encodeValue({ name, type, shape, sequence }: ValueProto): Uint8Array {
  const dims = shape.map((dim) => bytes(1, typeof dim === 'number' ? message(int(1, dim)) : message(text(2, dim))));
  const tensorType = message(int(1, ELEMENT_TYPES[type]), bytes(2, message(...dims)));
  const tensor = message(bytes(1, tensorType));
  return message(text(1, name), bytes(2, sequence ? message(bytes(4, message(bytes(1, tensor)))) : tensor));
}

// The wire: every field is a tag (number · 8 + wire type) and a payload.

function message(...parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

function varint(value: number): number[] {
  let rest = BigInt.asUintN(64, BigInt(value));
  const out: number[] = [];
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    out.push(rest === 0n ? low : low | 128);
  } while (rest !== 0n);
  return out;
}

const int = (field: number, value: number) => Uint8Array.from([...varint(field * 8), ...varint(value)]);

const bytes = (field: number, value: Uint8Array) =>
  Buffer.concat([Uint8Array.from([...varint(field * 8 + 2), ...varint(value.length)]), value]);

const text = (field: number, value: string) => bytes(field, Buffer.from(value, 'utf8'));

function float(field: number, value: number): Uint8Array {
  const out = Buffer.alloc(4);
  out.writeFloatLE(value);
  return Buffer.concat([Uint8Array.from(varint(field * 8 + 5)), out]);
}
