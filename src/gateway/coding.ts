/** Content codings that bodies may come in: gzip, deflate, br. What comes out is counted by whoever reads it. */
import {
  brotliDecompressSync,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  gunzipSync,
  inflateSync,
} from 'node:zlib';

export type Coding = 'gzip' | 'deflate' | 'br';

/** Null for a body that is plain; undefined for a coding that nobody here reads. */
export function codingOf(header: string | undefined): Coding | null | undefined {
  if (header === undefined || header === '') return null;
  switch (header.trim().toLowerCase()) {
    case 'identity':
      return null;
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
      return 'deflate';
    case 'br':
      return 'br';
    default:
      return undefined;
  }
}

const streams = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress };
const whole = { gzip: gunzipSync, deflate: inflateSync, br: brotliDecompressSync };

export const expander = (coding: Coding) => streams[coding]();

/** A short body at once; the bytes as they are when they are not what they claim, or hold more than `maxBytes`. */
export function expandShort(bytes: Buffer, coding: Coding, maxBytes: number): Buffer {
  try {
    return whole[coding](bytes, { maxOutputLength: maxBytes });
  } catch {
    return bytes;
  }
}

/** The kept chunks of an answer as plain bytes, as far as `keep` allows; `cut` says that something is missing. */
export async function expandKept(
  chunks: readonly Uint8Array[],
  coding: Coding,
  keep: (bytes: number) => boolean,
): Promise<{ chunks: Uint8Array[]; cut: boolean }> {
  const stream = expander(coding);
  const out: Uint8Array[] = [];
  let cut = false;
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      cut = !keep(chunk.length);
      if (cut) break;
      out.push(chunk);
    }
  } catch {
    cut = true; // broken off or never what it claimed
  }
  stream.destroy();
  return { chunks: out, cut };
}
