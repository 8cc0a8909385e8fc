/**
 * Messages between the engine's process and its clients: a JSON header and the typed arrays it refers to, raw. A frame
 * is [u32 bytes of header][u32 bytes of arrays][header][arrays]; in the header an array is `{"$array": [kind, length]}`,
 * in the order of the bytes. Tokens and logprobs travel as they lie in memory: no digits are printed or parsed.
 * Sizes are checked before anything is allocated for them.
 */
import { EngineError } from '../errors.ts';

const kinds = { i32: Int32Array, f32: Float32Array } as const;
type Packed = Int32Array | Float32Array;

export const maxHeaderBytes = 64 * 2 ** 20;
export const maxArrayBytes = 1024 * 2 ** 20;

export function encodeFrame(message: unknown): Buffer[] {
  const arrays: Packed[] = [];
  const json = JSON.stringify(message, (_, value: unknown) => {
    // JSON has no NaN; a loss that is one must arrive as one.
    if (typeof value === 'number' && !Number.isFinite(value)) return { $number: String(value) };
    if (!(value instanceof Int32Array) && !(value instanceof Float32Array)) return value;
    arrays.push(value);
    return { $array: [value instanceof Int32Array ? 'i32' : 'f32', value.length] };
  });
  const header = Buffer.from(json);
  const bytes = arrays.reduce((sum, array) => sum + array.byteLength, 0);
  if (header.length > maxHeaderBytes || bytes > maxArrayBytes) {
    throw new EngineError(
      `A call of ${header.length} + ${bytes} bytes is too large for the engine socket; split the data into smaller calls.`,
    );
  }
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32LE(header.length, 0);
  sizes.writeUInt32LE(bytes, 4);
  return [sizes, header, ...arrays.map((a) => Buffer.from(a.buffer, a.byteOffset, a.byteLength))];
}

/** Takes bytes as they come and gives the messages that are complete. Throws on a frame that cannot be one. */
export function createFrameReader(): (chunk: Buffer) => unknown[] {
  let chunks: Buffer[] = [];
  let have = 0;
  let need = 8;
  return (chunk) => {
    const messages: unknown[] = [];
    chunks.push(chunk);
    have += chunk.length;
    while (have >= need) {
      const all = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
      chunks = [all];
      const header = all.readUInt32LE(0);
      const bytes = all.readUInt32LE(4);
      if (header > maxHeaderBytes || bytes > maxArrayBytes) {
        throw new EngineError(`A frame claims ${header} + ${bytes} bytes, more than the engine socket takes.`);
      }
      const total = 8 + header + bytes;
      if (have < total) {
        need = total;
        break;
      }
      messages.push(decode(all.subarray(8, 8 + header).toString('utf8'), all.subarray(8 + header, total)));
      chunks = have > total ? [all.subarray(total)] : [];
      have -= total;
      need = 8;
    }
    return messages;
  };
}

function decode(json: string, raw: Buffer): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (cause) {
    throw new EngineError('A frame on the engine socket does not hold JSON.', { cause });
  }
  let offset = 0;
  const revive = (value: unknown, depth: number): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (depth > 32) throw new EngineError('A frame on the engine socket nests too deeply.');
    if (Array.isArray(value)) return value.map((item) => revive(item, depth + 1));
    const { $array: packed, $number: number } = value as { $array?: unknown; $number?: unknown };
    if (number === 'NaN' || number === 'Infinity' || number === '-Infinity') return Number(number);
    if (packed !== undefined) {
      const [kind, length] = Array.isArray(packed) ? packed : [];
      if (
        !Object.hasOwn(kinds, String(kind)) ||
        !Number.isSafeInteger(length) ||
        length < 0 ||
        offset + length * 4 > raw.length
      ) {
        throw new EngineError(`A frame refers to an array ${JSON.stringify(packed)} that it does not hold.`);
      }
      // Copied, so that it is aligned and does not keep the whole frame in memory.
      const bytes = Uint8Array.prototype.slice.call(raw, offset, offset + length * 4);
      offset += length * 4;
      return new kinds[kind as keyof typeof kinds](bytes.buffer, bytes.byteOffset, length);
    }
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revive(item, depth + 1)]));
  };
  const message = revive(parsed, 0);
  if (offset !== raw.length)
    throw new EngineError(`A frame holds ${raw.length} bytes of arrays but refers to ${offset}.`);
  return message;
}
