/**
 * A place that keeps bytes under keys: a folder, or a bucket on S3. It knows nothing of artifacts. What is written appears
 * whole or not at all, and the same bytes may be written by two at once. conformance.ts says what must hold of each.
 *
 * A key is `HASH.json`, or `HASH/` and the path of a file; nothing else is one.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { ArtifactError } from '../errors.ts';
import { isFilePath } from './artifact.ts';

/** Bytes to be written, read in pieces as the place likes them. */
export type Source = {
  readonly size: number;
  /** What is written must have it; a file that changes under the reader is an error. */
  readonly sha256: string;
  read(start: number, length: number): Promise<Buffer>;
  /** A file that may be moved instead of copied: nobody needs it where it is. */
  readonly movable?: string;
};

export type Stored = { readonly key: string; readonly size: number /** ms since epoch */; readonly at: number };

export interface Place {
  /** For people: a path, or s3://bucket/prefix. */
  readonly name: string;
  /** The folder it is, where files can be read as they lie. */
  readonly folder: string | null;
  write(key: string, source: Source, signal?: AbortSignal): Promise<void>;
  /** Throws an ArtifactError with `missing` where there is nothing under the key. */
  read(key: string, signal?: AbortSignal): AsyncIterable<Buffer>;
  /** null: there is nothing under the key. */
  stat(key: string): Promise<Stored | null>;
  /** Nothing under the key is fine too. */
  remove(key: string): Promise<void>;
  /** Everything whose key begins so, in no order. */
  list(prefix: string): AsyncIterable<Stored>;
  close(): Promise<void>;
}

export function checkKey(key: string): string {
  const isManifest = /^[0-9a-f]{64}\.json$/.test(key);
  if (!isManifest && !(/^[0-9a-f]{64}\//.test(key) && isFilePath(key.slice(65))))
    throw new ArtifactError(
      `${JSON.stringify(key.slice(0, 200))} is no key of an artifact: a hash, and a path that stays below it.`,
    );
  return key;
}

export const missing = (key: string, name: string, cause?: unknown): ArtifactError =>
  new ArtifactError(`There is no ${key} in ${name}.`, { missing: true, cause });

export const bytesSource = (bytes: Buffer): Source => ({
  size: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
  read: async (start, length) => bytes.subarray(start, start + length),
});

/** Runs `use` with the file as a source; `size` and `sha256` are what it was when it was looked at. */
export async function withFileSource<T>(
  path: string,
  { size, sha256, move }: { readonly size: number; readonly sha256: string; readonly move: boolean },
  use: (source: Source) => Promise<T>,
): Promise<T> {
  const file = await open(path, 'r');
  try {
    return await use({
      size,
      sha256,
      read: (start, n) => readExactly(file, path, start, n),
      ...(move ? { movable: path } : {}),
    });
  } finally {
    await file.close();
  }
}

async function readExactly(file: FileHandle, path: string, start: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await file.read(bytes, at, length - at, start + at);
    if (bytesRead === 0) throw changed(path);
    at += bytesRead;
  }
  return bytes;
}

export const changed = (what: string): ArtifactError =>
  new ArtifactError(`${what} was changed while it was being kept; keep it again once nobody writes to it.`, {
    retryable: true,
  });
