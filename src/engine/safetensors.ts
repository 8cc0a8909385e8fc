/**
 * The safetensors file format: 8 bytes of header length, a JSON header (name → dtype, shape, offsets), then the raw
 * tensors. Reads F64/F32/F16/BF16 into Float32Array one tensor at a time, writes F32 or BF16. It knows nothing of models.
 *
 * A header is a stranger's claim. Everything it says is checked against the size of the file before a byte is allocated
 * for it: length, offsets, shape × dtype, names. Like the reference implementation we insist that the tensors tile the
 * data exactly, so that no two share bytes and no bytes hide between them.
 * Format: github.com/huggingface/safetensors
 */
import { type FileHandle, open } from 'node:fs/promises';
import { EngineError } from '../errors.ts';

export type Tensor = { readonly shape: readonly number[]; readonly data: Float32Array };
export type Tensors = Map<string, Tensor>;

const bytesPerElement = { F64: 8, F32: 4, F16: 2, BF16: 2 } as const;
export type Dtype = keyof typeof bytesPerElement;
export type WriteDtype = 'F32' | 'BF16';

export type TensorEntry = {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly elements: number;
  /** Bytes from the start of the file. */
  readonly begin: number;
  readonly end: number;
};

export type Header = {
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly metadata: ReadonlyMap<string, string>;
};

const maxHeaderBytes = 100_000_000; // the reference implementation's cap
const maxDepth = 8;
const maxDimensions = 8;
const maxNameLength = 1024;
const chunkBytes = 16 * 2 ** 20;

/**
 * Walks the JSON text once, before it is parsed: nesting is bounded and the names at the top are distinct (JSON.parse
 * would silently keep the last of two tensors with one name).
 */
function checkHeaderText(text: string, refuse: (why: string) => EngineError): void {
  const names = new Set<string>();
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '{' || char === '[') {
      if (++depth > maxDepth) throw refuse(`its header nests more than ${maxDepth} levels deep`);
    } else if (char === '}' || char === ']') {
      depth--;
    } else if (char === '"') {
      const start = i;
      for (i++; i < text.length && text[i] !== '"'; i++) if (text[i] === '\\') i++;
      if (depth !== 1) continue;
      let after = i + 1;
      while (text[after] === ' ' || text[after] === '\n' || text[after] === '\t' || text[after] === '\r') after++;
      if (text[after] !== ':') continue;
      const name = text.slice(start, i + 1);
      const decoded = name.includes('\\') ? decodeString(name, refuse) : name;
      if (names.has(decoded)) throw refuse(`its header names ${decoded} twice`);
      names.add(decoded);
    }
  }
}

function decodeString(literal: string, refuse: (why: string) => EngineError): string {
  try {
    return JSON.stringify(JSON.parse(literal));
  } catch {
    throw refuse(`its header holds the broken string ${literal.slice(0, 80)}`);
  }
}

/** The header as checked facts. `size` is the real size of the file. */
export function parseHeader(file: string, bytes: Uint8Array, size: number): Header {
  const refuse = (why: string) => new EngineError(`${file} is not a usable safetensors file: ${why}.`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw refuse('its header is not UTF-8 text');
  }
  checkHeaderText(text, refuse);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw refuse(`its header is not JSON (${(cause as Error).message})`);
  }
  if (!isObject(parsed)) throw refuse('its header is not a JSON object');

  const dataStart = 8 + bytes.length;
  const dataBytes = size - dataStart;
  const metadata = new Map<string, string>();
  const entries: TensorEntry[] = [];
  for (const [name, value] of Object.entries(parsed)) {
    if (name === '__metadata__') {
      if (!isObject(value)) throw refuse('its __metadata__ is not an object');
      for (const [key, text] of Object.entries(value)) {
        if (typeof text !== 'string') throw refuse(`its __metadata__ entry "${key}" is not text`);
        metadata.set(key, text);
      }
      continue;
    }
    const shown = JSON.stringify(name.slice(0, 120));
    if (name === '__proto__' || name === '' || name.length > maxNameLength) {
      throw refuse(`${shown} cannot be the name of a tensor`);
    }
    if (!isObject(value)) throw refuse(`tensor ${shown} is described by something that is not an object`);
    const { dtype, shape, data_offsets: offsets } = value;
    if (typeof dtype !== 'string' || !Object.hasOwn(bytesPerElement, dtype)) {
      throw refuse(
        `tensor ${shown} has dtype ${JSON.stringify(dtype)?.slice(0, 40)}; F64, F32, F16 and BF16 can be read`,
      );
    }
    if (!Array.isArray(shape) || shape.length > maxDimensions || !shape.every(isCount)) {
      throw refuse(`tensor ${shown} has the impossible shape ${JSON.stringify(shape)?.slice(0, 80)}`);
    }
    const [begin, end] = Array.isArray(offsets) && offsets.length === 2 ? (offsets as unknown[]) : [];
    if (!isCount(begin) || !isCount(end) || begin > end) {
      throw refuse(`tensor ${shown} has the impossible offsets ${JSON.stringify(offsets)?.slice(0, 80)}`);
    }
    if (end > dataBytes) {
      throw refuse(
        `tensor ${shown} claims bytes ${begin}–${end} of the data, but the file holds ${dataBytes} (${size} in all); it may be truncated`,
      );
    }
    const elements = shape.reduce((product: number, n: number) => product * n, 1);
    const needed = elements * bytesPerElement[dtype as Dtype];
    if (needed !== end - begin) {
      throw refuse(
        `tensor ${shown} of shape [${shape.join(', ')}] and dtype ${dtype} needs ${needed} bytes, but its offsets cover ${end - begin}`,
      );
    }
    entries.push({
      name,
      dtype: dtype as Dtype,
      shape: shape as number[],
      elements,
      begin: dataStart + begin,
      end: dataStart + end,
    });
  }
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let at = dataStart;
  for (const { name, begin, end } of entries) {
    if (begin !== at) {
      const problem = begin < at ? 'overlaps the tensor before it' : 'leaves a hole before it';
      throw refuse(`tensor ${JSON.stringify(name)} at ${begin - dataStart}–${end - dataStart} ${problem}`);
    }
    at = end;
  }
  if (at !== size) throw refuse(`its tensors end at byte ${at}, but the file has ${size} bytes`);
  return { tensors: new Map(entries.map((entry) => [entry.name, entry])), metadata };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export type SafetensorsFile = Header & {
  readonly path: string;
  /** Bytes of the whole file. */
  readonly size: number;
  read(name: string): Promise<Tensor>;
  close(): Promise<void>;
};

/** Opens a file and checks its header; tensors are read one by one when asked for. */
export async function openSafetensors(path: string): Promise<SafetensorsFile> {
  const handle = await open(path, 'r').catch((cause: NodeJS.ErrnoException) => {
    throw new EngineError(`${path} cannot be opened: ${cause.code ?? cause.message}.`, { cause });
  });
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new EngineError(`${path} is not a file.`);
    const { size } = stat;
    if (size < 8) {
      throw new EngineError(
        `${path} is not a usable safetensors file: it has ${size} bytes, fewer than the 8 that hold the header length.`,
      );
    }
    const claim = (await readExactly(handle, path, 0, 8)).readBigUInt64LE();
    if (claim > BigInt(size - 8) || claim > BigInt(maxHeaderBytes)) {
      const limit = claim > BigInt(size - 8) ? `the file has ${size} bytes` : `the cap is ${maxHeaderBytes}`;
      throw new EngineError(
        `${path} is not a usable safetensors file: it claims a header of ${claim} bytes, but ${limit}.`,
      );
    }
    const header = parseHeader(path, await readExactly(handle, path, 8, Number(claim)), size);
    return {
      ...header,
      path,
      size,
      async read(name) {
        const entry = header.tensors.get(name);
        if (!entry) throw new EngineError(`${path} holds no tensor "${name}".`);
        return { shape: entry.shape, data: await readTensor(handle, path, entry) };
      },
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function readExactly(handle: FileHandle, path: string, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  await fill(handle, path, buffer, position);
  return buffer;
}

async function fill(handle: FileHandle, path: string, target: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < target.length) {
    // One read() call cannot be trusted with more than 2 GiB on every platform.
    const length = Math.min(target.length - done, 2 ** 30);
    const { bytesRead } = await handle.read(target, done, length, position + done);
    if (bytesRead === 0) throw new EngineError(`${path} ended at byte ${position + done} while it was being read.`);
    done += bytesRead;
  }
}

async function readTensor(handle: FileHandle, path: string, entry: TensorEntry): Promise<Float32Array> {
  const data = new Float32Array(entry.elements);
  if (entry.dtype === 'F32') {
    await fill(handle, path, new Uint8Array(data.buffer), entry.begin);
    return data;
  }
  const size = bytesPerElement[entry.dtype];
  const chunk = new ArrayBuffer(Math.min(chunkBytes, entry.end - entry.begin));
  for (let done = 0; done < entry.elements; ) {
    const count = Math.min(chunk.byteLength / size, entry.elements - done);
    await fill(handle, path, new Uint8Array(chunk, 0, count * size), entry.begin + done * size);
    const target = data.subarray(done, done + count);
    if (entry.dtype === 'F64') target.set(new Float64Array(chunk, 0, count));
    else if (entry.dtype === 'BF16') widenBf16(new Uint16Array(chunk, 0, count), target);
    else widenF16(new Uint16Array(chunk, 0, count), target);
    done += count;
  }
  return data;
}

function widenBf16(source: Uint16Array, target: Float32Array): void {
  const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < source.length; i++) bits[i] = source[i]! << 16;
}

let halves: Float32Array | undefined;

/** Every half-precision number there is, by its bits; 256 kB, made when the first F16 tensor is read. */
function halfTable(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(65536);
  for (let h = 0; h < 65536; h++) {
    const exponent = (h >> 10) & 31;
    const fraction = h & 1023;
    const magnitude =
      exponent === 0
        ? fraction * 2 ** -24
        : exponent === 31
          ? fraction
            ? Number.NaN
            : Number.POSITIVE_INFINITY
          : (1 + fraction / 1024) * 2 ** (exponent - 15);
    halves[h] = h & 32768 ? -magnitude : magnitude;
  }
  return halves;
}

function widenF16(source: Uint16Array, target: Float32Array): void {
  const table = halfTable();
  for (let i = 0; i < source.length; i++) target[i] = table[source[i]!]!;
}

/** Round to nearest, ties to even: what PyTorch does. */
export function narrowBf16(source: Float32Array): Uint16Array {
  const bits = new Uint32Array(source.buffer, source.byteOffset, source.length);
  const out = new Uint16Array(source.length);
  for (let i = 0; i < bits.length; i++) {
    const b = bits[i]!;
    // A NaN must stay one: rounding could carry its fraction away.
    out[i] = (b & 0x7fffffff) > 0x7f800000 ? (b >>> 16) | 64 : (b + 0x7fff + ((b >>> 16) & 1)) >>> 16;
  }
  return out;
}

/** Writes a new file and waits until it is on disk. The file must not exist; the caller renames it into place. */
export async function writeSafetensors(
  path: string,
  tensors: ReadonlyMap<string, Tensor>,
  options: { readonly dtype?: WriteDtype; readonly metadata?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const dtype = options.dtype ?? 'F32';
  const header: Record<string, unknown> = Object.create(null);
  header.__metadata__ = { format: 'pt', ...options.metadata };
  let offset = 0;
  for (const [name, { shape, data }] of tensors) {
    if (shape.reduce((a, b) => a * b, 1) !== data.length) {
      throw new Error(`Tensor ${name} has ${data.length} elements, which do not fill its shape [${shape.join(', ')}].`);
    }
    const end = offset + data.length * bytesPerElement[dtype];
    header[name] = { dtype, shape, data_offsets: [offset, end] };
    offset = end;
  }
  const json = Buffer.from(JSON.stringify(header));
  // Spaces fill the header up to a multiple of 8, so that readers may map the tensors in place.
  const length = Math.ceil(json.length / 8) * 8;
  const start = Buffer.alloc(8 + length, ' ');
  start.writeBigUInt64LE(BigInt(length));
  json.copy(start, 8);

  const handle = await open(path, 'wx');
  try {
    await writeAll(handle, start);
    for (const { data } of tensors.values()) {
      const step = chunkBytes / 4;
      for (let at = 0; at < data.length; at += step) {
        const part = data.subarray(at, at + step);
        const raw = dtype === 'BF16' ? narrowBf16(part) : part;
        await writeAll(handle, new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength));
      }
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done)).bytesWritten;
  }
}
