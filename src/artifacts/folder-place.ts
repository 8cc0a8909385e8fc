/** A place that is a folder: on this disk, or one that several machines have mounted. */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { syncFolder } from '../durable.ts';
import { ArtifactError } from '../errors.ts';
import { draftName } from './drafts.ts';
import { changed, checkKey, missing, type Place, type Source, type Stored } from './place.ts';

const pieceBytes = 4 * 1024 * 1024;

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;
const isGone = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '');

export function folderPlace(folder: string): Place {
  const pathOf = (key: string) => join(folder, ...checkKey(key).split('/'));
  const failed = (doing: string, error: unknown): ArtifactError =>
    error instanceof ArtifactError
      ? error
      : new ArtifactError(`${doing} in ${folder} failed: ${(error as Error).message}.`, {
          cause: error,
          // A full disk and a share that is away come back; a folder without rights does not.
          retryable: ['ENOSPC', 'EIO', 'ESTALE', 'ETIMEDOUT', 'EHOSTDOWN'].includes(codeOf(error) ?? ''),
        });

  async function write(key: string, source: Source, signal?: AbortSignal): Promise<void> {
    const path = pathOf(key);
    const aside = join(folder, `${draftName()}-${randomBytes(4).toString('hex')}`);
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      if (!(await moved(source, aside))) await copy(source, aside, key, signal);
      await rename(aside, path);
      await syncFolder(dirname(path));
      if (dirname(path) !== folder) await syncFolder(folder);
    } catch (error) {
      await rm(aside, { force: true }).catch(() => {});
      throw failed(`Writing ${key}`, error);
    }
  }

  return {
    name: folder,
    folder,
    write,
    async *read(key, signal) {
      const input = createReadStream(pathOf(key), { highWaterMark: 1024 * 1024 });
      try {
        for await (const chunk of input) {
          signal?.throwIfAborted();
          yield chunk as Buffer;
        }
      } catch (error) {
        throw isGone(error) ? missing(key, folder, error) : failed(`Reading ${key}`, error);
      } finally {
        input.destroy();
      }
    },
    async stat(key) {
      try {
        const found = await stat(pathOf(key));
        return found.isFile() ? { key, size: found.size, at: found.mtimeMs } : null;
      } catch (error) {
        if (isGone(error)) return null;
        throw failed(`Looking for ${key}`, error);
      }
    },
    async remove(key) {
      const path = pathOf(key);
      try {
        await rm(path, { force: true });
        // Folders that this leaves empty go too; one that somebody writes into at this moment is not empty.
        for (let at = dirname(path); at !== folder; at = dirname(at)) if (!(await rmEmpty(at))) break;
        // An erased file must not come back with a power cut.
        await syncFolder(folder);
      } catch (error) {
        if (!isGone(error)) throw failed(`Removing ${key}`, error);
      }
    },
    async *list(prefix) {
      const inner = /^([0-9a-f]{64})\//.exec(prefix)?.[1];
      yield* within(inner === undefined ? folder : join(folder, inner), prefix);
    },
    close: async () => {},
  };

  async function* within(at: string, prefix: string): AsyncGenerator<Stored> {
    const entries = await readdir(at, { withFileTypes: true }).catch((error: unknown) => {
      if (isGone(error)) return [];
      throw failed('Listing', error);
    });
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue; // being written
      const path = join(at, entry.name);
      const key = relative(folder, path).split(sep).join('/');
      if (entry.isDirectory()) {
        if (key.startsWith(prefix) || prefix.startsWith(key)) yield* within(path, prefix);
      } else if (entry.isFile() && key.startsWith(prefix)) {
        const found = await stat(path).catch(() => null);
        if (found !== null) yield { key, size: found.size, at: found.mtimeMs };
      }
    }
  }
}

async function rmEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch {
    return false;
  }
}

/** Whether the file could be given away instead of copied: only on one and the same disk. */
async function moved(source: Source, aside: string): Promise<boolean> {
  if (source.movable === undefined) return false;
  let file: FileHandle;
  try {
    await rename(source.movable, aside);
    file = await open(aside, 'r');
  } catch (error) {
    if (codeOf(error) === 'EXDEV') return false;
    throw error;
  }
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  return true;
}

async function copy(source: Source, aside: string, key: string, signal?: AbortSignal): Promise<void> {
  const file = await open(aside, 'wx', 0o600);
  try {
    const digest = createHash('sha256');
    for (let at = 0; at < source.size; at += pieceBytes) {
      signal?.throwIfAborted();
      const piece = await source.read(at, Math.min(pieceBytes, source.size - at));
      digest.update(piece);
      for (let done = 0; done < piece.length; )
        done += (await file.write(piece, done, piece.length - done, at + done)).bytesWritten;
    }
    signal?.throwIfAborted();
    if (digest.digest('hex') !== source.sha256) throw changed(key);
    await file.sync();
  } finally {
    await file.close();
  }
}
