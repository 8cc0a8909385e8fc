import { mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EngineError } from '../errors.ts';
import { openSafetensors, type Tensors, writeSafetensors } from './safetensors.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'pawl-safetensors-'));
});
afterAll(() => rm(dir, { recursive: true }));

let count = 0;
const fresh = () => join(dir, `${count++}.safetensors`);

/** A file with this header text and this many bytes of data after it. */
async function fileOf(header: string, data: Uint8Array | number, claim?: bigint): Promise<string> {
  const path = fresh();
  const text = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(claim ?? BigInt(text.length));
  await writeFile(path, Buffer.concat([length, text, typeof data === 'number' ? Buffer.alloc(data) : data]));
  return path;
}

async function readAll(path: string): Promise<Tensors> {
  const file = await openSafetensors(path);
  try {
    const tensors: Tensors = new Map();
    for (const name of file.tensors.keys()) tensors.set(name, await file.read(name));
    return tensors;
  } finally {
    await file.close();
  }
}

const entry = (dtype: string, shape: number[], begin: number, end: number) => ({
  dtype,
  shape,
  data_offsets: [begin, end],
});

describe('reading and writing', () => {
  test('F32 comes back to the last bit, with shapes and metadata', async () => {
    const path = fresh();
    const tensors: Tensors = new Map([
      ['a', { shape: [2, 3], data: Float32Array.of(1, -2.5, 1e-40, 3.4e38, 0.1, -0) }],
      ['empty', { shape: [0, 4], data: new Float32Array(0) }],
      ['scalar', { shape: [], data: Float32Array.of(7) }],
    ]);
    await writeSafetensors(path, tensors, { metadata: { step: '12' } });
    expect(await readAll(path)).toEqual(tensors);
    const file = await openSafetensors(path);
    expect(Object.fromEntries(file.metadata)).toEqual({ format: 'pt', step: '12' });
    expect(file.tensors.get('a')!.begin % 8).toBe(0);
    await file.close();
  });

  test('BF16 keeps 8 bits of fraction, rounds to nearest, and ties go to even', async () => {
    const path = fresh();
    // 1 + 2^-7 is representable; 1 + 2^-8 lies halfway to it and goes to the even 1; 1 + 3·2^-8 goes to 1 + 2^-6.
    const data = Float32Array.of(1, 1 + 2 ** -7, 1 + 2 ** -8, 1 + 3 * 2 ** -8, -1 - 2 ** -8 - 2 ** -12);
    await writeSafetensors(path, new Map([['w', { shape: [5], data }]]), { dtype: 'BF16' });
    expect([...(await readAll(path)).get('w')!.data]).toEqual([1, 1 + 2 ** -7, 1, 1 + 2 ** -6, -1 - 2 ** -7]);
    const file = await openSafetensors(path);
    const { begin, end } = file.tensors.get('w')!;
    await file.close();
    expect(end - begin).toBe(10);
  });

  test('F16, BF16 and F64 widen to their exact values', async () => {
    // 0x3c00 = 1, 0xc000 = −2, 0x0001 = 2^-24 (subnormal), 0x7bff = 65504
    const halves = Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7bff);
    // 0x3fc0 = 1.5, 0xbf80 = −1
    const brains = Uint16Array.of(0x3fc0, 0xbf80);
    const doubles = Float64Array.of(0.5, -1024);
    const bytes = Buffer.concat([halves, brains, doubles].map((a) => Buffer.from(a.buffer)));
    const header = { h: entry('F16', [4], 0, 8), b: entry('BF16', [2], 8, 12), d: entry('F64', [2], 12, 28) };
    const read = await readAll(await fileOf(JSON.stringify(header), bytes));
    expect([...read.get('h')!.data]).toEqual([1, -2, 2 ** -24, 65504]);
    expect([...read.get('b')!.data]).toEqual([1.5, -1]);
    expect([...read.get('d')!.data]).toEqual([0.5, -1024]);
  });

  test('a tensor larger than one chunk is converted whole', async () => {
    const path = fresh();
    const data = Float32Array.from({ length: 9_000_000 }, (_, i) => i % 256);
    await writeSafetensors(path, new Map([['w', { shape: [9000, 1000], data }]]), { dtype: 'BF16' });
    expect((await stat(path)).size).toBeGreaterThan(18_000_000);
    const back = (await readAll(path)).get('w')!.data;
    expect(Buffer.compare(Buffer.from(back.buffer), Buffer.from(data.buffer))).toBe(0);
  });
});

describe('hostile files are refused with the claim and the real size', () => {
  const ok = JSON.stringify({ w: entry('F32', [2], 0, 8) });

  test.each<[string, () => Promise<string>, RegExp]>([
    [
      'a header of 2^60 bytes',
      () => fileOf(ok, 8, 2n ** 60n),
      /claims a header of 1152921504606846976 bytes, but the file has \d+ bytes/,
    ],
    [
      'a header longer than the file by one byte',
      () => fileOf(ok, 0, BigInt(ok.length + 1)),
      /claims a header of \d+ bytes/,
    ],
    [
      'a file of 3 bytes',
      async () => {
        const p = fresh();
        await writeFile(p, 'abc');
        return p;
      },
      /has 3 bytes/,
    ],
    [
      'an offset beyond the end',
      () => fileOf(JSON.stringify({ w: entry('F32', [4], 0, 16) }), 8),
      /claims bytes 0–16 of the data, but the file holds 8/,
    ],
    [
      'overlapping tensors',
      () => fileOf(JSON.stringify({ a: entry('F32', [2], 0, 8), b: entry('F32', [2], 4, 12) }), 12),
      /"b" at 4–12 overlaps/,
    ],
    [
      'a hole between tensors',
      () => fileOf(JSON.stringify({ a: entry('F32', [1], 0, 4), b: entry('F32', [1], 8, 12) }), 12),
      /leaves a hole/,
    ],
    ['bytes after the last tensor', () => fileOf(ok, 9), /tensors end at byte \d+, but the file has \d+ bytes/],
    [
      'a shape that does not fit',
      () => fileOf(JSON.stringify({ w: entry('F32', [3], 0, 8) }), 8),
      /shape \[3\] and dtype F32 needs 12 bytes, but its offsets cover 8/,
    ],
    [
      'a shape whose product overflows',
      () => fileOf(JSON.stringify({ w: entry('F32', [2 ** 40, 2 ** 40], 0, 8) }), 8),
      /needs .* bytes, but its offsets cover 8/,
    ],
    [
      'a negative dimension',
      () => fileOf(JSON.stringify({ w: entry('F32', [-2, -1], 0, 8) }), 8),
      /impossible shape \[-2,-1\]/,
    ],
    [
      'offsets in the wrong order',
      () => fileOf(JSON.stringify({ w: entry('F32', [2], 8, 0) }), 8),
      /impossible offsets \[8,0\]/,
    ],
    [
      'one name twice',
      () =>
        fileOf(
          `{"w":${JSON.stringify(entry('F32', [1], 0, 4))},"\\u0077":${JSON.stringify(entry('F32', [1], 4, 8))}}`,
          8,
        ),
      /names "w" twice/,
    ],
    [
      'a tensor called __proto__',
      () => fileOf(`{"__proto__":${JSON.stringify(entry('F32', [2], 0, 8))}}`, 8),
      /"__proto__" cannot be the name/,
    ],
    [
      'a header nested 100,000 deep',
      () => fileOf(`{"w":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 8),
      /more than 8 levels/,
    ],
    ['a header that is no JSON', () => fileOf('{"w":', 8), /not JSON/],
    ['a header that is a list', () => fileOf('[]', 0), /not a JSON object/],
    ['an unknown dtype', () => fileOf(JSON.stringify({ w: entry('I64', [1], 0, 8) }), 8), /dtype "I64"/],
    ['metadata that is not text', () => fileOf('{"__metadata__":{"step":3}}', 0), /"step" is not text/],
    ['no file at all', async () => fresh(), /cannot be opened: ENOENT/],
    ['a folder', async () => dir, /is not a file|EISDIR/],
  ])('%s', async (_, make, message) => {
    const path = await make();
    const refusal = openSafetensors(path);
    await expect(refusal).rejects.toThrow(EngineError);
    await expect(refusal).rejects.toThrow(message);
    await expect(refusal).rejects.toThrow(path);
  });

  test('every truncation of a good file is refused', async () => {
    const path = fresh();
    await writeSafetensors(path, new Map([['w', { shape: [3], data: Float32Array.of(1, 2, 3) }]]));
    const { size } = await stat(path);
    for (let length = size - 1; length >= 0; length--) {
      await truncate(path, length);
      await expect(openSafetensors(path), `at ${length} of ${size} bytes`).rejects.toThrow(EngineError);
    }
  });
});
