/**
 * A folder that is replaced all at once. One rename cannot replace a folder, so it takes these steps, each atomic:
 *   .NAME.writing-PID-N   being filled; never read; removed by the next writer once its process is gone
 *   .NAME.next            complete and on disk, not yet in place
 *   NAME → .NAME.previous, .NAME.next → NAME, then .NAME.previous is removed
 * Whenever the writer dies, NAME, .NAME.next or .NAME.previous is complete; readers take the first of them that exists,
 * and read again if the folder was exchanged under them, so versions are never mixed.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isAlive, syncFolder } from '../durable.ts';
import { EngineError } from '../errors.ts';

const asideOf = (folder: string, what: string) => join(dirname(folder), `.${basename(folder)}.${what}`);

async function identity(path: string): Promise<string | undefined> {
  try {
    const found = await stat(path, { bigint: true });
    return found.isDirectory() ? `${found.dev}:${found.ino}:${found.birthtimeNs}` : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Runs `read` on the folder's complete version; again if a writer exchanged the folder meanwhile. */
export async function readOneVersion<T>(folder: string, read: (dir: string) => Promise<T>): Promise<T> {
  let misses = 0;
  for (let attempt = 1; ; attempt++) {
    let dir: string | undefined;
    let before: string | undefined;
    for (const candidate of [folder, asideOf(folder, 'next'), asideOf(folder, 'previous')]) {
      before = await identity(candidate);
      if (before !== undefined) {
        dir = candidate;
        break;
      }
    }
    // Between the looks above a writer may have moved the folder: only looking again can say that there is none.
    if (dir === undefined) {
      if (++misses === 3) throw new EngineError(`There is no checkpoint folder ${folder}.`);
      continue;
    }
    misses = 0;
    // Held open while we read, so that its number cannot be given to a newer folder in the meantime.
    const held = process.platform === 'win32' ? undefined : await open(dir, 'r').catch(() => undefined);
    try {
      let result: { value: T } | { error: unknown };
      try {
        result = { value: await read(dir) };
      } catch (error) {
        result = { error };
      }
      if ((await identity(dir)) === before) {
        if ('error' in result) throw result.error;
        return result.value;
      }
    } finally {
      await held?.close();
    }
    if (attempt === 50)
      throw new EngineError(`${folder} is being replaced faster than it can be read.`, { retryable: true });
  }
}

const writers = new Map<string, Promise<void>>();

/** One writer per folder in this process; `fill` puts the files into an empty folder, which then takes the place. */
export async function replaceFolder(
  folder: string,
  mayReplace: (names: readonly string[]) => boolean,
  fill: (dir: string) => Promise<void>,
): Promise<void> {
  const turn = (writers.get(folder) ?? Promise.resolve())
    .catch(() => {})
    .then(() => replaceFolderNow(folder, mayReplace, fill));
  writers.set(folder, turn);
  try {
    await turn;
  } finally {
    if (writers.get(folder) === turn) writers.delete(folder);
  }
}

async function replaceFolderNow(
  folder: string,
  mayReplace: (names: readonly string[]) => boolean,
  fill: (dir: string) => Promise<void>,
): Promise<void> {
  const parent = dirname(folder);
  const next = asideOf(folder, 'next');
  const previous = asideOf(folder, 'previous');
  await mkdir(parent, { recursive: true });
  if ((await identity(folder)) === undefined) {
    // A writer died between the two renames: put the complete version back before anything else.
    if ((await identity(next)) !== undefined) await rename(next, folder);
    else if ((await identity(previous)) !== undefined) await rename(previous, folder);
  }
  await refuseOtherFolder(folder, mayReplace);
  await rm(next, { recursive: true, force: true });
  await rm(previous, { recursive: true, force: true });
  await removeAbandoned(folder);

  const writing = asideOf(folder, `writing-${process.pid}-${randomBytes(4).toString('hex')}`);
  await mkdir(writing);
  try {
    await fill(writing);
    await syncFolder(writing);
    await rename(writing, next);
  } catch (error) {
    await rm(writing, { recursive: true, force: true });
    throw error;
  }
  await syncFolder(parent);
  if ((await identity(folder)) !== undefined) await rename(folder, previous);
  await rename(next, folder);
  await syncFolder(parent);
  await rm(previous, { recursive: true, force: true });
}

async function refuseOtherFolder(folder: string, mayReplace: (names: readonly string[]) => boolean): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [] as string[];
    throw new EngineError(`No checkpoint can be written at ${folder}: ${error.code ?? error.message}.`, {
      cause: error,
    });
  });
  if (names.length > 0 && !mayReplace(names)) {
    throw new EngineError(`${folder} holds other files and no checkpoint; it is not replaced. Choose another folder.`);
  }
}

async function removeAbandoned(folder: string): Promise<void> {
  const prefix = `.${basename(folder)}.writing-`;
  for (const name of await readdir(dirname(folder))) {
    if (!name.startsWith(prefix)) continue;
    const pid = Number(name.slice(prefix.length).split('-')[0]);
    // Writers of this process take turns, so a leftover with our number is from an earlier process that had it.
    if (pid === process.pid || !isAlive(pid)) await rm(join(dirname(folder), name), { recursive: true, force: true });
  }
}
