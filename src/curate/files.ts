/**
 * A dataset as a file: a row per line, then `{"pair": …}` per line, readable by its owner only. It is drafted in the home and
 * kept as an artifact; reading checks the hash first, so that nobody trains on a file somebody has touched.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { isAlive } from '../durable.ts';
import { ConflictError } from '../errors.ts';
import { type Dataset, goneSentence } from './dataset.ts';
import { type PairRow, pair as pairSchema } from './pair.ts';
import { type Row, row as rowSchema } from './row.ts';

const folderOf = (home: string): string => join(home, 'datasets');
/** Where a dataset lies that was made before there were artifacts, below the home. */
const olderFile = (id: string): string => join('datasets', `${id}.jsonl`);

const flushAt = 1024 * 1024;
const readAtOnce = 32 * 1024;
const staleMs = 24 * 60 * 60 * 1000;

/** A file under a name of its own that nobody reads, until it is kept or dropped. */
export type Draft = {
  /** Writes a line; returns where it begins and its length in bytes. */
  add(line: string): Promise<{ readonly start: number; readonly length: number }>;
  /** Reads a line back. */
  read(at: { readonly start: number; readonly length: number }): Promise<string>;
  /** How many bytes were added. */
  length(): number;
  /** Reads the lines between two places, a block at a time. */
  lines(from: number, to: number): AsyncGenerator<string>;
  /** SHA-256 of all that was added. */
  hash(): string;
  /** Its path, all of it written; nothing is added any more. */
  finish(): Promise<string>;
  drop(): Promise<void>;
};

export async function openDraft(home: string): Promise<Draft> {
  const folder = folderOf(home);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await dropStale(folder);
  const path = join(folder, `.draft-${process.pid}-${randomBytes(6).toString('hex')}`);
  const file = await open(path, 'wx+', 0o600);
  const digest = createHash('sha256');
  let buffered: Buffer[] = [];
  let bufferedBytes = 0;
  let written = 0;
  let closed = false;
  let writing: Promise<void> = Promise.resolve();
  /** What was added so far is written when this ends, whoever else waits for the same. */
  const flush = (): Promise<void> => {
    if (bufferedBytes === 0) return writing;
    const [bytes, at] = [Buffer.concat(buffered), written];
    written += bufferedBytes;
    buffered = [];
    bufferedBytes = 0;
    writing = writing.then(() => writeAll(file, bytes, at));
    return writing;
  };
  const close = async () => {
    if (!closed) await file.close();
    closed = true;
  };
  const read = async (start: number, length: number): Promise<Buffer> => {
    await flush();
    const bytes = Buffer.alloc(length);
    for (let at = 0; at < length; ) {
      const { bytesRead } = await file.read(bytes, at, length - at, start + at);
      if (bytesRead === 0) throw new Error(`${path} is shorter than what was written to it; is the disk full?`);
      at += bytesRead;
    }
    return bytes;
  };
  return {
    async add(line) {
      const bytes = Buffer.from(`${line}\n`);
      const start = written + bufferedBytes;
      digest.update(bytes);
      buffered.push(bytes);
      bufferedBytes += bytes.length;
      if (bufferedBytes >= flushAt) await flush();
      return { start, length: bytes.length - 1 };
    },
    read: async ({ start, length }) => (await read(start, length)).toString(),
    length: () => written + bufferedBytes,
    async *lines(from, to) {
      let begun = Buffer.alloc(0);
      for (let at = from; at < to; at += readAtOnce) {
        const bytes = Buffer.concat([begun, await read(at, Math.min(readAtOnce, to - at))]);
        let line = 0;
        for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, line)) {
          yield bytes.toString('utf8', line, end);
          line = end + 1;
        }
        begun = bytes.subarray(line);
      }
    },
    hash: () => digest.copy().digest('hex'),
    async finish() {
      await flush();
      await close();
      return path;
    },
    async drop() {
      await close();
      await rm(path, { force: true });
    },
  };
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; )
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
}

/** What processes that were killed in the middle of making a dataset have left in a home. */
export const dropStaleDatasets = (home: string): Promise<void> => dropStale(folderOf(home));

/** Drafts of processes that were killed. Younger ones may still be written. */
async function dropStale(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.startsWith('.draft-')) continue;
    const path = join(folder, name);
    const found = await stat(path).catch(() => null);
    const owner = Number(name.split('-')[1]);
    if (found && (Date.now() - found.mtimeMs > staleMs || !isAlive(owner))) await rm(path, { force: true });
  }
}

export type Line = { readonly kind: 'row'; readonly row: Row } | { readonly kind: 'pair'; readonly pair: PairRow };

export const pairText = (pair: PairRow): string => JSON.stringify({ pair });

const line = z.union([
  rowSchema.transform((row): Line => ({ kind: 'row', row })),
  z.strictObject({ pair: pairSchema }).transform(({ pair }): Line => ({ kind: 'pair', pair })),
]);

/** Keeps a draft as the dataset's artifact: its own, so that it can be removed without regard to another with the same rows. */
export const keepDraft = async (
  artifacts: Artifacts,
  { agent, key }: Pick<Dataset, 'agent' | 'key'>,
  draft: Draft,
): Promise<string> =>
  artifacts.add({ kind: 'dataset', of: `${agent} ${key}` }, await draft.finish(), { as: 'dataset.jsonl', move: true });

/** Of a dataset that is an artifact by now, or no more, the file from before goes from every home sooner or later. */
export const removeOlderFile = async (artifacts: Artifacts, id: string): Promise<void> =>
  rm(await artifacts.file(olderFile(id)), { force: true });

/** The ids of the datasets whose files from before there were artifacts are in this home. */
export async function datasetsIn(home: string): Promise<string[]> {
  const names = await readdir(folderOf(home)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter((name) => name.endsWith('.jsonl')).map((name) => name.slice(0, -'.jsonl'.length));
}

/** All of it, in order, after the whole file has been checked against the dataset's hash. */
export async function* readLines(
  artifacts: Artifacts,
  dataset: Pick<Dataset, 'id' | 'hash' | 'artifact' | 'gone'>,
): AsyncGenerator<Line> {
  if (dataset.gone !== null) throw new ConflictError(goneSentence(dataset.id, dataset.gone));
  const path = await artifacts.file(dataset.artifact ?? olderFile(dataset.id));
  const digest = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) digest.update(chunk as Buffer);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const older = dataset.artifact === null ? ', and it was made before datasets were artifacts' : '';
    throw new ConflictError(
      `The file of dataset ${dataset.id} is not at ${path}${older}. Put it back from a backup or from the home it was made in, or curate again: pawl curate run.`,
      { cause: error },
    );
  }
  const hash = digest.digest('hex');
  if (hash !== dataset.hash)
    throw new ConflictError(
      `${path} is not what dataset ${dataset.id} was made of: its SHA-256 is ${hash}, not ${dataset.hash}. Put the original back from a backup, or curate again.`,
    );
  for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY }))
    yield line.parse(JSON.parse(text));
}
