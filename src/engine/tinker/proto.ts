/**
 * The two messages of Tinker's protocol that servers want as protobuf since SDK 0.25: what is trained on, and what comes of training
 * and sampling. Arrays are raw little-endian bytes in them, and stay arrays of machine numbers here: a step has hundreds of thousands. By
 * hand: three wire types of protobuf are all there is to it. What is read has the form of older servers' JSON, so that wire.ts checks both;
 * sizes are checked before anything is read by them.
 */
import { EngineError } from '../../errors.ts';
import type { WirePass, WireTensor } from './wire.ts';

export const protoType = 'application/x-protobuf';

// ---- Writing -------------------------------------------------------------------------------------------------------

const varint = (value: number): Buffer => {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  bytes.push(left);
  return Buffer.from(bytes);
};
/** Parts of a message in their order: what lies five levels deep is copied once, when all of it is written. */
type Parts = readonly Uint8Array[];
const number = (field: number, value: number): Parts => [varint(field * 8), varint(value)];
const bytes = (field: number, ...inner: readonly Parts[]): Parts => {
  const parts = inner.flat();
  const size = parts.reduce((sum, { length }) => sum + length, 0);
  return [varint(field * 8 + 2), varint(size), ...parts];
};
const text = (field: number, value: string): Parts => bytes(field, [Buffer.from(value)]);
const double = (field: number, value: number): Parts => {
  const eight = Buffer.alloc(8);
  eight.writeDoubleLE(value);
  return [varint(field * 8 + 1), eight];
};

const raw = (array: Int32Array | Float32Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
const int32 = (data: ArrayLike<number>): Int32Array => (data instanceof Int32Array ? data : Int32Array.from(data));
const float32 = (data: ArrayLike<number>): Float32Array =>
  data instanceof Float32Array ? data : Float32Array.from(data);
/** Each as its lower and its upper half. */
function int64(data: ArrayLike<number>): Int32Array {
  const halves = new Int32Array(2 * data.length);
  for (let i = 0; i < data.length; i++) {
    halves[2 * i] = data[i]!;
    halves[2 * i + 1] = Math.floor(data[i]! / 2 ** 32);
  }
  return halves;
}
const dtypes = { float32: 1, int64: 2 } as const;

const tensor = ({ data, dtype }: WireTensor): Parts[] => [
  bytes(1, [raw(dtype === 'float32' ? float32(data) : int64(data))]),
  number(3, dtypes[dtype]),
  bytes(4, [varint(data.length)]),
];

export function encodePass(
  kind: 'forward' | 'forward_backward',
  model: string,
  seq: number,
  { data, loss_fn: loss, loss_fn_config: config }: WirePass,
): Buffer {
  const parts: Parts[] = [
    text(1, model),
    number(2, seq),
    ...data.map(({ model_input: input, loss_fn_inputs: inputs }) =>
      bytes(
        3,
        ...input.chunks.map(({ tokens }) => bytes(1, bytes(1, bytes(1, [raw(int32(tokens))])))),
        ...Object.entries(inputs).map(([name, one]) => bytes(2, text(1, name), bytes(2, ...tensor(one)))),
      ),
    ),
    text(4, loss),
    ...Object.entries(config ?? {}).map(([name, value]) => bytes(5, text(1, name), double(2, value))),
    ...(kind === 'forward' ? [number(6, 1)] : []),
  ];
  return Buffer.concat(parts.flat());
}

// ---- Reading -------------------------------------------------------------------------------------------------------

type Field = { readonly field: number; readonly value: number; readonly bytes: Buffer };

const damaged = () => new EngineError('The server’s answer is no protobuf: it ends before it should.');

/** The fields of a message in order; `bytes` are empty where the field is a number. */
function fieldsOf(message: Buffer): Field[] {
  const found: Field[] = [];
  let at = 0;
  const read = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++];
      if (byte === undefined || scale > 2 ** 63) throw damaged();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  const take = (size: number): Buffer => {
    if (size > message.length - at) throw damaged();
    at += size;
    return message.subarray(at - size, at);
  };
  while (at < message.length) {
    const tag = read();
    const field = Math.floor(tag / 8);
    const none = Buffer.alloc(0);
    switch (tag % 8) {
      case 0:
        found.push({ field, value: read(), bytes: none });
        break;
      case 1:
        found.push({ field, value: take(8).readDoubleLE(), bytes: none });
        break;
      case 2:
        found.push({ field, value: 0, bytes: take(read()) });
        break;
      case 5:
        found.push({ field, value: take(4).readFloatLE(), bytes: none });
        break;
      default:
        throw damaged();
    }
  }
  return found;
}

const all = (fields: readonly Field[], field: number) => fields.filter((one) => one.field === field);
const last = (fields: readonly Field[], field: number) => all(fields, field).at(-1);
const string = (fields: readonly Field[], field: number) => last(fields, field)?.bytes.toString('utf8') ?? '';

/** A copy: what lies in a message may begin at any byte. */
const copied = (data: Buffer): ArrayBuffer => {
  if (data.length % 4 !== 0) throw damaged();
  return new Uint8Array(data).buffer;
};
const floatsIn = (data: Buffer): Float32Array => new Float32Array(copied(data));
const integersIn = (data: Buffer): Int32Array => new Int32Array(copied(data));

/** The logprobs of one record, cut at its offsets, which are in bytes. bfloat16 is the upper half of a float32. */
function logprobsIn(record: readonly Field[]): Float32Array[] {
  const entry = all(record, 2)
    .map((one) => fieldsOf(one.bytes))
    .find((one) => string(one, 1) === 'logprobs');
  if (entry === undefined) return [];
  const batched = fieldsOf(last(entry, 2)?.bytes ?? Buffer.alloc(0));
  const data = last(batched, 1)?.bytes ?? Buffer.alloc(0);
  const offsets = last(batched, 2)?.bytes ?? Buffer.alloc(0);
  const dtype = last(batched, 3)?.value;
  if ((dtype !== 1 && dtype !== 4) || offsets.length % 8 !== 0)
    throw new EngineError(`The server’s logprobs are of type ${dtype}; float32 (1) or bfloat16 (4) can be read.`);
  const cuts = Array.from({ length: offsets.length / 8 }, (_, i) => Number(offsets.readBigInt64LE(8 * i)));
  return cuts.slice(1).map((end, i) => {
    const begin = cuts[i]!;
    if (begin < 0 || end < begin || end > data.length) throw damaged();
    const part = data.subarray(begin, end);
    return floatsIn(dtype === 1 ? part : widened(part));
  });
}

function widened(halves: Buffer): Buffer {
  const whole = Buffer.alloc(2 * halves.length);
  for (let i = 0; i + 1 < halves.length; i += 2) halves.copy(whole, 2 * i + 2, i, i + 2);
  return whole;
}

/** As older servers write it, but for arrays. */
export function decodePass(message: Buffer): unknown {
  const outputs = all(fieldsOf(message), 2).flatMap((one) => logprobsIn(fieldsOf(one.bytes)));
  return { loss_fn_outputs: outputs.map((data) => ({ logprobs: { data } })) };
}

export function decodeSample(message: Buffer): unknown {
  const fields = fieldsOf(message);
  const prompt = last(fields, 2);
  return {
    sequences: all(fields, 1).map((one) => {
      const sequence = fieldsOf(one.bytes);
      const logprobs = last(sequence, 3);
      return {
        stop_reason: (last(sequence, 1)?.value ?? 0) === 0 ? 'stop' : 'length',
        tokens: integersIn(last(sequence, 2)?.bytes ?? Buffer.alloc(0)),
        ...(logprobs ? { logprobs: floatsIn(logprobs.bytes) } : {}),
      };
    }),
    ...(prompt ? { prompt_logprobs: floatsIn(prompt.bytes) } : {}),
  };
}
