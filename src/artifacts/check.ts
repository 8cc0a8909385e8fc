/** Whether files on this disk are what a manifest says, byte by byte. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { ArtifactError } from '../errors.ts';
import type { Manifest } from './artifact.ts';

export const wayOut = 'Put it back from a backup, or make it anew.';

export const spoilt = (ref: string, path: string, where: string, cause?: unknown): ArtifactError =>
  new ArtifactError(
    `${path} of ${ref} in ${where} is not what was kept: ${cause === undefined ? 'its size or SHA-256 is another' : 'it is gone'}. ${wayOut} \`pawl artifacts verify\` looks at all of them.`,
    { cause },
  );

export async function measure(path: string, signal?: AbortSignal): Promise<{ size: number; sha256: string }> {
  const digest = createHash('sha256');
  let size = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
    signal?.throwIfAborted();
    digest.update(chunk as Buffer);
    size += (chunk as Buffer).length;
  }
  return { size, sha256: digest.digest('hex') };
}

export async function checkFiles(ref: string, dir: string, { files }: Manifest): Promise<void> {
  for (const { path, size, sha256 } of files) {
    const found = await measure(join(dir, ...path.split('/'))).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') throw spoilt(ref, path, dir, error);
      throw error;
    });
    if (found.size !== size || found.sha256 !== sha256) throw spoilt(ref, path, dir);
  }
}
