/**
 * How far the journal has been moved into the database: `cursor.json`. A position names the segment it is in by number and
 * by the segment's own id, and says only that so many bytes of that very segment are in the database; of all other
 * segments it says nothing, and they are read whole. So a cursor of another journal, an old copy, a wrong number or an
 * offset that does not fit costs a second reading and never a record: the database knows each entry by its id.
 */
import { lstat, open, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../durable.ts';
import { beginsRecord } from './journal-record.ts';
import { HIGHEST_SEGMENT, openSegment, type SegmentFile } from './segments.ts';

export type Position = { readonly segment: number; readonly offset: number };
export type Cursor = Position & { readonly id: string | null };

const pathOf = (folder: string) => join(folder, 'cursor.json');
/** A cursor is a line; whatever is longer is something else. */
const LONGEST_CURSOR = 4096;

/** What the file says, null without one. Throws a sentence when it says nothing that can be understood. */
export async function readCursor(folder: string): Promise<Cursor | null> {
  const path = pathOf(folder);
  let value: Partial<Cursor> | null;
  try {
    const facts = await lstat(path);
    if (!facts.isFile()) throw new Error('it is not a file');
    if (facts.size > LONGEST_CURSOR) throw new Error('it is too long');
    value = JSON.parse(await readFile(path, 'utf8')) as Partial<Cursor> | null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`cursor.json cannot be read (${(error as Error).message})`);
  }
  const { segment, offset, id = null } = value ?? {};
  const isNumber = (n: unknown): n is number => Number.isSafeInteger(n) && (n as number) >= 0;
  if (!isNumber(segment) || !isNumber(offset) || segment >= HIGHEST_SEGMENT || (id !== null && typeof id !== 'string'))
    throw new Error('cursor.json names no position');
  return { segment, offset, id };
}

/** The number that new segments begin above: those the cursor has seen may be gone. */
export const seenSegment = (folder: string): Promise<number> =>
  readCursor(folder).then(
    (cursor) => cursor?.segment ?? 0,
    () => 0,
  );

export type Resume = {
  /** Where to go on in the segment it names; null: nowhere, all there is gets read. */
  readonly from: Position | null;
  /** Why a cursor that is there was not used, a sentence; null when there is nothing to say. */
  readonly problem: string | null;
};

const again = 'everything in the journal is read again (the database keeps each entry once)';

/** Where reading goes on in these segments. */
export async function resumeAt(folder: string, segments: readonly SegmentFile[]): Promise<Resume> {
  let cursor: Cursor | null;
  try {
    cursor = await readCursor(folder);
  } catch (error) {
    return { from: null, problem: `${(error as Error).message}: ${again}.` };
  }
  const named = segments.find(({ segment }) => segment === cursor?.segment);
  // A segment that is gone was done with; a cursor without an id is an older Pawl's.
  if (cursor === null || named === undefined || cursor.id === null) return { from: null, problem: null };
  const refuse = (why: string): Resume => ({
    from: null,
    problem: `cursor.json names byte ${cursor.offset} of segment ${cursor.segment}, ${why}: ${again}.`,
  });
  if (named.id !== cursor.id) return refuse('but the segment of that number is another one');
  if (cursor.offset > named.bytes) return refuse(`which has only ${named.bytes}`);
  if (cursor.offset < named.bytes && !(await isBoundary(folder, cursor)))
    return refuse('which is not where a record begins');
  return { from: cursor, problem: null };
}

async function isBoundary(folder: string, { segment, offset }: Position): Promise<boolean> {
  const file = await openSegment(folder, segment);
  try {
    const start = Buffer.alloc(4);
    const { bytesRead } = await file.read(start, 0, start.length, offset);
    return beginsRecord(start.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
}

export async function writeCursor(folder: string, cursor: Cursor): Promise<void> {
  const temporary = `${pathOf(folder)}.new`;
  // Made anew each time: what lies there may be a link to somewhere else.
  await unlink(temporary).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(JSON.stringify({ segment: cursor.segment, offset: cursor.offset, id: cursor.id }));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, pathOf(folder));
  await syncFolder(folder);
}
